"""How far back everything must be kept: a bound from a clock that needs no trust.

If the wall clock has jumped, a version that looks ``retention`` old may have been written a moment ago; and in a
cluster that was idle for days the last write is old, and nothing was overwritten since. So the safepoint is bounded by
the last timestamp *as of* that long ago, by this replica's monotonic clock: later versions are certainly younger.

::

    monotonic    100 s     200 s     300 s     400 s          retention 150 s: as of 250 s
    last_ts        7         9         9        12            not above 9
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from cortado.store.clock.timestamp import ZERO, Timestamp

MONOTONIC_MS_MAX: Final = 24 * 3_600_000
"""So far back samples are kept. Longer retentions are bounded by this and by the wall clock: a node that was started a
day ago may collect."""

# A sample is kept if the one before it is older by so much of its age: some hundred samples for a day.
_PART: Final = 64
_STEP_MS_MIN: Final = 10.0
_SAMPLES_MAX: Final = 2_000


class Horizon:
    """One replica's samples, oldest first. On the loop."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._stamps: list[Timestamp] = []

    def note(self, now_ms: float, last_ts: Timestamp) -> None:
        """The last applied timestamp is ``last_ts`` now."""
        if not self._times or now_ms - self._times[-1] >= _STEP_MS_MIN:
            self._times.append(now_ms)
            self._stamps.append(last_ts)
            if len(self._times) > _SAMPLES_MAX:
                self._thin(now_ms)

    def bound(self, now_ms: float, retention_ms: int, wall_ms: int, epoch: int) -> Timestamp:
        """No safepoint may be above this: ZERO if nothing is known from so long ago.

        ``wall_ms`` and ``epoch`` are the clock's.
        """
        place = bisect_right(self._times, now_ms - min(retention_ms, MONOTONIC_MS_MAX))
        if not place:
            return ZERO
        return min(self._stamps[place - 1], Timestamp(epoch, max(wall_ms - retention_ms, 0), 0))

    def _thin(self, now_ms: float) -> None:
        """Keep fewer of the older ones: dropping one makes the answer older, never younger."""
        times, stamps = [self._times[-1]], [self._stamps[-1]]
        for time_ms, stamp in zip(reversed(self._times[:-1]), reversed(self._stamps[:-1]), strict=True):
            if times[-1] - time_ms >= (now_ms - times[-1]) / _PART and now_ms - time_ms <= 2 * MONOTONIC_MS_MAX:
                times.append(time_ms)
                stamps.append(stamp)
        self._times, self._stamps = times[::-1], stamps[::-1]
