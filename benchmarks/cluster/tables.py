"""What was measured, as tables for people and as JSON for later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.cluster.load import Outcome
from benchmarks.report import RESULTS, machine

HEADINGS: Final = (
    "what", "callers", "etcd", "cortado", "times", "aim", "p50 ms", "p99 ms", "leader", "followers", "clients", "MiB"
)  # fmt: skip
LEGEND: Final = (
    "callers: processes x threads; etcd, cortado: calls a second (rows a second); times: cortado's rate over etcd's. "
    "Then of both, etcd's first: latency; cores used by the leader, the followers together, the clients; most memory "
    "of a node"
)


@dataclass(frozen=True, slots=True)
class Point:
    """One load on one system. ``callers`` is text, such as "2 x 32"; ``aim`` a multiple of etcd's rate, 0 for none."""

    system: str
    what: str
    callers: str
    rows: int
    aim: float
    outcome: Outcome


@dataclass(slots=True)
class Results:
    """One run."""

    settings: dict[str, str] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    failover_ms: dict[str, list[float]] = field(default_factory=dict)

    def save(self) -> Path:
        """As JSON below ``benchmarks/results/cluster/``."""
        folder = RESULTS / "cluster"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
        path.write_text(json.dumps({"machine": machine(), **asdict(self)}, indent=2) + "\n")
        return path


def lines(results: Results) -> list[list[str]]:
    """The cells of a table: one line for each load, with both systems side by side."""
    loads = list(dict.fromkeys((each.what, each.callers, each.rows, each.aim) for each in results.points))
    found = {(each.system, each.what, each.callers): each.outcome for each in results.points}
    return [
        [what, callers, *_cells(found.get(("etcd", what, callers)), found.get(("cortado", what, callers)), rows, aim)]
        for what, callers, rows, aim in loads
    ]


def _cells(etcd: Outcome | None, ours: Outcome | None, rows: int, aim: float) -> list[str]:
    def both(show: Any) -> str:
        return " / ".join("-" if each is None else show(each) for each in (etcd, ours))

    times = ours.rate / etcd.rate if etcd is not None and ours is not None and etcd.rate else 0.0
    reached = "" if not aim or not times else " reached" if times >= aim else " missed"
    return [
        _rate(etcd, rows),
        _rate(ours, rows),
        f"{times:.2f}" if times else "",
        f"{aim:g}{reached}" if aim else "",
        both(lambda each: f"{each.p50_ms:.1f}"),
        both(lambda each: f"{each.p99_ms:.1f}"),
        both(lambda each: f"{each.leader.cores:.2f}"),
        both(lambda each: f"{sum(use.cores for use in each.followers):.2f}"),
        both(lambda each: f"{each.client_cores:.2f}"),
        both(lambda each: f"{max(use.memory_mib for use in (each.leader, *each.followers)):.0f}"),
    ]


def _rate(outcome: Outcome | None, rows: int) -> str:
    if outcome is None:
        return "-"
    failed = f", {outcome.failed} failed" if outcome.failed else ""
    return f"{outcome.rate:,.0f}" + (f" ({outcome.rate * rows:,.0f})" if rows > 1 else "") + failed


def failover_line(name: str, trials_ms: Sequence[float]) -> str:
    shown = ", ".join(f"{each:.0f}" for each in sorted(trials_ms))
    return f"{name}: {shown} ms from kill -9 of the leader to the next acknowledged put"


def show(results: Results, console: Console) -> None:
    """A table for people."""
    table = Table(title="Three nodes", title_justify="left", title_style="bold", caption=LEGEND, caption_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("what", "aim") else "right")
    for line in lines(results):
        table.add_row(*line)
    console.print(table)
    for name, trials_ms in results.failover_ms.items():
        console.print(failover_line(name, trials_ms), highlight=False)


def markdown(results: Results) -> str:
    """The same for a page."""
    rules = ["---" if heading in ("what", "aim") else "---:" for heading in HEADINGS]
    rows = [list(HEADINGS), rules, *lines(results)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n\n".join([table, *(failover_line(name, each) for name, each in results.failover_ms.items())])
