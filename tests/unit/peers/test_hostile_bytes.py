"""For any bytes at the port for peers, a node refuses them with a reason, holds little for them, and serves its peers
meanwhile."""

from __future__ import annotations

import asyncio
import logging
import random
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument, Unavailable
from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.store.peers.connection import READ_AHEAD_BYTES, Connection
from cortado.store.peers.frames import PREAMBLE, FrameBuffer, Kind, encode_frame
from cortado.store.peers.hello import make_hello
from support.certificates import Certifier
from support.nodes import run, until
from support.peers import LIMITS, PeerProcess, calling, connected, identity_of_node, members, running_peer

READ_S = 10.0
READ_BYTES = 64 << 10
HELLO = encode_frame(Kind.HELLO, make_hello(identity_of_node("n2"), "h:1", (1, 5), "n1").SerializeToString())


def two_members(n1: PeerProcess) -> Roster:
    return Roster.of((n1.member, Member("n2", "127.0.0.1:1", "storage-n2")))


async def answer_to(peer: PeerProcess, *pieces: bytes) -> bytes:
    """Return the bytes that come back until the node has said why it refuses these, or closes the connection. A caller
    who knows why closes it, and is waited for until then."""
    host, _, port = peer.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        answer = b""
        async with asyncio.timeout(READ_S):
            while not reason_in(answer) and (piece := await reader.read(READ_BYTES)):
                answer += piece
        return answer
    except ConnectionError:
        return b""
    finally:
        writer.close()


def reason_in(answer: bytes) -> str:
    """Return the error frame after the preamble, as text."""
    buffer = FrameBuffer()
    buffer.feed(answer)
    frame = buffer.next(dict.fromkeys(Kind, 1 << 20))
    while frame is not None and frame.kind is not Kind.ERROR:
        frame = buffer.next(dict.fromkeys(Kind, 1 << 20))
    return "" if frame is None else frame.payload.decode(errors="replace")


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([b"GET / HTTP/1.1\r\n\r\n"], "speaks HTTP, not the peers' protocol"),
        ([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], "speaks gRPC, not the peers' protocol"),
        ([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"], "speaks TLS, and this connection has none"),
        ([b"cortado\x02" + HELLO], "speaks version 2 of the peers' frames"),
        ([PREAMBLE, struct.pack("<IBI", (1 << 32) - 1, Kind.HELLO, 0)], "4294967295 bytes, and it may have 16384"),
        ([PREAMBLE, struct.pack("<IBI", 0, 200, 0)], "a frame of the unknown kind 200"),
        ([PREAMBLE, HELLO[:-1] + bytes([HELLO[-1] ^ 1])], "whose checksum does not match"),
        ([PREAMBLE, HELLO, struct.pack("<IBI", 8, Kind.HELLO, 0)], "a frame HELLO where BATCH was due"),
        ([PREAMBLE, HELLO, struct.pack("<IBI", 9 << 20, Kind.BATCH, 0)], "of 9437184 bytes, and it may have 8388608"),
        ([PREAMBLE, HELLO, encode_frame(Kind.BATCH, b"\xff" * 50)], "not of the peers' protocol"),
    ],
)
def test_wrong_bytes_are_answered_with_a_reason(pieces: list[bytes], said: str) -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            assert said in reason_in(await answer_to(n1, *pieces))
            assert n1.node.received == []
            await until(lambda: n1.listener.connections == 0, "nothing is left of it")

    run(scenario)


def test_bytes_that_were_drawn_at_random_end_every_connection_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    chance = random.Random(20)

    def drawn() -> bytes:
        begun = chance.choice([b"", PREAMBLE, PREAMBLE + HELLO, PREAMBLE + HELLO[: chance.randrange(len(HELLO))]])
        return begun + chance.randbytes(chance.randrange(1, 3_000))

    async def scenario() -> None:
        # Half a frame is waited for, as long as a Hello is.
        limits = replace(LIMITS, hello_ms=300)
        async with running_peer("n1", limits=limits) as n1, running_peer("n3") as n3:
            # n2 is known, and never there: a node that says its Hello is taken for it.
            n2 = Member("n2", "127.0.0.1:1", "storage-n2")
            n1.transport.configure(Roster.of((*members(n1, n3).voters, n2)))
            n3.transport.configure(members(n1, n3))
            await connected(n1, n3)
            before = n1.listener.connections
            for _ in range(20):
                await asyncio.gather(*(answer_to(n1, drawn()) for _ in range(10)))
            await until(lambda: n1.listener.connections == before, "every connection is ended")
            n3.transport.send(1, [Message("n1", b"beside it")])
            await until(lambda: n1.node.received == [("n3", 1, b"beside it")], "the peer is heard, and nobody else")

    run(scenario)
    assert "Traceback" not in caplog.text
    assert "defect" not in caplog.text


def test_who_sends_a_byte_now_and_then_is_not_waited_for() -> None:
    async def scenario() -> None:
        async with running_peer("n1", limits=replace(LIMITS, hello_ms=100)) as n1:
            n1.transport.configure(two_members(n1))
            host, _, port = n1.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))

            async def drip() -> None:
                for byte in PREAMBLE + HELLO[:-1]:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.001)

            dripping = asyncio.ensure_future(drip())
            async with asyncio.timeout(READ_S):
                assert "no Hello within 100 ms" in reason_in(await reader.read())
            await dripping
            writer.close()

    run(scenario)


@asynccontextmanager
async def silent(peer: PeerProcess, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Yield ``count`` connections on which no byte is sent."""
    host, _, port = peer.address.rpartition(":")
    opened = [await asyncio.open_connection(host, int(port)) for _ in range(count)]
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.transport.abort()


def test_connections_are_bounded_in_number_and_a_peer_is_kept() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, connections_max=20, handshakes_max=30)
        async with running_peer("n1") as n1, running_peer("n2", limits=limits) as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            async with silent(n2, 300) as readers:
                ended = [asyncio.ensure_future(each.read()) for each in readers]
                seen = [0]

                def are_closed() -> bool:
                    seen.append(n2.listener.connections)
                    return sum(each.done() for each in ended) >= 280

                await until(are_closed, "all but a few are closed")
                assert max(seen) == 20
                n1.transport.send(1, [Message("n2", b"still heard")])
                await until(lambda: n2.node.bodies() == [b"still heard"], "the stream that there was goes on")
                for each in ended:
                    each.cancel()
                await asyncio.gather(*ended, return_exceptions=True)

    run(scenario)


def test_junk_for_tls_is_refused_and_a_handshake_that_does_not_go_on_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    certifier = Certifier(tmp_path)

    async def scenario() -> None:
        limits = replace(LIMITS, hello_ms=200)
        async with running_peer("n1", certificates=certifier.certificates("n1"), limits=limits) as n1:
            n1.transport.configure(two_members(n1))
            chance = random.Random(7)
            hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
            for junk in (PREAMBLE + HELLO, b"GET / HTTP/1.1\r\n\r\n", chance.randbytes(500), hello, hello + bytes(600)):
                assert PREAMBLE not in await answer_to(n1, junk)
            assert await answer_to(n1) == b""
            await until(lambda: n1.listener.connections == 0, "nothing is left of them")

    run(scenario)
    assert "it does not speak TLS" in caplog.text
    assert "Traceback" not in caplog.text


class Pipe(asyncio.Transport):
    """A transport that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def abort(self) -> None:
        pass


def test_what_nobody_reads_is_not_taken_from_the_network_for_ever() -> None:
    async def scenario() -> None:
        connection, pipe = Connection("it"), Pipe()
        connection.connection_made(pipe)
        connection.expect(BATCH=8 << 20)
        frame = encode_frame(Kind.BATCH, bytes(100_000))
        connection.data_received(PREAMBLE)
        taken = 0
        while not pipe.is_paused and taken < 10 * READ_AHEAD_BYTES:
            connection.data_received(frame)
            taken += len(frame)
        assert taken <= READ_AHEAD_BYTES + len(frame)
        for _ in range(taken // len(frame)):
            assert (await connection.read()) is not None
        waiting = asyncio.ensure_future(connection.read())
        await until(lambda: not pipe.is_paused, "more is taken once somebody wants it")
        connection.connection_lost(None)
        assert await waiting is None

    run(scenario)


def test_a_peer_that_goes_away_within_a_frame_is_told_from_one_that_ends_between_two() -> None:
    async def scenario() -> None:
        for sent, said in (
            (PREAMBLE + HELLO[:20], "the connection broke within a message"),
            (b"cor", "it closed the connection within its first bytes"),
        ):
            connection = Connection("it")
            connection.connection_made(Pipe())
            connection.expect(HELLO=1000)
            connection.data_received(sent)
            connection.connection_lost(None)
            with pytest.raises(Unavailable, match=said):
                await connection.read()

    run(scenario)


def test_many_callers_that_are_refused_leave_nothing_behind() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            for _ in range(20):
                async with AsyncExitStack() as stack:
                    callers = [await stack.enter_async_context(calling(n1)) for _ in range(8)]
                    for each in callers:
                        await each.write(Kind.JOIN, b"\xff")
                    for each in callers:
                        with pytest.raises(InvalidArgument, match="not one of the peers' protocol"):
                            await each.read()
            await until(lambda: n1.listener.connections == 0, "all are closed")

    run(scenario)
