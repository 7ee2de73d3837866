"""A connection, as its client sees it: calls in, bytes out; bytes in, responses out as events.

::

    open, send_data, finish, reset ─► taken(): bytes to write
    feed(bytes), advance() ─► Replied (a response's fields, or its trailers), Data, Reset, Drained, Going, Ended

A server is a stranger, too: the limits are those of a server's connection. A stream that GOAWAY names as not begun
ends with Reset and REFUSED_STREAM, as one that the server refuses by itself. Frames of a stream that is over are
ignored: they may have been under way when this side ended it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cortado.store.h2 import frames
from cortado.store.h2.events import Going, Replied, Reset
from cortado.store.h2.frames import Frame
from cortado.store.h2.incoming import Incoming
from cortado.store.h2.limits import STREAM_ID_MAX, ConnectionFault, ErrorCode, H2Limits, StreamFault
from cortado.store.h2.outgoing import FRAME_BYTES, OUT_BYTES
from cortado.store.h2.states import Event as Happened
from cortado.store.h2.states import State, next_state
from cortado.store.h2.streams import Stream

_INFORMATIONAL: Final = range(100, 200)


class ClientConnection(Incoming):
    """``now_s`` is a monotonic clock."""

    push_max = 0

    def __init__(self, limits: H2Limits, now_s: Callable[[], float]) -> None:
        super().__init__(limits, now_s)
        self._next_id = 1
        self._goes_after = STREAM_ID_MAX
        """The last stream that a server that goes has begun."""
        self.is_going = False
        """The server takes no further streams."""
        self._emit(frames.PREFACE)
        self._begin({frames.ENABLE_PUSH: 0})

    @property
    def has_room(self) -> bool:
        """Whether a stream may be opened now."""
        is_open = not self.is_going and not self.is_over and self._next_id < STREAM_ID_MAX
        return is_open and len(self._streams) < self._peer_streams and self._out_bytes < OUT_BYTES

    def open(self, block: bytes, data: bytes = b"", *, is_last: bool) -> int:
        """Send a request: its fields, and its first ``data``, and nothing more if ``is_last``. Return its stream."""
        self._last_id = stream_id = self._next_id
        self._next_id += 2
        stream = Stream(stream_id, None, self._limits.stream_window, self._send_window_of_streams)
        self._streams[stream_id] = stream
        if len(block) > FRAME_BYTES:
            self._emit_in_pieces(stream_id, block)
        else:
            self._emit(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block))
        size = len(data)
        if is_last and size <= min(stream.send_window, self._send_window, FRAME_BYTES) and not self._waiting:
            stream.state = next_state(stream.state, Happened.SENT_END)
            stream.send_window -= size
            self._send_window -= size
            self._emit(frames.frame(frames.DATA, frames.END_STREAM, stream_id, data))
            return stream_id
        self.send_data(stream_id, data)
        if is_last:
            self.finish(stream_id)
        return stream_id

    def _emit_in_pieces(self, stream_id: int, block: bytes) -> None:
        kind = frames.HEADERS
        for at in range(0, len(block), FRAME_BYTES):
            is_whole = at + FRAME_BYTES >= len(block)
            piece = block[at : at + FRAME_BYTES]
            self._emit(frames.frame(kind, frames.END_HEADERS if is_whole else 0, stream_id, piece))
            kind = frames.CONTINUATION

    def finish(self, stream_id: int) -> None:
        """End a request, behind its data."""
        self.send_end(stream_id, b"")

    def _send_trailers(self, stream: Stream, _block: bytes) -> None:
        """End the request: it has no trailers."""
        stream.state = next_state(stream.state, Happened.SENT_END)
        self._emit(frames.frame(frames.DATA, frames.END_STREAM, stream.id))

    # --- received ----------------------------------------------------------------------------------------------

    def _has_begun(self) -> bool:
        return True

    def _take_block(self, stream: Stream | None, frame: Frame, block: bytes) -> None:
        """Take a response's fields, or its trailers."""
        stream_id, is_last = frame.stream_id, bool(frame.flags & frames.END_STREAM)
        if stream is None:
            self._spend("others")
            self._blocks.fields(block)
            self._check_gone(stream_id, Happened.HEADERS)
            return
        fields = self._blocks.response(block)
        stream.state = next_state(stream.state, Happened.HEADERS)
        has_head = stream.head is not None
        if has_head != (fields.status is None):
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "fields of a response without :status, or trailers with it")
        if fields.status in _INFORMATIONAL and not is_last:
            self._spend("others")
            return
        if has_head and not is_last:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "fields behind a body that do not end it")
        if not has_head:
            stream.head = fields
        if is_last:
            self._check_length(stream, is_last=True)
            self._end(stream)
        self._events.append(Replied(stream_id, fields, is_last))

    def _end(self, stream: Stream) -> None:
        stream.state = next_state(stream.state, Happened.END)
        if stream.state is State.CLOSED:
            self._close(stream)
        else:
            # The server has answered, and needs no more of the request.
            self._cut_off(stream.id, ErrorCode.NO_ERROR, is_told=False)

    def _check_gone(self, stream_id: int, happened: Happened) -> None:
        if not stream_id % 2 or stream_id > self._last_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{happened.name} on stream {stream_id}, which is no call")

    def _peer_goes(self, last_id: int, code: int) -> None:
        self.is_going = True
        if last_id < self._goes_after:
            self._goes_after = last_id
            for stream in [each for each in self._streams.values() if each.id > last_id]:
                self._close(stream)
                self._events.append(Reset(stream.id, ErrorCode.REFUSED_STREAM))
        self._events.append(Going(code))

    def _peers_last(self) -> int:
        return 0
