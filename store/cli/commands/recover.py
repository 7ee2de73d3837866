"""``cortado recover``: what is done on a stopped node, by hand, when nothing else helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cortado.errors import InvalidArgument, Unsupported
from cortado.store.cli.asking import DryRunOption, YesOption, confirm
from cortado.store.cli.options import Option
from cortado.store.cli.render import count, moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.server.recovery import Survey


@command(
    "recover",
    remote=False,
    examples="""
        cortado recover --force-new-cluster --data-dir /var/lib/cortado --dry-run
        cortado recover --force-new-cluster --data-dir /var/lib/cortado
    """,
)
def recover(
    session: Session,
    data_dir: Annotated[Path, Option(help="The data directory of a stopped node.", metavar="PATH")],
    force_new_cluster: Annotated[
        bool, Option("--force-new-cluster", help="Make this node a new cluster of its own.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Make a survivor a new cluster, after most voters were lost for ever. Data may be lost.

    Run it on the host of the survivor that holds the most, with its server stopped. The other members, should
    they return, are refused: add new nodes instead.
    """
    if not force_new_cluster:
        problem = "must be given: there is no other recovery, and this one is not to happen by accident"
        raise InvalidArgument("--force-new-cluster", problem)
    try:
        from cortado.store.server import recovery
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cortado"):
            raise
        raise Unsupported(f"recovery without {error.name}", "pip install 'cortado[server]'") from None
    engine = recovery.open_stopped(data_dir)
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
                "removed": [each.node_id for each in found.removed],
            }
        )
    elif cluster_id:
        session.show.line(f"{found.member.node_id} is cluster {cluster_id} now; start its server as before")
    else:
        session.show.line("nothing was changed")
