"""The sources that ``cortado doctor`` examines, and how it shows its findings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.store.cli.common_options import CLUSTER_DIRECTORY
from cortado.store.cli.failures import DAMAGE, OK
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.client.endpoints import Tls
from cortado.store.doctor.bundle import write_bundle
from cortado.store.doctor.checks import checks
from cortado.store.doctor.collect import Sources, cluster_endpoints, collect
from cortado.store.doctor.verdicts import Verdict, as_record
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.settings.client import ENDPOINTS

_PROBE_S: Final = 3.0
NOT_CHECKED: Final = (
    ("each stored byte, and whether the replicas agree", "cortado scrub"),
    ("indexes against rows", "cortado table verify-indexes TABLE"),
    ("a backup", "cortado backup verify DIR"),
    ("calls that took long", "cortado slow"),
    ("rates, queues and latencies as they change", "cortado top"),
    ("a gateway", "cortado health --gateway HOST:PORT"),
)
"""Checks that take long or need a name, each with its command."""


def diagnose(sources: Sources, bundle: Path | None) -> Diagnosis:
    """Look at everything, and write it into an archive if one is asked for. Raises InvalidArgument."""
    collected = collect(sources)
    report = {
        "checks": [as_record(each) for each in checks(collected.facts)],
        "not_checked": [{"name": name, "command": command} for name, command in NOT_CHECKED],
        "facts": collected.facts,
    }
    if bundle is not None:
        write_bundle(bundle, report, collected.texts, int(time.time()))
    return Diagnosis(report, "" if bundle is None else f"wrote {bundle}")


def local_cluster(session: Session, given: Path | None) -> ClusterFiles | None:
    """Return the one that is named; else the one that is here, if nothing else is named."""
    if given is not None:
        files = ClusterFiles(given, "--dev")
        files.read_plan()
        return files
    files = ClusterFiles(CLUSTER_DIRECTORY)
    is_default = all(each.origin == "default" for each in session.found if each.setting is ENDPOINTS)
    return files if files.exists and is_default and session.problem is None else None


def sources_of(
    session: Session,
    files: ClusterFiles | None,
    config: Path | None,
    data_dirs: tuple[Path, ...],
    logs: tuple[Path, ...],
    lines: int,
) -> Sources:
    endpoints, tls = tuple(session.endpoint.split(",")), session.tls
    if files is not None:
        try:
            endpoints, of_cluster = cluster_endpoints(files)
        except CortadoError:
            of_cluster = None

        def tls() -> Tls | None:
            return of_cluster

    return Sources(
        client=session.found if session.problem is None else session.problem,
        endpoints=endpoints,
        tls=tls,
        token=session.token,
        environment=os.environ,
        config=config,
        data_dirs=data_dirs,
        logs=logs,
        lines=lines,
        cluster=files,
        timeout_s=min(session.timeout_s, _PROBE_S),
    )


def _line(check: dict[str, str]) -> str:
    advice = f" ─ {check['advice']}" if check["advice"] else ""
    return f"{check['name']}: {check['found']}{advice}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The checks and their findings. Exit code 8 if a check failed."""

    report: dict[str, Any]
    note: str

    @property
    def exit_code(self) -> int:
        return DAMAGE if self._count(Verdict.FAIL) else OK

    def as_json(self) -> Iterable[Any]:
        return [self.report]

    def as_table(self, show: Renderer) -> None:
        host, records = self.report["facts"]["host"], self.report["checks"]
        if "cortado" in host:
            show.line(f"cortado {host['cortado']}, Python {host['python']}, {host['kernel']}, {host['os']}")
            show.line("")
        show.record([(each["verdict"], _line(each)) for each in records])
        failed, warned = self._count(Verdict.FAIL), self._count(Verdict.WARN)
        show.line("")
        show.line(f"{count(failed, 'failure')}, {count(warned, 'warning')}, {len(records) - failed - warned} well")
        show.line("not checked here:")
        show.record([(each["name"], each["command"]) for each in self.report["not_checked"]])
        if self.note:
            show.note(self.note)

    def _count(self, verdict: Verdict) -> int:
        return sum(each["verdict"] == verdict for each in self.report["checks"])
