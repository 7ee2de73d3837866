"""The measurements, as tables for the terminal and for a page, and as JSON for later."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from benchmarks import report
from benchmarks.report import Sheet
from benchmarks.spark.loads import LOADS, MICRO_BATCH, MICRO_BATCH_AIM_S, Load
from benchmarks.spark.processes import Spent

PEER: Final = "jdbc"
ONE: Final = "one"
THREE: Final = "three"
SYSTEMS: Final = (PEER, ONE, THREE, "idle")
TIMES: Final = ("what", *SYSTEMS, "one/jdbc", "in turns", "aim", "three/jdbc", "in turns", "aim")
TIMES_LEGEND: Final = (
    "Seconds of the clock, the median of the turns; one/jdbc, three/jdbc: how many times as fast Cortado on one node "
    "and on three is as JDBC; in turns: the least and the most of that in one turn of both; idle: a source that stores "
    "nothing"
)
COSTS: Final = ("what", *SYSTEMS, "jdbc/one", "jdbc/three")
COSTS_LEGEND: Final = (
    "CPU seconds, medians: together (storage + Spark's JVM + Python); jdbc/one, jdbc/three: how many times the CPU of "
    "Cortado JDBC takes"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A load, and the times of its turns by system."""

    load: str
    turns: Mapping[str, Sequence[Spent]]

    def middle(self, system: str, of: Callable[[Spent], float]) -> float | None:
        """Return the median of a system's turns; None if it has none."""
        turns = self.turns.get(system)
        return statistics.median(map(of, turns)) if turns else None

    def times(self, system: str, of: Callable[[Spent], float]) -> float | None:
        """Return how many times as much JDBC takes; None if one of them is missing."""
        peer, ours = self.middle(PEER, of), self.middle(system, of)
        return peer / ours if peer is not None and ours else None


class Results(report.Results[Measured]):
    """One run."""

    KIND: ClassVar = "spark"

    @staticmethod
    def read(content: dict[str, Any]) -> Measured:
        turns = {system: [Spent(**each) for each in turns] for system, turns in content["turns"].items()}
        return Measured(content["load"], turns)

    def sheets(self) -> list[Sheet]:
        """Return the tables of time, and of costs."""
        return [
            Sheet("Spark, beside JDBC on PostgreSQL", TIMES, [_times(each) for each in self.measured], TIMES_LEGEND),
            Sheet("What a load costs", COSTS, [_costs(each) for each in self.measured], COSTS_LEGEND),
        ]


def _wall(spent: Spent) -> float:
    return spent.wall


def _of(name: str) -> Load:
    return next(load for load in (*LOADS, MICRO_BATCH) if load.name == name)


def _times(each: Measured) -> list[str]:
    load = _of(each.load)
    medians = (each.middle(system, _wall) for system in SYSTEMS)
    cells = [load.title, *("-" if seconds is None else f"{seconds:.2f}" for seconds in medians)]
    for system, aim in ((ONE, load.aim), (THREE, load.aim_three)):
        times = each.times(system, _wall)
        cells += ["" if times is None else f"{times:.2f}", _spread(each, system), _verdict(each, system, aim)]
    return cells


def _verdict(each: Measured, system: str, aim: float) -> str:
    times, seconds = each.times(system, _wall), each.middle(system, _wall)
    if each.load == MICRO_BATCH.name and seconds is not None:
        return f"{MICRO_BATCH_AIM_S:g} s " + ("reached" if seconds < MICRO_BATCH_AIM_S else "missed")
    if not aim:
        return ""
    return f"{aim:g}" + ("" if times is None else " reached" if times >= aim else " missed")


def _spread(each: Measured, system: str) -> str:
    both = zip(each.turns.get(PEER, ()), each.turns.get(system, ()), strict=False)
    times = [peer.wall / ours.wall for peer, ours in both]
    return f"{min(times):.2f} to {max(times):.2f}" if times else ""


def _costs(each: Measured) -> list[str]:
    def cpu(spent: Spent) -> float:
        return spent.cpu

    cells = [_of(each.load).title]
    for system in SYSTEMS:
        turns = each.turns.get(system)
        if not turns:
            cells.append("-")
            continue
        parts = [statistics.median(map(of, turns)) for of in (cpu, *_PARTS)]
        cells.append("{:.2f} ({:.2f} + {:.2f} + {:.2f})".format(*parts))
    ratios = (each.times(system, cpu) for system in (ONE, THREE))
    return [*cells, *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]


_PARTS: Final[Sequence[Callable[[Spent], float]]] = (
    lambda spent: spent.storage,
    lambda spent: spent.jvm,
    lambda spent: spent.python,
)
