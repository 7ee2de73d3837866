"""The coalescing stream of threads: each waits for its outcome on a lock of its own, which is released once.

A caller that is alone sends its call by itself. If others wait for answers, the I/O thread sends the call together with
those that come until the thread is there: measured with 64 callers, twelve share a message then, else one and a half.
:mod:`cortado.store.client.call_queue` decides which calls are sent and bounds them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from google.protobuf.message import DecodeError

from cortado.errors import Internal
from cortado.store.client import call_queue
from cortado.store.client.authorization import Authorization
from cortado.store.client.blocking.calls import signal
from cortado.store.client.blocking.line import Line
from cortado.store.client.call_queue import ENDED_BY_SERVER, ENDED_IDLE, CallQueue, Waiter
from cortado.store.client.link.call import Call
from cortado.store.client.retry import Failure
from cortado.store.client.stubs import Stubs


class ThreadWaiter(Waiter):
    """A call whose thread sleeps on ``settled``, a lock that is released when its outcome is there."""

    __slots__ = ("_stream", "settled")

    def __init__(self, stream: CallStream, call_id: int, encoded: bytes) -> None:
        super().__init__(call_id, encoded)
        self._stream = stream
        self.settled = signal()

    async def wait(self, wait_s: float) -> bool:
        return self.has_ended or self.settled.acquire(timeout=wait_s)

    def give_up(self) -> bool:
        return self._stream.give_up(self)

    def wake(self) -> None:
        self.has_ended = True
        self.settled.release()


class CallStream(Call):
    """One stream, opened at once. The lock of its line may be held when its own is taken, and never the other way."""

    def __init__(self, line: Line, on_end: Callable[[CallStream, Failure], None], authorization: Authorization) -> None:
        super().__init__(Stubs.calls.Exchange.name, None, authorization.of_stream())
        self._line = line
        self._on_end = on_end
        self._lock = threading.Lock()
        self._calls: CallQueue[ThreadWaiter] = CallQueue(authorization)
        self._is_sending = True
        """A thread is about to send the calls in line, or they wait for room: first, for the stream to open."""
        self._waits_for_room = True
        self._was_used = False
        self._has_ended = False
        # Elsewhere, since ``on_end`` may be told at once, and its owner is still about to take the stream.
        line.do_later(partial(line.link.begin, self))
        self._look_later()

    # --- callers' threads --------------------------------------------------------------------------------------

    def submit(self, method: str, request: bytes, timeout_s: float) -> ThreadWaiter:
        """Put a call in line. Raises Failed if the stream is full or over; nothing was sent then."""
        waiter = ThreadWaiter(self, *self._calls.encode(method, request, timeout_s))
        with self._lock:
            self._calls.add(waiter)
            sends, self._is_sending = not self._is_sending, True
            self._was_used = True
            is_alone = self._calls.in_flight == 1
        if sends and is_alone:
            self._line.do(self._send)
        elif sends:
            self._line.do_later(self._send)
        return waiter

    def give_up(self, waiter: ThreadWaiter) -> bool:
        """Give up the call: the server need not work on it. False if the outcome came just now."""
        with self._lock:
            if not self._calls.remove(waiter):
                return False
            sends = self._calls.has_news and not self._is_sending
            self._is_sending |= sends
        if sends:
            self._line.do(self._send)
        return True

    def close(self, failure: Failure) -> None:
        """End the stream, and every call on it with ``failure``."""
        self._end(failure)
        self._line.cancel(self)

    # --- the line ----------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send the calls in line while there is room. The line's lock is held."""
        link = self._line.link
        while link.has_room(self):
            with self._lock:
                message = self._calls.take()
                if not message:
                    self._is_sending = False
                    return
            link.send(self, message)
        self._waits_for_room = True

    def tell(self) -> None:
        """Settle the calls whose replies have come."""
        while self.replies:
            try:
                message = self.replies.popleft()
            except IndexError:
                break  # Another thread was told, too.
            self._settle(message)
        if self.is_over:
            self._end(self.failure or ENDED_BY_SERVER)
        elif self._waits_for_room:
            self._waits_for_room = False
            self._line.do(self._send)

    def _settle(self, message: bytes) -> None:
        try:
            settled = self._calls.settle(message)
        except DecodeError as defect:
            self.close(Failure(Internal(f"reading replies: {defect!r}"), answered=False, sent=True))
            return
        with self._lock:
            self._calls.free(settled)
        for waiter in settled:
            waiter.wake()

    def _end(self, failure: Failure) -> None:
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
            left = self._calls.end(failure)
        self._line.drop_timer(self._look)
        self._on_end(self, failure)
        for waiter in left:
            waiter.wake()

    def _look_later(self) -> None:
        self._line.set_timer(self._look, self._line.now_s() + call_queue.IDLE_S)

    def _look(self) -> None:
        """End the stream if it was idle: the next caller opens another one."""
        with self._lock:
            is_idle = not self._was_used and not self._calls.in_flight
            self._was_used = False
            if is_idle:
                self._calls.end(ENDED_IDLE)
        if not is_idle:
            self._look_later()
            return
        self._end(ENDED_IDLE)
        self._line.do(lambda: self._line.link.finish(self))
