"""uvicorn's HTTP protocol with bounds that it lacks, so that slow and silent clients hold nothing.

- the head of a call must arrive within ``head_ms`` of the connection, or of the call's first byte;
- a client that reads nothing of an answer for ``stalled_ms`` is cut off;
- beyond ``connections_max`` a new connection takes the place of a resting one (:mod:`cortado.store.gateway.places`); if
  none rests, it is answered 429 and closed, except for a probe;
- bytes that are no HTTP are answered with a problem, like every other error.

httptools parses at a quarter of h11's cost, but accepts malformed heads. So it is given one head at a time, only after
:mod:`cortado.store.gateway.heads` has accepted that, and then only the bytes of the body::

    bytes ─► head, complete and strict ─► parser ─► call        a chunked body ends where the parser says;
                └ body, of its length ──► parser                 nothing is read behind it, and the connection ends

Pipelined bytes are parsed after the call before them is answered, so that their errors are not taken for its answer.
The sizes and extensions of a chunked body are bounded. Trailers are refused: they would be headers that nothing has
checked.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from cortado.errors import InvalidArgument
from cortado.store.gateway import alive
from cortado.store.gateway.application import DRAINED
from cortado.store.gateway.bounds import Bounds
from cortado.store.gateway.heads import END, Framing, body_of
from cortado.store.gateway.limits import HEAD_BYTES_MAX
from cortado.store.gateway.places import address_of_caller
from cortado.store.gateway.problems import Refused, problem_response
from cortado.store.gateway.writing import Together

_PROBE: Final = re.compile(rb"(?:GET|HEAD) " + re.escape(alive.PATH.encode()) + rb" ")
_PIECE_BYTES: Final = 1 << 10
_FRAMING_BYTES_MAX: Final = HEAD_BYTES_MAX - 2 * _PIECE_BYTES
"""Counted in pieces, so it may be two of them more."""
_HEAD_PROBLEM: Final = "must be one of HTTP/1.1: a request line and headers, in at most 32 KiB"


class Connection(HttpToolsProtocol):
    """uvicorn's, bounded."""

    def __init__(self, bounds: Bounds, **named: Any) -> None:
        super().__init__(**named)
        self.bounds = bounds
        self.limits = bounds.limits
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unread = b""
        """The bytes after the last complete head."""
        self._body_left = 0
        self._is_last = False
        """Nothing behind this call is read: the parser finds its body's end, or it asked for another protocol."""
        self._is_head_over = False
        self._framing_bytes = 0
        """Bytes of a chunked body since the last of its content."""
        self._has_place = False
        self.address = ""
        """The caller's address, as :mod:`cortado.store.gateway.places` counts it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = Together(transport, self.loop)  # type: ignore[assignment]
        self.address = address_of_caller(self.client[0]) if self.client else ""
        self._has_place = self.bounds.places.enter(self)
        self._await_head()

    def give_way(self) -> None:
        """End this resting connection: a new one has its place."""
        self.bounds.reject("idle connection")
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unread += data
        self._read()
        self._keep_head_timer()
        self._keep_place()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Bytes of a body that was not taken: an idle connection would hold them until its next call.
        self.cycle.body = bytearray()
        if self._unread:
            self._unset_keepalive_if_required()
            self._read()
            self._keep_head_timer()
        self._keep_place()

    def _keep_place(self) -> None:
        """Tell ``places`` whether the connection rests or works."""
        if self.transport.is_closing():
            return
        is_asked = self._is_body_awaited() and not self.cycle.response_started
        if self.flow.write_paused or (self._is_within_call() and not is_asked):
            self.bounds.places.work(self)
        else:
            self.bounds.places.rest(self)

    def _read(self) -> None:
        """Give the parser the bytes that have arrived, up to the end of the call that is under way."""
        while self._unread and not self.transport.is_closing():
            if self._is_last:
                taken, self._unread = self._unread, b""
                self._feed_chunks(taken)
            elif self._body_left:
                taken, self._unread = self._unread[: self._body_left], self._unread[self._body_left :]
                self._body_left -= len(taken)
                self._feed(taken)
            elif self._is_within_call():
                self.flow.pause_reading()
                break
            elif not self._take_head():
                break

    def _take_head(self) -> bool:
        """Give the parser the next head, if it is complete."""
        # Between two requests a client may send an empty line.
        unread = self._unread.removeprefix(b"\r\n")
        end = unread.find(END, 0, HEAD_BYTES_MAX)
        if end < 0:
            if len(unread) >= HEAD_BYTES_MAX:
                self.bounds.reject("head")
                self._refuse(problem_response(Refused(431, InvalidArgument("request", _HEAD_PROBLEM))))
            return False
        head, self._unread = unread[: end + len(END)], unread[end + len(END) :]
        body = body_of(head)
        if body is None:
            self.send_400_response("")
            return False
        if not self._has_place and _PROBE.match(head) is None:
            full = self.bounds.full("connections", "connections", self.limits.connections_max)
            self._refuse(problem_response(full))
            return False
        self._body_left = 0 if isinstance(body, Framing) else body
        self._feed(head)
        if self.transport.is_closing():
            return False
        self._is_last = self._is_last or isinstance(body, Framing) or not self._has_place
        if self._is_last:
            self.cycle.keep_alive = False
        return True

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_last = True
        except httptools.HttpParserError:
            # Behind the end of a last call there may be anything.
            if not (self._is_last and self.cycle is not None and not self.cycle.more_body):
                self.send_400_response("")

    def _feed_chunks(self, data: bytes) -> None:
        """Feed the parser in pieces, since it does not say which bytes of one were content."""
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            self._framing_bytes += len(piece)
            self._feed(piece)
            if not self._is_body_awaited() or self.transport.is_closing():
                return
            if self._framing_bytes > _FRAMING_BYTES_MAX:
                self.send_400_response("")
                return

    def _is_body_awaited(self) -> bool:
        return self._is_within_call() and self.cycle.more_body

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        if self._is_last and self.cycle is not None and not self.cycle.more_body:
            raise ValueError("nothing is read behind a last call")
        self._is_head_over = False
        super().on_message_begin()
        self.scope["state"][DRAINED] = self.flow.drain

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_head_over:
            raise ValueError("a trailer")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_head_over = True
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer("_head_timer")
        self._stop_timer("_stall_timer")
        self.bounds.places.leave(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_timer("_stall_timer")
        self._stall_timer = self.loop.call_later(self.limits.stalled_ms / 1000, self._stands_still)
        self._keep_place()

    def _stands_still(self) -> None:
        self.bounds.reject("stalled")
        self.transport.abort()

    def resume_writing(self) -> None:
        self._stop_timer("_stall_timer")
        super().resume_writing()
        self._keep_place()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse bytes that are no HTTP. uvicorn calls this; ``msg`` says no more than that."""
        self.bounds.reject("head")
        self._refuse(problem_response(InvalidArgument("request", _HEAD_PROBLEM)))

    def _is_within_call(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _keep_head_timer(self) -> None:
        """Keep or start the timer of the head after bytes have arrived, unless a call is under way."""
        if self._is_within_call():
            self._stop_timer("_head_timer")
        elif self._head_timer is None and not self.transport.is_closing():
            self._await_head()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.head_ms / 1000, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self._is_within_call():
            self.bounds.reject("late head")
            self.transport.abort()

    def _refuse(self, response: Response) -> None:
        """Answer and close; only close if another answer has begun."""
        if self._is_within_call() and self.cycle.response_started:
            self.transport.abort()
            return
        headers = [*response.raw_headers, (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body))
        self.transport.close()

    def _stop_timer(self, name: str) -> None:
        timer: asyncio.TimerHandle | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)
