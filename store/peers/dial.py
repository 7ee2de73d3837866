"""Open a stream to a peer, exchange Hellos, check the peer's, and carry messages until the stream ends."""

from __future__ import annotations

import asyncio
from typing import Protocol

from cortado.errors import PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import Hello
from cortado.store.peers.connecting import Target, connected
from cortado.store.peers.connection import BatchStream, Connection
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.frames import Kind
from cortado.store.peers.hello import read_hello
from cortado.store.peers.interface import PeerLimits, Stream


class Caller(Protocol):
    """The parts of the transport that dialling uses."""

    certificates: Certificates | None
    limits: PeerLimits

    @property
    def node_id(self) -> str: ...

    def hello_to(self, node_id: str) -> Hello: ...

    async def admit(self, hello: Hello) -> None: ...

    async def carry(self, hello: Hello, stream: Stream, *, opened_by: str) -> None: ...


async def dial(caller: Caller, node_id: str, address: str) -> None:
    """Connect to the node ``node_id`` at ``address``, and carry messages. Always raises why that ended."""
    limits = caller.limits
    deadline_s = asyncio.get_running_loop().time() + limits.hello_ms / 1000
    try:
        async with (
            asyncio.timeout_at(deadline_s) as patience,
            connected(Target(address, caller.certificates, limits, node_id)) as connection,
        ):
            hello = await _greeted(caller, connection, node_id)
            patience.reschedule(None)
            await _check(caller, connection, hello, node_id, address)
            stream = BatchStream(connection, node_id, limits.frame_bytes_max)
            await caller.carry(hello, stream, opened_by=caller.node_id)
    except TimeoutError:
        raise Unavailable(f"{address} did not answer within {limits.hello_ms} ms") from None
    except Unavailable as problem:
        raise Unavailable(f"{address}: {problem.message()}") from None


async def _greeted(caller: Caller, connection: Connection, node_id: str) -> Hello:
    connection.expect(HELLO=caller.limits.hello_bytes_max)
    await connection.write(Kind.HELLO, caller.hello_to(node_id).SerializeToString())
    frame = await connection.read()
    if frame is None:
        raise Unavailable("it closed the connection before a Hello")
    return read_hello(frame.payload)


async def _check(caller: Caller, connection: Connection, hello: Hello, node_id: str, address: str) -> None:
    try:
        if hello.node_id != node_id:
            raise PeerRefused(f"{address} is that of node {node_id}, but leads to node {hello.node_id[:64]!r}")
        # Its certificate was compared when it was connected to.
        await caller.admit(hello)
    except PeerRefused as refusal:
        # The other side should be able to say it, too.
        await connection.refuse(refusal)
        raise
