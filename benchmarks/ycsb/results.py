"""The measurements, as a table for the terminal and for a page, and as JSON for later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from benchmarks import report
from benchmarks.cluster.tables import rounds_of
from benchmarks.cluster.turns import Outcome, middle
from benchmarks.report import Sheet
from benchmarks.ycsb.workloads import WORKLOADS

HEADINGS: Final = ("what", "nodes", "a second", "p50 ms", "p99 ms", "CPU µs, nodes", "client", "failed")
LEGEND: Final = (
    "A second: operations, the median of the rounds (of F, a read with its update is one); CPU: microseconds for each "
    "operation, of all nodes together, and of the client"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The rounds of a workload, by the number of nodes in words."""

    workload: str
    rounds: Mapping[str, Sequence[Outcome]]


class Results(report.Results[Measured]):
    """One run."""

    KIND: ClassVar = "ycsb"

    @staticmethod
    def read(content: dict[str, Any]) -> Measured:
        return Measured(content["workload"], rounds_of(content["rounds"]))

    def sheets(self) -> list[Sheet]:
        """Return one line for each workload and number of nodes."""
        titles = {workload.name: workload.title for workload in WORKLOADS}
        lines = [
            _line(titles[each.workload], nodes, middle(rounds))
            for each in self.measured
            for nodes, rounds in each.rounds.items()
        ]
        return [Sheet("YCSB", HEADINGS, lines, LEGEND)]


def _line(title: str, nodes: str, outcome: Outcome) -> list[str]:
    cores = outcome.leader.cores + sum(use.cores for use in outcome.followers)
    micros = [f"{used / outcome.rate * 1e6:,.0f}" if outcome.rate else "-" for used in (cores, outcome.client_cores)]
    latencies = (f"{outcome.p50_ms:.1f}", f"{outcome.p99_ms:.1f}")
    return [title, nodes, f"{outcome.rate:,.0f}", *latencies, *micros, str(outcome.failed)]
