"""The reception of requests: each comes in when there is room for it, and not before.

::

    a call arrives ──► a place to receive ──► its message ──► its bytes in the budget ──► answered ──► given back
                       (one of 32, in order)                  or RESOURCE_EXHAUSTED

gRPC's own unary handlers take a message as soon as it comes: the messages of 2,000 callers with 256 KiB each were in
memory, twice, before a gate could refuse them. So unary calls are served as streams of one message, which is the same
on the wire, and the message is read here. Until then it stays with the caller, but for the window of HTTP/2.

No call waits for ever: a call with a place waits for its caller alone, never for the budget. If its message does not
come while others wait, it gives the place up after ``SLOW_MS`` and goes on beside; beyond ``SLOW_MAX`` such calls, the
slowest is refused. Streams have their turn (:mod:`cortado.store.server.opening`) before they get in this line.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

import grpc

from cortado.errors import InvalidArgument, ResourceExhausted
from cortado.store.process.budget import CALL_BYTES, CALL_COST, Held, Share
from cortado.store.server.call_context import Context, Here
from cortado.store.server.opening import Openings

RECEIVING_MAX: Final = 32
"""Messages that come in at once. With the slow ones, and the size of a message, it bounds the bytes that gRPC holds."""
SLOW_MS: Final = 200.0
"""The time that a message may take while others wait for its place."""
SLOW_MAX: Final = 64
"""The number of messages that may take longer."""
_RETRY_DELAY_MS: Final = 50


def call_cost(request_bytes: int) -> int:
    """Return the share of the budget that a call with a request of this size takes."""
    return CALL_BYTES + CALL_COST * request_bytes


class Receiving:
    """For one server. Everything here runs on the loop."""

    def __init__(self, calls: Share) -> None:
        self.calls = calls
        self.openings = Openings()
        self._taken = 0
        # The calls that receive their messages, and since when; in the order of their beginnings.
        self._receiving: dict[asyncio.Task[Any], float] = {}
        self._slow: dict[asyncio.Task[Any], float] = {}
        self._ended: set[asyncio.Task[Any]] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def request(self, context: Context) -> tuple[bytes, Held]:
        """Return the call's message, and its share of the budget, to be left when it is answered.

        Raises ResourceExhausted, and InvalidArgument if the caller sent none.
        """
        if isinstance(context, Here) and (here := context.whole_message()) is not None:
            # It needs no place to come in, and the call may have no task yet.
            return here, self.calls.take(call_cost(len(here)))
        if self._taken < RECEIVING_MAX:
            self._taken += 1
        else:
            await self._place()
        task = asyncio.current_task()
        assert task is not None
        self._receiving[task] = asyncio.get_running_loop().time()
        try:
            encoded = await context.read()
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            problem = f"the request did not arrive within {SLOW_MS:.0f} ms, nor did those of {SLOW_MAX} other callers"
            raise ResourceExhausted(problem, _RETRY_DELAY_MS, "requests that arrive", SLOW_MAX) from None
        finally:
            self._ended.discard(task)
            if self._slow.pop(task, None) is None:
                del self._receiving[task]
                self._leave()
        if encoded is grpc.aio.EOF:
            raise InvalidArgument("request", "is missing")
        return encoded, self.calls.take(call_cost(len(encoded)))

    async def _place(self) -> None:
        granted = asyncio.get_running_loop().create_future()
        self._waiting.append(granted)
        self._look_later()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        """Give a place back, or on to the call that waits first."""
        while self._waiting:
            granted = self._waiting.popleft()
            if not granted.done():
                granted.set_result(None)
                return
        self._taken -= 1

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SLOW_MS / 1_000, self._look)

    def _look(self) -> None:
        """Give the places of slow calls to those that wait."""
        self._timer = None
        slow_s = asyncio.get_running_loop().time() - SLOW_MS / 1_000
        waiting = sum(not each.done() for each in self._waiting)
        for task in [task for task, began_s in self._receiving.items() if began_s <= slow_s][:waiting]:
            self._slow[task] = self._receiving.pop(task)
            self._leave()
        for task in list(self._slow)[: max(len(self._slow) - SLOW_MAX, 0)]:
            self._ended.add(task)
            task.cancel()
        if any(not each.done() for each in self._waiting):
            self._look_later()
