"""Key ranges that cut a table into parts of about equal numbers of rows, or of bytes: a Spark job's partitions.

The boundaries are keys of stored rows, found by one of :mod:`cortado.store.mvcc.weighed_split`'s ways. Here they become
bounds that a caller can scan with: whole primary keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.keys.keyspace import primary_key_of
from cortado.store.keys.types import KeyValue
from cortado.store.mvcc.split import Part
from cortado.store.tables.view import TableView

PARTS_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class TablePart:
    """The rows in ``[lower, upper)``, about ``rows`` of them; None is an open side."""

    lower: Sequence[KeyValue] | None
    upper: Sequence[KeyValue] | None
    rows: int


def check_parts(parts: int) -> int:
    """Return ``parts``. Raises InvalidArgument if that many parts cannot be asked for."""
    if not 1 <= parts <= PARTS_MAX:
        raise InvalidArgument("parts", f"must be between 1 and {PARTS_MAX}", str(parts))
    return parts


def table_parts(
    view: TableView,
    parts: Sequence[Part],
    lower: Sequence[KeyValue] | None = None,
    upper: Sequence[KeyValue] | None = None,
) -> list[TablePart]:
    """Return the range ``[lower, upper)`` as it was divided: adjacent parts, in order, that together are all of it."""
    starts = [lower or None, *(view.decode_key(primary_key_of(part.start)) for part in parts[1:]), upper or None]
    return [TablePart(start, end, part.rows) for part, (start, end) in zip(parts, pairwise(starts), strict=True)]
