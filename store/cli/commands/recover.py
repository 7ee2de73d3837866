"""``cortado recover``: repairs by hand on a stopped node, when nothing else helps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cortado.errors import InvalidArgument
from cortado.extras import needing
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.failures import OK
from cortado.store.cli.options import Option
from cortado.store.cli.render import Renderer, count, moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.server.recovery import Survey, TermReport

_DAMAGED_SHOWN: Final = 5


@command(
    "recover",
    remote=False,
    examples="""
        cortado recover --force-new-cluster --data-dir /var/lib/cortado --dry-run
        cortado recover --force-new-cluster --data-dir /var/lib/cortado
        cortado recover --reset-term --data-dir /var/lib/cortado
        cortado recover --disable-auth --data-dir /var/lib/cortado
    """,
)
def recover(
    session: Session,
    data_dir: Annotated[Path, Option(help="The data directory of a stopped node.", metavar="PATH")],
    force_new_cluster: Annotated[
        bool, Option("--force-new-cluster", help="Force a new cluster of this node alone.")
    ] = False,
    reset_term: Annotated[
        bool, Option("--reset-term", help="Take this node back from a term that is out of bounds.")
    ] = False,
    disable_auth: Annotated[
        bool, Option("--disable-auth", help="Have this node switch roles off once it leads.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Repair a stopped node by hand, when nothing else helps.

    With --force-new-cluster, force a new single-node cluster from this data directory after a permanent loss of quorum.
    Unreplicated writes are lost. Run it on the host of the most up-to-date survivor. The other members are refused if
    they return: add new nodes instead.

    With --reset-term, reset a term that is out of bounds and keeps the node from starting. Nothing is lost. Run it
    on each node that reports it.

    With --disable-auth, switch roles off if no admin's credential is left. Run it on a majority of the voters, and
    start those: one of them leads, and writes the change into the log. All callers may do everything then.
    """
    if force_new_cluster + reset_term + disable_auth != 1:
        problem = "or --reset-term or --disable-auth must be given, and one alone, so that none happens by accident"
        raise InvalidArgument("--force-new-cluster", problem)
    with needing("server", "recovery"):
        from cortado.store.server import recovery
    if disable_auth:
        recovery.disable_auth(data_dir, dry_run=True)
        if not dry_run:
            confirm(f"Have the node of {data_dir} switch roles off for all callers once it leads?", yes=yes)
            recovery.disable_auth(data_dir, dry_run=False)
        text = UNCHANGED if dry_run else "it switches roles off once it leads; start a majority of the voters so"
        return Said(text, {"data_dir": str(data_dir), "was_changed": not dry_run})
    if reset_term:
        report = recovery.reset_term(data_dir, dry_run=True)
        if not dry_run:
            confirm(f"Take the node of {data_dir} back from term {report.old_term}?", yes=yes)
            report = recovery.reset_term(data_dir, dry_run=False)
        return _TermAnswer(report, was_changed=not dry_run)
    found = recovery.survey(data_dir)
    if not session.as_json:
        _show(session.show, found)
    cluster_id = recovery.force_new_cluster(data_dir, dry_run=True)
    if not dry_run:
        confirm("Force a new cluster of this node alone?", yes=yes)
        cluster_id = recovery.force_new_cluster(data_dir, dry_run=False)
    return _forced(found, cluster_id)


def _forced(found: Survey, cluster_id: str) -> Answer:
    return Said(
        f"{found.member.node_id} is cluster {cluster_id} now; start its server as before" if cluster_id else UNCHANGED,
        {
            "node_id": found.member.node_id,
            "cluster_id": found.cluster_id,
            "new_cluster_id": cluster_id or None,
            "applied_index": found.applied_index,
            "last_ts": str(found.last_ts),
            "last_index": found.last_index,
            "unapplied": found.unapplied,
            "damaged": list(found.damaged),
            "removed": [each.node_id for each in found.removed],
        },
    )


@dataclass(frozen=True, slots=True)
class _TermAnswer:
    """The repair of a term, or the report of it."""

    report: TermReport
    was_changed: bool
    exit_code: int = OK

    def as_json(self) -> list[Any]:
        report = self.report
        return [
            {
                "old_term": report.old_term,
                "new_term": report.new_term,
                "dropped": report.dropped,
                "was_changed": self.was_changed,
            }
        ]

    def as_table(self, show: Renderer) -> None:
        dropped = count(self.report.dropped, "entry", "entries")
        show.record(
            [
                ("term", f"{self.report.old_term}, out of bounds"),
                ("new term", self.report.new_term),
                ("dropped from its log", f"{dropped} of such a term, not known to be committed"),
            ]
        )
        show.line("start its server as before" if self.was_changed else UNCHANGED)


def _show(show: Renderer, found: Survey) -> None:
    """Show, before the question, which data is kept and which is lost."""
    show.record(
        [
            ("node", f"{found.member.node_id} ({found.member.peer_address})"),
            ("cluster", found.cluster_id),
            ("applied index", found.applied_index),
            ("last timestamp", moment(found.last_ts)),
            ("last log index", found.last_index),
            ("members removed", ", ".join(f"{each.node_id} ({each.peer_address})" for each in found.removed) or "none"),
        ]
    )
    show.line("Lost: writes that the other members acknowledged and this node does not hold.")
    if found.unapplied:
        entries = count(found.unapplied, "entry", "entries")
        show.line(
            f"Kept: {entries} of its log that were perhaps not committed; clients may not have been told of them."
        )
    if found.damaged:
        items = count(len(found.damaged), "item")
        some = "; ".join(found.damaged[:_DAMAGED_SHOWN]) + ("; ..." if len(found.damaged) > _DAMAGED_SHOWN else "")
        show.line(f"Damaged here, and not to be repaired without the other members: {items}: {some}")
    show.line("The other members are refused from then on; add new nodes with cortado member add.")
