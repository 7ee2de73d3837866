"""A peer's snapshot, over a connection of its own: its bulk must not stand before heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import google_crc32c
from google.protobuf.message import DecodeError

from cortado.errors import Unavailable
from cortado.proto.internal.peers_pb2 import FetchSnapshotRequest, SnapshotChunk
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.interface import PeerLimits
from cortado.store.peers.streams import FETCH_SNAPSHOT, CallStream, as_it_is, open_channel


async def fetch_snapshot(
    address: str, request: FetchSnapshotRequest, certificates: Certificates | None, limits: PeerLimits
) -> AsyncIterator[bytes]:
    """The bytes of a snapshot from ``request.offset`` on, each piece compared with its checksum, to the end of it.

    Raises Unavailable where the stream broke or a piece is not what was sent (to be resumed), NotFound where the
    snapshot is gone, PeerRefused.
    """
    node_id = request.hello.to_node_id
    if not address:
        raise Unavailable(f"the address of node {node_id} is not known")
    patience_s = limits.patience_ms / 1000
    channel = open_channel(address, certificates, node_id)
    call = channel.unary_stream(FETCH_SNAPSHOT, request_serializer=as_it_is, response_deserializer=as_it_is)(
        request.SerializeToString()
    )
    stream = CallStream(call, name=f"node {node_id}", secure=certificates is not None)
    expected = request.offset
    try:
        while True:
            async with asyncio.timeout(patience_s):
                message = await stream.read()
            if message is None:
                return
            data = _verified(message, expected, node_id)
            expected += len(data)
            yield data
    except TimeoutError:
        raise Unavailable(f"no piece of a snapshot came from node {node_id} for {patience_s:g} s") from None
    finally:
        call.cancel()
        await channel.close()


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
