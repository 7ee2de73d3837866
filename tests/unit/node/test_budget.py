"""One budget for the requests in flight: calls are refused, chunks wait in line, and neither keeps the other out."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument, ResourceExhausted
from cortado.store.process.budget import Budget, Held
from cortado.store.process.limits import NodeLimits
from support.nodes import make_node, run

MIB = 1 << 20


def small_budget() -> Budget:
    """Return a budget of 128 MiB for calls and chunks; each keeps 32."""
    limits = NodeLimits()
    return Budget(NodeLimits(in_flight_bytes_max=limits.in_flight_bytes_min))


async def steps() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_call_without_room_is_refused_with_a_delay_and_takes_nothing() -> None:
    budget = small_budget()
    held = budget.calls.take(90 * MIB)
    with pytest.raises(ResourceExhausted, match=r"1 calls hold 94371840 bytes, .* may hold 134217728") as refused:
        budget.calls.take(7 * MIB)
    assert refused.value.retry_delay_ms > 0
    assert (refused.value.resource, budget.calls.bytes, budget.calls.refused) == ("calls", 90 * MIB, 1)
    held.leave()
    held.leave()
    assert (budget.calls.bytes, budget.calls.count) == (0, 0)


def test_neither_side_takes_what_the_other_keeps() -> None:
    async def scenario() -> None:
        budget = small_budget()
        chunks = [budget.chunks.add(MIB) for _ in range(12)]
        entering = [asyncio.ensure_future(budget.chunks.enter(each, 10 * MIB)) for each in chunks]
        await steps()
        assert budget.chunks.waiting == 3
        assert budget.chunks.bytes == 93 * MIB
        call = budget.calls.take(32 * MIB)
        with pytest.raises(ResourceExhausted):
            budget.calls.take(4 * MIB)
        call.leave()
        for each in chunks[:3]:
            each.leave()
        await asyncio.gather(*entering)
        for each in chunks[3:]:
            each.leave()
        assert budget.chunks.use().bytes == 0

    run(scenario)


def test_where_messages_alone_fill_the_budget_chunks_go_in_one_by_one_and_calls_keep_their_part() -> None:
    async def scenario() -> None:
        budget = small_budget()
        chunks = [budget.chunks.add(8 * MIB) for _ in range(64)]
        entering = [asyncio.ensure_future(budget.chunks.enter(each, 32 * MIB)) for each in chunks]
        for number, each in enumerate(entering):
            await steps()
            if number < 40:
                assert [other.done() for other in entering] == [place <= number for place in range(64)]
            assert each.done()
            budget.calls.take(32 * MIB).leave()
            chunks[number].leave()
        assert (budget.chunks.bytes, budget.chunks.count) == (0, 0)

    run(scenario)


def test_who_stops_waiting_lets_the_next_one_in() -> None:
    async def scenario() -> None:
        budget = small_budget()
        first, large, small = (budget.chunks.add(size * MIB) for size in (1, 1, 1))
        await budget.chunks.enter(first, 60 * MIB)
        waiting = asyncio.ensure_future(budget.chunks.enter(large, 50 * MIB))
        behind = asyncio.ensure_future(budget.chunks.enter(small, 2 * MIB))
        await steps()
        assert not waiting.done()
        assert not behind.done(), "first come, first served"
        waiting.cancel()
        large.leave()
        await behind
        small.leave()
        first.leave()
        assert budget.chunks.bytes == 0

    run(scenario)


@given(st.lists(st.tuples(st.sampled_from(["call", "chunk", "leave", "cancel"]), st.integers(0, 40)), max_size=60))
def test_whatever_comes_and_goes_the_budget_holds_and_everybody_who_stays_gets_in(
    moves: list[tuple[str, int]],
) -> None:
    async def scenario() -> None:
        budget = small_budget()
        calls: list[Held] = []
        chunks: list[tuple[Held, asyncio.Future[None]]] = []
        for move, size in moves:
            if move == "call" and budget.calls.has_room(size * MIB):
                calls.append(budget.calls.take(size * MIB))
            elif move == "chunk":
                held = budget.chunks.add(size // 8 * MIB)
                chunks.append((held, asyncio.ensure_future(budget.chunks.enter(held, size * MIB))))
            elif move == "leave":
                done = [each for each in chunks if each[1].done()]
                for held, entering in done[:1]:
                    held.leave()
                    chunks.remove((held, entering))
                if calls and not done:
                    calls.pop(0).leave()
            elif chunks:
                held, entering = chunks.pop(size % len(chunks))
                entering.cancel()
                await asyncio.wait([entering])
                held.leave()
            await steps()
            assert budget.calls.bytes == sum(each.bytes for each in calls)
            assert budget.chunks.bytes == sum(held.bytes for held, _ in chunks)
            waiting = sum(held.bytes for held, entering in chunks if not entering.done())
            assert budget.calls.bytes + budget.chunks.bytes - waiting <= budget.bytes_max
            assert not waiting or any(entering.done() for _, entering in chunks), "somebody is always inside"
        while chunks:
            inside = [each for each in chunks if each[1].done()]
            assert inside, "whoever waits gets in once the others have left"
            for held, entering in inside:
                held.leave()
                chunks.remove((held, entering))
            await steps()
        for each in calls:
            each.leave()
        assert (budget.calls.bytes, budget.chunks.bytes, budget.chunks.waiting) == (0, 0, 0)

    run(scenario)


def test_the_budget_must_hold_entries_and_a_request() -> None:
    with pytest.raises(InvalidArgument, match=r"in_flight_bytes_max.*between"):
        make_node(limits=NodeLimits(in_flight_bytes_max=100 << 20))
