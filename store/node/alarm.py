"""One timer of the loop, which is moved only if it would come too late.

The timer rarely needs to ring: mostly another round comes first, and sets it to a later time. To cancel a timer and
make another one each time costs more than to let it come, look, and wait on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

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
