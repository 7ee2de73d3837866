"""The coalescing stream of tasks: all calls submitted in one step of the loop leave as one message.

Two tasks serve a stream: one writes, one reads. While a message is on its way to gRPC, further calls gather for the
next; the replies of a message settle all their callers in one step. :mod:`cortado.store.client.call_queue` decides
which calls are sent and bounds them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

import grpc

from cortado.errors import Cancelled, Internal
from cortado.store.client import call_queue
from cortado.store.client.aio.tasks import Tasks
from cortado.store.client.aio.writing import write
from cortado.store.client.authorization import NOBODYS, Authorization
from cortado.store.client.call_queue import ENDED_BY_SERVER, ENDED_IDLE, CallQueue, Waiter
from cortado.store.client.retry import Failure, failure_of

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


class CallStream:
    """One stream, opened at once. ``call`` is gRPC's, which takes messages and gives those that come."""

    def __init__(
        self,
        call: Any,
        on_end: Callable[[CallStream, Failure], None],
        tasks: Tasks,
        authorization: Authorization = NOBODYS,
    ) -> None:
        self._call = call
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._calls: CallQueue[TaskWaiter] = CallQueue(authorization)
        self._news: asyncio.Future[None] | None = None
        self._was_used = False
        self._idle_check = self._loop.call_later(call_queue.IDLE_S, self._check_idle)
        self._look: asyncio.TimerHandle | None = None
        self._look_s = math.inf
        self._writer = tasks.start(self._write())
        tasks.start(self._read())

    def submit(self, method: str, request: bytes, timeout_s: float) -> TaskWaiter:
        """Put a call in line. Raises Failed if the stream is full or over; nothing was sent then."""
        waiter = TaskWaiter(self, self._loop, *self._calls.encode(method, request, timeout_s))
        self._calls.add(waiter)
        self._wake_writer()
        return waiter

    def give_up(self, waiter: TaskWaiter) -> bool:
        """Give up the call: the server need not work on it. False if the outcome is there."""
        is_given_up = self._calls.remove(waiter)
        if self._calls.has_news:
            self._wake_writer()
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
        self._call.cancel()

    def _wake_writer(self) -> None:
        self._was_used = True
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _write(self) -> None:
        try:
            while self._calls.ended is None:
                message = self._calls.take()
                if message:
                    await write(self._call, message)
                    continue
                self._news = self._loop.create_future()
                await self._news
                self._news = None
            await self._call.done_writing()
        except (Exception, asyncio.CancelledError):
            return  # The stream is over, and the reading task is told why.

    async def _read(self) -> None:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                settled = self._calls.settle(message)
                self._calls.free(settled)
                for waiter in settled:
                    waiter.wake()
            failure = ENDED_BY_SERVER
        except grpc.RpcError as error:
            failure = failure_of(error)
        except asyncio.CancelledError:
            failure = Failure(Cancelled("the client's loop has ended"), answered=False, sent=True)
        except Exception as defect:
            failure = Failure(Internal(f"reading replies: {defect!r}"), answered=False, sent=True)
        self._call.cancel()
        self._end(failure)

    def _check_idle(self) -> None:
        if self._was_used or self._calls.in_flight:
            self._was_used = False
            self._idle_check = self._loop.call_later(call_queue.IDLE_S, self._check_idle)
            return
        # The next caller opens another stream; the writing task tells the server that this one is over.
        self._calls.end(ENDED_IDLE)
        self._on_end(self, ENDED_IDLE)
        self._wake_writer()

    def _end(self, failure: Failure) -> None:
        self._idle_check.cancel()
        if self._look is not None:
            self._look.cancel()
            self._look, self._look_s = None, math.inf
        # It may wait for a connection that will never be.
        self._writer.cancel()
        left = self._calls.end(failure)
        self._on_end(self, failure)
        for waiter in left:
            waiter.wake()
