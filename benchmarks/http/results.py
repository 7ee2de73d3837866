"""What was measured, as a table for people, for a page, and as JSON for later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster.tables import outcome_of
from benchmarks.cluster.turns import Outcome, middle
from benchmarks.http.workloads import WORKLOADS
from benchmarks.report import RESULTS, Sheet, machine, save_json

FOLDER: Final = RESULTS / "http"
HTTP: Final = "http"
GRPC: Final = "grpc"
HEADINGS: Final = (
    *("what", "callers", "HTTP a second", "gRPC", "p50 ms, HTTP", "gRPC"),
    *("CPU µs, HTTP: gateway", "node", "caller", "gRPC: node", "client", "more"),
)
LEGEND: Final = (
    "CPU: microseconds of processor time for each call, of user and system together, the medians of the rounds; more: "
    "what all processes of a call by HTTP take beyond those of the same call by the client"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The rounds of a workload with so many callers, by HTTP and by gRPC."""

    workload: str
    callers: int
    rounds: Mapping[str, Sequence[Outcome]]


@dataclass(slots=True)
class Results:
    """One run."""

    machine: dict[str, str] = field(default_factory=machine)
    settings: list[str] = field(default_factory=list)
    http: list[Measured] = field(default_factory=list)

    def save(self, path: Path | None = None) -> Path:
        """As JSON below ``benchmarks/results/http/``, or over what ``path`` holds of the same run."""
        return save_json(asdict(self), FOLDER, path)

    @classmethod
    def load(cls, path: Path) -> Results:
        """What :meth:`save` wrote."""
        content = json.loads(path.read_text())
        return cls(content["machine"], content["settings"], [_measured(each) for each in content["http"]])

    def has(self, workload: str, callers: int) -> bool:
        """Whether it is measured already."""
        return any((each.workload, each.callers) == (workload, callers) for each in self.http)

    def sheets(self) -> list[Sheet]:
        """One line for each workload and number of callers."""
        return [Sheet("The gateway beside the client", HEADINGS, [_line(each) for each in self.http], LEGEND)]


def _measured(content: dict[str, Any]) -> Measured:
    rounds = {way: [outcome_of(each) for each in outcomes] for way, outcomes in content["rounds"].items()}
    return Measured(content["workload"], content["callers"], rounds)


def _line(measured: Measured) -> list[str]:
    title = next(each.title for each in WORKLOADS if each.name == measured.workload)
    http, grpc = middle(measured.rounds[HTTP]), middle(measured.rounds[GRPC])
    (gateway,) = http.followers
    by_http = [_micros(each, http) for each in (gateway.cores, http.leader.cores, http.client_cores)]
    by_grpc = [_micros(each, grpc) for each in (grpc.leader.cores, grpc.client_cores)]
    return [
        title,
        str(measured.callers),
        f"{http.rate:,.0f}",
        f"{grpc.rate:,.0f}",
        f"{http.p50_ms:.2f}",
        f"{grpc.p50_ms:.2f}",
        *(f"{each:,.0f}" for each in (*by_http, *by_grpc, sum(by_http) - sum(by_grpc))),
    ]


def _micros(cores: float, of: Outcome) -> float:
    return cores / of.rate * 1e6 if of.rate else 0.0
