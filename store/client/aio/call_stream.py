"""The coalescing stream of tasks: all calls submitted in one step of the loop leave as one message.

No task serves a stream: the connection asks it for a message once a step. While one has no room on the connection,
further calls gather for the next; the replies of a message settle all their callers in one step.
:mod:`cortado.store.client.call_queue` decides which calls are sent and bounds them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import Internal
from cortado.store.client import call_queue
from cortado.store.client.aio.port import Port
from cortado.store.client.authorization import NOBODYS, Authorization
from cortado.store.client.call_queue import ENDED_BY_SERVER, ENDED_IDLE, CallQueue, Waiter
from cortado.store.client.link.call import Call
from cortado.store.client.retry import Failure
from cortado.store.client.stubs import Stubs

_LOOK_AGAIN_S: Final = 0.002
"""Not more often are all waits looked at."""


class TaskWaiter(Waiter):
    """A call whose task waits for a future. Each wait has a new one: a wait has a bound, and the call outlives it."""

    __slots__ = ("_loop", "_stream", "_waking", "waits_to_s")

    def __init__(self, stream: CallStream, loop: asyncio.AbstractEventLoop, call_id: int, encoded: bytes) -> None:
        super().__init__(call_id, encoded)
        self._stream = stream
        self._loop = loop
        self._waking: asyncio.Future[bool] | None = None
        self.waits_to_s = math.inf
        """When its wait is over, by the loop's time."""

    def wait(self, wait_s: float) -> asyncio.Future[bool]:
        self._waking = waking = self._loop.create_future()
        if self.has_ended:
            waking.set_result(True)
        else:
            self.waits_to_s = self._loop.time() + wait_s
            self._stream.look_at(self.waits_to_s)
        return waking

    def waited(self) -> None:
        """End the wait; the call goes on."""
        self.waits_to_s = math.inf
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(False)

    def give_up(self) -> bool:
        return self._stream.give_up(self)

    def wake(self) -> None:
        self.has_ended = True
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(True)


class CallStream(Call):
    """One stream, opened at once."""

    __slots__ = (
        "_calls",
        "_idle_check",
        "_look",
        "_look_s",
        "_loop",
        "_on_end",
        "_port",
        "_was_used",
    )

    def __init__(
        self, port: Port, on_end: Callable[[CallStream, Failure], None], authorization: Authorization = NOBODYS
    ) -> None:
        super().__init__(Stubs.calls.Exchange.name, None, authorization.of_stream())
        self._port = port
        self._on_end = on_end
        self._loop = port.loop
        self._calls: CallQueue[TaskWaiter] = CallQueue(authorization)
        self._was_used = False
        self._idle_check = self._loop.call_later(call_queue.IDLE_S, self._check_idle)
        self._look: asyncio.TimerHandle | None = None
        self._look_s = math.inf

    def submit(self, method: str, request: bytes, timeout_s: float) -> TaskWaiter:
        """Put a call in line. Raises Failed if the stream is full or over; nothing was sent then."""
        waiter = TaskWaiter(self, self._loop, *self._calls.encode(method, request, timeout_s))
        self._calls.add(waiter)
        self._was_used = True
        self._port.wants(self)
        return waiter

    def give_up(self, waiter: TaskWaiter) -> bool:
        """Give up the call: the server need not work on it. False if the outcome is there."""
        is_given_up = self._calls.remove(waiter)
        if self._calls.has_news:
            self._port.wants(self)
        return is_given_up

    def look_at(self, time_s: float) -> None:
        """Look at ``time_s`` for waits that are over. All waits share one timer: nearly every call is answered long
        before, and a timer of its own would cost more than the rest of its wait."""
        if time_s < self._look_s:
            if self._look is not None:
                self._look.cancel()
            self._look, self._look_s = self._loop.call_at(time_s, self._end_waits), time_s

    def _end_waits(self) -> None:
        self._look, self._look_s = None, math.inf
        now_s, next_s = self._loop.time(), math.inf
        for waiter in self._calls.waiters():
            if waiter.waits_to_s <= now_s:
                waiter.waited()
            else:
                next_s = min(next_s, waiter.waits_to_s)
        if next_s < math.inf:
            self.look_at(max(next_s, now_s + _LOOK_AGAIN_S))

    def close(self, failure: Failure) -> None:
        """End the stream, and every call on it with ``failure``."""
        self._end(failure)
        self._port.cancel(self)

    # --- on the link -------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Hand over the queued calls, as far as the link has room: others gather meanwhile."""
        link, calls = self._port.link, self._calls
        while calls.has_news and link.has_room(self):
            link.send(self, calls.take())

    def tell(self) -> None:
        try:
            while self.replies:
                settled = self._calls.settle(self.replies.popleft())
                self._calls.free(settled)
                for waiter in settled:
                    waiter.wake()
        except DecodeError as defect:
            self.close(Failure(Internal(f"reading replies: {defect!r}"), answered=False, sent=True))
            return
        if self.is_over:
            self._end(self.failure or ENDED_BY_SERVER)
        elif self._calls.has_news:
            self._port.wants(self)

    def _check_idle(self) -> None:
        if self._was_used or self._calls.in_flight:
            self._was_used = False
            self._idle_check = self._loop.call_later(call_queue.IDLE_S, self._check_idle)
            return
        # The next caller opens another stream; the server is told that this one is over.
        self._calls.end(ENDED_IDLE)
        self._on_end(self, ENDED_IDLE)
        if self.stream_id:
            self._port.link.finish(self)
            self._port.flush_soon()
        else:
            self._port.cancel(self)

    def _end(self, failure: Failure) -> None:
        self._idle_check.cancel()
        if self._look is not None:
            self._look.cancel()
            self._look, self._look_s = None, math.inf
        left = self._calls.end(failure)
        self._on_end(self, failure)
        for waiter in left:
            waiter.wake()
