"""A call's message is asked for when there is room for it; a slow caller holds up no other one for long."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from cortado.errors import InvalidArgument, ResourceExhausted
from cortado.store.process.budget import Budget
from cortado.store.process.limits import NodeLimits
from cortado.store.server import receiving as module
from cortado.store.server.receiving import RECEIVING_MAX, SLOW_MAX, Receiving, call_cost
from support.nodes import run, until

MIB = 1 << 20


class Caller:
    """A call with a message that comes when the test says so."""

    def __init__(self, message: bytes | object | None = None) -> None:
        self.is_asked = False
        self._message: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if message is not None:
            self.send(message)

    def send(self, message: object) -> None:
        self._message.set_result(message)

    async def read(self) -> Any:
        self.is_asked = True
        return await self._message


def new_receiving() -> Receiving:
    return Receiving(Budget(NodeLimits(in_flight_bytes_max=NodeLimits().in_flight_bytes_min)).calls)


def ask(receiving: Receiving, caller: Caller) -> asyncio.Task[Any]:
    return asyncio.ensure_future(receiving.request(caller))  # type: ignore[arg-type]


def test_so_many_messages_come_in_at_once_and_the_others_are_not_asked_for() -> None:
    async def scenario() -> None:
        receiving = new_receiving()
        callers = [Caller() for _ in range(RECEIVING_MAX + 5)]
        asked = [ask(receiving, caller) for caller in callers]
        await asyncio.sleep(0)
        assert [caller.is_asked for caller in callers] == [True] * RECEIVING_MAX + [False] * 5
        for number, caller in enumerate(callers):
            await until(lambda caller=caller: caller.is_asked, "its turn comes")  # type: ignore[misc]
            caller.send(b"%d" % number)
            message, held = await asked[number]
            assert message == b"%d" % number
            held.leave()
        assert receiving.calls.bytes == 0

    run(scenario)


def test_a_message_without_room_in_the_budget_is_refused_and_its_place_is_free() -> None:
    async def scenario() -> None:
        receiving = new_receiving()
        held = [(await ask(receiving, Caller(bytes(8 * MIB))))[1] for _ in range(3)]
        for _ in range(2 * RECEIVING_MAX):
            with pytest.raises(ResourceExhausted) as refused:
                await ask(receiving, Caller(bytes(8 * MIB)))
            assert refused.value.resource == "calls"
        assert receiving.calls.bytes == 3 * call_cost(8 * MIB)
        held.pop().leave()
        (await ask(receiving, Caller(bytes(8 * MIB))))[1].leave()

    run(scenario)


def test_who_is_slow_gives_the_place_up_and_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_MS", 1.0)

    async def scenario() -> None:
        receiving = new_receiving()
        slow = [Caller() for _ in range(RECEIVING_MAX)]
        slowly = [ask(receiving, caller) for caller in slow]
        await asyncio.sleep(0)
        message, held = await ask(receiving, Caller(b"quick"))
        held.leave()
        assert message == b"quick"
        for caller in slow:
            caller.send(b"slow")
        for each in slowly:
            message, held = await each
            held.leave()
            assert message == b"slow"
        assert (receiving.calls.count, receiving._taken) == (0, 0)

    run(scenario)


def test_of_too_many_slow_ones_the_slowest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_MS", 1.0)

    async def scenario() -> None:
        receiving = new_receiving()
        slow = [ask(receiving, Caller()) for _ in range(SLOW_MAX + RECEIVING_MAX)]
        message, held = await ask(receiving, Caller(b"quick"))
        held.leave()
        assert message == b"quick"
        await until(lambda: slow[0].done(), "the slowest is refused")
        with pytest.raises(ResourceExhausted, match="did not arrive within 1 ms"):
            await slow[0]
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        assert (receiving.calls.count, receiving._taken) == (0, 0)

    run(scenario)


def test_who_leaves_while_waiting_or_receiving_leaves_no_place_taken() -> None:
    async def scenario() -> None:
        receiving = new_receiving()
        tasks = [ask(receiving, Caller()) for _ in range(RECEIVING_MAX + 3)]
        await asyncio.sleep(0)
        for each in reversed(tasks):
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (receiving.calls.count, receiving._taken) == (0, 0)

    run(scenario)


def test_a_call_without_a_message_says_so() -> None:
    async def scenario() -> None:
        receiving = new_receiving()
        with pytest.raises(InvalidArgument, match="request"):
            await ask(receiving, Caller(grpc.aio.EOF))
        assert (receiving.calls.count, receiving._taken) == (0, 0)

    run(scenario)
