"""The coalescing stream: calls of many threads share messages on one stream to a server.

::

    threads   submit(call) ─► queue ─► everything queued leaves as one message ─► server
              wait ◄───────────────── each waiter woken once ◄──────────── replies, in any order

A call that comes while a message is being sent joins the next one, so the busier the stream, the larger the messages
and the cheaper each call; nobody waits for others to come. Each thread encodes its own call, and a message is those
encodings end to end (a repeated field on the wire is just that). A waiting thread sleeps on a lock of its own, which is
released once, when its outcome is there.

Bounds: so many calls and bytes in flight; one more is refused at once, as an overloaded server refuses it. A call whose
caller gives up is taken out of the queue, or the server is told. When the stream ends, for whatever reason, all its
calls end: those that never left as *not sent*, the others as calls on a broken connection. A stream on which nothing
happened for a while ends by itself, and with it its threads.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from typing import Any, Final, TypeAlias

import grpc

from cortado.errors import Cancelled, Internal, ResourceExhausted, TryAgain, Unavailable, Unsupported
from cortado.proto.v1 import calls_pb2
from cortado.store.client.retry import Failed, Failure, failure_of
from cortado.store.rpc_errors import from_status

CALLS_MAX: Final = 1_536
"""In flight on one stream: below what a server allows."""
BYTES_MAX: Final = 24 << 20
MESSAGE_BYTES_MAX: Final = 1 << 20
MESSAGE_CALLS_MAX: Final = 512
REQUEST_BYTES_MAX: Final = 128 << 10
"""A larger request makes a call of its own: it would hold up the others."""
IDLE_S: Final = 10.0

OpenStream: TypeAlias = Callable[[Iterator[bytes]], Any]

_TIMEOUT_MS_MAX: Final = (1 << 32) - 1
_RETRY_DELAY_MS: Final = 20


class Waiter:
    """One call in flight. ``settled`` is released when ``reply`` or ``failure`` is there."""

    __slots__ = ("call_id", "encoded", "failure", "is_sent", "reply", "settled", "size_bytes")

    def __init__(self, call_id: int, encoded: bytes) -> None:
        self.call_id = call_id
        self.encoded = encoded
        self.size_bytes = len(encoded)
        self.is_sent = False
        self.reply = b""
        self.failure: Failure | None = None
        self.settled = threading.Lock()
        self.settled.acquire()


class CallStream:
    """One stream, opened at once. ``open_stream`` takes the messages to send and gives those that come."""

    def __init__(self, open_stream: OpenStream, on_end: Callable[[CallStream, Failure], None]) -> None:
        self._on_end = on_end
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Waiter] = {}
        self._bytes = 0
        self._queue: list[Waiter] = []
        self._cancelled: list[int] = []
        self._is_sender_asleep = False
        self._wake_sender = threading.Lock()
        self._wake_sender.acquire()
        self._ended: Failure | None = None
        self._call = open_stream(self._messages())
        threading.Thread(target=self._read, name="cortado-replies", daemon=True).start()

    # --- callers' threads --------------------------------------------------------------------------------------

    def submit(self, method: str, request: bytes, timeout_s: float) -> Waiter:
        """Put a call in line. Raises Failed where the stream is full or over; nothing was sent then."""
        call_id = next(self._ids)
        timeout_ms = min(max(1, int(timeout_s * 1_000)), _TIMEOUT_MS_MAX)
        batch = calls_pb2.CallBatch()
        batch.calls.add(id=call_id, method=method, request=request, timeout_ms=timeout_ms)
        waiter = Waiter(call_id, batch.SerializeToString())
        with self._lock:
            if self._ended is not None:
                raise Failed(_not_sent(self._ended))
            if len(self._waiting) >= CALLS_MAX:
                raise Failed(_full(f"{CALLS_MAX} calls are in flight on this connection", CALLS_MAX))
            if self._bytes + waiter.size_bytes > BYTES_MAX:
                raise Failed(_full(f"{self._bytes} bytes of calls are in flight on this connection", BYTES_MAX))
            self._waiting[call_id] = waiter
            self._bytes += waiter.size_bytes
            self._queue.append(waiter)
            wakes, self._is_sender_asleep = self._is_sender_asleep, False
        if wakes:
            self._wake_sender.release()
        return waiter

    def give_up(self, waiter: Waiter) -> bool:
        """Its caller waits no longer: the server need not work on it. False where the outcome came just now."""
        with self._lock:
            if self._waiting.pop(waiter.call_id, None) is None:
                return False
            self._bytes -= waiter.size_bytes
            if waiter.is_sent:
                self._cancelled.append(waiter.call_id)
            else:
                self._queue.remove(waiter)
            wakes = self._is_sender_asleep and waiter.is_sent
            self._is_sender_asleep = self._is_sender_asleep and not wakes
        if wakes:
            self._wake_sender.release()
        return True

    def close(self, failure: Failure) -> None:
        """Ends the stream, and every call on it with ``failure``."""
        self._end(failure)
        self._call.cancel()

    # --- gRPC's sending thread ---------------------------------------------------------------------------------

    def _messages(self) -> Iterator[bytes]:
        while True:
            with self._lock:
                message = self._taken()
                self._is_sender_asleep = not message
                if self._ended is not None:
                    return
            if message:
                yield message
            elif not self._wake_sender.acquire(timeout=IDLE_S) and self._is_idle():
                return

    def _taken(self) -> bytes:
        """What is queued, as one message. The lock is held."""
        if not self._queue and not self._cancelled:
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

    def _is_idle(self) -> bool:
        with self._lock:
            if not self._is_sender_asleep:
                # Somebody woke us at this moment.
                self._wake_sender.acquire()
                return False
            if self._waiting:
                return False
            # Whoever comes now opens another stream.
            self._ended = Failure(Unavailable("the stream of calls was idle and ends"), answered=False, sent=False)
            return True

    # --- the reading thread ------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            for message in self._call:
                self._settle(calls_pb2.ReplyBatch.FromString(message))
            failure = Failure(Unavailable("the server ended the stream of calls"), answered=False, sent=True)
        except grpc.RpcError as error:
            failure = failure_of(error)
        except Exception as defect:
            failure = Failure(Internal(f"reading replies: {defect!r}"), answered=False, sent=True)
            self._call.cancel()
        self._end(failure)

    def _settle(self, batch: calls_pb2.ReplyBatch) -> None:
        settled: list[Waiter] = []
        size_bytes = 0
        for reply in batch.replies:
            waiter = self._waiting.pop(reply.id, None)
            if waiter is None:
                continue  # Its caller gave up.
            if reply.status:
                waiter.failure = Failure(from_status(reply.status), answered=True, sent=True)
            else:
                waiter.reply = reply.reply
            size_bytes += waiter.size_bytes
            settled.append(waiter)
        with self._lock:
            self._bytes -= size_bytes
        for waiter in settled:
            waiter.settled.release()

    def _end(self, failure: Failure) -> None:
        with self._lock:
            if self._ended is None:
                self._ended = failure
            left = []
            while self._waiting:
                # One by one: the reading thread may settle some at this moment.
                with suppress(KeyError):
                    left.append(self._waiting.popitem()[1])
            self._queue.clear()
            wakes, self._is_sender_asleep = self._is_sender_asleep, False
        if wakes:
            self._wake_sender.release()
        self._on_end(self, failure)
        for waiter in left:
            waiter.failure = _ended_with(failure) if waiter.is_sent else _not_sent(failure)
            waiter.settled.release()


def _ended_with(failure: Failure) -> Failure:
    """Of a call that was on its way when the stream ended. Each thread raises an error of its own."""
    error = failure.error
    if isinstance(error, Unsupported):
        return _not_sent(failure)  # The server has no such stream, so it has read nothing.
    # The server's word is about the stream; only before it took any call does it say what became of them.
    return Failure(copy(error), failure.answered and isinstance(error, TryAgain), failure.sent)


def _not_sent(failure: Failure) -> Failure:
    """Of a call that never left: whatever ended the stream, nothing was done."""
    error = failure.error
    error = copy(error) if isinstance(error, TryAgain | Cancelled) else Unavailable(str(error))
    return Failure(error, answered=False, sent=False)


def _full(problem: str, limit: int) -> Failure:
    error = ResourceExhausted(f"{problem}, the limit is {limit}", _RETRY_DELAY_MS, "calls of a connection", limit)
    return Failure(error, answered=False, sent=False)
