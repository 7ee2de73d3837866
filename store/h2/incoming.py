"""The half of a connection that receives: frames in, events out. Both sides of a connection share it.

::

    feed(bytes), advance() ─► events, until has_more is False
                   `── each side has its own way to begin, to take a header block, and to judge a stream that is over

``advance`` does some milliseconds of work and no more; its driver lets other tasks run between two calls.

A peer may send ``stream_window`` bytes to each stream, and ``connection_window`` to all, beyond those consumed. A
reader that waits for a longer message says so (:meth:`Incoming.expect`). Then the stream's window opens for the rest
of it, and these bytes take nothing of the connection's window: messages that arrive together don't stop each other.

A stream that this side has reset, or answered before its request was whole, is remembered for a while: frames that were
under way to it are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cortado.store.h2 import frames
from cortado.store.h2.events import Data, Ended, Event, PingAnswered, Reset
from cortado.store.h2.frames import Frame, FrameReader, unpadded
from cortado.store.h2.header_blocks import HeaderBlocks
from cortado.store.h2.limits import STREAM_ID_MAX, WINDOW_MAX, Budget, ConnectionFault, ErrorCode, H2Limits, StreamFault
from cortado.store.h2.outgoing import FRAME_BYTES, OUT_BYTES, WINDOW_FIRST, Outgoing
from cortado.store.h2.states import Event as Happened
from cortado.store.h2.states import State, next_state
from cortado.store.h2.streams import Stream

_STREAMS_A_FRAME: Final = 32
"""The number of windows of streams that are changed in the time of one frame."""


class Incoming(Outgoing):
    """``now_s`` is a monotonic clock."""

    push_max: int
    """The largest ENABLE_PUSH that the peer may send."""

    def __init__(self, limits: H2Limits, now_s: Callable[[], float]) -> None:
        super().__init__(limits, now_s)
        self._reader = FrameReader(limits.frame_bytes)
        self._blocks = HeaderBlocks(limits.header_list_bytes_max)
        self._budgets: dict[str, Budget] = {}
        self._block: list[bytes] = []
        self._block_of: Frame | None = None
        self._peer_streams = STREAM_ID_MAX
        """The number of streams that the peer allows this side to have open."""
        self.has_settings = False
        """The peer has said its settings."""
        self.has_acknowledged = False
        """The peer knows our settings."""
        self.is_over = False
        """The connection has failed: only its last bytes are still to be written."""
        self.has_more = False
        """There may be events without further bytes."""

    def _begin(self, told: Mapping[int, int]) -> None:
        """Send the first frames: ``told`` beside the settings that both sides have."""
        limits = self._limits
        settings = {
            **told,
            frames.INITIAL_WINDOW_SIZE: limits.stream_window,
            frames.MAX_HEADER_LIST_SIZE: limits.header_list_bytes,
        }
        if limits.frame_bytes > FRAME_BYTES:
            settings[frames.MAX_FRAME_SIZE] = limits.frame_bytes
        self._emit(frames.settings(settings.items()))
        if limits.connection_window > WINDOW_FIRST:
            self._emit(frames.window_update(0, limits.connection_window - WINDOW_FIRST))

    # --- each side's own ---------------------------------------------------------------------------------------

    def _has_begun(self) -> bool:
        """Return whether frames may come. Raises ConnectionFault."""
        raise NotImplementedError

    def _take_block(self, stream: Stream | None, frame: Frame, block: bytes) -> None:
        """Take a whole header block, which began with ``frame``."""
        raise NotImplementedError

    def _end(self, stream: Stream) -> None:
        """Record that nothing more comes on the stream."""
        raise NotImplementedError

    def _check_gone(self, stream_id: int, happened: Happened) -> None:
        """Raise a fault if this must not happen to a stream that is not open."""
        raise NotImplementedError

    def _peer_goes(self, last_id: int, code: int) -> None:
        """Take GOAWAY."""
        raise NotImplementedError

    def _peers_last(self) -> int:
        """Return the last stream that the peer has opened."""
        raise NotImplementedError

    # --- frames ------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        if not self.is_over:
            self._reader.feed(data)

    def advance(self) -> list[Event]:
        """Return the events of the next bytes. It has to be called again while :attr:`has_more`."""
        self.has_more = False
        cost = 0
        try:
            while not self.is_over and self._has_begun():
                if cost >= self._limits.slice_cost:
                    self.has_more = True
                    break
                frame = self._reader.next()
                if frame is None:
                    break
                cost += self._receive(frame)
                if self._out_bytes > self._limits.output_bytes:
                    raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "answers are not read")
        except ConnectionFault as fault:
            self._fail(fault)
        return self._taken_events()

    def _receive(self, frame: Frame) -> int:
        """Take a frame in; return its cost."""
        kind = frame.kind
        if self._block_of is not None and (kind != frames.CONTINUATION or frame.stream_id != self._block_of.stream_id):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a header block is interrupted")
        if not self.has_settings and (kind != frames.SETTINGS or frame.flags & frames.ACK):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        try:
            return 1 + (_RECEIVERS.get(kind, Incoming._on_unknown)(self, frame) or 0)
        except StreamFault as fault:
            self._spend("resets")
            self._cut_off(frame.stream_id, fault.code)
            return 1

    def _on_data(self, frame: Frame) -> None:
        stream_id, length = frame.stream_id, len(frame.payload)
        self._recv_window -= length
        if self._recv_window < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more than the connection's window")
        stream = self._streams.get(stream_id)
        if stream is None:
            self._spend("others")
            self._credit(length)
            self._check_gone(stream_id, Happened.DATA)
            return
        stream.recv_window -= length
        data = unpadded(frame)
        self._credit(length - len(data) + stream.arrived(len(data)))
        stream.state = next_state(stream.state, Happened.DATA)
        if stream.recv_window < 0:
            raise StreamFault(ErrorCode.FLOW_CONTROL_ERROR, "more than the stream's window")
        is_last = bool(frame.flags & frames.END_STREAM)
        if not data and not is_last:
            self._spend("empty_frames")
            return
        stream.received += len(data)
        if stream.head is None:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "data before the fields of a response")
        if stream.head.content_length is not None:
            self._check_length(stream, is_last=is_last)
        if is_last:
            self._end(stream)
        self._events.append(Data(stream_id, data, is_last))

    def _check_length(self, stream: Stream, *, is_last: bool) -> None:
        said = None if stream.head is None else stream.head.content_length
        if said is not None and (stream.received != said if is_last else stream.received > said):
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, f"{stream.received} bytes, and content-length {said}")

    def _on_headers(self, frame: Frame) -> int:
        fragment = unpadded(frame)
        if frame.flags & frames.END_HEADERS:
            return self._whole(frame, fragment)
        self._check_block(fragment)
        self._block, self._block_of = [fragment], frame
        return 0

    def _on_continuation(self, frame: Frame) -> int:
        begun = self._block_of
        if begun is None:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._block.append(frame.payload)
        if len(self._block) > self._limits.continuations + 1:
            problem = f"a header block in more than {self._limits.continuations} CONTINUATION frames"
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, problem)
        whole = b"".join(self._block)
        self._check_block(whole)
        if not frame.flags & frames.END_HEADERS:
            return 0
        self._block_of = None
        try:
            return self._whole(begun, whole)
        finally:
            self._block = []

    def _check_block(self, block: bytes) -> None:
        limit = self._limits.header_block_bytes
        if len(block) > limit:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"a header block of more than {limit} bytes")

    def _whole(self, frame: Frame, block: bytes) -> int:
        """Take a whole header block, which began with ``frame``. Return its cost."""
        self._check_block(block)
        cost = 0
        if not self._blocks.knows(block):
            cost = len(block) * self._limits.slice_cost // self._limits.header_block_bytes
        self._take_block(self._streams.get(frame.stream_id), frame, block)
        return cost

    def _on_rst_stream(self, frame: Frame) -> None:
        stream_id = frame.stream_id
        stream = self._streams.get(stream_id)
        # A reader that has all it wants resets a stream that was answered meanwhile: nothing was worked out in vain.
        self._spend("others" if stream is None else "resets")
        if stream is None:
            self._check_gone(stream_id, Happened.RESET)
            return
        self._close(stream)
        self._events.append(Reset(stream_id, int.from_bytes(frame.payload, "big")))

    # --- frames of the connection ------------------------------------------------------------------------------

    def _on_settings(self, frame: Frame) -> int:
        settings = frames.settings_of(frame)
        if frame.flags & frames.ACK:
            self.has_acknowledged = True
            return 0
        self._spend("settings")
        self.has_settings = True
        window = self._send_window_of_streams
        for name, value in settings:
            if name == frames.INITIAL_WINDOW_SIZE:
                if value > WINDOW_MAX:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, f"INITIAL_WINDOW_SIZE {value}")
                window = value
            elif name == frames.MAX_CONCURRENT_STREAMS:
                self._peer_streams = value
            elif name == frames.ENABLE_PUSH and value > self.push_max:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"ENABLE_PUSH {value}")
            elif name == frames.MAX_FRAME_SIZE:
                if not FRAME_BYTES <= value < 1 << 24:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"MAX_FRAME_SIZE {value}")
                self._frame_bytes = min(value, OUT_BYTES)
        self._emit(frames.frame(frames.SETTINGS, frames.ACK, 0))
        return self._widen_streams(window)

    def _widen_streams(self, window: int) -> int:
        """Change the windows of all streams, once for the last of a frame's values: it may have thousands. Return the
        cost."""
        change = window - self._send_window_of_streams
        if not change:
            return 0
        self._send_window_of_streams = window
        for stream in self._streams.values():
            stream.send_window += change
            if stream.send_window > WINDOW_MAX:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE overflows a window")
            self._line_up(stream)
        self._flow()
        return len(self._streams) // _STREAMS_A_FRAME

    def _on_window_update(self, frame: Frame) -> None:
        self._spend("others")
        increment = int.from_bytes(frame.payload, "big") & WINDOW_MAX
        stream_id = frame.stream_id
        stream = self._streams.get(stream_id)
        fault: type[StreamFault | ConnectionFault] = StreamFault if stream_id else ConnectionFault
        if stream_id and stream is None:
            self._check_gone(stream_id, Happened.WINDOW)
            return
        if not increment:
            raise fault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE by nothing")
        if (self._send_window if stream is None else stream.send_window) + increment > WINDOW_MAX:
            raise fault(ErrorCode.FLOW_CONTROL_ERROR, "WINDOW_UPDATE overflows a window")
        if stream is None:
            self._send_window += increment
        else:
            stream.send_window += increment
            self._line_up(stream)
        self._flow()

    def _on_ping(self, frame: Frame) -> None:
        if frame.flags & frames.ACK:
            self._events.append(PingAnswered(frame.payload))
            return
        self._spend("pings")
        self._emit(frames.frame(frames.PING, frames.ACK, 0, frame.payload))

    def _on_priority(self, frame: Frame) -> None:
        self._spend("others")
        frames.check_priority(frame.stream_id, frame.payload)

    def _on_push_promise(self, _frame: Frame) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE, and no peer may push")

    def _on_unknown(self, _frame: Frame) -> None:
        """Ignore the frame."""
        self._spend("others")

    def _on_goaway(self, frame: Frame) -> None:
        self._spend("others")
        last_id, code = frame.payload[:4], frame.payload[4:8]
        self._peer_goes(int.from_bytes(last_id, "big") & STREAM_ID_MAX, int.from_bytes(code, "big"))

    # --- receive windows ---------------------------------------------------------------------------------------

    @property
    def unread(self) -> int:
        """The bytes that have arrived, and that no reader waits for."""
        return self._limits.connection_window - self._recv_window - self._owed

    @property
    def arriving(self) -> int:
        """The bytes that have arrived of messages that readers wait for."""
        return sum(stream.credited for stream in self._streams.values())

    def consumed(self, stream_id: int, count: int) -> None:
        """Record that ``count`` bytes of the stream are not held any more."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return  # All of it was given back when it closed.
        self._credit(stream.consume(count))
        if stream.state is not State.HALF_CLOSED_REMOTE:
            owed = self._limits.stream_window - stream.recv_window - stream.unread - stream.credited
            if owed >= self._limits.stream_window // 2:
                self._open_window(stream, owed)

    def expect(self, stream_id: int, count: int) -> None:
        """Let ``count`` bytes come beyond those that have arrived: a reader waits for them."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        self._credit(stream.expect(count))
        if count > stream.recv_window:
            self._open_window(stream, count - stream.recv_window)

    def _open_window(self, stream: Stream, increment: int) -> None:
        stream.recv_window += increment
        self._emit(frames.window_update(stream.id, increment))

    # --- ends --------------------------------------------------------------------------------------------------

    def fail(self, code: ErrorCode, problem: str) -> list[Event]:
        """End the connection for a problem that its driver found."""
        if not self.is_over:
            self._fail(ConnectionFault(code, problem))
        return self._taken_events()

    def _fail(self, fault: ConnectionFault) -> None:
        self.is_over = True
        self._out.append(frames.goaway(self._peers_last(), fault.code, fault.problem))
        self._events.append(Ended(fault.code, fault.problem))

    def _spend(self, what: str) -> None:
        """Take one from a rate of the limits. Raises ConnectionFault if its budget is used up."""
        budget = self._budgets.get(what)
        if budget is None:
            budget = self._budgets[what] = Budget(getattr(self._limits, what), self._now_s())
        if not budget.take(self._now_s()):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"too many {what.replace('_', ' ')}")


_RECEIVERS: Final[dict[int, Callable[[Incoming, Frame], int | None]]] = {
    frames.DATA: Incoming._on_data,
    frames.HEADERS: Incoming._on_headers,
    frames.PRIORITY: Incoming._on_priority,
    frames.RST_STREAM: Incoming._on_rst_stream,
    frames.SETTINGS: Incoming._on_settings,
    frames.PUSH_PROMISE: Incoming._on_push_promise,
    frames.PING: Incoming._on_ping,
    frames.GOAWAY: Incoming._on_goaway,
    frames.WINDOW_UPDATE: Incoming._on_window_update,
    frames.CONTINUATION: Incoming._on_continuation,
}
