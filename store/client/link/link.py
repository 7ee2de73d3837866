"""One connection: the calls that wait for it, the calls on it, and their ends. See :mod:`cortado.store.client.link`."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Final

from cortado.errors import Cancelled, CortadoError, DeadlineExceeded, Internal, Unavailable, Unsupported
from cortado.store.client.authorization import Metadata
from cortado.store.client.link import ends
from cortado.store.client.link.call import Call
from cortado.store.client.retry import Failure
from cortado.store.h2.client import ClientConnection
from cortado.store.h2.events import Data, Drained, Ended, Event, Going, Replied, Reset
from cortado.store.h2.grpc import CONTENT_TYPE, PREFIX_BYTES, prefixed, timeout_text
from cortado.store.h2.header_blocks import block, literal
from cortado.store.h2.limits import WINDOW_MAX, ErrorCode, H2Limits
from cortado.store.wire.api_level import user_agent
from cortado.version import __version__

CONNECT_S: Final = 3.0
"""How long it may take until the server has said its settings: four times around the world with TLS."""
AGAIN_S: Final = 0.05
"""For this time calls fail at once with the error of a connection that could not be made."""
IDLE_S: Final = 60.0
"""A connection without calls ends: idle members need none."""
_FRAME_BYTES: Final = 64 << 10
"""A page of a scan comes in a few frames, since each costs as much as some kilobytes."""
_BLOCKS_MAX: Final = 256
_OK: Final = 200


class Link:
    """One connection to ``address``. ``ahead_bytes``: the bytes of each call that may come before they are read."""

    def __init__(self, address: str, now_s: Callable[[], float], *, is_encrypted: bool, ahead_bytes: int) -> None:
        self._now_s = now_s
        # Streams that are not read use up their own windows, and never the connection's.
        limits = H2Limits(frame_bytes=_FRAME_BYTES, stream_window=ahead_bytes, connection_window=WINDOW_MAX)
        self._h2 = ClientConnection(limits, now_s)
        self._held: dict[Call, None] = {}
        """Calls that wait for the connection, or for room on it."""
        self._calls: dict[int, Call] = {}
        self._untaken: list[Call] = []
        """Calls whose beginning was not taken to be written."""
        self._news: dict[Call, None] = {}
        self._partial: dict[Call, None] = {}
        """Calls that wait for the rest of a reply."""
        # The first two fields stand in the static table: POST, and the scheme.
        self._begins = (b"\x83\x87" if is_encrypted else b"\x83\x86") + literal(b":authority", address.encode())
        self._rest = block(
            [(b"te", b"trailers"), (b"content-type", CONTENT_TYPE), (b"user-agent", user_agent(__version__).encode())]
        )
        self._blocks: dict[tuple[str, bytes, Metadata | None], bytes] = {}
        self._is_connected = self._is_ready = False
        self._since_s = now_s()
        """When it was made; later, when it became idle; at the end, when it ended."""
        self._failure: Failure | None = None
        """Why it is over."""
        self.look_s = self._since_s + CONNECT_S
        """When :meth:`look` is to be called."""

    # --- for callers -------------------------------------------------------------------------------------------

    def takes_calls(self) -> bool:
        """Return whether calls may begin here. If it could not connect just now, they fail at once."""
        if self._failure is None:
            return not self._h2.is_going
        return not self._is_ready and self._now_s() < self._since_s + AGAIN_S

    def begin(self, call: Call) -> None:
        if self._failure is not None or self._h2.is_going:
            self._end(call, _unsent(self._failure or Failure(Unavailable(ends.ENDED), answered=False, sent=False)))
            return
        if self._is_ready and not self._held and self._h2.has_room:
            self._open(call)
        else:
            self._held[call] = None
        self.look_s = min(self.look_s, call.deadline_s)

    def has_room(self, call: Call) -> bool:
        """Return whether the call is open, and all of its messages were taken to be written."""
        return call.stream_id > 0 and not call.is_over and not self._h2.queued(call.stream_id)

    def send(self, call: Call, message: bytes) -> None:
        """Send a message of an open call without a request of its own."""
        self._h2.send_data(call.stream_id, prefixed(message))

    def finish(self, call: Call) -> None:
        """Send no more messages."""
        self._h2.finish(call.stream_id)

    def read(self, call: Call) -> bytes | None:
        """Return the next reply of a call that is not eager; None if it is not here: the call is told when it is, and
        it may come in any size."""
        try:
            message = call.messages.next()
            call.is_awaited = message is None
            if message is not None:
                self._h2.consumed(call.stream_id, PREFIX_BYTES + len(message))
            else:
                self._h2.expect(call.stream_id, call.messages.missing)
        except CortadoError as problem:
            if call.failure is None:
                self._unreadable(call, problem)
            return None
        return message

    def cancel(self, call: Call) -> bool:
        """End a call for its caller, who is not told. False if it has ended."""
        if call.is_over:
            return False
        self._drop(call, Cancelled("the call was given up"))
        del self._news[call]
        return True

    # --- for its driver ----------------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        """Whether bytes are to be written."""
        return self._h2.unsent > 0

    @property
    def is_over(self) -> bool:
        """Whether the rest of the bytes is to be written, and then the socket closed."""
        return self._failure is not None

    def connected(self) -> None:
        self._is_connected = True

    def received(self, data: bytes) -> None:
        self._h2.feed(data)
        while True:
            for event in self._h2.advance():
                self._take(event)
            if self._partial:
                self._expect_rests()
            if not self._h2.has_more:
                break
        if self._h2.has_settings and not self._is_ready and self._failure is None:
            self._is_ready = True
            self._since_s = self._now_s()
            self.look_s = min(self.look_s, self._since_s + IDLE_S)
        self._open_held()

    def taken(self) -> bytes:
        """Take the bytes that are to be written now. They are sent, for all that the calls know."""
        if not self._is_connected:
            return b""
        out = self._h2.taken()
        if out:
            for call in self._untaken:
                call.is_sent = True
            self._untaken.clear()
            for event in self._h2.pump():
                self._take(event)
            self._open_held()
        return out

    def told(self) -> list[Call]:
        """Take the calls with news."""
        news, self._news = list(self._news), {}
        return news

    def lost(self, problem: str) -> None:
        """Record that the connection cannot be made, or broke."""
        self._close(Unavailable(ends.ENDED if self._h2.is_going else problem))

    def close(self) -> None:
        """End the connection, and all calls."""
        self._close(Cancelled("the client was closed"))

    def look(self) -> None:
        """End calls that are late, and a connection that is not there in time, or without calls."""
        now_s = self._now_s()
        late = DeadlineExceeded(problem=ends.LATE)
        calls = [*self._held, *self._calls.values()]
        for call in calls:
            if call.deadline_s <= now_s:
                self._drop(call, late)
        over_s = math.inf if self._failure is not None else self._since_s + (IDLE_S if self._is_ready else CONNECT_S)
        if self._is_ready and calls:
            over_s = now_s + IDLE_S
        if over_s <= now_s:
            problem = "it was idle" if self._is_ready else ends.SILENT if self._is_connected else ends.NO_ANSWER
            self.lost(problem)
            over_s = math.inf
        self.look_s = min([over_s, *(call.deadline_s for call in calls if not call.is_over)])

    # --- calls -------------------------------------------------------------------------------------------------

    def _open_held(self) -> None:
        while self._held and self._is_ready and self._h2.has_room:
            call = next(iter(self._held))
            del self._held[call]
            self._open(call)

    def _open(self, call: Call) -> None:
        request = call.request
        fields = self._fields(call)
        first = b"" if request is None else prefixed(request)
        call.stream_id = self._h2.open(fields, first, is_last=request is not None)
        self._calls[call.stream_id] = call
        self._untaken.append(call)
        if request is None:
            self._news[call] = None
        else:
            call.request = b""  # The connection holds it.

    def _fields(self, call: Call) -> bytes:
        left_s = call.deadline_s - self._now_s() if call.deadline_s < math.inf else math.inf
        timeout = b"" if left_s == math.inf else timeout_text(left_s)
        key = (call.path, timeout, call.metadata)
        known = self._blocks.get(key)
        if known is None:
            more = [(name.encode(), value.encode()) for name, value in call.metadata or ()]
            if timeout:
                more.append((b"grpc-timeout", timeout))
            known = self._begins + literal(b":path", b"/" + call.path.encode()) + self._rest + block(more)
            if len(self._blocks) >= _BLOCKS_MAX:
                self._blocks.clear()
            self._blocks[key] = known
        return known

    def _take(self, event: Event) -> None:
        kind = type(event)
        if kind is Data:
            self._data(event)  # type: ignore[arg-type]  # As its type says.
        elif kind is Replied:
            self._replied(event)  # type: ignore[arg-type]
        elif isinstance(event, Drained):
            if event.stream_id in self._calls:
                self._news[self._calls[event.stream_id]] = None
        elif isinstance(event, Reset):
            if event.stream_id in self._calls:
                call = self._calls[event.stream_id]
                self._end(call, ends.of_reset(event.code))
        elif isinstance(event, Going):
            self._going()
        elif isinstance(event, Ended):
            problem = f"it breaks the protocol: {event.problem}" if self._is_ready else ends.STRANGER
            self._close(Unavailable(problem))

    def _data(self, event: Data) -> None:
        call = self._calls.get(event.stream_id)
        if call is None:
            return  # It was given up, in the same bytes.
        call.messages.add(event.data)
        try:
            if not call.is_eager:
                if call.messages.missing <= 0:
                    self._news[call] = None
                elif call.is_awaited:
                    self._partial[call] = None
            elif call.request is None or not call.replies:
                self._take_replies(call)
        except CortadoError as problem:
            self._unreadable(call, problem)
            return
        if event.is_last:
            self._end(call, Failure(Unavailable(ends.STRANGER), answered=False, sent=True))

    def _take_replies(self, call: Call) -> None:
        """Take the replies that are here: one, if the request was one. More of them stay within the windows."""
        messages = call.messages
        while (message := messages.next()) is not None:
            self._h2.consumed(call.stream_id, PREFIX_BYTES + len(message))
            call.replies.append(message)
            if call.request is not None:
                return
        if messages.missing > PREFIX_BYTES:
            self._partial[call] = None
        if call.replies:
            self._news[call] = None

    def _expect_rests(self) -> None:
        """Let the rests of replies come, once all that has come is known: windows count that already."""
        partial, self._partial = self._partial, {}
        for call in partial:
            if not call.is_over and call.messages.missing > 0:
                self._h2.expect(call.stream_id, call.messages.missing)

    def _replied(self, event: Replied) -> None:
        call = self._calls.get(event.stream_id)
        if call is None:
            return
        fields, status = event.fields.fields, event.fields.status
        is_grpc = fields.get(b"content-type", b"").startswith(CONTENT_TYPE)
        if status is not None and (status != _OK or not is_grpc):
            self._drop(call, ends.of_http(status))
        elif event.is_last:
            failure = ends.of_trailers(fields)
            call.messages.is_last = True
            try:
                if call.is_eager and failure is None and call.messages.next() is not None:
                    problem = f"the server sent more than one reply of {call.path}, which has one"
                    failure = Failure(Internal(problem), answered=False, sent=True)
            except CortadoError as problem:
                self._unreadable(call, problem)
            else:
                self._end(call, failure)

    def _unreadable(self, call: Call, problem: CortadoError) -> None:
        self._drop(call, Internal(f"the server sent a reply of {call.path} that cannot be read: {problem}"))

    def _drop(self, call: Call, error: CortadoError) -> None:
        """End a call for this side's reasons."""
        if call.stream_id and not call.is_over:
            self._h2.reset(call.stream_id, ErrorCode.CANCEL)
        is_sent = call.is_sent and not isinstance(error, Unsupported)
        self._end(call, Failure(copy(error), answered=False, sent=is_sent))

    def _end(self, call: Call, failure: Failure | None) -> None:
        self._calls.pop(call.stream_id, None)
        self._held.pop(call, None)
        call.is_over, call.failure = True, failure
        self._news[call] = None
        if self._is_ready and not self._calls and not self._held and self._failure is None:
            self._since_s = self._now_s()
            self.look_s = min(self.look_s, self._since_s + IDLE_S)
            if self._h2.is_going:
                self._close(Unavailable(ends.ENDED))

    # --- ends --------------------------------------------------------------------------------------------------

    def _going(self) -> None:
        """Begin to go, as the server says: the calls that it has begun go on."""
        for call in list(self._held):
            self._end(call, Failure(Unavailable(ends.ENDED), answered=False, sent=False))
        if not self._calls:
            self._close(Unavailable(ends.ENDED))

    def _close(self, error: CortadoError) -> None:
        if self._failure is not None:
            return
        self._failure = failure = Failure(error, answered=False, sent=True)
        self._since_s = self._now_s()
        self.look_s = math.inf
        for call in [*self._held, *self._calls.values()]:
            if call.stream_id:
                self._end(call, replace(failure, error=copy(error), sent=call.is_sent))
            else:
                self._end(call, _unsent(failure))


def _unsent(failure: Failure) -> Failure:
    return replace(failure, error=copy(failure.error), sent=False)
