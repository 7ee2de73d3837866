"""A snapshot comes whole, from any offset on, and a piece that was damaged on its way is not handed on."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import google_crc32c
import pytest

from cortado.errors import CortadoError, NotFound, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import SnapshotChunk
from cortado.raft.registry import Member, Roster
from cortado.store.peers.frames import HEADER_BYTES, PREAMBLE, Kind, encode_frame
from support.nodes import run
from support.peers import LIMITS, PeerProcess, members, running_peer, until

SNAPSHOT = bytes(range(256)) * 4_000  # Several pieces.


async def fetched(peer: PeerProcess, snapshot_id: str, offset: int = 0, sender: str = "n2") -> bytes:
    return b"".join([piece async for piece in peer.transport.fetch_snapshot(sender, 1, snapshot_id, offset)])


@pytest.mark.parametrize("offset", [0, 1, 262_144, 500_001, len(SNAPSHOT)])
def test_a_snapshot_arrives_from_any_offset_on(offset: int) -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            n2.node.snapshot_files["s1"] = SNAPSHOT
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            assert await fetched(n1, "s1", offset) == SNAPSHOT[offset:]

    run(scenario)


def test_a_snapshot_that_is_gone_or_a_node_that_is_not_known_is_said() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2, running_peer("n3") as n3:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            with pytest.raises(NotFound, match="no snapshot s9"):
                await fetched(n1, "s9")
            with pytest.raises(Unavailable, match="the address of node n7 is not known"):
                await fetched(n1, "s9", sender="n7")
            n3.transport.configure(members(n1, n2, n3))
            with pytest.raises(PeerRefused, match="node n3 is no member"):
                await fetched(n3, "s1")

    run(scenario)


def test_a_reader_that_takes_nothing_is_given_up() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, patience_ms=200)
        async with running_peer("n1") as n1, running_peer("n2", limits=limits) as n2:
            n2.node.snapshot_files["s1"] = bytes(64 << 20)  # More than any buffer on the way.
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            reading = n1.transport.fetch_snapshot("n2", 1, "s1", 0)
            await anext(reading)
            await until(lambda: n2.node.snapshots_ended == ["s1"], "its sender gives it up")
            # It says so, unless the connection is cut before the reader gets to that.
            with pytest.raises(Unavailable, match=r"nothing was taken for 200 ms|broke|before the end"):
                while True:
                    await anext(reading)

    run(scenario)


@asynccontextmanager
async def sender_of(messages: Callable[[], list[bytes]]) -> AsyncIterator[str]:
    """Run a peer that answers a request for a snapshot with these messages."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(PREAMBLE))
        length, _, _ = struct.unpack("<IBI", await reader.readexactly(HEADER_BYTES))
        await reader.readexactly(length)
        writer.write(PREAMBLE + b"".join(encode_frame(Kind.SNAPSHOT_CHUNK, each) for each in messages()))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def chunk(offset: int, data: bytes, checksum_of: bytes | None = None) -> bytes:
    checksum = google_crc32c.value(data if checksum_of is None else checksum_of)
    return SnapshotChunk(offset=offset, data=data, checksum=checksum).SerializeToString()


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (chunk(5, b"woRld", b"world"), "at byte 5, was damaged on its way"),
        (chunk(6, b"world"), "sent a snapshot's byte 6 where 5 was next"),
        (b"\xff\xff", "sent a piece of a snapshot that does not decode"),
        (b"", "sent a snapshot's byte 0 where 5 was next"),
        (None, "closed the connection before the end of a snapshot"),
    ],
)
def test_a_damaged_piece_or_an_early_end_ends_the_stream_after_what_was_good(second: bytes | None, said: str) -> None:
    async def scenario() -> None:
        async with (
            sender_of(lambda: [each for each in (chunk(0, b"hello"), second) if each is not None]) as address,
            running_peer("n1") as n1,
        ):
            n1.transport.configure(Roster.of((n1.member, Member("n2", address, "storage-n2"))))
            pieces: list[bytes] = []
            with pytest.raises(CortadoError) as error:
                async for piece in n1.transport.fetch_snapshot("n2", 1, "s1", 0):
                    pieces.append(piece)  # noqa: PERF401 - pieces before the failure count
            assert type(error.value) is Unavailable
            assert said in error.value.message()
            assert pieces == [b"hello"]

    run(scenario)
