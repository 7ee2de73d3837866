"""The clocks of one host: a wall clock that is wrong, jumps and drifts, and a monotonic one that only drifts."""

from __future__ import annotations

from typing import Final

from support.simulation.loop import Scheduler

BEGAN_MS: Final = 1_763_643_600_000
"""The true wall time at which every run begins."""

RIGHT_MS: Final = 100.0
"""A clock that is off by no more counts as right."""

YEAR_2071_MS: Final = 3_200_000_000_000


class HostClock:
    """``drift_ppm`` holds for both clocks. Reading them costs nothing and changes nothing."""

    def __init__(self, scheduler: Scheduler, *, offset_ms: float, drift_ppm: float, booted_ms: float) -> None:
        self._scheduler = scheduler
        self.offset_ms = offset_ms
        self.rate = 1 + drift_ppm / 1e6
        self.booted_ms = booted_ms
        self._set: list[tuple[float, float]] = [(0.0, offset_ms)]

    def wall_ms(self) -> int:
        return int(BEGAN_MS + self.offset_ms + self._scheduler.now_ms * self.rate)

    def monotonic_ms(self) -> float:
        return self.booted_ms + self._scheduler.now_ms * self.rate

    def jump(self, by_ms: float) -> None:
        self.set_right(self.offset_ms + by_ms)

    def set_right(self, offset_ms: float = 0.0) -> None:
        self.offset_ms = offset_ms
        self._set.append((self._scheduler.now_ms, offset_ms))

    def most_ahead_ms(self, since_ms: float) -> float:
        """Return how far it was ahead of the truth at most (or behind, if it was not), in the last ``since_ms``.
        Without its drift, which is little over a run."""
        began_ms = self._scheduler.now_ms - since_ms
        standing = max(index for index, (at_ms, _) in enumerate(self._set) if at_ms <= max(began_ms, 0.0))
        offsets = [offset_ms for _, offset_ms in self._set[standing:]]
        return max(offsets) if max(offsets) > RIGHT_MS else min(offsets)
