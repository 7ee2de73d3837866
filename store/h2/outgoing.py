"""The sending half of a connection: answers in, bytes out, as far as the peer's windows and the writer's room allow.

::

    send_head, send_data, send_end, reset ─► taken(): bytes to write ─► pump(): frames of the data that waited, in turn

If many streams wait, each sends a frame in its turn. A stream with a shut window waits for that alone, and costs the
others nothing. If one stream waits alone, and the windows let its next message through whole, the frames are views of
the message. All of its bytes count as untaken then: a view keeps the whole message in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cortado.store.h2 import frames
from cortado.store.h2.events import Drained, Event, Reset
from cortado.store.h2.limits import STREAM_ID_MAX, ErrorCode, H2Limits
from cortado.store.h2.states import Event as Happened
from cortado.store.h2.states import State, next_state
from cortado.store.h2.streams import Stream

WINDOW_FIRST: Final = 65_535
FRAME_BYTES: Final = 16_384
"""Every peer accepts a frame of this size."""
OUT_BYTES: Final = 256 << 10
"""While more bytes than this were not taken, no further frames of DATA are made. Nor is a frame larger, if its peer
accepts larger ones: other streams wait for one no longer than for the bytes before it."""
_CUT_MAX: Final = 4_096


class Outgoing:
    """The half of a connection that sends; :mod:`~cortado.store.h2.incoming` receives."""

    def __init__(self, limits: H2Limits, now_s: Callable[[], float]) -> None:
        self._limits = limits
        self._now_s = now_s
        self._events: list[Event] = []
        self._streams: dict[int, Stream] = {}
        self._cut: dict[int, None] = {}
        """Streams that this side has ended before their requests were whole."""
        self._last_id = 0
        self._last_accepted = STREAM_ID_MAX
        self._recv_window = limits.connection_window
        self._owed = 0
        self._send_window = self._send_window_of_streams = WINDOW_FIRST
        self._frame_bytes = FRAME_BYTES
        """The bytes of a frame that the peer accepts, OUT_BYTES at most."""
        self._waiting: dict[int, Stream] = {}
        """Streams with something to send, and a window for it."""
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0

    def send_head(self, stream_id: int, block: bytes) -> None:
        """Send the fields of a response. Like all methods that send, it does nothing if the stream is over."""
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.state = next_state(stream.state, Happened.SENT)
            self._emit(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block))

    def send_data(self, stream_id: int, data: bytes) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None and data:
            stream.state = next_state(stream.state, Happened.SENT)
            if not stream.queue:
                stream.moved_s = self._now_s()
            stream.queue.append(data)
            stream.queued += len(data)
            self._line_up(stream)
            self._flow()
            stream.is_held = bool(stream.queue)

    def send_end(self, stream_id: int, block: bytes, *, drops_unbegun: bool = False) -> None:
        """Send the trailers, behind the data; or all of a response without data."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.trailers = block
        if drops_unbegun:
            stream.drop_unbegun()
        if not stream.queue:
            self._waiting.pop(stream_id, None)
            self._send_trailers(stream, block)

    def send_reply(self, stream_id: int, head: bytes, data: bytes, trailers: bytes) -> None:
        """Send a whole response: in one piece, if the windows let it through."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        size = len(data)
        room = min(stream.send_window, self._send_window, FRAME_BYTES)
        if size > room or self._out_bytes > OUT_BYTES or stream.state is not State.HALF_CLOSED_REMOTE:
            self.send_head(stream_id, head)
            self.send_data(stream_id, data)
            self.send_end(stream_id, trailers)
            return
        stream.state = next_state(stream.state, Happened.SENT_END)
        self._send_window -= size
        number = stream_id.to_bytes(4, "big")
        self._emit(
            b"%b\x01\x04%b%b%b\x00\x00%b%b%b\x01\x05%b%b"
            % (
                *(len(head).to_bytes(3, "big"), number, head),
                *(size.to_bytes(3, "big"), number, data),
                *(len(trailers).to_bytes(3, "big"), number, trailers),
            )
        )
        self._close(stream)

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        if stream_id in self._streams:
            self._cut_off(stream_id, code, is_told=False)

    def queued(self, stream_id: int) -> int:
        """Return the number of the stream's bytes that wait for its peer."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.queued

    def stalled(self, before_s: float) -> list[int]:
        """Return the streams with queues that have not moved since ``before_s``."""
        return [each.id for each in self._streams.values() if each.queue and each.moved_s < before_s]

    @property
    def unsent(self) -> int:
        """The number of bytes that were not taken to be written, without those that wait in streams."""
        return self._out_bytes

    def say_going(self, ping: bytes) -> None:
        """Send the first of two GOAWAYs: streams that are under way are served. ``ping`` is answered behind them."""
        self._emit(frames.goaway(STREAM_ID_MAX, ErrorCode.NO_ERROR) + frames.frame(frames.PING, 0, 0, ping))

    def say_gone(self) -> None:
        """Send the second GOAWAY: streams that come later are not begun."""
        self._last_accepted = self._last_id
        self._emit(frames.goaway(self._last_id, ErrorCode.NO_ERROR))

    def taken(self) -> bytes:
        """Take the bytes that are to be written. A large message was not copied until here."""
        out = b"".join(self._out)
        self._out, self._out_bytes = [], 0
        return out

    def pump(self) -> list[Event]:
        """Make more of the waiting data into frames, after :meth:`taken`."""
        self._flow()
        return self._taken_events()

    def _line_up(self, stream: Stream) -> None:
        if stream.queue and stream.send_window > 0:
            self._waiting[stream.id] = stream

    def _flow(self) -> None:
        waiting = self._waiting
        while waiting and self._send_window > 0 and self._out_bytes < OUT_BYTES:
            stream_id = next(iter(waiting))
            stream = waiting.pop(stream_id)
            if stream.send_window <= 0:
                continue  # Its peer has made it smaller since.
            room = min(stream.send_window, self._send_window)
            is_alone = not waiting and stream.next_fits(min(room, OUT_BYTES - self._out_bytes))
            self._send_piece(stream, room if is_alone else min(room, self._frame_bytes))
            self._line_up(stream)

    def _send_piece(self, stream: Stream, room: int) -> None:
        piece = stream.taken(room)
        stream.moved_s = self._now_s()
        stream.send_window -= len(piece)
        self._send_window -= len(piece)
        view = memoryview(piece)
        for at in range(0, len(piece), self._frame_bytes):
            part = view[at : at + self._frame_bytes]
            self._out += (frames.header(frames.DATA, 0, stream.id, len(part)), part)
            self._out_bytes += frames.HEAD_BYTES + len(part)
        if not stream.queue:
            if stream.is_held:
                self._events.append(Drained(stream.id))
            if stream.trailers is not None:
                self._send_trailers(stream, stream.trailers)

    def _send_trailers(self, stream: Stream, block: bytes) -> None:
        stream.state = next_state(stream.state, Happened.SENT_END)
        self._emit(frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream.id, block))
        if stream.state is State.CLOSED:
            self._close(stream)
        else:
            # The rest of the request is not needed (RFC 9113 §8.1).
            self._cut_off(stream.id, ErrorCode.NO_ERROR, is_told=False)

    # --- ends --------------------------------------------------------------------------------------------------

    def _cut_off(self, stream_id: int, code: ErrorCode, *, is_told: bool = True) -> None:
        """Reset a stream. If ``is_told``, an event tells the task that serves it."""
        self._emit(frames.rst_stream(stream_id, code))
        self._remember_cut(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None:
            self._close(stream)
            if is_told:
                self._events.append(Reset(stream_id, code))

    def _remember_cut(self, stream_id: int) -> None:
        self._cut[stream_id] = None
        if len(self._cut) > _CUT_MAX:
            del self._cut[next(iter(self._cut))]

    def _close(self, stream: Stream) -> None:
        stream.state = State.CLOSED
        del self._streams[stream.id]
        self._waiting.pop(stream.id, None)
        self._credit(stream.unread)

    def _emit(self, encoded: bytes) -> None:
        self._out.append(encoded)
        self._out_bytes += len(encoded)

    def _taken_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _credit(self, count: int) -> None:
        """Give bytes back to the connection's window once they are as many as the rest of it. All the others may be
        held by streams that wait for the stream that needs these."""
        self._owed += count
        if self._owed and self._owed >= self._recv_window:
            self._recv_window += self._owed
            self._emit(frames.window_update(0, self._owed))
            self._owed = 0
