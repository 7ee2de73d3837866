"""The port for clients: served, looked at, and served again if gRPC's server ended.

::

    served ──► gRPC's server ends by itself, or looks find that it serves nothing ──► not served, so not ready
      ▲                                                                                │
      ├──────────────────────── a new server on the same address ◄─────────────────────┤
                                                                                       │ none within AGAIN_S_MAX
                                                                                       ▼
                                             lost: leadership is handed over, and the process ends

One frame of a stranger can end gRPC's server, for example headers with a ``:path`` that is not UTF-8. All its
connections end with it, except the stranger's; the old server waits for that one. The new server does not wait. Once
``ENDED_MAX`` old ones wait, the port is lost. A *look* is a call of the health service through the port itself. Looks
count only while no other call arrives: if strangers hold all places of a port, it answers its callers, but no look.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

import grpc

from cortado.errors import Unavailable
from cortado.store.peers.credentials import Certificates
from cortado.store.ports.addresses import is_wildcard, split_address
from cortado.store.server.listening import bind, new_server

_LOG: Final = logging.getLogger(__name__)

LOOK_PERIOD_S: Final = 5.0
LOOK_S_MAX: Final = 5.0
LOOKS: Final = 3
"""After this number of failed looks in a row, the port is taken to serve nothing."""
AGAIN_S_MAX: Final = 10.0
AGAIN_POLL_S: Final = 0.05
ENDED_POLL_S: Final = 0.25
ENDED_MAX: Final = 64

# HTTP/2 (RFC 9113) by hand: the preface, settings, and one call with an empty message.
_HEADERS: Final = 1
_STREAM: Final = 1
_HEAD_BYTES: Final = 9
_FIELDS: Final = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/grpc.health.v1.Health/Check"),
    (b":authority", b"localhost"),
    (b"te", b"trailers"),
    (b"content-type", b"application/grpc"),
)


class Port(Protocol):
    """The port for clients, the same for both fronts."""

    address: str
    """Its address, with the port that the system chose."""
    is_served: bool
    """False while it is to be served again."""

    def add_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add services, before :meth:`start`."""

    async def start(self) -> None: ...

    async def follow(self) -> None:
        """Serve again if it ended. Runs until it is cancelled, or the port is lost."""

    async def lost(self) -> Unavailable:
        """Return the reason once it can't be served again."""

    async def stop(self, grace_s: float) -> None:
        """Take no further calls; those in flight have ``grace_s``."""


class ClientPort:
    """Takes ``host:port`` when it is made; raises Unavailable if the address is taken. ``received`` returns the bytes
    that calls have sent so far."""

    def __init__(
        self,
        host: str,
        port: int,
        certificates: Certificates | None,
        *,
        of_clients: bool,
        connections_max: int,
        received: Callable[[], int],
    ) -> None:
        self._certificates = certificates
        self._of_clients = of_clients
        self._connections_max = connections_max
        self._received = received
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._server = new_server(connections_max)
        self.address = bind(self._server, host, port, certificates, of_clients=of_clients)
        """Its address, with the port that the system chose."""
        self._host, self._port = split_address("listen", self.address)
        self._ending: set[asyncio.Future[None]] = set()
        """The stops of the servers before this one."""
        self._lost: asyncio.Future[Unavailable] = asyncio.get_running_loop().create_future()
        self._is_stopping = False
        self.is_served = True
        """False while it is to be served again."""

    def add_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Add services, before :meth:`start`."""
        self._handlers += handlers

    async def start(self) -> None:
        self._server.add_generic_rpc_handlers(self._handlers)
        await self._server.start()
        self.is_served = True

    async def follow(self) -> None:
        """Serve again if gRPC's server ended. Runs until it is cancelled, or the port is lost."""
        while True:
            why = await self._why_ended()
            if self._is_stopping:
                return
            self.is_served = False
            _LOG.error("%s is not served any more, and is to be served again: %s", self.address, why)
            try:
                async with asyncio.timeout(AGAIN_S_MAX):
                    await self._serve_again()
            except (Unavailable, TimeoutError) as problem:
                said = str(problem) or f"not within {AGAIN_S_MAX:.0f} s"
                self._lost.set_result(Unavailable(f"{self.address} cannot be served again: {said}"))
                return
            _LOG.warning("%s is served again", self.address)

    async def lost(self) -> Unavailable:
        """Return the reason once it can't be served again."""
        return await asyncio.shield(self._lost)

    async def stop(self, grace_s: float) -> None:
        """Take no further calls; those in flight have ``grace_s``."""
        self._is_stopping = True
        await self._server.stop(grace_s)

    async def _why_ended(self) -> str:
        failed, received = 0, self._received()
        loop = asyncio.get_running_loop()
        while failed < LOOKS:
            look_s = loop.time() + LOOK_PERIOD_S
            while loop.time() < look_s:
                try:
                    # If it has ended, this raises the reason, even if the time is over: the whole end may take for
                    # ever.
                    if not await self._server.wait_for_termination(ENDED_POLL_S):
                        return "it was stopped"
                except Exception as problem:
                    return str(problem)
            before, received = received, self._received()
            has_answered = received != before or await answers(self._host, self._port, self._context())
            failed = 0 if has_answered else failed + 1
        return f"{LOOKS} calls of its own were not answered, and no other call came"

    def _context(self) -> ssl.SSLContext | None:
        return None if self._certificates is None else self._certificates.current().contexts.looking

    async def _serve_again(self) -> None:
        if len(self._ending) == ENDED_MAX:
            raise Unavailable(f"{ENDED_MAX} servers before it wait for connections to end")
        ending = asyncio.ensure_future(self._server.stop(None))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        while True:
            server = new_server(self._connections_max)
            try:
                bind(server, self._host, self._port, self._certificates, of_clients=self._of_clients)
                break
            except Unavailable:
                # Until gRPC has closed the old listening socket.
                await asyncio.sleep(AGAIN_POLL_S)
        self._server = server
        if not self._is_stopping:
            await self.start()


async def answers(host: str, port: int, context: ssl.SSLContext | None) -> bool:
    """Return whether a call of the health service is answered there within ``LOOK_S_MAX``."""
    if is_wildcard(host):
        host = "::1" if ":" in host else "127.0.0.1"
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(LOOK_S_MAX):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                writer.write(_call())
                while True:
                    head = await reader.readexactly(_HEAD_BYTES)
                    if head[3] == _HEADERS and int.from_bytes(head[5:], "big") == _STREAM:
                        return True
                    await reader.readexactly(int.from_bytes(head[:3], "big"))
            finally:
                writer.close()
    return False


def _call() -> bytes:
    def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    headers = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in _FIELDS)
    # END_HEADERS, and behind it END_STREAM with the five bytes of an empty message.
    call = frame(_HEADERS, 4, _STREAM, headers) + frame(0, 1, _STREAM, bytes(5))
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + call
