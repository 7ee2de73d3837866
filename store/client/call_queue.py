"""The coalescing stream: calls of many callers share messages on one stream to a server.

::

    callers   submit(call) ─► queue ─► everything queued leaves as one message ─► server
              wait ◄───────────────── each waiter woken once ◄──────────── replies, in any order

A call that comes while a message is being sent joins the next one, so the busier the stream, the larger the messages
and the cheaper each call; no call waits for others to come. Each caller encodes its own call, and a message is those
encodings end to end (a repeated field on the wire is just that). The encoding is written by hand, to the byte as
protobuf would: that takes half the time.

Calls and bytes in flight are bounded; one more call is refused at once, as an overloaded server refuses it. If a
call's caller gives up, the call is taken out of the queue, or the server is told. When the stream ends, for any
reason, all its calls end: those that never left as *not sent*, the others as calls on a broken connection. A stream on
which nothing happened for a while ends by itself. A server that ends one in order has answered every call that it
took, so the unanswered calls were never begun.

This file decides; it neither waits nor locks. Threads do that in :mod:`cortado.store.client.blocking.call_stream`,
tasks in :mod:`cortado.store.client.aio.call_stream`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from contextlib import suppress
from copy import copy
from functools import cache, lru_cache
from typing import Final, Generic, TypeVar

from cortado.errors import Cancelled, ResourceExhausted, TryAgain, Unavailable, Unsupported
from cortado.proto.v1 import calls_pb2
from cortado.store.client.authorization import NOBODYS, Authorization
from cortado.store.client.retry import Failed, Failure
from cortado.store.client.traces import traceparent
from cortado.store.wire.rpc_errors import from_status
from cortado.store.wire.varint import varint

CALLS_MAX: Final = 1_536
"""Calls in flight on one stream: below the server's bound."""
BYTES_MAX: Final = 24 << 20
MESSAGE_BYTES_MAX: Final = 1 << 20
MESSAGE_CALLS_MAX: Final = 512
REQUEST_BYTES_MAX: Final = 128 << 10
"""A larger request makes a call of its own: it would hold up the others."""
IDLE_S: Final = 10.0

ENDED_BY_SERVER: Final = Failure(Unavailable("the server ended the stream of calls"), answered=False, sent=False)
"""In order, as a server that stops does: it has answered every call that it took, and the others it never began."""
ENDED_IDLE: Final = Failure(Unavailable("the stream of calls was idle and ends"), answered=False, sent=False)

_TIMEOUT_MS_MAX: Final = (1 << 32) - 1
_RETRY_DELAY_MS: Final = 20


class Waiter:
    """One call in flight. ``reply`` or ``failure`` is there before ``has_ended`` says so."""

    __slots__ = ("call_id", "encoded", "failure", "has_ended", "is_sent", "reply", "size_bytes")

    def __init__(self, call_id: int, encoded: bytes) -> None:
        self.call_id = call_id
        self.encoded = encoded
        self.size_bytes = len(encoded)
        self.is_sent = False
        self.has_ended = False
        self.reply = b""
        self.failure: Failure | None = None

    def outcome(self) -> bytes:
        """Return the reply's bytes. Raises Failed."""
        if self.failure is not None:
            raise Failed(self.failure)
        return self.reply

    def wake(self) -> None:
        """Wake the caller: the outcome is there."""
        raise NotImplementedError


W = TypeVar("W", bound=Waiter)


class CallQueue(Generic[W]):
    """The calls of one stream. If threads share it, a lock is held around every method but :meth:`settle`."""

    def __init__(self, authorization: Authorization = NOBODYS) -> None:
        self._authorization = authorization
        self._ids = itertools.count(1)
        self._waiting: dict[int, W] = {}
        self._bytes = 0
        self._queue: list[W] = []
        self._cancelled: list[int] = []
        self.ended: Failure | None = None

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def waiters(self) -> Collection[W]:
        """Return the waiters that have no outcome yet."""
        return self._waiting.values()

    @property
    def has_news(self) -> bool:
        """Whether there is something to send."""
        return bool(self._queue or self._cancelled)

    def encode(self, method: str, request: bytes, timeout_s: float) -> tuple[int, bytes]:
        """Return a new call's id, and a message with this one call in it. Needs no lock."""
        call_id = next(self._ids)
        timeout_ms = min(max(1, int(timeout_s * 1_000)), _TIMEOUT_MS_MAX)
        asked = b"\x1a%b%b" % (varint(len(request)), request) if request else b""
        call = b"\x08%b%b%b%b" % (varint(call_id), _named(method), asked, _timed(timeout_ms))
        trace, caller = traceparent(), self._authorization.of_call()
        if trace or caller:
            call += calls_pb2.Call(traceparent=trace, authorization=caller).SerializeToString()
        return call_id, b"\x0a%b%b" % (varint(len(call)), call)

    def add(self, waiter: W) -> None:
        """Put a call in line. Raises Failed if the stream is full or over; nothing was sent then."""
        if self.ended is not None:
            raise Failed(_not_sent(self.ended))
        if len(self._waiting) >= CALLS_MAX:
            raise Failed(_full(f"{CALLS_MAX} calls are in flight on this connection", CALLS_MAX))
        if self._bytes + waiter.size_bytes > BYTES_MAX:
            raise Failed(_full(f"{self._bytes} bytes of calls are in flight on this connection", BYTES_MAX))
        self._waiting[waiter.call_id] = waiter
        self._bytes += waiter.size_bytes
        self._queue.append(waiter)

    def remove(self, waiter: W) -> bool:
        """Remove a call that its caller gave up. False if the outcome came just now."""
        if self._waiting.pop(waiter.call_id, None) is None:
            return False
        self._bytes -= waiter.size_bytes
        if waiter.is_sent:
            self._cancelled.append(waiter.call_id)
        else:
            self._queue.remove(waiter)
        return True

    def take(self) -> bytes:
        """Return queued calls as one message within the bounds; empty without calls."""
        if not self.has_news:
            return b""
        size_bytes = count = 0
        for waiter in self._queue:
            if count and (size_bytes + waiter.size_bytes > MESSAGE_BYTES_MAX or count >= MESSAGE_CALLS_MAX):
                break
            waiter.is_sent = True
            size_bytes += waiter.size_bytes
            count += 1
        parts = [waiter.encoded for waiter in self._queue[:count]]
        del self._queue[:count]
        if self._cancelled:
            parts.append(calls_pb2.CallBatch(cancelled=self._cancelled).SerializeToString())
            self._cancelled.clear()
        return b"".join(parts)

    def settle(self, message: bytes) -> list[W]:
        """Give each reply of a message to its waiter; the waiters, which are still to be woken, and freed.

        It takes each waiter by one step, so that no lock is needed beside callers that give up.
        """
        settled: list[W] = []
        for reply in calls_pb2.ReplyBatch.FromString(message).replies:
            waiter = self._waiting.pop(reply.id, None)
            if waiter is None:
                continue  # Its caller gave up.
            if reply.status:
                waiter.failure = Failure(from_status(reply.status), answered=True, sent=True)
            else:
                waiter.reply = reply.reply
            settled.append(waiter)
        return settled

    def free(self, settled: list[W]) -> None:
        """Free the room of settled waiters for other calls."""
        for waiter in settled:
            self._bytes -= waiter.size_bytes

    def end(self, failure: Failure) -> list[W]:
        """End the stream: it takes no more calls. Returns the waiters, which are still to be woken."""
        if self.ended is None:
            self.ended = failure
        left: list[W] = []
        while self._waiting:
            # One by one: another thread may settle some at this moment.
            with suppress(KeyError):
                left.append(self._waiting.popitem()[1])
        for waiter in left:
            waiter.failure = _ended_with(failure) if waiter.is_sent else _not_sent(failure)
        self._queue.clear()
        return left


@cache
def _named(method: str) -> bytes:
    """Return the field of a call that names the method."""
    return calls_pb2.Call(method=method).SerializeToString()


@lru_cache(64)
def _timed(timeout_ms: int) -> bytes:
    """Return the field of a call that holds its caller's timeout."""
    return calls_pb2.Call(timeout_ms=timeout_ms).SerializeToString()


def _ended_with(failure: Failure) -> Failure:
    """Return the outcome of a call that was under way when the stream ended. Each caller raises an error of its own."""
    error = failure.error
    if isinstance(error, Unsupported):
        return _not_sent(failure)  # The server has no such stream, so it has read nothing.
    # The server's reply is about the stream. It tells the calls' outcome only if it came before any call was taken.
    return Failure(copy(error), failure.answered and isinstance(error, TryAgain), failure.sent)


def _not_sent(failure: Failure) -> Failure:
    """Return the outcome of a call that never left: nothing was done, for any end of the stream."""
    error = failure.error
    error = copy(error) if isinstance(error, TryAgain | Cancelled) else Unavailable(str(error))
    return Failure(error, answered=False, sent=False)


def _full(problem: str, limit: int) -> Failure:
    error = ResourceExhausted(f"{problem}, the limit is {limit}", _RETRY_DELAY_MS, "calls of a connection", limit)
    return Failure(error, answered=False, sent=False)
