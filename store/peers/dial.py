"""Open a stream to a peer, introduce ourselves, look at whom we found, and use it until it ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from cortado.errors import CortadoError, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import Hello, PeerBatch
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.hello import read_hello
from cortado.store.peers.interface import PeerLimits, Stream
from cortado.store.peers.streams import CONNECT, CallStream, as_it_is, open_channel


class Caller(Protocol):
    """What dialling needs of the transport."""

    certificates: Certificates | None
    limits: PeerLimits

    @property
    def node_id(self) -> str: ...

    def hello_to(self, node_id: str) -> Hello: ...

    async def admit(self, hello: Hello, certificate: tuple[str, str] | None) -> None: ...

    async def carry(self, hello: Hello, stream: Stream, *, opened_by: str) -> None: ...


async def dial(caller: Caller, node_id: str, address: str) -> None:
    """Connect to the node ``node_id`` at ``address``, and carry messages. Always raises why that ended."""
    channel = open_channel(address, caller.certificates, node_id)
    call = channel.stream_stream(CONNECT, request_serializer=as_it_is, response_deserializer=as_it_is)()
    stream = CallStream(call, name=f"node {node_id}", secure=caller.certificates is not None)
    try:
        async with asyncio.timeout(caller.limits.hello_ms / 1000):
            await stream.write(PeerBatch(hello=caller.hello_to(node_id)).SerializeToString())
            hello = read_hello(await stream.read(), caller.limits.hello_bytes_max).hello
        await _check(caller, stream, hello, node_id, address)
        await caller.carry(hello, stream, opened_by=caller.node_id)
    except TimeoutError:
        raise Unavailable(f"{address} did not answer within {caller.limits.hello_ms} ms") from None
    except Unavailable as problem:
        raise Unavailable(f"{address}: {problem.message()}") from None
    finally:
        call.cancel()
        await channel.close()


async def _check(caller: Caller, stream: CallStream, hello: Hello, node_id: str, address: str) -> None:
    try:
        if hello.node_id != node_id:
            raise PeerRefused(f"{address} is that of node {node_id}, but leads to node {hello.node_id[:64]!r}")
        # Its certificate was compared in the handshake.
        await caller.admit(hello, None)
    except PeerRefused as refusal:
        # The other side should be able to say it, too.
        with suppress(CortadoError):
            await stream.write(PeerBatch(refused=refusal.message()).SerializeToString())
            await stream.finish()
        raise
