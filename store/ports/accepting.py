"""Accepting connections one by one, for listeners that make the TLS handshake themselves.

They use the newest certificate, and bound the number of handshakes. Beyond the bound a client displaces the oldest
handshake (:class:`Listener`), and a joining node waits. So the listeners for peers have loops of their own around
:func:`accept`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from cortado.store.ports.sliced_tls import taken

_LOG: Final = logging.getLogger(__name__)

# Long enough that a process without file descriptors does not spin, short enough that a caller waits through it.
_PAUSE_S: Final = 0.1
# A client that does not look at its connection says no goodbye when that is closed.
_GOODBYE_S: Final = 0.5
# A host that lost its power says nothing, and a stream on which nothing is sent would keep its places for ever. The
# kernel asks after a minute of silence, and ends the connection after one more without an answer.
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


async def accept(listening: socket.socket, on_failed: Callable[[str], None]) -> tuple[socket.socket, Any]:
    """The next connection to ``listening``, which does not block, and the address it comes from.

    Where accepting fails, as it does without a free file descriptor, it tells ``on_failed`` why, waits a moment, and
    tries again.
    """
    while True:
        try:
            return await asyncio.get_running_loop().sock_accept(listening)
        except OSError as problem:
            on_failed(f"no connection can be accepted: {problem.strerror}")
            await asyncio.sleep(_PAUSE_S)


class Listener:
    """Accepts connections on ``sockets``, which listen already, from :meth:`start` to :meth:`close`.

    A protocol cannot count or end a connection before its handshake is complete. So handshakes have bounds of their
    own: ``handshake_s`` for each, and ``handshakes_max`` at a time. One more ends the oldest handshake, so silent
    strangers keep no client out. Without TLS there is no handshake, and nothing is ended here: uvloop would close
    such a connection without telling the protocol, which would count it for ever.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        *,
        context: Callable[[], ssl.SSLContext] | None,
        handshake_s: float,
        handshakes_max: int,
        has_room: Callable[[str], bool] = lambda _host: True,
    ) -> None:
        """``context`` has the newest certificate; ``has_room`` says whether one more connection of a host is taken."""
        self._sockets = sockets
        self._protocol = protocol
        self._context = context
        self._handshake_s = handshake_s
        self._handshakes_max = handshakes_max
        self._has_room = has_room
        self._accepting: list[asyncio.Task[None]] = []
        self._coming: dict[asyncio.Task[None], None] = {}
        """Those that are no connection of the protocol yet, the oldest first."""

    @property
    def coming(self) -> int:
        """How many are accepted, and no connection of the protocol yet."""
        return len(self._coming)

    def start(self) -> None:
        """Accept from here on, on the loop that runs."""
        for each in self._sockets:
            each.setblocking(False)
            _find_dead_peers(each)
        self._accepting = [asyncio.ensure_future(self._accept(each)) for each in self._sockets]

    async def close(self) -> None:
        """Accept no more. Connections that the protocol has stay with it."""
        coming, accepting = list(self._coming), self._accepting
        for each in accepting if self._context is None else [*coming, *accepting]:
            each.cancel()
        await asyncio.gather(*coming, *accepting, return_exceptions=True)
        for listening in self._sockets:
            listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            accepted, address = await accept(listening, _LOG.warning)
            if not self._has_room(address[0]):
                accepted.close()
                continue
            if self._context is not None and len(self._coming) >= self._handshakes_max:
                next(iter(self._coming)).cancel()
            task = asyncio.ensure_future(self._take(accepted))
            self._coming[task] = None
            task.add_done_callback(self._coming.pop)
            # So that it has begun before it can be ended: it closes what was accepted.
            await asyncio.sleep(0)

    async def _take(self, accepted: socket.socket) -> None:
        context = None if self._context is None else self._context()
        timeouts = {"ssl_handshake_timeout": self._handshake_s, "ssl_shutdown_timeout": _GOODBYE_S}
        try:
            await taken(accepted, self._protocol, context, **timeouts)
        except OSError as problem:
            # Those of ssl are among them. Whoever scans a port would fill a log that everybody reads.
            _LOG.debug("a connection was not made: %s", problem)
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise


def _find_dead_peers(listening: socket.socket) -> None:
    """Let the kernel end connections whose host is gone: accepted connections inherit these options."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
