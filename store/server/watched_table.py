"""The table that a watch began with, and whether it is still there.

A watch is of a table, not of a name: it goes on where the table is renamed. It ends where the table was dropped or
truncated, once all changes up to then were handed over. A table that was undropped meanwhile never went away.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from cortado.errors import NotFound
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import DropKind, TableDescriptor
from cortado.store.clock.timestamp import ZERO, Timestamp

_ENDS = {DropKind.TABLE: "dropped", DropKind.TRUNCATED: "truncated"}


class WatchedTable:
    """Looks at the newest catalogue after each batch, which costs a look at the time of its last change."""

    def __init__(self, catalog: Callable[[], Catalog], table: TableDescriptor) -> None:
        self._catalog = catalog
        self._table = table
        self._seen = ZERO
        self._ended: tuple[Timestamp, NotFound] | None = None

    def check(self, resolved: Timestamp) -> None:
        """All up to ``resolved`` was handed over. Raises NotFound where the table ended there or before."""
        catalog = self._catalog()
        if catalog.changed_ts != self._seen:
            self._seen = catalog.changed_ts
            self._ended = self._end(catalog)
        if self._ended is not None and resolved >= self._ended[0]:
            raise self._ended[1]

    def _end(self, catalog: Catalog) -> tuple[Timestamp, NotFound] | None:
        """When the table ended and how; None where it is still there, perhaps under another name."""
        table = self._table
        with suppress(NotFound):
            if catalog.table(table.database, table.name).table_id == table.table_id:
                return None
        for each in catalog.dropped():
            if each.what.kind in _ENDS and each.what.table_id == table.table_id:
                how = f"{table.full_name}, which was {_ENDS[each.what.kind]} at {each.dropped_ts}"
                return each.dropped_ts, NotFound("table", how)
        for other in catalog.tables():
            if other.table_id == table.table_id:
                self._table = other
                return None
        # The record is gone already: its grace was short.
        return catalog.changed_ts, NotFound("table", f"{table.full_name}, which was dropped")
