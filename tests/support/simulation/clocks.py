"""The clocks of one host: a wall clock that is wrong, jumps and drifts, and a monotonic one that only drifts."""

from __future__ import annotations

from typing import Final

from support.simulation.loop import Scheduler

BEGAN_MS: Final = 1_763_643_600_000
"""The true wall time at which every run begins."""

YEAR_2071_MS: Final = 3_200_000_000_000


class HostClock:
    """``drift_ppm`` holds for both clocks. Reading them costs nothing and changes nothing."""

    def __init__(self, scheduler: Scheduler, *, offset_ms: float, drift_ppm: float, booted_ms: float) -> None:
        self._scheduler = scheduler
        self.offset_ms = offset_ms
        self.rate = 1 + drift_ppm / 1e6
        self.booted_ms = booted_ms

    def wall_ms(self) -> int:
        return int(BEGAN_MS + self.offset_ms + self._scheduler.now_ms * self.rate)

    def monotonic_ms(self) -> float:
        return self.booted_ms + self._scheduler.now_ms * self.rate

    def jump(self, by_ms: float) -> None:
        self.offset_ms += by_ms

    @property
    def is_right(self) -> bool:
        """Within a hundred milliseconds of the truth (drift over a run is less)."""
        return abs(self.offset_ms) <= 100

    def set_right(self, offset_ms: float = 0.0) -> None:
        self.offset_ms = offset_ms
