"""The port for clients is looked at, served again if gRPC's server ends, and lost if that can't be."""

from __future__ import annotations

import asyncio
import socket

import pytest
from grpc_health.v1 import health, health_pb2

from cortado.errors import Unavailable
from cortado.store.server import client_port
from cortado.store.server.client_port import ClientPort, answers
from cortado.store.server.foreign_services import foreign_handler
from support.http2 import END_HEADERS, END_STREAM, HEADERS, Connection, frame, request


def made() -> ClientPort:
    port = ClientPort("127.0.0.1", 0, None, of_clients=False, connections_max=64, received=lambda: 0)
    port.add_handlers([foreign_handler(health_pb2, "Health", health.aio.HealthServicer())])
    return port


def number_of(port: ClientPort) -> int:
    return int(port.address.rpartition(":")[2])


def end(port: ClientPort) -> Connection:
    """Send bytes that end gRPC's server."""
    connection = Connection(port.address, acknowledges=False)
    connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request(b"/\xff")))
    return connection


async def ended(port: ClientPort) -> None:
    async with asyncio.timeout(60):
        while port.is_served:
            await asyncio.sleep(0.01)


def test_it_answers_its_own_look_and_one_that_nobody_serves_does_not() -> None:
    async def run() -> None:
        port = made()
        await port.start()
        assert await answers("127.0.0.1", number_of(port), None)
        await port.stop(0)
        assert not await answers("127.0.0.1", number_of(port), None)

    asyncio.run(run())


def test_while_it_cannot_be_served_again_it_says_so_and_then_it_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_port, "AGAIN_S_MAX", 0.2)

    def refuse(*_: object, **_more: object) -> str:
        raise Unavailable("the address is taken")

    async def run() -> None:
        port = made()
        await port.start()
        following = asyncio.ensure_future(port.follow())
        monkeypatch.setattr(client_port, "bind", refuse)
        connection = await asyncio.to_thread(end, port)
        await ended(port)
        async with asyncio.timeout(60):
            lost = await port.lost()
        assert port.address in str(lost)
        await following
        connection.close()

    asyncio.run(run())


def test_a_server_that_answers_no_look_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_port, "LOOK_PERIOD_S", 0.01)
    monkeypatch.setattr(client_port, "ENDED_POLL_S", 0.01)
    looks: list[int] = []
    original = client_port.answers

    async def look(host: str, port: int, context: object) -> bool:
        looks.append(1)
        return len(looks) > client_port.LOOKS and await original(host, port, None)

    monkeypatch.setattr(client_port, "answers", look)

    async def run() -> None:
        port = made()
        await port.start()
        following = asyncio.ensure_future(port.follow())
        async with asyncio.timeout(60):
            while len(looks) <= client_port.LOOKS:
                await asyncio.sleep(0.01)
        assert port.is_served
        assert await original("127.0.0.1", number_of(port), None)
        await port.stop(0)
        async with asyncio.timeout(60):
            await following

    asyncio.run(run())


def test_an_address_that_is_taken_is_refused() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Unavailable):
            ClientPort(*taken.getsockname(), None, of_clients=False, connections_max=64, received=lambda: 0)

    asyncio.run(run())
