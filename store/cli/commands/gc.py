"""``cortado gc``: how far old versions are collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortado.store.cli.answers import Answer, Fields, Said
from cortado.store.cli.commands.hold import shown_label
from cortado.store.cli.numbers import show_retention
from cortado.store.cli.render import count, moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import GcStatus


@command(
    "gc status",
    examples="""
        cortado gc status
        cortado gc status -o json
    """,
)
def status(session: Session) -> Answer:
    """Show the safepoint, the hold or retention that holds it back, and the number of removed items.

    Reads below the safepoint are refused. It stays behind the clock by the retention, and never passes the oldest
    hold.
    """
    with session.client() as client:
        found = client.admin.gc.status()
    return Fields([*_pairs(found)], _record(found))


@command(
    "gc run",
    examples="""
        cortado gc run
    """,
)
def run(session: Session) -> Answer:
    """Remove at once all old versions that may be removed.

    The leader does so by itself, in small steps. The command ends when no such version is left.
    """
    with session.client() as client:
        removed = client.admin.gc.run()
    return Said(f"removed {count(removed, 'stored item')}", {"removed": removed})


def _pairs(found: GcStatus) -> list[tuple[str, Any]]:
    holder = found.holder
    held = "the retention" if holder is None else f"the hold {holder.hold_id}"
    if holder is not None and (holder.label or holder.consumer):
        held += f" ({shown_label(holder)})"
    pairs = [
        ("safepoint", moment(found.safepoint)),
        ("lag", f"{found.lag_s:.0f} s"),
        ("old versions kept", show_retention(found.retention_ms)),
        ("held by", held),
        ("removed", f"{found.removed:,} since the leader's start"),
        ("pieces to look at", f"{found.pending:,} of {found.pieces:,}"),
    ]
    return pairs + [(f"safepoint of {table}", moment(ts)) for table, ts in found.tables.items()]


def _record(found: GcStatus) -> dict[str, Any]:
    holder = found.holder
    return {
        "safepoint": str(found.safepoint),
        "lag_s": found.lag_s,
        "retention_ms": found.retention_ms,
        "held_by": None
        if holder is None
        else {
            "hold_id": holder.hold_id,
            "label": holder.label,
            "consumer": holder.consumer,
        },
        "removed": found.removed,
        "pieces": found.pieces,
        "pieces_pending": found.pending,
        "tables": {table: str(ts) for table, ts in found.tables.items()},
    }
