"""How late the event loop is: the longest that one callback kept all others waiting.

A timer asks to be called every 100 ms and looks at how much later it was. The result is the largest delay of the last
minute, kept as one maximum per five seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from cortado.store.observe.measures import Histogram

PERIOD_MS: Final = 100
BUCKET_MS: Final = 5_000
BUCKETS: Final = 12


class LoopDelay:
    """Measures one loop from :meth:`start` to :meth:`stop`."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._buckets: deque[tuple[int, float]] = deque(maxlen=BUCKETS + 1)
        self._timer: asyncio.TimerHandle | None = None
        self.delays = Histogram()
        """The delays of all looks, in seconds."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ask(loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def max_ms(self) -> int:
        """Return the largest lag of the last minute, in whole milliseconds."""
        oldest = int(self._monotonic_ms() // BUCKET_MS) - BUCKETS
        return int(max((lag_ms for bucket, lag_ms in self._buckets if bucket > oldest), default=0.0))

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        due_ms = self._monotonic_ms() + PERIOD_MS
        self._timer = loop.call_later(PERIOD_MS / 1000, self._look, loop, due_ms)

    def _look(self, loop: asyncio.AbstractEventLoop, due_ms: float) -> None:
        now_ms = self._monotonic_ms()
        lag_ms = max(now_ms - due_ms, 0.0)
        self.delays.observe(lag_ms / 1000)
        bucket = int(now_ms // BUCKET_MS)
        if self._buckets and self._buckets[-1][0] == bucket:
            lag_ms = max(lag_ms, self._buckets.pop()[1])
        self._buckets.append((bucket, lag_ms))
        self._ask(loop)
