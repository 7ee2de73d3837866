"""Index entries of many rows at once: the columnar twin of :mod:`cortado.store.tables.indexes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cortado.schema.columnar.column import Column
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.keys.bulk import index_keys
from cortado.store.keys.columns import nulls_of
from cortado.store.keys.types import LogicalKey
from cortado.store.tables.indexes import IndexEntry, index_label


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """One index's entry for each of many rows: parallel lists. ``exclusive`` is as in :class:`IndexEntry`."""

    index: IndexDescriptor
    keys: list[LogicalKey]
    exclusive: list[bool]

    def entry(self, row: int, primary_key: bytes) -> IndexEntry:
        return IndexEntry(self.index, self.keys[row], primary_key if self.index.unique else b"", self.exclusive[row])

    def payloads(self, primary_keys: Sequence[bytes], rows: Sequence[int]) -> list[bytes]:
        """Return the payloads of the entries of these rows."""
        return [primary_keys[row] for row in rows] if self.index.unique else [b""] * len(rows)


def indexed_paths(indexes: Iterable[IndexDescriptor]) -> list[str]:
    """Return paths of all fields that these indexes are of, each once."""
    return list(dict.fromkeys(part.path for index in indexes for part in index.parts))


def entries_of_columns(
    table: TableDescriptor,
    indexes: Sequence[IndexDescriptor],
    columns: Mapping[str, Column],
    primary_keys: Sequence[bytes],
) -> list[IndexEntries]:
    """Return the entries of rows with these columns, one item for each of the table's ``indexes`` given.

    Raises InvalidArgument (KeyTooLong for one) at the first row that cannot have an entry, without saying which.
    """
    values = {path: columns[path].key_values() for path in indexed_paths(indexes)}
    found = []
    for index in indexes:
        parts = [values[part.path] for part in index.parts]
        keys = index_keys(
            table.table_id,
            index.index_id,
            index.parts,
            parts,
            primary_keys,
            unique=index.unique,
            what=index_label(table, index),
        )
        exclusive = [index.unique] * len(primary_keys)
        if index.unique:
            for column in parts:
                is_null = nulls_of(column)
                for row in () if is_null is None else np.flatnonzero(is_null).tolist():
                    exclusive[row] = False
        found.append(IndexEntries(index, keys, exclusive))
    return found
