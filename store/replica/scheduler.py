"""Run the driver's rounds: as soon as the loop comes to it, at most one at a time, or at a set time. After each round
the callers that wait for a condition are looked at.

A round is short if only proposals came. A caller that needs more asks for a whole one, which is then run instead.

The timer is moved only if it would come too late. It rarely needs to ring: mostly another round comes first, and sets
it to a later time. To cancel a timer and make another one each time costs more than to let it come, look, and wait on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

from cortado.errors import CortadoError

# No timer is set for less: a clock read a little early must not make it spin.
_DELAY_MS_MIN: Final = 0.5


class Alarm:
    """Calls ``ring`` once at the time that it was set to last; the callee sets it again."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, monotonic_ms: Callable[[], float], ring: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._comes_ms = math.inf
        self._due_ms = math.inf

    def set(self, due_ms: float) -> None:
        """Ring at ``due_ms`` of the monotonic clock, and not at the time set before. Infinity: do not ring."""
        self._due_ms = due_ms
        if self._timer is not None:
            if self._comes_ms <= due_ms:
                return  # the timer comes early enough, and then waits on
            self.cancel()
        if due_ms < math.inf:
            self._comes_ms = due_ms
            delay_ms = max(due_ms - self._monotonic_ms(), _DELAY_MS_MIN)
            self._timer = self._loop.call_later(delay_ms / 1000, self._rings)

    def cancel(self) -> None:
        """Do not ring until it is set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        if self._due_ms > self._monotonic_ms() + _DELAY_MS_MIN:
            self.set(self._due_ms)
        else:
            self._ring()


class Conditions:
    """All waiters for a condition of the node's state. They are asked after each round, so callers need not poll."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def wait(self, condition: Callable[[], bool]) -> asyncio.Future[None]:
        """Return a future that is done once ``condition`` holds at a look."""
        watcher: asyncio.Future[None] = self._loop.create_future()
        self.waiting.append((condition, watcher))
        return watcher

    def look(self) -> None:
        """Tell the waiters whose condition holds now."""
        waiting, self.waiting = self.waiting, []
        for condition, watcher in waiting:
            if watcher.done():
                continue
            if condition():
                watcher.set_result(None)
            else:
                self.waiting.append((condition, watcher))

    def fail(self, error: CortadoError) -> None:
        """Tell the waiters whose condition holds, and end the others with ``error``: no round follows."""
        self.look()
        waiting, self.waiting = self.waiting, []
        for _, watcher in waiting:
            if not watcher.done():
                watcher.set_exception(error)
                # A cancelled waiter must not leave an "exception was never retrieved" in the log.
                watcher.exception()


class Scheduler:
    """Calls rounds on the loop, until it is stopped. ``on_defect`` hears each exception: the half-done state is then
    unknown."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], float],
        *,
        whole: Callable[[], None],
        short: Callable[[], None],
        on_defect: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._whole = whole
        self._short = short
        self._on_defect = on_defect
        self.conditions = Conditions(loop)
        """The callers that wait for a condition."""
        self.alarm = Alarm(loop, monotonic_ms, self.run_whole)
        """Runs a whole round at the time to which it is set."""
        self._is_scheduled = False
        self._is_stopped = False
        self.wants_whole = False
        """Whether a whole round was asked for that has not begun."""

    def want_whole(self) -> None:
        """Let a whole round follow as soon as the loop comes to it."""
        self.wants_whole = True
        self.want_short()

    def want_short(self) -> None:
        """Let a round follow that looks at proposals."""
        if not self._is_scheduled and not self._is_stopped:
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled)

    def run_whole(self) -> None:
        """Run a whole round now."""
        if not self._is_stopped:
            self._run(self._whole)

    def stop(self) -> None:
        """Run no more rounds."""
        self._is_stopped = True
        self.alarm.cancel()

    def _scheduled(self) -> None:
        self._is_scheduled = False
        if not self._is_stopped:
            self._run(self._whole if self.wants_whole else self._short)

    def _run(self, round_: Callable[[], None]) -> None:
        try:
            round_()
        except Exception as defect:
            self._on_defect(defect)
        if self.conditions.waiting:
            self.conditions.look()
