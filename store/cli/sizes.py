"""Sizes of tables and databases, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortado.store.settings.sizes import count_text, size_text

if TYPE_CHECKING:
    from cortado.store.client import DatabaseSize, Size, TableSize


def rows_text(size: Size | None) -> str:
    """Return the number of rows; "-" without the right to read it."""
    return "-" if size is None else count_text(size.count, is_estimated=size.is_estimated)


def bytes_text(size: TableSize | Size | None) -> str:
    """Return a size such as "12 MiB"; "-" without the right to read it."""
    return "-" if size is None else size_text(size.bytes)


def size_json(size: TableSize | None) -> dict[str, Any] | None:
    """Return a table's size as JSON; None without the right to read it."""
    if size is None:
        return None
    return {
        "rows": size.rows.count,
        "rows_estimated": size.rows.is_estimated,
        "bytes": size.bytes,
        "row_bytes": size.rows.bytes,
        "indexes": [
            {"name": name, "entries": each.count, "entries_estimated": each.is_estimated, "bytes": each.bytes}
            for name, each in size.indexes.items()
        ],
    }


def database_json(size: DatabaseSize | None) -> dict[str, Any] | None:
    """Return a database's size as JSON; None without the right to read it."""
    if size is None:
        return None
    rows = size.rows
    return {"tables": size.tables, "rows": rows.count, "rows_estimated": rows.is_estimated, "bytes": rows.bytes}
