"""A peer's snapshot, over a connection of its own: its bulk must not stand before heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import google_crc32c
from google.protobuf.message import DecodeError

from cortado.errors import Unavailable
from cortado.proto.internal.peers_pb2 import FetchSnapshotRequest, SnapshotChunk
from cortado.store.peers.connecting import Target, connected
from cortado.store.peers.frames import Kind


async def fetch_snapshot(target: Target, request: FetchSnapshotRequest) -> AsyncIterator[bytes]:
    """Yield the bytes of a snapshot from ``request.offset`` to its end, each piece compared with its checksum.

    Raises Unavailable if the connection broke or a piece is corrupt (to be resumed), NotFound if the snapshot is gone,
    PeerRefused.
    """
    node_id, expected = target.node_id, request.offset
    patience_s = target.limits.patience_ms / 1000
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(patience_s):
                connection = await stack.enter_async_context(connected(target))
                connection.expect(SNAPSHOT_CHUNK=target.limits.frame_bytes_max, SNAPSHOT_END=0)
                await connection.write(Kind.FETCH_SNAPSHOT, request.SerializeToString())
            while True:
                # Not around the yield: the caller's work on a piece takes its own time.
                async with asyncio.timeout(patience_s):
                    frame = await connection.read()
                if frame is None:
                    raise Unavailable(f"node {node_id} closed the connection before the end of a snapshot")
                if frame.kind is Kind.SNAPSHOT_END:
                    return
                data = _verified(frame.payload, expected, node_id)
                expected += len(data)
                yield data
    except TimeoutError:
        raise Unavailable(f"no piece of a snapshot came from node {node_id} for {patience_s:g} s") from None


def _verified(message: bytes, expected: int, node_id: str) -> bytes:
    try:
        chunk = SnapshotChunk.FromString(message)
    except DecodeError:
        raise Unavailable(f"node {node_id} sent a piece of a snapshot that does not decode") from None
    if chunk.offset != expected:
        raise Unavailable(f"node {node_id} sent a snapshot's byte {chunk.offset} where {expected} was next")
    if google_crc32c.value(chunk.data) != chunk.checksum:
        raise Unavailable(f"a piece of a snapshot of node {node_id}, at byte {expected}, was damaged on its way")
    return chunk.data
