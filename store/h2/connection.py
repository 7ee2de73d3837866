"""A connection, as its server sees it: requests in as events, answers in as bytes (:mod:`.outgoing`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from cortado.store.h2 import frames
from cortado.store.h2.events import Data, Opened
from cortado.store.h2.fields import Head, check_trailers
from cortado.store.h2.frames import Frame
from cortado.store.h2.incoming import Incoming
from cortado.store.h2.limits import ConnectionFault, ErrorCode, H2Limits, StreamFault
from cortado.store.h2.states import Event as Happened
from cortado.store.h2.states import State, next_state
from cortado.store.h2.streams import Stream

_SKIPPED_MAX: Final = 64
"""The number of remembered gaps between numbers of streams; clients leave none."""


class Connection(Incoming):
    """``now_s`` is a monotonic clock."""

    push_max = 1

    def __init__(self, limits: H2Limits, now_s: Callable[[], float]) -> None:
        super().__init__(limits, now_s)
        self._skipped: deque[range] = deque(maxlen=_SKIPPED_MAX)
        """Streams that were never opened, below the last one that was."""
        self._has_preface = False
        self._begin({frames.MAX_CONCURRENT_STREAMS: limits.streams})

    def _has_begun(self) -> bool:
        if not self._has_preface:
            found = self._reader.starts_with(frames.PREFACE)
            if found is False:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "this port speaks HTTP/2")
            self._has_preface = found is True
        return self._has_preface

    def _take_block(self, stream: Stream | None, frame: Frame, block: bytes) -> None:
        """Take a request's fields, or its trailers."""
        stream_id, is_last = frame.stream_id, bool(frame.flags & frames.END_STREAM)
        if stream is not None:
            fields = self._blocks.fields(block)
            stream.state = next_state(stream.state, Happened.HEADERS)
            check_trailers(fields)
            if not is_last:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "fields behind a body that do not end it")
            self._check_length(stream, is_last=True)
            self._end(stream)
            self._events.append(Data(stream_id, b"", True))
        elif stream_id <= self._last_id or not stream_id % 2:
            self._blocks.fields(block)
            self._check_gone(stream_id, Happened.HEADERS)
        else:
            skipped = range(self._last_id + 2 if self._last_id else 1, stream_id, 2)
            if skipped:
                self._skipped.append(skipped)
            self._last_id = stream_id
            self._open(stream_id, self._blocks.request(block), is_last=is_last)

    def _open(self, stream_id: int, head: Head, *, is_last: bool) -> None:
        if stream_id > self._last_accepted:
            # It was sent before the peer read our GOAWAY, which says that it was not begun.
            self._remember_cut(stream_id)
            return
        if len(self._streams) >= self._limits.streams:
            raise StreamFault(ErrorCode.REFUSED_STREAM, f"{self._limits.streams} streams are open")
        stream = Stream(stream_id, head, self._limits.stream_window, self._send_window_of_streams)
        if is_last:
            self._check_length(stream, is_last=True)
            self._end(stream)
        self._streams[stream_id] = stream
        self._events.append(Opened(stream_id, head, is_last))

    def _end(self, stream: Stream) -> None:
        stream.state = next_state(stream.state, Happened.END)

    def _check_gone(self, stream_id: int, happened: Happened) -> None:
        if not stream_id % 2:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"stream {stream_id}, and clients' have odd numbers")
        if happened is Happened.HEADERS and any(stream_id in gap for gap in self._skipped):
            # RFC 9113 §5.1.1. To all other frames it is a closed stream.
            problem = f"stream {stream_id}, and a later one was opened before"
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, problem)
        if stream_id not in self._cut:
            next_state(State.IDLE if stream_id > self._last_id else State.CLOSED, happened)

    def _peer_goes(self, last_id: int, code: int) -> None:
        """Do nothing: a client that opens no more streams goes by itself."""

    def _peers_last(self) -> int:
        return self._last_id
