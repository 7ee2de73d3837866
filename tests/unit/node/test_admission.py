"""Gates: bounded in count and bytes, refusing at once or granting in order."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.process.admission import Gate
from support.nodes import run


def test_a_gate_refuses_past_its_count_and_takes_nothing() -> None:
    gate = Gate("reads", count_max=2)
    gate.enter()
    gate.enter()
    with pytest.raises(ResourceExhausted, match="2 reads are in flight, the limit is 2") as refused:
        gate.enter()
    assert (refused.value.resource, refused.value.limit) == ("reads", 2)
    assert gate.use().count == 2
    gate.leave()
    gate.enter()


def test_a_gate_refuses_past_its_bytes_but_lets_a_large_one_in_alone() -> None:
    gate = Gate("writes", count_max=10, bytes_max=100)
    gate.enter(60)
    with pytest.raises(ResourceExhausted, match="60 bytes of writes are in flight, the limit is 100"):
        gate.enter(41)
    gate.leave(60)
    gate.enter(1_000)
    assert gate.use().bytes == 1_000


def test_a_place_is_given_back_whatever_happens() -> None:
    gate = Gate("scans", count_max=1)
    with pytest.raises(KeyError), gate.place():
        raise KeyError
    assert gate.use().count == 0


def test_who_waits_is_let_in_in_order() -> None:
    async def scenario() -> None:
        gate = Gate("writes", count_max=1)
        gate.enter()
        entered: list[int] = []

        async def wait(number: int) -> None:
            await gate.wait()
            entered.append(number)

        waiting = [asyncio.ensure_future(wait(number)) for number in range(3)]
        await asyncio.sleep(0)
        for count in range(3):
            gate.leave()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert entered == list(range(count + 1))
            assert gate.use().count == 1
        await asyncio.gather(*waiting)

    run(scenario)


@pytest.mark.parametrize("granted", [False, True])
def test_who_stops_waiting_leaves_no_place_taken(granted: bool) -> None:
    async def scenario() -> None:
        gate = Gate("writes", count_max=1)
        gate.enter()
        waiting = asyncio.ensure_future(gate.wait())
        await asyncio.sleep(0)
        if granted:
            gate.leave()
            assert gate.use().count == 1
            waiting.cancel()
        else:
            waiting.cancel()
            await asyncio.sleep(0)
            gate.leave()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert gate.use().count == 0
        gate.enter()

    run(scenario)


def test_who_stops_waiting_keeps_no_other_out() -> None:
    async def scenario() -> None:
        gate = Gate("writes", count_max=10, bytes_max=100)
        gate.enter(50)
        large = asyncio.ensure_future(gate.wait(80))
        await asyncio.sleep(0)
        behind = asyncio.ensure_future(gate.wait(20))
        await asyncio.sleep(0)
        with pytest.raises(ResourceExhausted):
            gate.enter(20)
        large.cancel()
        with pytest.raises(asyncio.CancelledError):
            await large
        # No caller has left, and the waiting caller is let in all the same.
        await asyncio.wait_for(behind, 5)
        gate.enter(20)
        await asyncio.wait_for(gate.wait(10), 5)
        assert (gate.use().count, gate.use().bytes) == (4, 100)

    run(scenario)


def test_a_place_that_is_given_to_who_was_just_cancelled_comes_back() -> None:
    async def scenario() -> None:
        gate = Gate("writes", count_max=1)
        gate.enter()
        waiting, behind = (asyncio.ensure_future(gate.wait()) for _ in range(2))
        await asyncio.sleep(0)
        waiting.cancel()
        gate.leave()
        await asyncio.wait_for(behind, 5)
        assert waiting.cancelled()
        gate.leave()
        assert gate.use().count == 0

    run(scenario)


def test_a_caller_may_hold_as_many_places_as_it_leaves_free() -> None:
    caller = "a"
    gate = Gate("scans", count_max=8, holder=lambda: caller)
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(gate.place())
        problem = "4 scans of a are in flight: no more than are free, which are 4 of 8"
        with pytest.raises(ResourceExhausted, match=problem) as refused, gate.place():
            pass
        assert (refused.value.resource, refused.value.limit) == ("scans", 8)
        assert refused.value.retry_delay_ms and gate.refused == 1
        for other, count in (("b", 2), ("c", 1), ("d", 1)):
            caller = other
            for _ in range(count):
                held.enter_context(gate.place())
        caller = "e"
        with pytest.raises(ResourceExhausted, match="8 scans are in flight, the limit is 8"), gate.place():
            pass
    caller = "a"
    with gate.place():
        assert gate.use().count == 1
    assert not gate._held
