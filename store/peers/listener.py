"""The port for peers: the steps of a connection, and its bounds at each.

::

    accepted ──► TLS ──► preamble ──► first frame ──► HELLO, a peer ........ the stream, until it ends
       │          `──────── within hello_ms ────────'   `► a request ........ its answer, then closed
       │          `── handshakes_max at a time ─────'
       `── connections_max at a time

Beyond a bound, the connection is ended that has waited longest without a Hello, so that silent strangers keep no member
out: a member's first frame arrives sooner than that many strangers. If all connections are members', the newest is
ended.

A refused caller gets the reason in a frame ERROR before the connection is closed. So does the peer of a stream that
this side ends. Failures before that are logged, each text once a minute.

A TLS handshake is made with the newest certificates. Connections are accepted one by one here: the loop's own
server keeps its certificates and its failed handshakes to itself.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from cortado.errors import CortadoError, Internal, PeerRefused, ResourceExhausted, Unavailable
from cortado.proto.internal.peers_pb2 import Hello
from cortado.store.peers.connection import LINGER_S, BatchStream, Connection
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.service import Certificate, PeersService
from cortado.store.peers.tls import caller_of, why_failed
from cortado.store.peers.transport import PeerTransport
from cortado.store.ports.accepting import accept
from cortado.store.ports.sliced_tls import taken


class _Greeted(NamedTuple):
    first: Frame
    certificate: Certificate
    hello: Hello | None = None


_LOG: Final = logging.getLogger(__name__)


class PeerListener:
    """Serves the connections of peers on sockets that listen already. All of it belongs to one loop."""

    def __init__(self, service: PeersService, transport: PeerTransport) -> None:
        self._service = service
        self._transport = transport
        self._limits = transport.limits
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._serving: dict[asyncio.Task[None], Connection] = {}
        first = {Kind.HELLO, *service.requests}
        self._first = {each.name: self._limits.hello_bytes_max for each in sorted(first)}

    def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept from now on. The sockets are closed by :meth:`close`."""
        self._sockets = list(sockets)
        for each in self._sockets:
            each.setblocking(False)
        self._accepting = [asyncio.ensure_future(self._accept(each)) for each in self._sockets]

    async def close(self) -> None:
        """Accept no more, and end open connections: streams that the transport has closed say so first."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for each in self._sockets:
            each.close()
        if self._serving:
            await asyncio.wait(list(self._serving), timeout=LINGER_S)
        left = list(self._serving)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._serving)

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            accepted, address = await accept(listening, self._cannot_accept)
            if not await self._has_room():
                accepted.close()
                full = f"{self._limits.connections_max} connections of peers are open"
                self._transport.report("", "refused", ResourceExhausted(full, resource="peer connections"))
                continue
            connection = Connection(f"a caller from {address[0]}")
            task = asyncio.ensure_future(self._serve(connection, accepted))
            self._serving[task] = connection
            task.add_done_callback(self._serving.pop)
            # So that it has begun before it can be ended: it closes the accepted socket.
            await asyncio.sleep(0)

    def _cannot_accept(self, why: str) -> None:
        self._transport.report("", "refused", Unavailable(why))

    async def _has_room(self) -> bool:
        """End the unknown connection that has waited longest, if there are too many. False if none can be ended."""
        unknown = [task for task, connection in self._serving.items() if not connection.is_known]
        limits = self._limits
        if len(unknown) < limits.handshakes_max and len(self._serving) < limits.connections_max:
            return True
        if not unknown:
            return False
        waiting = ResourceExhausted("too many connections wait to be accepted", resource="peer handshakes")
        self._transport.report("", "refused", waiting)
        unknown[0].cancel()
        await asyncio.wait(unknown[:1])
        return True

    async def _serve(self, connection: Connection, accepted: socket.socket) -> None:
        """Serve one connection, until it is closed. Raises nothing."""
        try:
            greeted = await self._greeted(connection, accepted)
            await self._carried(connection, greeted)
        except CortadoError as error:
            await self._refused(connection, accepted, error.with_traceback(None))
        except OSError as broken:
            _LOG.debug("the connection of %s broke: %s", connection.who, broken)
        except Exception as defect:
            _LOG.exception("a defect in the service of the peers")
            internal = Internal(f"{type(defect).__name__}; see the server's log")
            await self._refused(connection, accepted, internal)
        finally:
            connection.abort()
            if not connection.is_made:
                accepted.close()

    async def _greeted(self, connection: Connection, accepted: socket.socket) -> _Greeted | None:
        """Return a caller's first frame and its identity. A peer's HELLO has been admitted and answered. None if the
        caller closed without a word."""
        try:
            async with asyncio.timeout(self._limits.hello_ms / 1000):
                certificate = await self._connected(connection, accepted)
                self._transport.admission.check_role(certificate)
                connection.expect(**self._first)
                try:
                    first = await connection.read()
                except (PeerRefused, Unavailable) as problem:
                    self._transport.report("", "refused", problem)
                    raise
                if first is None:
                    return None
                if first.kind is not Kind.HELLO:
                    return _Greeted(first, certificate)
                hello = await self._transport.admission.introduced(first.payload, certificate)
                connection.is_known = True
                await connection.write(Kind.HELLO, self._transport.hello_to(hello.node_id).SerializeToString())
                return _Greeted(first, certificate, hello)
        except TimeoutError:
            raise Unavailable(f"no Hello within {self._limits.hello_ms} ms") from None

    async def _carried(self, connection: Connection, greeted: _Greeted | None) -> None:
        """Serve the connection, as a stream or as a request, until it ends."""
        if greeted is None:
            return
        first, certificate, hello = greeted
        if hello is None:
            await self._service.answer(first, certificate, connection)
            await connection.finish(self._limits.patience_ms / 1000)
        else:
            stream = BatchStream(connection, hello.node_id, self._limits.frame_bytes_max)
            await self._transport.carry(hello, stream, opened_by=hello.node_id)

    async def _connected(self, connection: Connection, accepted: socket.socket) -> Certificate:
        """Return role and name of the caller's certificate, None if this node serves without any."""
        certificates = self._transport.certificates
        if certificates is None:
            await taken(accepted, lambda: connection, None)
            return None
        context = certificates.current().contexts.serving
        try:
            await taken(accepted, lambda: connection, context)
        except ssl.SSLError as problem:
            refusal = PeerRefused(f"{connection.who}: {why_failed(problem, 'a node')}")
            self._transport.report("", "refused", refusal)
            raise refusal from None
        return caller_of(connection.told("peercert"))

    async def _refused(self, connection: Connection, accepted: socket.socket, error: CortadoError) -> None:
        """Say why, if the caller can hear it."""
        if not connection.is_made and self._transport.certificates is None:
            with suppress(OSError):
                await taken(accepted, lambda: connection, None)
        if connection.is_made:
            await connection.refuse(error)
