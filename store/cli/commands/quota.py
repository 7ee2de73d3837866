"""``cortado quota``: how much may be asked, and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.numbers import size, whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.quotas.limits import BYTES_PER_SECOND_MAX, CALLS_PER_SECOND_MAX, STORED_BYTES_MAX
from cortado.store.settings.sizes import size_text

if TYPE_CHECKING:
    from cortado.store.client import QuotaInfo

_CALLS, _BYTES, _STORED = "--calls-per-second", "--bytes-per-second", "--stored-bytes"
_Target = Annotated[
    str, Argument(help="The target: principal:NAME, database:NAME or namespace:NAME.", metavar="TARGET")
]


@command(
    "quota set",
    examples="""
        cortado quota set principal:reports --calls-per-second 200 --bytes-per-second 20MiB
        cortado quota set database:shop --stored-bytes 50GiB
    """,
)
def set_(
    session: Session,
    target: _Target,
    calls_per_second: Annotated[
        int | None,
        Option(
            _CALLS,
            help="Calls that read or write data, a second, on each node.",
            parser=whole(_CALLS, 1, CALLS_PER_SECOND_MAX),
            metavar="COUNT",
        ),
    ] = None,
    bytes_per_second: Annotated[
        int | None,
        Option(
            _BYTES,
            help="Bytes of their requests and replies, a second, on each node, such as 20MiB.",
            parser=size(_BYTES, 1, BYTES_PER_SECOND_MAX),
            metavar="SIZE",
        ),
    ] = None,
    stored_bytes: Annotated[
        int | None,
        Option(
            _STORED,
            help="Stored bytes of a database or a namespace, such as 50GiB.",
            parser=size(_STORED, 1, STORED_BYTES_MAX),
            metavar="SIZE",
        ),
    ] = None,
) -> Answer:
    """Set a quota in place of the one before. Limits that are not given are removed.

    The target need not exist yet: the quota holds for its name. Each node counts the calls that it serves, so three
    nodes together serve up to three times the rate. Calls over the quota are refused with QUOTA_EXCEEDED and a delay,
    and have no effect.
    """
    if calls_per_second is None and bytes_per_second is None and stored_bytes is None:
        raise InvalidArgument(_CALLS, f"must be given, or {_BYTES}, or {_STORED}")
    with session.client() as client:
        client.admin.quotas.set(
            target,
            calls_per_second=calls_per_second,
            bytes_per_second=bytes_per_second,
            stored_bytes=stored_bytes,
        )
    record = {
        "target": target,
        "calls_per_second": calls_per_second,
        "bytes_per_second": bytes_per_second,
        "stored_bytes": stored_bytes,
    }
    return Said(f"set the quota of {target}", record)


@command(
    "quota list",
    examples="""
        cortado quota list
        cortado quota list database:shop -o json
    """,
)
def list_(
    session: Session,
    target: Annotated[
        str | None,
        Argument(help="List this quota alone: principal:NAME, database:NAME or namespace:NAME.", metavar="TARGET"),
    ] = None,
) -> Answer:
    """List all quotas, or one, and their use as the leader knows it: stored bytes and refused calls.

    Exit code 3 if the named quota does not exist.
    """
    with session.client() as client:
        found = client.admin.quotas.all() if target is None else [client.admin.quotas.get(target)]
    columns = ("target", "calls/s", "bytes/s", "stored", "used", "refused")
    return Rows(columns, [_row(each) for each in found], [_record(each) for each in found])


@command("quota remove", examples="cortado quota remove database:shop")
def remove(session: Session, target: _Target) -> Answer:
    """Remove a quota. Calls that wait for it continue."""
    with session.client() as client:
        client.admin.quotas.remove(target)
    return Said(f"removed the quota of {target}", {"target": target})


def _row(quota: QuotaInfo) -> tuple[Any, ...]:
    calls = "-" if quota.calls_per_second is None else quota.calls_per_second
    sizes = (quota.bytes_per_second, quota.stored_bytes, quota.used_bytes)
    return (quota.target, calls, *("-" if each is None else size_text(each) for each in sizes), quota.refused)


def _record(quota: QuotaInfo) -> dict[str, Any]:
    return {
        "target": quota.target,
        "calls_per_second": quota.calls_per_second,
        "bytes_per_second": quota.bytes_per_second,
        "stored_bytes": quota.stored_bytes,
        "used_bytes": quota.used_bytes,
        "refused": quota.refused,
    }
