"""A frame leaves with the call that sends it, in the order of the calls; bytes that the socket does not take follow."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest
import uvloop

from cortado.store.peers.connection import Connection
from cortado.store.peers.frames import PREAMBLE, Kind, encode_frame

LOOPS = [pytest.param(asyncio.run, id="asyncio"), pytest.param(uvloop.run, id="uvloop")]


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[tuple[Connection, socket.socket]]:
    """Yield a connection and the other end's socket, which blocks."""
    ours, theirs = socket.socketpair()
    try:
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection("it"), sock=ours)
        assert theirs.recv(len(PREAMBLE), socket.MSG_WAITALL) == PREAMBLE
        yield connection, theirs
        connection.abort()
    finally:
        theirs.close()


@pytest.mark.parametrize("run", LOOPS)
def test_a_frame_leaves_before_the_loop_turns(run: Callable[[Awaitable[None]], None]) -> None:
    async def scenario() -> None:
        async with connected() as (connection, theirs):
            await asyncio.sleep(0)
            theirs.setblocking(False)
            connection.send(Kind.BATCH, b"at once")
            assert theirs.recv(1_000) == encode_frame(Kind.BATCH, b"at once")

    run(scenario())


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize("seed", range(5))
def test_frames_arrive_whole_and_in_order_at_a_slow_receiver(seed: int, run: Callable[[Awaitable[None]], None]) -> None:
    random = Random(seed)
    payloads = [random.randbytes(random.choice([0, 10, 3_000, 300_000])) for _ in range(60)]

    async def scenario() -> None:
        async with connected() as (connection, theirs):
            for each in payloads:
                connection.send(Kind.BATCH, each)
                if random.random() < 0.3:
                    await asyncio.sleep(0)
            expected = b"".join(encode_frame(Kind.BATCH, each) for each in payloads)
            found = await asyncio.to_thread(theirs.recv, len(expected), socket.MSG_WAITALL)
            assert found == expected

    run(scenario())


@pytest.mark.parametrize("run", LOOPS)
def test_the_end_of_the_other_side_is_found_by_reading_and_not_by_a_send(
    run: Callable[[Awaitable[None]], None],
) -> None:
    async def scenario() -> None:
        async with connected() as (connection, theirs):
            theirs.close()
            for _ in range(10):
                connection.send(Kind.BATCH, b"nobody reads it")
            while not connection.is_ended:
                await asyncio.sleep(0)

    run(scenario())
