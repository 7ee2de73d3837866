"""A connection of the native front: between a transport of asyncio and the HTTP/2 of :mod:`cortado.store.h2`.

::

    data_received ─► events ─► calls, begun in their order ─┐
          ▲           `── has_more,  `── SLICE_S is over: nothing is read meanwhile, and the loop gets its turn
          │                                                 │
       transport ◄── flush: once a round of the loop, for all calls that were answered in it

A call ends if its replies have not moved for ``STALLED_S``, or if its first message takes longer than ``MESSAGE_S``.

A connection ends: at fault; silent before it has shown that it speaks HTTP/2 (``HANDSHAKE_S``); without a call for
``IDLE_S``; not reading for ``STALLED_S``; and when the server stops, by two GOAWAYs. The first lets streams come that
are under way, and the second, a round trip later, names the last one. It closes when its calls are answered.
"""

from __future__ import annotations

import asyncio
import contextvars
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import grpc

from cortado.errors import ResourceExhausted
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Data, Drained, Ended, Event, Opened, PingAnswered, Reset
from cortado.store.h2.fields import Head
from cortado.store.h2.limits import ErrorCode, H2Limits
from cortado.store.server.call_context import status_code
from cortado.store.server.front_call import Call, Plan
from cortado.store.wire.rpc_errors import status_message, trailing_metadata

HANDSHAKE_S: Final = 10.0
IDLE_S: Final = 300.0
STALLED_S: Final = 60.0
MESSAGE_S: Final = 60.0
"""The time that the first message of a call may take once its method waits for it: 8 MiB at a megabit a second."""
SLICE_S: Final = 0.005
"""The time for which calls are begun before other work of the loop goes on: one frame may ask for megabytes."""
GOING_S: Final = 1.0
"""The time that a peer may take to answer the first GOAWAY."""
_CLOSE_S: Final = 5.0
_RETRY_DELAY_MS: Final = 50
_SWEEP_S: Final = 0.05
_GOING: Final = b"cortado."

LIMITS: Final = H2Limits()


class Server(Protocol):
    """The owner of the connections."""

    def plan(self, head: Head) -> Plan: ...

    def joined(self, connection: FrontConnection) -> None: ...

    def has_left(self, connection: FrontConnection) -> None: ...

    def is_idle(self, connection: FrontConnection, *, is_idle: bool) -> None: ...

    def count_as_known(self, connection: FrontConnection) -> None:
        """Record that the connection is no stranger's any more."""


class FrontConnection(asyncio.Protocol):
    """A :class:`~cortado.store.server.front_call.Carrier`."""

    def __init__(self, server: Server, now_s: Callable[[], float]) -> None:
        self.h2 = Connection(LIMITS, now_s)
        self.peer = self.host = ""
        self.certificate: list[bytes] = []
        self.fresh = contextvars.copy_context()
        self.now_s = now_s
        self.is_known = False
        """It has shown a certificate, or a call of it was admitted."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, Call] = {}
        self._unstarted: deque[Call] = deque()
        """Calls that have come, and wait for their turn to begin."""
        self._since_s = now_s()
        """The time at which it was made, and later at which it became idle."""
        self._paused_s: float | None = None
        self._is_behind = False
        """What was received is not all taken, and nothing more is read."""
        self._is_taking = self._is_flushing = False
        self._is_gone = self._is_closing = False
        self._sweep: asyncio.TimerHandle | None = None

    # --- asyncio's ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        address = transport.get_extra_info("peername")
        self.peer, self.host = _name(address), address[0] if isinstance(address, tuple) else ""
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.certificate = _names_in(tls)
            self.is_known = bool(self.certificate)
            if tls.selected_alpn_protocol() != "h2":
                self._transport.abort()
                self._is_closing = True
        self._server.joined(self)
        self.flush()

    def connection_lost(self, _problem: Exception | None) -> None:
        self._transport = None
        self._is_closing = True
        for call in list(self._calls.values()):
            call.cancelled()
        if self._sweep is not None:
            self._sweep.cancel()
        self._server.has_left(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_closing:
            self.h2.feed(data)
            if not self._is_behind:
                self._advance()

    def pause_writing(self) -> None:
        self._paused_s = self.now_s()

    def resume_writing(self) -> None:
        self._paused_s = None
        self.flush()

    # --- received ----------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Take what was received for some milliseconds; the rest has its turn behind other work of the loop."""
        if self._is_closing or self._transport is None:
            return
        until_s = self.now_s() + SLICE_S
        self._start_some(until_s)
        if not self._unstarted:
            self._take(self.h2.advance())
            self._start_some(until_s)
        was_behind, self._is_behind = self._is_behind, bool(self._unstarted) or self.h2.has_more
        if self._is_behind:
            self._transport.pause_reading()
            self._loop.call_soon(self._advance)
        elif was_behind:
            self._transport.resume_reading()
        self.flush()

    def _take(self, events: list[Event]) -> None:
        self._is_taking = True
        try:
            for event in events:
                self._take_one(event)
        finally:
            self._is_taking = False

    def _start_some(self, until_s: float) -> None:
        """Begin calls in their order until that time. Their answers leave together."""
        self._is_taking = True
        try:
            while self._unstarted and not self._is_closing and self.now_s() <= until_s:
                call = self._unstarted.popleft()
                if not call.is_over:
                    call.start()
        finally:
            self._is_taking = False

    def _take_one(self, event: Event) -> None:
        kind = type(event)
        if kind is Data:
            self._data(event)  # type: ignore[arg-type]  # As its type says.
        elif kind is Opened:
            self._opened(event)  # type: ignore[arg-type]
        elif isinstance(event, Ended):
            self._close()
        elif isinstance(event, PingAnswered):
            if event.data == _GOING:
                self._gone()
        elif isinstance(event, (Reset, Drained)):
            call = self._calls.get(event.stream_id)
            if call is not None:
                call.drained() if isinstance(event, Drained) else call.cancelled()

    def _opened(self, event: Opened) -> None:
        head = event.head
        if head.plan is None:
            head.plan = self._server.plan(head)
        plan: Any = head.plan
        if plan.refusal:
            self.h2.send_end(event.stream_id, plan.refusal)
            return
        call = Call(self, event.stream_id, head, plan)
        if not self._calls:
            self._server.is_idle(self, is_idle=False)
        self._calls[event.stream_id] = call
        if event.is_last:
            call.arrived(b"", is_last=True)
        self._unstarted.append(call)

    def _data(self, event: Data) -> None:
        call = self._calls.get(event.stream_id)
        if call is None:
            self.h2.consumed(event.stream_id, len(event.data))
            return
        call.arrived(event.data, is_last=event.is_last)

    # --- sent --------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the waiting bytes, as far as the transport takes them."""
        self._is_flushing = False
        while self._paused_s is None and self._transport is not None and (out := self.h2.taken()):
            self._transport.write(out)
            self._take(self.h2.pump())
        if self._is_gone and not self._calls and self._paused_s is None:
            self._close()

    def flush_soon(self) -> None:
        if not self._is_flushing and not self._is_taking:
            self._is_flushing = True
            self._loop.call_soon(self.flush)

    def left(self, call: Call) -> None:
        del self._calls[call.stream_id]
        if not self._calls:
            self._since_s = self.now_s()
            self._server.is_idle(self, is_idle=True)
            if self._is_gone:
                self.flush_soon()

    def let_in(self) -> None:
        if not self.is_known:
            self.is_known = True
            self._server.count_as_known(self)

    # --- ends --------------------------------------------------------------------------------------------------

    def sweep_soon(self) -> None:
        if self._sweep is None:
            self._sweep = self._loop.call_later(_SWEEP_S, self._end_late)

    def _end_late(self) -> None:
        self._sweep = None
        now_s = self._loop.time()
        timed = [call for call in self._calls.values() if call.deadline_s is not None]
        for call in timed:
            if call.deadline_s is not None and call.deadline_s <= now_s:
                call.expired()
        if timed:
            self.sweep_soon()

    def look(self) -> None:
        """End the connection if it is silent or does not read; end calls that make no progress."""
        now_s = self.now_s()
        if self._paused_s is not None and now_s - self._paused_s > STALLED_S:
            self._abort()
        elif not self.h2.has_acknowledged and now_s - self._since_s > HANDSHAKE_S:
            self.fail(ErrorCode.SETTINGS_TIMEOUT, f"no SETTINGS within {HANDSHAKE_S:.0f} s")
        elif not self._calls and now_s - self._since_s > IDLE_S:
            self.end_idle()
        else:
            self._look_at_calls(now_s)

    def _look_at_calls(self, now_s: float) -> None:
        stalled = set(self.h2.stalled(now_s - STALLED_S))
        for call in list(self._calls.values()):
            if call.stream_id in stalled:
                call.drop()
            elif call.asked_s is not None and now_s - call.asked_s > MESSAGE_S:
                problem = f"the first message of the call did not arrive within {MESSAGE_S:.0f} s"
                late = ResourceExhausted(problem, _RETRY_DELAY_MS, "requests that arrive")
                call.end(status_code(late), status_message(late), trailing_metadata(late))

    def fail(self, code: ErrorCode, problem: str) -> None:
        self.h2.fail(code, problem)
        self._close()

    def end_idle(self) -> None:
        """End a connection without a call. A client makes a new one with its next call."""
        if self._paused_s is None:
            self._gone()
        else:
            # This makes room now, and not only when its peer reads on.
            self._abort()

    def go(self) -> None:
        """Begin to go: take the streams that are under way, and then no more."""
        self.h2.say_going(_GOING)
        self.flush()
        self._loop.call_later(GOING_S, self._gone)

    def _gone(self) -> None:
        if not self._is_gone:
            self._is_gone = True
            self.h2.say_gone()
            self.flush_soon()

    def drop(self) -> None:
        """End the calls that are left, and close."""
        for call in list(self._calls.values()):
            call.end(grpc.StatusCode.UNAVAILABLE, "the node is stopping")
        self._close()

    def _close(self) -> None:
        if self._is_closing or self._transport is None:
            return
        self._is_closing = True
        out = self.h2.taken()
        if self._paused_s is not None:
            # The peer reads nothing, and would not read this either.
            self._abort()
            return
        if out:
            self._transport.write(out)
        self._transport.close()
        # Closing waits until the peer has taken the written bytes, for ever if the peer does not read.
        self._loop.call_later(_CLOSE_S, self._abort)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _name(address: Any) -> str:
    """Return the name that gRPC gives a connection."""
    if not isinstance(address, tuple):
        return "unknown"
    host, port = address[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


def _names_in(tls: ssl.SSLObject) -> list[bytes]:
    shown: Any = tls.getpeercert() or {}
    return [str(value).encode() for _, value in shown.get("subjectAltName", ())]
