"""The work of ``cortado scrub``: asks every replica, or a stopped node's directory, and shows the findings."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortado.errors import CortadoError, SnapshotTooOld, Unavailable
from cortado.store.catalog.descriptors import key_names
from cortado.store.cli.failures import DAMAGE, OK
from cortado.store.cli.inspecting import running_node, stopped_node
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.client.inspect import Inspected, NodeInspector
from cortado.store.client.scrub import Progress, Report, Scrub
from cortado.store.client.scrub_findings import Finding
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.decoded import KeyNames
from cortado.store.settings.sizes import size_text

_SHOWN_EVERY_S: Final = 0.2
_LABEL: Final = "cortado scrub"


@dataclass(slots=True)
class _Replicas:
    """The replicas to ask; ``skipped`` names the others and the reasons."""

    live: list[Inspected] = field(default_factory=list)
    up_to: Timestamp = ZERO
    skipped: dict[str, str] = field(default_factory=dict)


def run_scrub(session: Session, data_dir: Path | None, rate_bytes_s: int | None) -> ScrubAnswer:
    """Check everything that can be reached. Raises Unavailable if no replica can."""
    shown = _ProgressLine(session)
    with ExitStack() as stack:
        if data_dir is None:
            replicas, tables, names = _running(session, stack)
        else:
            replicas, tables, names = _stopped(stack.enter_context(stopped_node(data_dir)))
        run = Scrub(
            replicas.live,
            up_to=replicas.up_to,
            tables=tables,
            names=names,
            rate_bytes_s=rate_bytes_s,
            on_progress=shown.update,
        )
        report = run.run()
    shown.end()
    report.skipped |= replicas.skipped
    return ScrubAnswer(report, data_dir is not None or len(replicas.live) + len(replicas.skipped) == 1)


def _running(session: Session, stack: ExitStack) -> tuple[_Replicas, list[str], KeyNames]:
    """Return all members of the cluster behind the endpoints. Raises Unavailable if none answers."""
    replicas = _Replicas()
    with running_node(session) as first:
        members = first.members().members
    nodes: list[tuple[NodeInspector, Timestamp]] = []
    for member in members:
        try:
            if not member.joined:
                raise Unavailable("it has not joined yet")
            node = NodeInspector([member.address], tls=session.tls(), token=session.token, timeout_s=session.timeout_s)
            stack.enter_context(node)
            if node.name != member.node_id:
                raise Unavailable(f"node {node.name} answers at {member.address}")
            nodes.append((node, node.last_applied()))
        except CortadoError as problem:
            replicas.skipped[member.node_id] = problem.message()
    _choose(replicas, nodes)
    if not replicas.live:
        raise Unavailable("no replica can be checked: " + listed(replicas.skipped))
    _lease(session, stack, replicas)
    tables, names, unknown = _tables_of([node for node, _ in nodes])
    if unknown is not None:
        replicas.skipped["tables"] = f"which there are is not known: {unknown.message()}"
    return replicas, tables, names


def _choose(replicas: _Replicas, nodes: list[tuple[NodeInspector, Timestamp]]) -> None:
    """Choose the replicas that have data, and the last timestamp that all have applied. If nothing was ever written,
    choose all."""
    written = [applied for _, applied in nodes if applied != ZERO]
    replicas.up_to = min(written, default=ZERO)
    for node, applied in nodes:
        if applied == ZERO and written:
            replicas.skipped[node.name] = "it has no data yet"
        else:
            replicas.live.append(node)


def _lease(session: Session, stack: ExitStack, replicas: _Replicas) -> None:
    """Keep the compared versions from being collected, until the scrub ends. Without a leader, nothing is collected."""
    if replicas.up_to == ZERO:
        return
    client = stack.enter_context(session.client())
    with suppress(CortadoError):
        try:
            stack.enter_context(client.hold(replicas.up_to, label=_LABEL))
        except SnapshotTooOld:
            # A replica is far behind: it will catch up with the newest timestamp, or is said not to be checked.
            replicas.up_to = stack.enter_context(client.hold(label=_LABEL)).timestamp


def _tables_of(nodes: list[NodeInspector]) -> tuple[list[str], KeyNames, CortadoError | None]:
    """Read the tables from the node that leads."""
    problem: CortadoError | None = None
    for node in nodes:
        try:
            found = node.tables()
        except CortadoError as refused:
            problem = refused
        else:
            return [table.full_name for table in found], key_names(found), None
    return [], KeyNames(), problem


def _stopped(node: Any) -> tuple[_Replicas, list[str], KeyNames]:
    replicas = _Replicas([node])
    try:
        replicas.up_to = node.last_applied()
        found = node.tables()
    except CortadoError as problem:
        # Its checksums can be verified all the same.
        replicas.skipped["tables"] = problem.message()
        return replicas, [], KeyNames()
    return replicas, [table.full_name for table in found], key_names(found)


# --- output ---------------------------------------------------------------------------------------------------


class _ProgressLine:
    """One line on a terminal that is written over; nothing elsewhere."""

    def __init__(self, session: Session) -> None:
        self._is_shown = sys.stderr.isatty() and not session.as_json
        self._began_s = time.monotonic()
        self._shown_s = 0.0
        self._width = 0

    def update(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if not self._is_shown or now_s - self._shown_s < _SHOWN_EVERY_S:
            return
        self._shown_s = now_s
        rate = progress.size_bytes / max(now_s - self._began_s, 0.001)
        self._write(
            f"{progress.stage}: {progress.items:,} items, {size_text(progress.size_bytes)}, {size_text(int(rate))}/s"
        )

    def end(self) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


@dataclass(frozen=True, slots=True)
class ScrubAnswer:
    """Findings and verdict. ``is_alone``: there is no other replica to mend it from."""

    report: Report
    is_alone: bool

    @property
    def exit_code(self) -> int:
        return DAMAGE if self.report.findings else OK

    def as_json(self) -> Iterator[Any]:
        for each in self.report.findings:
            yield {"finding": _finding_json(each)}
        yield {"scrub": _report_json(self.report)}

    def as_table(self, show: Renderer) -> None:
        report = self.report
        read = f"{count(report.progress.items, 'item')} ({size_text(report.progress.size_bytes)})"
        checked = f"{read} of {', '.join(report.replicas)}"
        tables = f" and {count(report.tables_checked, 'table')}" if report.tables_checked else ""
        found = len(report.findings) + report.left_out
        verdict = count(found, "problem") if found else "no problems"
        show.line(f"{checked}{tables} checked at {report.up_to}: {verdict}")
        if report.findings:
            rows = [(each.replica, each.space, each.kind, each.text, each.message) for each in report.findings]
            show.table(("replica", "in", "kind", "key", "problem"), rows)
        if report.left_out:
            show.note(f"and {count(report.left_out, 'problem')} more")
        for what, problem in report.skipped.items() if report.findings else ():
            show.note(f"not checked: {what}: {problem}")
        if report.findings:
            show.note(_advice(report.findings, is_alone=self.is_alone))


def _advice(findings: list[Finding], *, is_alone: bool) -> str:
    if is_alone:
        return "a cluster of one restores its directory from a backup; a node of a larger one is rebuilt or replaced"
    replicas = sorted({name for each in findings for name in each.replica.split(",")})
    return "\n".join(f"to rebuild {name} from the other members: cortado member rebuild {name}" for name in replicas)


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "replicas": finding.replica.split(","),
        "space": finding.space,
        "kind": finding.kind,
        "key": finding.key.hex() or None,
        "text": finding.text,
        "message": finding.message,
    }


def _report_json(report: Report) -> dict[str, Any]:
    return {
        "timestamp": str(report.up_to),
        "replicas": list(report.replicas),
        "items": report.progress.items,
        "bytes": report.progress.size_bytes,
        "tables": report.tables_checked,
        "problems": len(report.findings) + report.left_out,
        "not_checked": report.skipped,
    }


def listed(skipped: dict[str, str]) -> str:
    return "; ".join(f"{what}: {problem}" for what, problem in skipped.items())
