"""Rows that change together: from the changes of rows to the mutations of one commit.

Uniqueness is judged on the *final* state: a batch may move a unique value from one row to another in any order, since
only what is there after the commit can collide. That leaves two ways to collide, both found here: with another row of
the batch, and with a row that the batch does not touch, whose entry the reader holds and nobody removes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

from cortado.errors import UniqueViolation
from cortado.store.catalog.descriptors import IndexDescriptor
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.transacting import Origin
from cortado.store.tables import indexes
from cortado.store.tables.rows import key_values, show_values
from cortado.store.tables.view import TableView


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row's step from ``old`` to ``new`` (documents in the newest version; None: no row).

    ``payload`` is the new row's, None for a delete. ``old`` may stay None where the table has no index.
    """

    view: TableView
    primary_key: bytes
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    payload: bytes | None
    row: int = 0

    @property
    def row_key(self) -> LogicalKey:
        return self.view.row_key(self.primary_key)


def mutations_of(origin: Origin, changes: Collection[RowChange]) -> Mutations:
    """Rows and index entries to write. No two changes are of one row. Raises UniqueViolation, WriteConflict,
    KeyTooLong."""
    removed: dict[LogicalKey, None] = {}
    added: dict[LogicalKey, tuple[indexes.IndexEntry, RowChange]] = {}
    for change in changes:
        step = indexes.update(change.view.table, change.primary_key, change.old, change.new)
        removed.update(dict.fromkeys(step.removed))
        for entry in step.added:
            if entry.key in added:
                other = added[entry.key][1]
                _collide(origin, entry.index, change, other.primary_key, other.row_key)
            added[entry.key] = (entry, change)
    _check_unique(origin, removed, added)

    mutations = Mutations()
    for change in changes:
        mutations.keys.append(change.row_key)
        mutations.payloads.append(change.payload)
    for key in removed:
        if key not in added:
            mutations.delete(key)
    for key, (entry, _) in added.items():
        mutations.put(key, entry.payload)
    return mutations


def _check_unique(
    origin: Origin,
    removed: Mapping[LogicalKey, None],
    added: Mapping[LogicalKey, tuple[indexes.IndexEntry, RowChange]],
) -> None:
    wanted = [key for key, (entry, _) in added.items() if entry.exclusive and key not in removed]
    for key, holder in zip(wanted, origin.reader.get_many(wanted) if wanted else (), strict=True):
        if holder is not None:
            entry, change = added[key]
            _collide(origin, entry.index, change, holder.payload, key)


def _collide(
    origin: Origin, index: IndexDescriptor, change: RowChange, existing_primary_key: bytes, existing: LogicalKey
) -> Never:
    """Refuse ``change``: its value belongs to another row, of which ``existing`` says so."""
    violation = unique_violation(index, change, existing_primary_key)
    # What an add comes to rests on the row itself, too.
    keys = [existing, change.row_key]
    origin.refuse(violation, keys, partial(change.view.show_key, change.primary_key), change.row)


def unique_violation(index: IndexDescriptor, change: RowChange, existing_primary_key: bytes) -> UniqueViolation:
    """The refusal of ``change``, whose value in ``index`` belongs to another row."""
    view = change.view
    values = key_values(change.new or {}, index.parts)
    return UniqueViolation(
        index=index.name,
        values=show_values(values, index.parts),
        key=view.show_key(change.primary_key),
        existing_key=view.show_key(existing_primary_key),
        row=change.row,
    )
