"""``cortado recover``: what is done on a stopped node, by hand, when nothing else helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cortado.errors import InvalidArgument, Unsupported
from cortado.store.cli.asking import DryRunOption, YesOption, confirm
from cortado.store.cli.options import Option
from cortado.store.cli.render import count, moment
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
    """,
)
def recover(
    session: Session,
    data_dir: Annotated[Path, Option(help="The data directory of a stopped node.", metavar="PATH")],
    force_new_cluster: Annotated[
        bool, Option("--force-new-cluster", help="Make this node a new cluster of its own.")
    ] = False,
    reset_term: Annotated[
        bool, Option("--reset-term", help="Take this node back from a term that no elections reach.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Bring a stopped node back where nothing else does.

    With --force-new-cluster, make a survivor a new cluster, after most voters were lost for ever. Data may be lost.
    Run it on the host of the survivor that holds the most. The other members, should they return, are refused:
    add new nodes instead.

    With --reset-term, take a node back from a term out of bounds, with which it does not start. Nothing is lost.
    Run it on each node that says so.
    """
    if force_new_cluster == reset_term:
        problem = "one of --force-new-cluster and --reset-term must be given: neither is to happen by accident"
        raise InvalidArgument("--force-new-cluster", problem)
    try:
        from cortado.store.server import recovery
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cortado"):
            raise
        raise Unsupported(f"recovery without {error.name}", "pip install 'cortado[server]'") from None
    engine = recovery.open_stopped(data_dir)
    if reset_term:
        try:
            report = recovery.reset_term(engine, dry_run=True)
            if not dry_run:
                confirm(f"Take node {engine.identity.node_id} back from term {report.old_term}?", yes=yes)
                recovery.reset_term(engine, dry_run=False)
        finally:
            engine.close()
        _report_term(session, report, was_changed=not dry_run)
        return
    try:
        found = recovery.survey(engine, data_dir, engine.identity)
        if not session.as_json:
            _show(session, found)
        if not dry_run and found.removed:
            confirm("Make this node a new cluster?", yes=yes)
        cluster_id = "" if dry_run else recovery.force_new_cluster(engine, found)
    finally:
        engine.close()
    _report(session, found, cluster_id)


def _show(session: Session, found: Survey) -> None:
    session.show.record(
        [
            ("node", f"{found.member.node_id} ({found.member.address})"),
            ("cluster", found.cluster_id),
            ("applied up to index", found.applied_index),
            ("last timestamp", moment(found.last_ts)),
            ("last index in its log", found.last_index),
            ("left behind", ", ".join(f"{each.node_id} ({each.address})" for each in found.removed) or "nobody"),
        ]
    )
    session.show.line("Lost: whatever the other members acknowledged and this node does not hold.")
    if found.unapplied:
        entries = count(found.unapplied, "entry", "entries")
        session.show.line(
            f"Kept: {entries} of its log that it did not know to be decided; nobody may have been told of them."
        )
    if found.damaged:
        items = count(len(found.damaged), "item")
        some = "; ".join(found.damaged[:_DAMAGED_SHOWN]) + ("; ..." if len(found.damaged) > _DAMAGED_SHOWN else "")
        session.show.line(f"Damaged here, and not to be repaired without the other members: {items}: {some}")
    session.show.line("The other members are refused from then on; add new nodes with cortado member add.")


def _report(session: Session, found: Survey, cluster_id: str) -> None:
    if session.as_json:
        session.show.json(
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
            }
        )
    elif cluster_id:
        session.show.line(f"{found.member.node_id} is cluster {cluster_id} now; start its server as before")
    else:
        session.show.line("nothing was changed")


def _report_term(session: Session, report: TermReport, *, was_changed: bool) -> None:
    if session.as_json:
        session.show.json(
            {
                "old_term": report.old_term,
                "new_term": report.new_term,
                "dropped": report.dropped,
                "was_changed": was_changed,
            }
        )
        return
    dropped = count(report.dropped, "entry", "entries")
    session.show.record(
        [
            ("term", f"{report.old_term}, out of bounds"),
            ("its term from now on", report.new_term),
            ("dropped from its log", f"{dropped} of such a term, not known to be decided"),
        ]
    )
    session.show.line("start its server as before" if was_changed else "nothing was changed")
