"""What was measured, as a table for people, for a page, and as JSON for later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster.tables import outcome_of
from benchmarks.cluster.turns import Outcome, middle
from benchmarks.report import RESULTS, Sheet, machine, save_json
from benchmarks.ycsb.workloads import WORKLOADS

FOLDER: Final = RESULTS / "ycsb"
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


@dataclass(slots=True)
class Results:
    """One run."""

    machine: dict[str, str] = field(default_factory=machine)
    settings: list[str] = field(default_factory=list)
    ycsb: list[Measured] = field(default_factory=list)

    def save(self) -> Path:
        """As JSON below ``benchmarks/results/ycsb/``."""
        return save_json(asdict(self), FOLDER)

    @classmethod
    def load(cls, path: Path) -> Results:
        """What :meth:`save` wrote."""
        content = json.loads(path.read_text())
        return cls(content["machine"], content["settings"], [_measured(each) for each in content["ycsb"]])

    def sheets(self) -> list[Sheet]:
        """One line for each workload and number of nodes."""
        titles = {workload.name: workload.title for workload in WORKLOADS}
        lines = [
            _line(titles[each.workload], nodes, middle(rounds))
            for each in self.ycsb
            for nodes, rounds in each.rounds.items()
        ]
        return [Sheet("YCSB", HEADINGS, lines, LEGEND)]


def _measured(content: dict[str, Any]) -> Measured:
    rounds = {nodes: [outcome_of(each) for each in outcomes] for nodes, outcomes in content["rounds"].items()}
    return Measured(content["workload"], rounds)


def _line(title: str, nodes: str, outcome: Outcome) -> list[str]:
    cores = outcome.leader.cores + sum(use.cores for use in outcome.followers)
    micros = [f"{used / outcome.rate * 1e6:,.0f}" if outcome.rate else "-" for used in (cores, outcome.client_cores)]
    latencies = (f"{outcome.p50_ms:.1f}", f"{outcome.p99_ms:.1f}")
    return [title, nodes, f"{outcome.rate:,.0f}", *latencies, *micros, str(outcome.failed)]
