"""Writes that an index under construction cannot take.

No write is refused for an index that no caller can read yet. So if an index that is BUILDING would have two rows under
one unique value, or cannot have a row's entry at all, the index fails: the same commit that brings the row makes it
FAILED in the catalogue, and moves no entry of it. From then on no write maintains it.

While an index is being built, not every row has its entry. Two limits for writes follow:

- that a unique value is not there does not mean that no row has it: the backfill will find the second row;
- that a row *had* a unique value does not mean that the entry is its own. It may be of another row that came later, or
  was met earlier: so a row's old entry is removed only if it names that row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cortado.store.catalog import stored
from cortado.store.catalog.descriptors import IndexDescriptor, IndexState
from cortado.store.mvcc.mutations import Mutations
from cortado.store.tables.view import TableView

FAILED_KEYS_MAX: Final = 100
"""Rows that a failed index names."""
_SHOWN_MAX: Final = 200


def is_building(index: IndexDescriptor) -> bool:
    return index.state is IndexState.BUILDING


class CannotBuild(Exception):
    """``index`` cannot take the write, for ``problem``; ``rows`` are for users."""

    def __init__(self, view: TableView, index: IndexDescriptor, problem: str, rows: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.view = view
        self.index = index
        self.problem = problem
        self.rows = rows


def failed(index: IndexDescriptor, problem: str, rows: Sequence[str]) -> IndexDescriptor:
    """Return the index as it is when it could not be built."""
    shown = tuple(each if len(each) <= _SHOWN_MAX else f"{each[:_SHOWN_MAX]}..." for each in rows[:FAILED_KEYS_MAX])
    return replace(index, state=IndexState.FAILED, failure=problem[: 5 * _SHOWN_MAX], failed_keys=shown)


class BuildFailures:
    """Indexes that fail with one commit, of any of its tables."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[TableView, dict[int, IndexDescriptor]]] = {}

    def add(self, found: CannotBuild) -> None:
        view, index = found.view, found.index
        _, indexes = self._found.setdefault(view.table.table_id, (view, {}))
        indexes.setdefault(index.index_id, failed(index, found.problem, found.rows))

    def indexes(self, view: TableView) -> Sequence[IndexDescriptor]:
        """Return the indexes that a write into this table still maintains."""
        if not self._found:
            return view.indexes
        _, gone = self._found.get(view.table.table_id, (view, {}))
        return [index for index in view.indexes if index.index_id not in gone]

    def record(self, mutations: Mutations) -> None:
        """Put the commit's changes of the catalogue."""
        catalog = None
        for view, indexes in self._found.values():
            catalog, table = view.catalog, view.table
            for index in indexes.values():
                table = table.with_index(index)
            mutations.put(stored.table_key(table.database, table.name), stored.encode_table(table))
        if catalog is not None:
            mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
