"""Repair of indexes: mends a check's findings through the log.

The check reads a state of the past, and says which rows and which entries are suspect. The repair is a write: it reads
each of them in the *newest* state, puts the entry that a row lacks and deletes the entry that no row has. It never
touches a row. An entry that is right by then stays as it is. Two rows that share a value of a unique index cannot both
have the entry, so that is left to an operator that decides which one is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cortado.errors import DataLoss, InvalidArgument, NotFound
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor, IndexState
from cortado.store.keys.keyspace import is_of_index, primary_key_of, primary_key_of_entry
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.tables.check import dropped_indexes, index_id_of
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.entries import entries_of_columns, indexed_paths
from cortado.store.tables.view import TableView

REPAIRED_MAX: Final = 500
"""Suspects that one write looks at."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The reply of :func:`evaluate_repair`: entries that were put and deleted, and suspects that are still wrong."""

    put: int
    deleted: int
    left: int


def evaluate_repair(
    reader: Reader, catalog: Catalog, database: str, table: str, suspects: Sequence[LogicalKey]
) -> Evaluation:
    """``suspects`` are keys of rows and of entries. Replies Repaired. Raises NotFound (database, table), DataLoss."""
    repair = _Repair(
        reader, TableView(catalog, database, table), dropped_indexes(catalog, catalog.table(database, table))
    )
    for key in dict.fromkeys(suspects):
        if is_of_index(key):
            repair.entry(key)
        else:
            repair.row(key)
    mutations = Mutations(list(repair.changes), list(repair.changes.values()), repair.expiries)
    deleted = sum(payload is None for payload in repair.changes.values())
    return Evaluation(mutations, Repaired(len(mutations) - deleted, deleted, repair.left))


class _Repair:
    """``changes`` are the entries to put and to delete; ``expiries`` those of the ones that expire."""

    def __init__(self, reader: Reader, view: TableView, dropped: frozenset[int]) -> None:
        self._reader = reader
        self._view = view
        self._dropped = dropped
        self._indexes = [each for each in view.table.indexes if each.state is IndexState.READY]
        self.changes: dict[LogicalKey, bytes | None] = {}
        self.expiries: dict[LogicalKey, int] = {}
        self.left = 0

    def row(self, row_key: LogicalKey) -> None:
        """Put the entries that a row lacks, or that expire at another time than it does."""
        version = self._reader.get(row_key)
        try:
            wanted = self._entries_of(row_key, self._indexes)
        except (InvalidArgument, NotFound, DataLoss):
            self.left += 1
            return
        for index, key in zip(self._indexes, wanted, strict=False):
            payload = primary_key_of(row_key) if index.unique else b""
            held = self.changes.get(key)
            stored = self._reader.get(key) if held is None else None
            there = held if stored is None else stored.payload
            expires_ms = 0 if version is None else version.expires_ms
            if there == payload and (stored is None or stored.expires_ms == expires_ms):
                continue
            if there and index.unique and self._has(self._view.row_key(there), index, key):
                self.left += 1
            else:
                self.changes[key] = payload
                if expires_ms:
                    self.expiries[key] = expires_ms

    def entry(self, key: LogicalKey) -> None:
        """Delete an entry that its row should not have."""
        index_id = index_id_of(key)
        index = next((each for each in self._view.table.indexes if each.index_id == index_id), None)
        stored = self._reader.get(key)
        is_unread = index_id in self._dropped or (index is not None and index not in self._indexes)
        if stored is None or is_unread or self.changes.get(key) is not None:
            return
        if index is not None:
            try:
                primary_key = primary_key_of_entry(key, stored.payload, len(index.parts), unique=index.unique)
                self._view.decode_key(primary_key)
            except DataLoss:
                primary_key = b""
            if primary_key and self._has(self._view.row_key(primary_key), index, key):
                return
        self.changes[key] = None

    def _has(self, row_key: LogicalKey, index: IndexDescriptor, key: LogicalKey) -> bool:
        """Return whether there is such a row, and the entry is its own. A row that cannot be read keeps its entries."""
        try:
            return key in self._entries_of(row_key, [index])
        except (InvalidArgument, NotFound, DataLoss):
            self.left += 1
            return True

    def _entries_of(self, row_key: LogicalKey, indexes: Sequence[IndexDescriptor]) -> list[LogicalKey]:
        """Return a row's entries; none if there is no row."""
        version = self._reader.get(row_key)
        if version is None or not indexes:
            return []
        [(_, columns)] = decode_columns(self._view, [version.payload], self._view.newest, set(indexed_paths(indexes)))
        found = entries_of_columns(self._view.table, indexes, columns, [primary_key_of(row_key)])
        return [each.keys[0] for each in found]
