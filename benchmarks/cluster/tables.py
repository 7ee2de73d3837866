"""The measurements, as tables for the terminal and for a page, and as JSON for later."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.cluster.members import Use
from benchmarks.cluster.turns import Outcome, middle
from benchmarks.cluster.workloads import Load
from benchmarks.report import RESULTS, Sheet, machine, save_json

FOLDER: Final = RESULTS / "cluster"
SYSTEMS: Final = ("etcd", "cortado")
RATES: Final = ("what", "callers", "etcd", "Cortado", "times", "in rounds", "aim", "p50 ms", "p99 ms")
COSTS: Final = ("what", "callers", "leader", "followers", "clients", "together", "MiB")
RATES_LEGEND: Final = (
    "etcd, Cortado: calls a second (rows a second), the median of the rounds; times: Cortado's over etcd's; in rounds: "
    "the least and the most of that in one turn of both; latencies: etcd / Cortado"
)
COSTS_LEGEND: Final = (
    "CPU time in microseconds for each call, etcd / Cortado: of the leader, of the followers and of the clients; MiB: "
    "most memory of a node"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A load, and the outcomes of its rounds by system."""

    load: Load
    rounds: dict[str, list[Outcome]]

    def middle(self, system: str) -> Outcome | None:
        rounds = self.rounds.get(system)
        return middle(rounds) if rounds else None

    @property
    def times(self) -> float | None:
        """Return Cortado's rate over etcd's; None if one of them is missing."""
        etcd, ours = (self.middle(system) for system in SYSTEMS)
        return ours.rate / etcd.rate if ours is not None and etcd is not None and etcd.rate else None

    @property
    def reached(self) -> bool | None:
        """Return whether the aim is reached; None without an aim, or without a rate of etcd's."""
        return None if self.times is None or not self.load.aim else self.times >= self.load.aim


@dataclass(slots=True)
class Results:
    """One run."""

    machine: dict[str, str] = field(default_factory=machine)
    settings: list[str] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    failover_ms: dict[str, list[float]] = field(default_factory=dict)

    def save(self) -> Path:
        """Save the run as JSON below ``benchmarks/results/cluster/``."""
        return save_json(asdict(self), FOLDER)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Load a run that :meth:`save` wrote."""
        content = json.loads(path.read_text())
        measured = [Measured(Load(**each["load"]), rounds_of(each["rounds"])) for each in content["measured"]]
        return cls(content["machine"], content["settings"], measured, content["failover_ms"])


def outcome_of(content: dict[str, Any]) -> Outcome:
    """Return an outcome from its JSON."""
    followers = tuple(Use(**use) for use in content["followers"])
    return Outcome(**{**content, "leader": Use(**content["leader"]), "followers": followers})


def rounds_of(content: dict[str, list[dict[str, Any]]]) -> dict[str, list[Outcome]]:
    """Return the outcomes of rounds from their JSON, by name."""
    return {name: [outcome_of(each) for each in outcomes] for name, outcomes in content.items()}


# --- cells ---------------------------------------------------------------------------------------------------------


def rates(results: Results) -> list[list[str]]:
    """Return the cells of a table: one line for each load, with both systems side by side."""
    return [_rates(each) for each in results.measured]


def costs(results: Results) -> list[list[str]]:
    """Return the same cells for the costs."""
    return [_costs(each) for each in results.measured]


def _rates(each: Measured) -> list[str]:
    verdict = "" if each.reached is None else " reached" if each.reached else " missed"
    return [
        each.load.title,
        str(each.load.callers),
        *(_rate(each.middle(system), each.load.rows) for system in SYSTEMS),
        f"{each.times:.2f}" if each.times is not None else "",
        _spread(each),
        f"{each.load.aim:.2g}{verdict}" if each.load.aim else "",
        _both(each, lambda outcome: f"{outcome.p50_ms:.1f}"),
        _both(each, lambda outcome: f"{outcome.p99_ms:.1f}"),
    ]


def _costs(each: Measured) -> list[str]:
    def micros(cores: Callable[[Outcome], float]) -> str:
        return _both(each, lambda outcome: f"{cores(outcome) / outcome.rate * 1e6:,.0f}" if outcome.rate else "-")

    return [
        each.load.title,
        str(each.load.callers),
        micros(lambda outcome: outcome.leader.cores),
        micros(_followers_cores),
        micros(lambda outcome: outcome.client_cores),
        micros(lambda outcome: outcome.leader.cores + _followers_cores(outcome) + outcome.client_cores),
        _both(each, lambda outcome: f"{max(use.memory_mib for use in (outcome.leader, *outcome.followers)):.0f}"),
    ]


def _followers_cores(outcome: Outcome) -> float:
    return sum(use.cores for use in outcome.followers)


def _both(each: Measured, show: Callable[[Outcome], str]) -> str:
    outcomes = [each.middle(system) for system in SYSTEMS]
    return " / ".join("-" if outcome is None else show(outcome) for outcome in outcomes)


def _spread(each: Measured) -> str:
    etcd, ours = (each.rounds.get(system, []) for system in SYSTEMS)
    times = [mine.rate / other.rate for mine, other in zip(ours, etcd, strict=False) if other.rate]
    return f"{min(times):.2f} to {max(times):.2f}" if times else ""


def _rate(outcome: Outcome | None, rows: int) -> str:
    if outcome is None:
        return "-"
    failed = f", {outcome.failed} failed" if outcome.failed else ""
    return f"{outcome.rate:,.0f}" + (f" ({outcome.rate * rows:,.0f})" if rows > 1 else "") + failed


def failover_line(name: str, trials_ms: Sequence[float]) -> str:
    shown = ", ".join(f"{each:,.0f}" for each in sorted(trials_ms))
    return f"{name}: {shown} ms from kill -9 of the leader to the next acknowledged put"


# --- tables --------------------------------------------------------------------------------------------------------


def show(results: Results, console: Console) -> None:
    """Print the tables."""
    for sheet in _sheets(results):
        sheet.show(console)
    for name, trials_ms in results.failover_ms.items():
        console.print(failover_line(name, trials_ms), highlight=False)


def markdown(results: Results) -> str:
    """Return the tables for a page."""
    return "\n\n".join(
        [
            *(f"{each}." for each in results.settings),
            *(sheet.markdown() for sheet in _sheets(results)),
            *(f"{failover_line(name, each)}." for name, each in results.failover_ms.items()),
        ]
    )


def _sheets(results: Results) -> list[Sheet]:
    return [
        Sheet("Three nodes", RATES, rates(results), RATES_LEGEND),
        Sheet("What a call costs", COSTS, costs(results), COSTS_LEGEND),
    ]
