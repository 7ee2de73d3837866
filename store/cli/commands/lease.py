"""``cortado lease``: the leases that keep old versions from being collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cortado.errors import NotFound
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.options import Argument
from cortado.store.cli.render import moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import HeldLease


@command(
    "lease list",
    examples="""
        cortado lease list
        cortado lease list -o json
    """,
)
def list_(session: Session) -> Answer:
    """Show the leases with their holders and timestamps, the oldest first.

    Versions that reads at the oldest lease's timestamp or above need are not collected. A lease ends if its holder does
    not renew it within its ttl, or when it is a day old. A consumer's lease ends if it is not moved within its ttl.
    """
    with session.client() as client:
        leases = client.collection.leases()
    columns = ("lease", "timestamp", "acquired", "silent", "ttl", "label")
    return Rows(columns, [_row(each) for each in leases], [_record(each) for each in leases])


@command(
    "lease end",
    examples="""
        cortado lease end 9f86d081884c7d659a2feaa0c55ad015
    """,
)
def end(
    session: Session, lease_id: Annotated[str, Argument(help="The lease, as lease list shows it.", metavar="LEASE")]
) -> Answer:
    """End a lease: the versions that it keeps may be collected.

    With roles on, operators may end leases of other principals. The holder gets LEASE_EXPIRED at its next use of the
    lease, and SNAPSHOT_TOO_OLD for reads that need collected versions.
    """
    with session.client() as client:
        if not client.collection.end_lease(lease_id):
            raise NotFound("lease", lease_id)
    return Said(f"the lease {lease_id} has ended", {"lease_id": lease_id})


def _row(lease: HeldLease) -> tuple[str, ...]:
    silent, ttl = f"{lease.silent_s:.0f} s", f"{lease.ttl_s:g} s"
    return lease.lease_id, moment(lease.timestamp), moment(lease.acquired), silent, ttl, shown_label(lease) or "-"


def shown_label(lease: HeldLease) -> str:
    """Return the lease's holder and its reason."""
    consumer = f"consumer {lease.consumer}" if lease.consumer else ""
    principal = f"principal {lease.principal}" if lease.principal else ""
    return ", ".join(filter(None, (lease.label, consumer, lease.owner, principal)))


def _record(lease: HeldLease) -> dict[str, Any]:
    return {
        "lease_id": lease.lease_id,
        "timestamp": str(lease.timestamp),
        "acquired": str(lease.acquired),
        "silent_s": lease.silent_s,
        "ttl_s": lease.ttl_s,
        "label": lease.label,
        "consumer": lease.consumer,
        "owner": lease.owner,
        "principal": lease.principal,
    }
