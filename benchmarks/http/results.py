"""The measurements, as a table for the terminal and for a page, and as JSON for later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from benchmarks import report
from benchmarks.cluster.tables import rounds_of
from benchmarks.cluster.turns import Outcome, middle
from benchmarks.http.workloads import WORKLOADS
from benchmarks.report import Sheet

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
    """The rounds of a workload with this many callers, by HTTP and by gRPC."""

    workload: str
    callers: int
    rounds: Mapping[str, Sequence[Outcome]]


class Results(report.Results[Measured]):
    """One run."""

    KIND: ClassVar = "http"

    @staticmethod
    def read(content: dict[str, Any]) -> Measured:
        return Measured(content["workload"], content["callers"], rounds_of(content["rounds"]))

    def has(self, workload: str, callers: int) -> bool:
        """Return whether it is measured already."""
        return any((each.workload, each.callers) == (workload, callers) for each in self.measured)

    def sheets(self) -> list[Sheet]:
        """Return one line for each workload and number of callers."""
        return [Sheet("The gateway beside the client", HEADINGS, [_line(each) for each in self.measured], LEGEND)]


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
