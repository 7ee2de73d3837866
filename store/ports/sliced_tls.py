"""TLS on the server's side, opened in slices: one connection never holds the loop for longer than some milliseconds.

::

    socket ──► source, filled by the loop ──► pieces ──► inner ──► OpenSSL ──► the protocol's bytes
                                               │
                                               `─ SLICE_S is over: the rest waits for the loop's next turn

Some bytes cost far more than their number: a record of one byte, or a KeyUpdate of TLS 1.3, which has 27 bytes and
derives keys twice. OpenSSL opens all that it was given in one call, and libuv reads a busy socket 32 times before it
looks at another one. So ten megabytes of such records held a node for nine seconds. OpenSSL gets pieces instead, small
ones if the last one held little data. Waiting bytes fill the buffer of the transport, which then stops to read the
socket.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

T = TypeVar("T")

SLICE_S: Final = 0.005
"""The time for which a connection's records are opened before other work of the loop goes on."""
PIECE_BYTES: Final = 4 << 10
"""A piece of bytes that may hold no data: about 150 KeyUpdates."""
FULL_PIECE_BYTES: Final = 16 << 10
"""A piece behind one that held data in at least half of its bytes."""


class SlicedObject(ssl.SSLObject):
    """A connection of a :class:`SlicedContext`. It has to :meth:`attach` to its transport, to go on where a slice
    ended."""

    def fed_by(self, source: ssl.MemoryBIO, inner: ssl.MemoryBIO) -> None:
        """Read from ``source``, and give OpenSSL its pieces in ``inner``. Called once."""
        self._source, self._inner = source, inner
        self._piece_bytes = self._data_bytes = 0
        self._until_s: float | None = None
        """The end of the slice, if one has begun in this turn of the loop."""
        self._is_behind = False
        self._transport: asyncio.Transport | None = None

    def attach(self, transport: asyncio.Transport) -> None:
        """From now on a new turn of the loop lets ``transport`` read on."""
        self._transport = transport
        # While bytes wait here the socket is not read. At its end the transport drops the bytes that still wait.
        transport.set_read_buffer_limits(high=1, low=0)  # type: ignore[attr-defined]
        if self._until_s is None:
            self._go_on()

    # --- for the transport, as in its class

    def do_handshake(self) -> None:
        self._stepped(super().do_handshake, self._feed)

    def unwrap(self) -> Any:
        return self._stepped(super().unwrap, self._feed_in_slice)

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        if not self.pending():
            # OpenSSL would want it, and say so by an error, which costs more.
            self._feed_in_slice()
        found: Any = self._stepped(partial(super().read, len, buffer), self._feed_in_slice)
        self._data_bytes += found if buffer is not None else found.__len__()
        return found

    def pending(self) -> int:
        return super().pending() + self._inner.pending

    # --- pieces

    def _stepped(self, step: Callable[[], T], feed: Callable[[], bool]) -> T:
        """Return the result of ``step``, and give OpenSSL pieces until there is one."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                if not feed():
                    raise

    def _feed_in_slice(self) -> bool:
        """Feed a piece, unless the slice is over. Return whether there was one."""
        if not self._source.pending:
            return False
        now_s = time.monotonic()
        if self._until_s is None:
            self._until_s = now_s + SLICE_S
            asyncio.get_running_loop().call_soon(self._turn)
        elif now_s > self._until_s:
            self._is_behind = True
            return False
        return self._feed()

    def _feed(self) -> bool:
        """Feed a piece; return whether there was one."""
        is_full = 2 * self._data_bytes >= self._piece_bytes >= PIECE_BYTES
        piece = self._source.read(FULL_PIECE_BYTES if is_full else PIECE_BYTES)
        self._piece_bytes, self._data_bytes = len(piece), 0
        self._inner.write(piece)
        return bool(piece)

    def _turn(self) -> None:
        """Begin a new turn of the loop."""
        self._until_s = None
        self._go_on()

    def _go_on(self) -> None:
        transport = self._transport
        if not self._is_behind or transport is None:
            return
        self._is_behind = False
        # A protocol that has paused reads on by itself.
        if not transport.is_closing() and transport.is_reading():
            transport.pause_reading()
            transport.resume_reading()


async def taken(
    accepted: socket.socket, protocol: Callable[[], asyncio.Protocol], context: ssl.SSLContext | None, **timeouts: float
) -> None:
    """Make an accepted connection one of ``protocol``, with TLS if there is a ``context``. Raises OSError, of which
    those of ssl are some."""
    tls: dict[str, Any] = {} if context is None else {"ssl": context, **timeouts}
    transport, _ = await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted, **tls)
    opened = transport.get_extra_info("ssl_object")
    if isinstance(opened, SlicedObject):
        opened.attach(transport)


class SlicedContext(ssl.SSLContext):
    """A context for connections that :func:`taken` makes."""

    sslobject_class = SlicedObject

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> SlicedObject:
        inner = ssl.MemoryBIO()
        wrapped: Any = super().wrap_bio(inner, outgoing, *args, **options)
        wrapped.fed_by(incoming, inner)
        return wrapped  # type: ignore[no-any-return]
