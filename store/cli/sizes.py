"""Sizes of tables and databases, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortado.store.sizes import size_text

if TYPE_CHECKING:
    from cortado.store.client import Size, TableSize


def count_text(size: Size | None) -> str:
    """Such as "1,234", or "~1,234,567" where that is an estimate."""
    return "-" if size is None else f"{'~' if size.is_estimated else ''}{size.count:,}"


def bytes_text(size: TableSize | Size | None) -> str:
    """Such as "12 MiB"; "-" of what may not be read."""
    return "-" if size is None else size_text(size.bytes)


def size_json(size: TableSize | None) -> dict[str, Any] | None:
    """Of a table; None of one that may not be read."""
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
