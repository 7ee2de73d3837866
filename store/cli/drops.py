"""Records of dropped tables and namespaces, as commands show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cortado.store.cli.answers import Rows
from cortado.store.cli.numbers import show_retention

if TYPE_CHECKING:
    from cortado.store.client import DropRecord


def dropped_rows(records: Sequence[DropRecord]) -> Rows:
    """Return a line for each."""
    rows = [
        (
            each.number,
            each.kind,
            each.name,
            each.ts,
            show_retention(each.retention_ms),
            "no: it is being cleared" if each.is_clearing else "no" if each.kind == "index" else "yes",
        )
        for each in records
    ]
    columns = ("number", "kind", "name", "dropped", "grace", "can be undropped")
    return Rows(columns, rows, map(record_json, records))


def record_json(record: DropRecord) -> dict[str, Any]:
    """Return a record of a drop as JSON."""
    return {
        "number": record.number,
        "kind": record.kind,
        "name": record.name,
        "dropped": str(record.ts),
        "retention_ms": record.retention_ms,
        "table_id": record.table_id,
        "dropped_with": record.dropped_with,
        "is_clearing": record.is_clearing,
    }
