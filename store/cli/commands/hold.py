"""``cortado hold``: the holds that keep old versions from being collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cortado.errors import NotFound
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.options import Argument
from cortado.store.cli.render import moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import HoldInfo


@command(
    "hold list",
    examples="""
        cortado hold list
        cortado hold list -o json
    """,
)
def list_(session: Session) -> Answer:
    """Show the holds with their holders and timestamps, the oldest first.

    Versions that reads at the oldest hold's timestamp or above need are not collected. A hold ends if its holder does
    not renew it within its ttl, or when it is a day old. A consumer's hold ends if it is not moved within its ttl.
    """
    with session.client() as client:
        holds = client.admin.gc.holds()
    columns = ("hold", "timestamp", "acquired", "silent", "ttl", "label")
    return Rows(columns, [_row(each) for each in holds], [_record(each) for each in holds])


@command(
    "hold end",
    examples="""
        cortado hold end 9f86d081884c7d659a2feaa0c55ad015
    """,
)
def end(
    session: Session, hold_id: Annotated[str, Argument(help="The hold, as hold list shows it.", metavar="HOLD")]
) -> Answer:
    """End a hold: the versions that it keeps may be collected.

    With roles on, operators may end holds of other principals. The holder gets HOLD_EXPIRED at its next use of the
    hold, and SNAPSHOT_TOO_OLD for reads that need collected versions.
    """
    with session.client() as client:
        if not client.admin.gc.end_hold(hold_id):
            raise NotFound("hold", hold_id)
    return Said(f"the hold {hold_id} has ended", {"hold_id": hold_id})


def _row(hold: HoldInfo) -> tuple[str, ...]:
    silent, ttl = f"{hold.silent_s:.0f} s", f"{hold.ttl_s:g} s"
    return hold.hold_id, moment(hold.timestamp), moment(hold.acquired), silent, ttl, shown_label(hold) or "-"


def shown_label(hold: HoldInfo) -> str:
    """Return the hold's holder and its reason."""
    consumer = f"consumer {hold.consumer}" if hold.consumer else ""
    principal = f"principal {hold.principal}" if hold.principal else ""
    return ", ".join(filter(None, (hold.label, consumer, hold.owner, principal)))


def _record(hold: HoldInfo) -> dict[str, Any]:
    return {
        "hold_id": hold.hold_id,
        "timestamp": str(hold.timestamp),
        "acquired": str(hold.acquired),
        "silent_s": hold.silent_s,
        "ttl_s": hold.ttl_s,
        "label": hold.label,
        "consumer": hold.consumer,
        "owner": hold.owner,
        "principal": hold.principal,
    }
