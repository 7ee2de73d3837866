"""``cortado scrub``: is everything that the replicas have stored what was written, and do they hold the same?"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

from cortado.errors import CortadoError, Unavailable
from cortado.store.catalog.descriptors import key_names
from cortado.store.cli.failures import DAMAGE, CheckFailed
from cortado.store.cli.inspecting import DataDirOption, running_node, stopped_node
from cortado.store.cli.options import Option
from cortado.store.cli.render import count, size
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client.inspect import Inspected, NodeInspector
from cortado.store.client.scrub import Progress, Report, Scrub
from cortado.store.client.scrub_findings import Finding
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.decoded import KeyNames
from cortado.store.settings.kinds import SIZE

RATE_DEFAULT: Final = 32 << 20
_SHOWN_EVERY_S: Final = 0.2


@dataclass(slots=True)
class _Replicas:
    """Whom to ask: ``skipped`` says who is not, and why."""

    live: list[Inspected] = field(default_factory=list)
    up_to: Timestamp = ZERO
    skipped: dict[str, str] = field(default_factory=dict)


@command(
    "scrub",
    examples="""
        cortado scrub
        cortado scrub --rate 100MiB -o json
        cortado scrub --data-dir /var/lib/cortado
    """,
)
def scrub(
    session: Session,
    rate: Annotated[
        int,
        Option(
            help="How much each replica reads a second at most: bytes, or with KiB, MiB or GiB; 0 for no bound.",
            parser=partial(SIZE.read, "--rate"),
            show_default="32MiB",
            metavar="SIZE",
        ),
    ] = RATE_DEFAULT,
    data_dir: DataDirOption = None,
) -> None:
    """Find damage that reads may miss: verify all that is stored, and compare the replicas at one timestamp.

    Every checksum, the order of all keys, the log and the remembered requests on each replica; digests of all
    ranges between them, naming each key that differs; indexes against rows. Nothing is changed. With --data-dir
    the directory of a stopped node, with nobody to compare it with. Exit code 8 where damage is found, 6 where
    something could not be checked.
    """
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
            rate_bytes_s=rate or None,
            on_progress=shown.update,
        )
        report = run.run()
    shown.end()
    report.skipped |= replicas.skipped
    _show(session, report, is_alone=data_dir is not None or len(replicas.live) + len(replicas.skipped) == 1)


def _running(session: Session, stack: ExitStack) -> tuple[_Replicas, list[str], KeyNames]:
    """All members of the cluster behind the endpoints. Raises Unavailable where none answers."""
    replicas = _Replicas()
    with running_node(session) as first:
        members = first.members().members
    nodes: list[tuple[NodeInspector, Timestamp]] = []
    for member in members:
        try:
            node = NodeInspector([member.address], tls=session.tls(), timeout_s=session.timeout_s)
            stack.enter_context(node)
            if node.name != member.node_id:
                raise Unavailable(f"node {node.name} answers at {member.address}")
            nodes.append((node, node.last_applied()))
        except CortadoError as problem:
            replicas.skipped[member.node_id] = problem.message()
    _choose(replicas, nodes)
    if not replicas.live:
        raise Unavailable("no replica can be checked: " + _listed(replicas.skipped))
    tables, names, unknown = _tables_of([node for node, _ in nodes])
    if unknown is not None:
        replicas.skipped["tables"] = f"which there are is not known: {unknown.message()}"
    return replicas, tables, names


def _choose(replicas: _Replicas, nodes: list[tuple[NodeInspector, Timestamp]]) -> None:
    """All that have data, up to what all of these have applied. Where nothing was ever written, nobody lacks any."""
    written = [applied for _, applied in nodes if applied != ZERO]
    replicas.up_to = min(written, default=ZERO)
    for node, applied in nodes:
        if applied == ZERO and written:
            replicas.skipped[node.name] = "it has no data yet"
        else:
            replicas.live.append(node)


def _tables_of(nodes: list[NodeInspector]) -> tuple[list[str], KeyNames, CortadoError | None]:
    """From the node that leads."""
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


# --- what it says ----------------------------------------------------------------------------------------------


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
        self._write(f"{progress.stage}: {progress.items:,} items, {size(progress.size_bytes)}, {size(int(rate))}/s")

    def end(self) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _show(session: Session, report: Report, *, is_alone: bool) -> None:
    """Findings and verdict; raises CheckFailed, or Unavailable where something was not checked."""
    if session.as_json:
        for each in report.findings:
            session.show.json({"finding": _finding_json(each)})
        session.show.json({"scrub": _report_json(report)})
    else:
        _show_table(session, report)
        if report.findings:
            session.show.note(_advice(report.findings, is_alone=is_alone))
    if report.findings:
        raise CheckFailed(DAMAGE)
    if report.skipped:
        raise Unavailable("not everything was checked: " + _listed(report.skipped))


def _show_table(session: Session, report: Report) -> None:
    read = f"{count(report.progress.items, 'item')} ({size(report.progress.size_bytes)})"
    checked = f"{read} of {', '.join(report.replicas)}"
    tables = f" and {count(report.tables_checked, 'table')}" if report.tables_checked else ""
    found = len(report.findings) + report.left_out
    verdict = count(found, "problem") if found else "no problems"
    session.show.line(f"{checked}{tables} checked at {report.up_to}: {verdict}")
    if report.findings:
        rows = [(each.replica, each.space, each.kind, each.text, each.message) for each in report.findings]
        session.show.table(("replica", "in", "kind", "key", "problem"), rows)
    if report.left_out:
        session.show.note(f"and {count(report.left_out, 'problem')} more")
    for what, problem in report.skipped.items() if report.findings else ():
        session.show.note(f"not checked: {what}: {problem}")


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


def _listed(skipped: dict[str, str]) -> str:
    return "; ".join(f"{what}: {problem}" for what, problem in skipped.items())
