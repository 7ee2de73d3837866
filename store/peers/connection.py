"""One connection between two nodes, from either end: frames in, frames out, over asyncio.

::

    read() ◄── FrameBuffer ◄── data_received      reading pauses above READ_AHEAD_BYTES that nobody asked for
    write() ── encode_frame ──► the socket        at once, where nothing is queued before it and there is no TLS
                          `───► transport.write   otherwise; and waits while the receiver is slow

One task reads, and one writes: Hellos, requests and their answers. Batches are told as they arrive instead
(:class:`BatchStream`), since a task that waits for each costs more than all else that is done with it. What a sender
can make this side hold is bounded: by one frame of a kind that is expected, or by ``READ_AHEAD_BYTES``, and by what one
read of the socket brings on top. So is what it can make this side do before the loop comes to anything else: a stream
takes ``TURN_FRAMES`` or ``TURN_BYTES``, and the rest when others had their turn.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from cortado.errors import CortadoError, PeerRefused, Unavailable
from cortado.store.peers.frames import ERROR_BYTES_MAX, PREAMBLE, BadFrame, Frame, FrameBuffer, Kind, encode_frame
from cortado.store.peers.interface import Receiver
from cortado.store.wire.rpc_errors import from_status, rpc_status

READ_AHEAD_BYTES: Final = 256 << 10
# One read may bring 28,000 frames without content, and libuv reads up to 32 times before it looks at another socket:
# that held the loop for 3 s.
TURN_FRAMES: Final = 32
TURN_BYTES: Final = 64 << 10
# So long the other side may take to read why it is refused; it closes then, and our own close loses nothing.
LINGER_S: Final = 1.0


class Connection(asyncio.Protocol):
    """Belongs to one event loop. ``read`` and ``write`` raise Unavailable where the connection broke.

    ``who`` is the other side, in what is said of it. ``unanswered`` is what it means where it closes before it said
    anything; empty: nothing, since who listens is knocked at by many.
    """

    def __init__(self, who: str, unanswered: str = "") -> None:
        self.who = who
        self.is_accepted = False
        """Both sides have accepted each other, and ``who`` is a node's name."""
        self.is_known = False
        """Whoever called is a member: it need not make room for others."""
        self._unanswered = unanswered
        self._frames = FrameBuffer()
        self._expected: Mapping[Kind, int] = {}
        self._transport: asyncio.Transport | None = None
        self._descriptor: int | None = None
        self._is_reading = True
        self._is_ended = False
        self._is_ending = False
        self._lost: Exception | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stream: BatchStream | None = None

    # --- what asyncio calls --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(PREAMBLE)
        # The bytes of TLS are the transport's alone.
        if (made := transport.get_extra_info("socket")) and transport.get_extra_info("sslcontext") is None:
            self._descriptor = made.fileno()

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        self._frames.feed(data)
        if self._stream is not None:
            self._stream.look()
        elif self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)
        elif len(self._frames) > READ_AHEAD_BYTES:
            self.pause()

    def eof_received(self) -> bool:
        self._is_ended = True
        _wake(self._arrived)
        if self._stream is not None:
            self._stream.look()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ended = True
        self._lost = exc
        for waiter in (self._arrived, self._drained, self._gone):
            _wake(waiter)
        if self._stream is not None:
            self._stream.look()

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._drained)
        self._drained = None
        if self._stream is not None:
            self._stream.writable()

    # --- what its user calls -------------------------------------------------------------------------------------

    def expect(self, **bytes_max: int) -> None:
        """Which kinds may come from now on, by their names, and how large each may be. An ERROR always may."""
        self._expected = {**{Kind[name]: most for name, most in bytes_max.items()}, Kind.ERROR: ERROR_BYTES_MAX}

    async def read(self) -> Frame | None:
        """The next frame; None where the other side closed between two. Raises PeerRefused for what was not expected,
        and the error that the other side sent."""
        while (frame := self.next()) is None:
            if self._is_ended:
                self.check_end()
                return None
            self.read_on()
            self._arrived = asyncio.get_running_loop().create_future()
            try:
                await self._arrived
            finally:
                self._arrived = None
        return frame

    def next(self) -> Frame | None:
        """The next frame, where it is here whole. Raises as :meth:`read` does."""
        try:
            frame = self._frames.next(self._expected)
        except BadFrame as bad:
            kind = PeerRefused if self._frames.is_greeted else Unavailable
            raise kind(f"{self.who} {bad}") from None
        if frame is not None and frame.kind is Kind.ERROR:
            raise self._told(frame.payload)
        return frame

    def tell(self, stream: BatchStream) -> None:
        """From now on ``stream`` takes what arrives."""
        self._stream = stream
        self.read_on()

    def pause(self) -> None:
        """Take nothing more from the network, until :meth:`read_on`."""
        if self._is_reading:
            self._is_reading = False
            self._made.pause_reading()

    def read_on(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._made.resume_reading()

    async def write(self, kind: Kind, payload: bytes) -> None:
        """Returns when the frame is on its way, which waits for a slow receiver."""
        if self._is_ended:
            raise Unavailable("the connection is closed")
        self.send(kind, payload)
        if self._drained is not None:
            await self._drained
            if self._lost is not None:
                raise Unavailable(f"the connection broke: {self._lost}")

    def told(self, name: str) -> Any:
        """What the transport knows: see :meth:`asyncio.BaseTransport.get_extra_info`."""
        return self._made.get_extra_info(name)

    @property
    def is_ended(self) -> bool:
        """Nothing more arrives."""
        return self._is_ended

    @property
    def is_writable(self) -> bool:
        """False where the other side is slow, or gone."""
        return self._drained is None and not self._is_ended

    def send(self, kind: Kind, payload: bytes) -> None:
        """Put a frame on its way, which waits for nobody."""
        frame, transport = encode_frame(kind, payload), self._made
        if self._descriptor is not None and not transport.get_write_buffer_size() and not transport.is_closing():
            # uvloop would write when the loop has turned: behind whatever else this round does.
            # Where the socket is full, or broken, the transport finds out.
            with suppress(OSError):
                frame = frame[os.write(self._descriptor, frame) :]
        if frame:
            transport.write(frame)

    @property
    def is_made(self) -> bool:
        """Whether there is something to read from and to write to."""
        return self._transport is not None

    def abort(self) -> None:
        """End it at once; what was not sent is lost."""
        self._is_ended = True
        if self._transport is not None:
            self._transport.abort()

    async def finish(self, timeout_s: float) -> None:
        """Send what was written, and end it."""
        self._made.close()
        await asyncio.wait([self._gone], timeout=timeout_s)

    async def refuse(self, error: CortadoError) -> None:
        """Say why, and end it once the other side has closed or had ``LINGER_S`` to read it: a connection that is
        closed over bytes which nobody read takes the answer along."""
        self._is_ending = True
        self._frames.drop()
        try:
            if not self._is_ended:
                self.send(Kind.ERROR, rpc_status(error).SerializeToString())
                self.read_on()
                await asyncio.wait([self._gone], timeout=LINGER_S)
        finally:
            self.abort()

    @property
    def _made(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _told(self, status: bytes) -> CortadoError:
        """What the other side ends the connection with; a node that is known is named."""
        error = from_status(status)
        if isinstance(error, PeerRefused) and self.is_accepted:
            return PeerRefused(f"{self.who} refuses this node: {error.problem}", error.replaced)
        return error

    def check_end(self) -> None:
        """Raises Unavailable, where it was in the middle of something."""
        if not self._frames.is_greeted:
            if not self._unanswered and not len(self._frames):
                return
            raise Unavailable(self._unanswered or f"{self.who} closed the connection within its first bytes")
        if self._lost is not None:
            raise Unavailable(f"the connection broke: {self._lost}")
        if len(self._frames):
            raise Unavailable("the connection broke within a message")


class BatchStream:
    """A connection whose two sides have accepted each other: a :class:`~cortado.store.peers.interface.Stream`."""

    def __init__(self, connection: Connection, peer: str, bytes_max: int) -> None:
        self._connection = connection
        self._receiver: Receiver | None = None
        self._is_resting = False
        connection.who = f"node {peer}"
        connection.is_accepted = True
        connection.expect(BATCH=bytes_max)

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._connection.tell(self)
        self.look()

    @property
    def is_writable(self) -> bool:
        return self._connection.is_writable

    def write(self, message: bytes) -> None:
        if not self._connection.is_ended:
            self._connection.send(Kind.BATCH, message)

    # --- what the connection calls -------------------------------------------------------------------------------

    def look(self) -> None:
        """Something arrived, or the end."""
        if self._is_resting:
            return
        connection, frames, size = self._connection, 0, 0
        try:
            while self._receiver is not None and (frame := connection.next()) is not None:
                self._receiver.arrived(frame.payload)
                frames, size = frames + 1, size + len(frame.payload)
                if frames >= TURN_FRAMES or size >= TURN_BYTES:
                    self._rest()
                    return
            if connection.is_ended:
                connection.check_end()
                raise Unavailable("the peer ended the stream")
        except Exception as reason:
            receiver, self._receiver = self._receiver, None
            if receiver is not None:
                receiver.ended(reason)

    def writable(self) -> None:
        if self._receiver is not None:
            self._receiver.writable()

    def _rest(self) -> None:
        """What is left, and the end, comes when the loop has turned."""
        self._is_resting = True
        self._connection.pause()
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_resting = False
        self.look()
        if not self._is_resting:
            self._connection.read_on()


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
