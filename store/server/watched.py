"""What a watch began with, a table or the pairs of a namespace, and whether that is still there.

A watch is of a table, not of a name: it goes on where the table is renamed. It ends where the table was dropped or
truncated, once all changes up to then were handed over. A table that was undropped meanwhile never went away.

So it is with a namespace and its generation, which ends where the namespace is dropped, or where an earlier one is
undropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from cortado.errors import NotFound
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import DropKind, TableDescriptor
from cortado.store.catalog.generations import generation_of
from cortado.store.catalog.namespaces import dropped_generation
from cortado.store.clock.timestamp import ZERO, Timestamp

_ENDS = {DropKind.TABLE: "dropped", DropKind.TRUNCATED: "truncated"}


class Watched(ABC):
    """Looks at the newest catalogue after each batch, which costs a look at the time of its last change."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog
        self._seen = ZERO
        self._ended: tuple[Timestamp, NotFound] | None = None

    def check(self, resolved: Timestamp) -> None:
        """All up to ``resolved`` was handed over. Raises NotFound where what is watched ended there or before."""
        catalog = self._catalog()
        if catalog.changed_ts != self._seen:
            self._seen = catalog.changed_ts
            self._ended = self._end(catalog)
        if self._ended is not None and resolved >= self._ended[0]:
            raise self._ended[1]

    @abstractmethod
    def _end(self, catalog: Catalog) -> tuple[Timestamp, NotFound] | None:
        """When it ended and how; None where it is still there."""


class WatchedTable(Watched):
    """A table, perhaps under another name by now."""

    def __init__(self, catalog: Callable[[], Catalog], table: TableDescriptor) -> None:
        super().__init__(catalog)
        self._table = table

    def _end(self, catalog: Catalog) -> tuple[Timestamp, NotFound] | None:
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


class WatchedNamespace(Watched):
    """A generation of a namespace."""

    def __init__(self, catalog: Callable[[], Catalog], namespace: str, generation: int) -> None:
        super().__init__(catalog)
        self._namespace = namespace
        self._generation = generation

    def _end(self, catalog: Catalog) -> tuple[Timestamp, NotFound] | None:
        name = self._namespace
        if generation_of(catalog.reader, name) == self._generation:
            return None
        for each in catalog.dropped():
            is_its = each.what.kind is DropKind.NAMESPACE and each.what.name == name
            if is_its and dropped_generation(each) == self._generation:
                return each.dropped_ts, NotFound("namespace", f"{name}, which was dropped at {each.dropped_ts}")
        # Its record is gone already, or it was empty, and others were undropped in its place.
        return catalog.changed_ts, NotFound("namespace", f"{name}, whose pairs were dropped or undropped")
