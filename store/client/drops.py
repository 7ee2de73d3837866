"""Tables, databases and namespaces that go away and come back, as values."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.proto.v1 import tables_pb2
from cortado.store.client.arguments import whole
from cortado.store.client.values import timestamp_of
from cortado.store.clock.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class DropRecord:
    """An item dropped at ``ts`` and not cleared yet.

    ``kind`` is "table", "truncated", "index", "database" or "namespace"; ``retention_ms`` is the table's, and the
    grace: 0 for the cluster's, -1 for ever. A record ``is_clearing`` once the grace is over. ``dropped_with`` is the
    number of the database that a table went with, or 0.
    """

    number: int
    kind: str
    name: str
    ts: Timestamp
    retention_ms: int
    table_id: int
    dropped_with: int
    is_clearing: bool


@dataclass(frozen=True, slots=True)
class DroppedDatabase:
    """A database's record, and the full names of the tables that were dropped with it."""

    record: DropRecord
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UndroppedDatabase:
    """A database that came back: the full names of its tables, and of those that are being cleared and did not."""

    database: str
    tables: tuple[str, ...]
    cleared: tuple[str, ...]


def record_number(number: int | None) -> int:
    """Return the number as the API has it, 0 for None. Raises InvalidArgument."""
    return 0 if number is None else whole(number, "number", 1, (1 << 32) - 1)


def record_from_proto(record: tables_pb2.Dropped) -> DropRecord:
    return DropRecord(
        number=record.number,
        kind=tables_pb2.DropKind.Name(record.kind).removeprefix("DROP_KIND_").lower(),
        name=record.name,
        ts=timestamp_of(record.dropped),
        retention_ms=record.retention_ms,
        table_id=record.table_id,
        dropped_with=record.dropped_with,
        is_clearing=record.is_clearing,
    )
