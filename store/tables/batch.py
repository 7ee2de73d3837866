"""Rows that change together: from the changes of rows to the mutations of one commit.

Uniqueness is judged on the *final* state: a batch may move a unique value from one row to another in any order, since
only rows that are there after the commit can collide. That leaves two ways to collide, both found here: with another
row of the batch, and with a row outside of the batch, whose entry the reader holds and no change removes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

from cortado.errors import InvalidArgument, UniqueViolation
from cortado.store.catalog.descriptors import IndexDescriptor
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.transacting import Origin
from cortado.store.tables import indexes
from cortado.store.tables.building import BuildFailures, CannotBuild, is_building
from cortado.store.tables.rows import key_values, show_values
from cortado.store.tables.view import TableView


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row's step from ``old`` to ``new`` (documents in the newest version; None: no row).

    ``payload`` is the new row's, None for a delete. ``old`` may stay None if the table has no index. The old row
    expires at ``old_expires_ms``, the new one at ``expires_ms``; 0 for never.
    """

    view: TableView
    primary_key: bytes
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    payload: bytes | None
    row: int = 0
    old_expires_ms: int = 0
    expires_ms: int = 0

    @property
    def row_key(self) -> LogicalKey:
        return self.view.row_key(self.primary_key)


def mutations_of(origin: Origin, changes: Collection[RowChange], failures: BuildFailures) -> Mutations:
    """Return rows and index entries to write. No two changes are of one row. ``failures`` takes the indexes that cannot
    be built with these rows. Raises UniqueViolation, WriteConflict, KeyTooLong."""
    while True:
        try:
            entries = _Entries(origin, changes, failures)
            break
        except CannotBuild as found:
            failures.add(found)
    mutations = Mutations()
    for change in changes:
        if change.payload is None:
            mutations.delete(change.row_key)
        else:
            mutations.put(change.row_key, change.payload, change.expires_ms)
    for key in entries.removed:
        if key not in entries.added:
            mutations.delete(key)
    for key, (entry, change) in entries.added.items():
        mutations.put(key, entry.payload, change.expires_ms)
    failures.record(mutations)
    return mutations


class _Entries:
    """The entries that go and those that come with some changes, of the indexes that have not failed."""

    def __init__(self, origin: Origin, changes: Collection[RowChange], failures: BuildFailures) -> None:
        """Raises CannotBuild, and as :func:`mutations_of`."""
        self._origin = origin
        self.removed: dict[LogicalKey, None] = {}
        self.added: dict[LogicalKey, tuple[indexes.IndexEntry, RowChange]] = {}
        # For unique indexes that are being built: by entry, the rows that had its values.
        self._given_up: dict[LogicalKey, set[bytes]] = {}
        for change in changes:
            for index in failures.indexes(change.view):
                self._take(change, index)
        self._remove_own()
        self._check_unique()

    def _take(self, change: RowChange, index: IndexDescriptor) -> None:
        try:
            step = indexes.update(change.view.table, index, change.primary_key, change.old, change.new)
            if step.stays is not None and change.old_expires_ms != change.expires_ms:
                # Row and entries disappear together: the entry is written anew.
                step = indexes.IndexChange(step.stays.key, step.stays)
        except InvalidArgument as refusal:
            if not is_building(index):
                raise
            row = change.view.show_key(change.primary_key)
            raise CannotBuild(change.view, index, refusal.message(), [row]) from refusal
        if step.removed is not None:
            if index.unique and is_building(index):
                self._given_up.setdefault(step.removed, set()).add(change.primary_key)
            else:
                self.removed[step.removed] = None
        if step.added is not None:
            if step.added.key in self.added:
                other = self.added[step.added.key][1]
                _collide(self._origin, index, change, other.primary_key, other.row_key)
            self.added[step.added.key] = step.added, change

    def _remove_own(self) -> None:
        """While an index is built, an entry of a row's values may be another row's."""
        keys = list(self._given_up)
        for key, holder in zip(keys, self._origin.reader.get_many(keys) if keys else (), strict=True):
            if holder is not None and holder.payload in self._given_up[key]:
                self.removed[key] = None

    def _check_unique(self) -> None:
        wanted = [key for key, (entry, _) in self.added.items() if entry.exclusive and key not in self.removed]
        for key, holder in zip(wanted, self._origin.reader.get_many(wanted) if wanted else (), strict=True):
            if holder is not None:
                entry, change = self.added[key]
                _collide(self._origin, entry.index, change, holder.payload, key)


def _collide(
    origin: Origin, index: IndexDescriptor, change: RowChange, existing_primary_key: bytes, existing: LogicalKey
) -> Never:
    """Refuse ``change``: its value belongs to another row, as the entry ``existing`` says."""
    violation = unique_violation(index, change, existing_primary_key)
    if is_building(index):
        raise CannotBuild(change.view, index, violation.message(), [violation.key, violation.existing_key])
    # The result of an add rests on the row itself, too.
    keys = [existing, change.row_key]
    origin.refuse(violation, keys, partial(change.view.show_key, change.primary_key), change.row)


def unique_violation(index: IndexDescriptor, change: RowChange, existing_primary_key: bytes) -> UniqueViolation:
    """Return the refusal of ``change``: its value in ``index`` belongs to another row."""
    view = change.view
    values = key_values(change.new or {}, index.parts)
    return UniqueViolation(
        index=index.name,
        values=show_values(values, index.parts),
        key=view.show_key(change.primary_key),
        existing_key=view.show_key(existing_primary_key),
        row=change.row,
    )
