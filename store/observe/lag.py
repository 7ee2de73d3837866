"""How long a member is behind, in time: the leader remembers the end of its log at each time.

::

    samples   (t0, 40) (t1, 55) (t2, 55) (t3, 90)            now, last 97
    member has 55  ──►  the first sample beyond 55 is (t3, 90): behind since then, so for now - t3

A member that has all entries of the last sample is not behind, even if more came within the last quarter second.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final

PERIOD_MS: Final = 250.0
SAMPLES_MAX: Final = 2_400
"""Ten minutes of them."""


class LogClock:
    """Samples of (monotonic milliseconds, last index). A log that was truncated begins its samples again."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES_MAX)

    def sample(self, now_ms: float, last_index: int) -> None:
        """Take a sample. Call it every :data:`PERIOD_MS`, or less often."""
        if self._samples and last_index < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now_ms, last_index))

    def behind_ms(self, match_index: int, now_ms: float) -> float:
        """For how long the log has had an entry above ``match_index``."""
        samples = self._samples
        if not samples or samples[-1][1] <= match_index:
            return 0.0
        place = bisect_right(samples, match_index, key=lambda each: each[1])
        return now_ms - samples[place][0]
