"""A commit against the newest state: all of its operations, or the reason why none.

::

    footprint unchanged since start? ──► operations in order ──► written keys unchanged? ──► mutations: the net change
              │ no                             │ refused                 │ no
              ▼                                ▼                         ▼
        WriteConflict            a refusal, or WriteConflict       WriteConflict

The rules are numbered as in docs/adr/0034-transactions.md:

- **T1** no other writer has written the transaction's keys since it began; **T2** deletes count;
- **T4, T5** the keys and the ranges of its footprint are unchanged, too;
- **T3** all of that is looked for in the stored versions and in those in flight: the reader has both;
- **T15** the names of the tables that it reads or writes mean the tables that they meant;
- **T12** an add is worked out from the newest value, and no conflict, unless its key is written or read otherwise.

A refusal that rests on versions that the transaction could have seen is final; one that rests on newer versions is a
conflict (:mod:`cortado.store.mvcc.transacting`). Everything is evaluated where the commit is appended, so nothing comes
between the checks and the writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from itertools import count
from types import MappingProxyType
from typing import Final, assert_never

from cortado.errors import InvalidArgument, TimestampInFuture, TooLarge
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import key_names
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.batches import KvBatch
from cortado.store.kv.operations import KvAdd, KvCheck, KvDelete, KvPut
from cortado.store.kv.stage import PairStage
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.transacting import Origin, conflict_of
from cortado.store.tables.operations import Add, Check, Delete, Put, Update
from cortado.store.tables.operations import Operation as RowOperation
from cortado.store.tables.prepared import PreparedDocument
from cortado.store.tables.stage import RowStage
from cortado.store.tables.view import TableView
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.limits import LARGEST, TransactionLimits
from cortado.store.transactions.operations import (
    Commit,
    Committed,
    OnPairs,
    Operation,
)

Prepared = Mapping[int, PreparedDocument | None]
NOTHING_PREPARED: Final[Prepared] = MappingProxyType({})


def evaluate_commit(
    reader: Reader,
    commit_ts: Timestamp,
    catalog: Catalog,
    commit: Commit,
    prepared: Prepared = NOTHING_PREPARED,
    decoded_bytes_max: int | None = None,
) -> Evaluation:
    """Evaluate a commit; reply: :class:`Committed`. ``prepared`` saves reading the documents of the puts at these
    places.

    Raises WriteConflict, SnapshotTooOld, and the refusals of operations, each error with its operation's place:
    NotFound, InvalidArgument, ConditionFailed, OutOfBounds, UniqueViolation. ResourceExhausted, as
    :meth:`Reader.changed_since` does, and :meth:`Origin.decode` above ``decoded_bytes_max``.
    """
    if commit.start is not None:
        catalog = catalog.unchanged_since(commit.start)
        check_start(commit.start, commit_ts)
        check_tables(catalog, commit.footprint)
        check_keys(reader, commit.footprint, commit.start, commit.unchanged_to)
        check_ranges(reader, commit.footprint, commit.start, commit.unchanged_to)
    staged = Staged(Origin(reader, commit.start, decoded_bytes_max), catalog, commit.limits)
    staged.run(commit.operations, prepared)
    check_operations(staged.count, commit.limits)
    staged.check_written()
    return Evaluation(staged.mutations(), Committed(commit_ts, tuple(staged.sums)))


def check_operations(count: int, limits: TransactionLimits = LARGEST, field: str = "operations") -> None:
    """Raise InvalidArgument if there are no operations, TooLarge if there are more than a commit may have."""
    if count == 0:
        raise InvalidArgument(field, "must not be empty")
    most = limits.operations_max
    if count > most:
        raise TooLarge(field, f"a transaction may have {most} operations", str(count), count, most)


def check_start(start: Timestamp, commit_ts: Timestamp) -> None:
    """Raise TimestampInFuture if ``start`` is not below the commit: no version is newer than a future time, so no
    conflict would be found."""
    if start >= commit_ts:
        raise TimestampInFuture("start", "is a timestamp that no read here has had", str(start), str(commit_ts))


def check_tables(catalog: Catalog, footprint: Footprint) -> None:
    """T15, of a catalogue that knows the transaction's start. Raises WriteConflict."""
    for each in footprint.tables:
        catalog.check_still(each.database, each.name, each.table_id)


def check_keys(reader: Reader, footprint: Footprint, start: Timestamp, unchanged_to: Timestamp | None = None) -> None:
    """T4; up to ``unchanged_to`` the keys were looked up. Raises WriteConflict, ResourceExhausted."""
    if footprint.keys:
        since = start if unchanged_to is None else max(start, unchanged_to)
        conflict_of(reader.changed_since(footprint.keys, (), since), start, "read", footprint.names)


def check_ranges(reader: Reader, footprint: Footprint, start: Timestamp, unchanged_to: Timestamp | None) -> None:
    """T5; up to ``unchanged_to`` the ranges were searched. Raises WriteConflict, ResourceExhausted."""
    if footprint.ranges:
        since = start if unchanged_to is None else max(start, unchanged_to)
        conflict_of(reader.changed_since((), footprint.ranges, since), start, "range", footprint.names)


class Staged:
    """The effect of operations on a state: the documents and pairs that are left, before and after a commit."""

    def __init__(
        self, origin: Origin, catalog: Catalog, limits: TransactionLimits = LARGEST, field: str = "operations"
    ) -> None:
        """``field`` is what errors call the operations."""
        self._field = field
        self._bytes_max = limits.bytes_max
        self._origin = origin
        self._catalog = catalog
        self._rows = RowStage(origin)
        self._pairs = PairStage(origin, catalog)
        self._views: dict[tuple[str, str], TableView] = {}
        self._size_bytes = 0
        self._place = self._row = 0
        self.written: dict[LogicalKey, int] = {}
        """The keys of all rows and pairs that were put, updated or deleted, with any outcome, and the last operation on
        each."""
        self.added: dict[LogicalKey, None] = {}
        """The keys of all rows that were added to."""
        self.sums: list[int] = []

    @property
    def count(self) -> int:
        """How many operations have been run."""
        return self._row

    def run(self, operations: Iterable[Operation], prepared: Prepared = NOTHING_PREPARED) -> None:
        """All of them, or the next ones, each as it is taken, so that the first wrong one is named. Raises as
        :func:`evaluate_commit`, TooLarge above the limit of bytes."""
        for operation in operations:
            row = self._row
            try:
                if isinstance(operation, OnPairs):
                    self._on_pairs(operation, row)
                else:
                    self._on_rows(operation, row, prepared.get(self._place))
            except InvalidArgument as error:
                place_of = "" if error.field.startswith("[") else f"[{row}]."
                joined = f"{self._field}{place_of}{error.field}".rstrip(".")
                raise dataclasses.replace(error, field=joined) from error
            if self._size_bytes > self._bytes_max:
                problem = f"a transaction may write {self._bytes_max} bytes of documents, keys and values"
                raise TooLarge(self._field, problem, f"more at operation {row}", self._size_bytes, self._bytes_max)
            self._place += 1
            self._row += operation.count if isinstance(operation, OnPairs) else 1

    def check_written(self) -> None:
        """T1. Raises WriteConflict."""
        start = self._origin.start
        if start is not None:
            changed = self._origin.reader.changed_since(list(self.written), (), start)
            names = key_names(view.table for view in self._views.values())
            conflict_of(changed, start, "write", names, self.written)

    def mutations(self) -> Mutations:
        """Return the net change. Raises UniqueViolation, WriteConflict, KeyTooLong."""
        pairs = self._pairs.mutations()
        rows = self._rows.mutations()
        return Mutations(rows.keys + pairs.keys, rows.payloads + pairs.payloads, rows.expiries | pairs.expiries)

    def _on_rows(self, operation: RowOperation, row: int, prepared: PreparedDocument | None) -> None:
        view = self._view(operation.database, operation.table)
        match operation:
            case Put():
                change = self._rows.put(view, operation, row, prepared)
                self.written[change.row_key] = row
                self._size_bytes += len(change.payload or b"")
            case Update():
                change = self._rows.update(view, operation, row)
                self.written[change.row_key] = row
                self._size_bytes += len(change.payload or b"")
            case Delete():
                self._rows.delete(view, operation, row)
                self.written[view.row_key(view.encode_key(operation.key))] = row
            case Add():
                total, change = self._rows.add(view, operation, row)
                self.added[change.row_key] = None
                self.sums.append(total)
                self._size_bytes += len(change.payload or b"")
            case Check():
                self._rows.check(view, operation, row)
            case _:
                assert_never(operation)

    def _on_pairs(self, on_pairs: OnPairs, row: int) -> None:
        namespace, operation = on_pairs.namespace, on_pairs.operation
        match operation:
            case KvPut():
                self.written[self._pairs.put(namespace, operation, row)] = row
                self._size_bytes += len(operation.key) + len(operation.value)
            case KvDelete():
                self.written[self._pairs.delete(namespace, operation, row)] = row
            case KvAdd():
                self.sums.append(self._pairs.add(namespace, operation, row))
            case KvCheck():
                self._pairs.check(namespace, operation, row)
            case KvBatch():
                self.written.update(zip(self._pairs.batch(namespace, operation, row), count(row), strict=False))
                self._size_bytes += operation.size_bytes
            case _:
                assert_never(operation)

    def _view(self, database: str, table: str) -> TableView:
        view = self._views.get((database, table))
        if view is None:
            view = self._views[database, table] = TableView(self._catalog, database, table)
        return view
