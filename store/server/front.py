"""The native front: the port for clients by HTTP/2 of our own, on asyncio, for the handlers of gRPC's server.

::

    accepted ──► TLS with ALPN h2, if there are certificates ──► FrontConnection ──► calls ──► handlers
       │          `── HANDSHAKES_MAX at a time, for HANDSHAKE_S ──'
       `── connections_max at a time

Beyond a bound the connection that has had no call for the longest time is ended. If each has a call, the network with
most connections of strangers gives up its oldest one, unless the newcomer's network would then have as many; else the
newest is refused. A connection is a stranger's until it shows a certificate, or a service other than health and
reflection admits a call of it.

A stranger's bad frame ends only its own connection, so the port needs no looks at itself (as that of
:mod:`cortado.store.server.client_port` does).
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv6Address
from typing import Any, Final, NamedTuple

import grpc

from cortado.errors import CortadoError, DeadlineExceeded, InvalidArgument, Unavailable, Unsupported
from cortado.store.h2.fields import Head
from cortado.store.h2.grpc import RESPONSE_HEAD, status_trailers, timeout_s
from cortado.store.h2.header_blocks import block
from cortado.store.h2.limits import ErrorCode
from cortado.store.peers.credentials import Certificates
from cortado.store.ports.accepting import Listener
from cortado.store.ports.addresses import address_of
from cortado.store.server.call_context import status_code
from cortado.store.server.front_call import Plan
from cortado.store.server.front_connection import HANDSHAKE_S, LIMITS, FrontConnection
from cortado.store.server.listening import bind_sockets
from cortado.store.wire.rpc_errors import status_message, trailing_metadata

_LOG: Final = logging.getLogger(__name__)

HANDSHAKES_MAX: Final = 128
BACKLOG: Final = 1_024
LOOK_S: Final = 1.0
"""The time between two looks at the connections."""
HELD_BYTES_MAX: Final = 256 << 20
"""The bound of bytes that have arrived for calls that do not read them yet, and of answers that callers do not read.
Beyond it, the connection with most of them is ended."""
ARRIVING_BYTES_MAX: Final = 1 << 30
"""The same for messages that calls wait for, and that have not arrived whole: 128 of the largest ones."""
_CONTENT_TYPE: Final = re.compile(rb"application/grpc(\+proto)?(;.*)?")


def _context(certificates: Certificates, of_clients: bool) -> ssl.SSLContext:
    """Return a context with the newest certificate."""
    contexts = certificates.current().contexts
    return contexts.clients if of_clients else contexts.anybody


def _network(host: str) -> str:
    """Return the network that one caller may choose addresses from: one address of IPv4, and 64 bits of IPv6."""
    if ":" not in host:
        return host
    address = IPv6Address(host.partition("%")[0])
    return str(address.ipv4_mapped or address.packed[:8].hex())


def _beyond(
    bytes_max: int, connections: Sequence[FrontConnection], sizes: Sequence[int]
) -> Iterator[tuple[FrontConnection, int]]:
    """Yield the connections with the largest sizes, until the others together are within ``bytes_max``."""
    total = sum(sizes)
    for size, _, connection in sorted(zip(sizes, range(len(sizes)), connections, strict=True), reverse=True):
        if total <= bytes_max:
            return
        total -= size
        yield connection, size


class _Asked(NamedTuple):
    """The details of a call that gRPC's handlers look it up by."""

    method: str
    invocation_metadata: Sequence[Any] = ()


class Front:
    """Takes ``host:port`` when it is made; raises Unavailable if the address is taken."""

    def __init__(
        self, host: str, port: int, certificates: Certificates | None, *, of_clients: bool, connections_max: int
    ) -> None:
        self._connections_max = connections_max
        sockets = bind_sockets(host, port, BACKLOG)
        self.address = address_of(host, sockets[0].getsockname()[1])
        """Its address, with the port that the system chose."""
        self.is_served = True
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._found: dict[bytes, grpc.RpcMethodHandler[Any, Any]] = {}
        self._connections: dict[FrontConnection, None] = {}
        self._idle: dict[FrontConnection, None] = {}
        """The connections without a call, the longest idle first."""
        self._strangers: dict[str, dict[FrontConnection, None]] = {}
        """The connections of strangers, by network, the oldest first."""
        self._looking: asyncio.Task[None] | None = None
        self._left = asyncio.Event()
        self._listener = Listener(
            sockets,
            lambda: FrontConnection(self, time.monotonic),
            context=None if certificates is None else partial(_context, certificates, of_clients),
            handshake_s=HANDSHAKE_S,
            handshakes_max=HANDSHAKES_MAX,
            has_room=self._has_room,
        )

    def add_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add services, before :meth:`start`."""
        self._handlers += handlers

    async def start(self) -> None:
        self._listener.start()
        self._looking = asyncio.ensure_future(self._look())

    async def follow(self) -> None:
        """Run until cancelled: the port never ends by itself."""
        await asyncio.Event().wait()

    async def lost(self) -> Unavailable:
        """Wait for ever: this port is never lost (see :meth:`follow`)."""
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def stop(self, grace_s: float) -> None:
        """Take no further calls; those in flight have ``grace_s``."""
        if self._looking is not None:
            self._looking.cancel()
        await self._listener.close()
        for connection in list(self._connections):
            connection.go()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._all_left()
        for connection in list(self._connections):
            connection.drop()
        await self._all_left()

    async def _all_left(self) -> None:
        while self._connections:
            self._left.clear()
            await self._left.wait()

    # --- connections -------------------------------------------------------------------------------------------

    def _has_room(self, host: str) -> bool:
        """Return whether one more connection of ``host`` is taken; another may be ended for it."""
        if len(self._connections) + self._listener.coming < self._connections_max:
            return True
        if not self._idle:
            return self._has_displaced_for(_network(host))
        oldest = next(iter(self._idle))
        del self._idle[oldest]
        oldest.end_idle()
        return True

    def _has_displaced_for(self, network: str) -> bool:
        """End the oldest connection of strangers of the network that has most of them. Return False if ``network``
        would have as many with one more: strangers of one network keep no other network out."""
        most = max(self._strangers.values(), key=len, default={})
        if len(most) <= len(self._strangers.get(network, ())) + 1:
            return False
        oldest = next(iter(most))
        self.count_as_known(oldest)
        oldest.fail(ErrorCode.ENHANCE_YOUR_CALM, "a caller of another address has less connections")
        return True

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for connection in list(self._connections):
                connection.look()
            self.end_largest()

    def end_largest(self) -> None:
        """End connections until the bytes held for calls are within their bounds."""
        connections = list(self._connections)
        unread = [each.h2.unread + each.h2.unsent for each in connections]
        for largest, size in _beyond(HELD_BYTES_MAX, connections, unread):
            _LOG.warning("%s is ended: %d bytes are held that its calls or itself do not read", largest.peer, size)
            largest.fail(ErrorCode.ENHANCE_YOUR_CALM, "too much is held that is not read yet")
        arriving = [each.h2.arriving for each in connections]
        for largest, size in _beyond(ARRIVING_BYTES_MAX, connections, arriving):
            _LOG.warning("%s is ended: %d bytes are held of messages that are not whole", largest.peer, size)
            largest.fail(ErrorCode.ENHANCE_YOUR_CALM, "too much is held of messages that are not whole")

    def joined(self, connection: FrontConnection) -> None:
        self._connections[connection] = None
        self._idle[connection] = None
        if not connection.is_known:
            self._strangers.setdefault(_network(connection.host), {})[connection] = None

    def has_left(self, connection: FrontConnection) -> None:
        self._connections.pop(connection, None)
        self._idle.pop(connection, None)
        self.count_as_known(connection)
        self._left.set()

    def is_idle(self, connection: FrontConnection, *, is_idle: bool) -> None:
        if not is_idle:
            self._idle.pop(connection, None)
        elif connection in self._connections:
            self._idle[connection] = None

    def count_as_known(self, connection: FrontConnection) -> None:
        network = _network(connection.host)
        strangers = self._strangers.get(network, {})
        strangers.pop(connection, None)
        if not strangers:
            self._strangers.pop(network, None)

    # --- calls -------------------------------------------------------------------------------------------------

    def plan(self, head: Head) -> Plan:
        """Return the plan for requests with these fields."""
        if head.method != b"POST":
            return Plan(None, refusal=block([(b":status", b"405"), (b"allow", b"POST")]))
        if _CONTENT_TYPE.fullmatch(head.fields.get(b"content-type", b"")) is None:
            return Plan(None, refusal=block([(b":status", b"415")]))
        try:
            return self._checked(head)
        except CortadoError as error:
            trailers = status_trailers(status_code(error).value[0], status_message(error), trailing_metadata(error))
            return Plan(None, refusal=RESPONSE_HEAD + trailers)

    def _checked(self, head: Head) -> Plan:
        if head.list_bytes > LIMITS.header_list_bytes:
            problem = f"the metadata of a call has {head.list_bytes} bytes, the limit is {LIMITS.header_list_bytes}"
            raise InvalidArgument("metadata", f"{problem}: send less")
        handler = self._handler(head.path)
        said = head.fields.get(b"grpc-timeout")
        time_s = None if said is None else timeout_s(said)
        if time_s == 0:
            raise DeadlineExceeded("the deadline was over when the call came")
        return Plan(handler, time_s)

    def _handler(self, path: bytes) -> grpc.RpcMethodHandler[Any, Any]:
        found = self._found.get(path)
        if found is not None:
            return found
        asked: Any = _Asked(path.decode("ascii", "replace"))
        for each in self._handlers:
            handler = each.service(asked)
            if handler is not None:
                self._found[path] = handler
                return handler
        raise Unsupported(f"the method {asked.method[:200]!r}", "no service of this node has it")
