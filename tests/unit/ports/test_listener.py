"""Connections that come in as a listener closes, and connections of hosts that are gone."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import uvloop

from cortado.store.ports.accepting import Listener


def test_a_connection_that_is_made_stays_with_its_protocol_as_the_listener_closes() -> None:
    """At the very moment: a protocol that has been given a connection is told its end."""
    told: list[str] = []

    async def run() -> None:
        closing: list[asyncio.Future[None]] = []
        lost = asyncio.Event()

        class Echo(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = cast("asyncio.Transport", transport)
                closing.append(asyncio.ensure_future(listener.close()))

            def data_received(self, data: bytes) -> None:
                told.append(data.decode())
                self.transport.write(data)

            def connection_lost(self, exc: Exception | None) -> None:
                lost.set()

        taken = socket.create_server(("127.0.0.1", 0))
        address = taken.getsockname()
        listener = Listener([taken], Echo, context=None, handshake_s=10, handshakes_max=1)
        listener.start()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"once")
        assert await asyncio.wait_for(reader.read(4), 10) == b"once"
        writer.close()
        await asyncio.wait_for(lost.wait(), 10)
        await asyncio.gather(*closing)

    uvloop.run(run())
    assert told == ["once"]


def test_the_kernel_ends_a_connection_whose_host_is_gone() -> None:
    async def run() -> tuple[int, ...]:
        made: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()

        class Taken(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.set_result(transport.get_extra_info("socket"))

        taken = socket.create_server(("127.0.0.1", 0))
        listener = Listener([taken], Taken, context=None, handshake_s=10, handshakes_max=1)
        address = taken.getsockname()
        listener.start()
        _, writer = await asyncio.open_connection(*address)
        accepted = await asyncio.wait_for(made, 10)
        tcp = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        found = [accepted.getsockopt(socket.IPPROTO_TCP, each) for each in tcp]
        is_on = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        writer.close()
        await listener.close()
        return is_on, *found

    assert uvloop.run(run()) == (1, 60, 10, 6)
