"""The subject of a watch, a table or the pairs of a namespace, and its end.

A watch is of a table, not of a name: if the table is renamed it goes on, as long as its caller may read by the new
name. If the table is dropped or truncated it ends, once all changes up to then were handed over. A table that was
undropped meanwhile never went away.

No timestamp from the end on is reported as resolved: a read at it would find no table, or the one that took its place.
A caller that resumes behind it would watch that one, without learning of the end.

The same holds for a namespace's generation: it ends when the namespace is dropped, or when an earlier one is undropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from cortado.errors import NotFound
from cortado.store.auth.roles import Resource, table_resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import DropKind, TableDescriptor
from cortado.store.catalog.namespaces import dropped_generation
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import ZERO, Timestamp

_ENDS = {DropKind.TABLE: "dropped", DropKind.TRUNCATED: "truncated"}


@dataclass(frozen=True, slots=True)
class End:
    """The subject ended at ``ts``; or before, if the exact time is not known any more."""

    ts: Timestamp
    error: NotFound
    is_exact: bool = True

    @property
    def resolved(self) -> Timestamp | None:
        """The timestamp up to which the changes are complete; None if unknown."""
        return self.ts.previous() if self.is_exact else None


class Watched(ABC):
    """Looks at the newest catalog before each batch, which costs a look at the time of its last change."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog
        self._seen = ZERO
        self._ended: End | None = None

    def look(self) -> None:
        """Look for a drop, and for another name. Raises PermissionDenied if the caller may not read by that name."""
        catalog = self._catalog()
        if catalog.changed_ts != self._seen:
            self._seen = catalog.changed_ts
            self._ended = self._end(catalog)

    def ended_by(self, resolved: Timestamp) -> End | None:
        """Return the end of the subject, if it was at ``resolved`` or before. Raises as :meth:`look` does."""
        self.look()
        return self._ended if self._ended is not None and resolved >= self._ended.ts else None

    @abstractmethod
    def _end(self, catalog: Catalog) -> End | None:
        """Return the end of the subject; None if it is still there."""


class WatchedTable(Watched):
    """A table, perhaps under another name by now."""

    def __init__(
        self, catalog: Callable[[], Catalog], table: TableDescriptor, renamed: Callable[[Resource, Resource], None]
    ) -> None:
        """``renamed`` takes its old name and its new one. It raises PermissionDenied if the caller may not read by the
        new one."""
        super().__init__(catalog)
        self._table = table
        self._renamed = renamed

    def _end(self, catalog: Catalog) -> End | None:
        table = self._table
        with suppress(NotFound):
            if catalog.table(table.database, table.name).table_id == table.table_id:
                return None
        for each in catalog.dropped():
            if each.what.kind in _ENDS and each.what.table_id == table.table_id:
                how = f"{table.full_name}, which was {_ENDS[each.what.kind]} at {each.dropped_ts}"
                return End(each.dropped_ts, NotFound("table", how))
        for other in catalog.tables():
            if other.table_id == table.table_id:
                self._table = other
                self._renamed(table_resource(table.database, table.name), table_resource(other.database, other.name))
                return None
        # The record is gone already: its grace was short.
        return End(catalog.changed_ts, NotFound("table", f"{table.full_name}, which was dropped"), is_exact=False)


class WatchedNamespace(Watched):
    """A generation of a namespace."""

    def __init__(self, catalog: Callable[[], Catalog], namespace: str, generation: int) -> None:
        super().__init__(catalog)
        self._namespace = namespace
        self._generation = generation

    def _end(self, catalog: Catalog) -> End | None:
        name = self._namespace
        if generation_of(catalog.reader, name) == self._generation:
            return None
        for each in catalog.dropped():
            is_its = each.what.kind is DropKind.NAMESPACE and each.what.name == name
            if is_its and dropped_generation(each) == self._generation:
                return End(each.dropped_ts, NotFound("namespace", f"{name}, which was dropped at {each.dropped_ts}"))
        # Its record is gone already, or it was empty, and others were undropped in its place.
        gone = NotFound("namespace", f"{name}, whose pairs were dropped or undropped")
        return End(catalog.changed_ts, gone, is_exact=False)
