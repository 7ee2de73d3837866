"""How far acknowledged timestamps are from the true time, which no node knows.

While a majority of the voters' hosts has a right wall clock, no acknowledged timestamp is ahead of the truth by more
than a bound, for any other clocks and any leader::

    a right clock is off by ......... RIGHT_MS at most
    a leader issues ahead of those .. max_offset_ms, and the round trip by which it read them
    a read may move it ahead by ..... max_offset_ms, and the ceiling that is raised for it

If most clocks were wrong for a moment, their times may have come in, and stay: timestamps never go back within an
epoch. So up to there is excused from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from cortado.store.clock.hlc import MAX_OFFSET_MS
from cortado.store.clock.timestamp import Timestamp
from support.simulation.clocks import BEGAN_MS, RIGHT_MS, HostClock

ROUND_TRIP_MS: Final = 400.0
SEEN_MS: Final = 3_000.0
"""A clock that was wrong so short ago counts as wrong: some nodes may not have heard of its correction."""


class TrueTime:
    """Judges acknowledgements as they come. ``ceiling_ahead_ms`` as in the nodes' limits."""

    def __init__(self, counts: Counter[str], ceiling_ahead_ms: float) -> None:
        self._counts = counts
        self._bound_ms = RIGHT_MS + 2 * MAX_OFFSET_MS + ROUND_TRIP_MS + ceiling_ahead_ms
        self._excused_ms: dict[int, float] = {}

    def problem_with(self, ts: Timestamp, now_ms: float, voters: Iterable[HostClock]) -> str:
        """Return the problem of a write acknowledged at ``ts`` now, by a group of these hosts; empty if it has none."""
        wrong = self.look(now_ms, voters, [ts.epoch])
        ahead_ms = ts.wall_ms - (BEGAN_MS + now_ms)
        if ts.wall_ms <= self._excused_ms.get(ts.epoch, 0.0):
            self._counts["acknowledgements not held to the true time"] += 1
        elif ahead_ms > self._bound_ms:
            return f"a write was acknowledged at {ts}, {ahead_ms:.0f} ms ahead of the true time"
        else:
            self._counts["acknowledgements held to the true time"] += 1
            if wrong:
                self._counts["acknowledgements in time while a clock was wrong"] += 1
        return ""

    def look(self, now_ms: float, voters: Iterable[HostClock], epochs: Iterable[int]) -> list[float]:
        """Excuse times that come in now, in these epochs, if most clocks of a group of these hosts are wrong. Returns
        how far each wrong clock is off."""
        worst_ms = [clock.most_ahead_ms(SEEN_MS) for clock in voters]
        wrong = [ms for ms in worst_ms if abs(ms) > RIGHT_MS]
        if 2 * len(wrong) >= len(worst_ms):
            excused_ms = BEGAN_MS + now_ms + max(wrong, default=0.0) + self._bound_ms
            for epoch in epochs:
                self._excused_ms[epoch] = max(self._excused_ms.get(epoch, 0.0), excused_ms)
        return wrong
