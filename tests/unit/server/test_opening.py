"""Streams open a few at a time, however many come at once: in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import grpc
import pytest

from cortado.errors import ResourceExhausted
from cortado.proto.v1 import kv_pb2
from cortado.store.auth.caller import CONNECTION
from cortado.store.server import opening
from cortado.store.server.opening import AT_ONCE, ROUND_S, Openings
from support.fronts import FRONTS, served_by
from support.node_world import World
from support.nodes import WAIT_S, until


class Streams:
    """Streams that open, each a task, as ``opened`` shows: its connection, and in which round."""

    def __init__(self) -> None:
        self.openings = Openings()
        self.opened: list[tuple[str, int]] = []
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()

    def open(self, connection: str) -> asyncio.Task[None]:
        return self._loop.create_task(self._opened(connection))

    async def _opened(self, connection: str) -> None:
        CONNECTION.set(lambda: connection)
        await self.openings.turn(connection)
        self.opened.append((connection, round((self._loop.time() - self._began_s) / ROUND_S)))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    World().run(scenario)


def test_so_many_streams_open_in_a_round_and_none_waits_where_few_come() -> None:
    async def scenario() -> None:
        streams = Streams()
        await asyncio.gather(*(streams.open("a") for _ in range(3 * AT_ONCE)))
        assert [each for _, each in streams.opened] == [0] * AT_ONCE + [1] * AT_ONCE + [2] * AT_ONCE
        await asyncio.sleep(2 * ROUND_S)
        await streams.open("a")
        assert streams.opened[-1][1] == 4, "at once"

    run(scenario)


def test_connections_take_turns() -> None:
    async def scenario() -> None:
        streams = Streams()
        many = [streams.open("many") for _ in range(100 * AT_ONCE)]
        await asyncio.sleep(0)
        few = [streams.open("few") for _ in range(AT_ONCE // 2)]
        await asyncio.gather(*few)
        assert {each for connection, each in streams.opened if connection == "few"} == {1}
        assert sum(connection == "many" for connection, _ in streams.opened) <= 2 * AT_ONCE
        await asyncio.gather(*many)

    run(scenario)


def test_a_stream_whose_caller_has_gone_takes_no_turn() -> None:
    async def scenario() -> None:
        streams = Streams()
        waiting = [streams.open("a") for _ in range(4 * AT_ONCE)]
        await asyncio.sleep(0)
        for each in waiting[AT_ONCE : 3 * AT_ONCE]:
            each.cancel()
        await asyncio.gather(*waiting[3 * AT_ONCE :])
        assert [each for _, each in streams.opened] == [0] * AT_ONCE + [1] * AT_ONCE
        assert streams.openings._waiting.use().count == 0
        await asyncio.sleep(3 * ROUND_S)
        assert not streams.openings._lines

    run(scenario)


def test_the_line_is_bounded_with_a_share_for_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "WAITING_MAX", 8)

    async def scenario() -> None:
        streams = Streams()
        opened = [streams.open("a") for _ in range(AT_ONCE + 5)]
        await asyncio.sleep(0)
        with pytest.raises(ResourceExhausted, match="4 streams that open of connection a are in flight"):
            await opened[-1]
        await asyncio.gather(streams.open("b"), *opened[:-1])

    run(scenario)


class Kv:
    """Scans that stay open, and other methods that answer at once."""

    def __init__(self) -> None:
        self.scans = 0

    async def scan(self, _request: Any) -> AsyncGenerator[bytes, None]:
        self.scans += 1
        yield b""
        await asyncio.Event().wait()

    async def _answer(self, _request: Any) -> bytes:
        return b""

    def __getattr__(self, name: str) -> Any:
        return self._answer


@pytest.mark.parametrize("front", FRONTS)
def test_calls_are_served_while_streams_wait_for_their_turn(front: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "ROUND_S", 3_600.0)

    async def scenario() -> None:
        kv = Kv()
        service = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
        async with served_by(front, service, kv) as endpoint, grpc.aio.insecure_channel(endpoint) as channel:
            scans = [channel.stream_stream("/cortado.v1.KeyValue/Scan")(iter([b""])) for _ in range(10 * AT_ONCE)]
            await until(lambda: kv.scans == AT_ONCE, "so many scans are open")
            assert await channel.unary_unary("/cortado.v1.KeyValue/Get")(b"", timeout=WAIT_S) == b""
            assert kv.scans == AT_ONCE
            for each in scans:
                each.cancel()

    asyncio.run(scenario())
