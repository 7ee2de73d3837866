"""Staging rows for a large transaction, and writes that meet staged rows.

::

    a chunk of rows ── evaluated like a bulk load's, against the newest state ──► rows and entries
                                                                                      │  each under its staged key
    is another's value there?  open: KeyLocked ◄──────────────────────────────────────┤
                               committed: moved to its place, in the same entry       │
                               aborted: taken away, in the same entry                 ▼
                                                                               staged, and locked

- **L7** Only while the record is open.
- **L12** Each row is unchanged since the transaction began, deletes too; rows written without that condition are the
  exception.
- **L11** Values that another open transaction has staged, *a row or any of its entries*, are locked, for stagers and
  for every other writer. So staged values are worked out from rows that stay as they are until it is committed or
  aborted: unique values stay unique, and entries fit their rows.
- **L5** A committed value that is not in place yet is moved by the next writer of that key, in the same entry. So a
  staged value is never older than the version that is stored under its key.

Two tasks of one transaction must not write one key; two tries of one task may, and are kept side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, groupby
from operator import itemgetter, not_
from typing import Final

from cortado.errors import AlreadyExists, InvalidArgument, KeyLocked, TransactionAborted
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.decoded import shown_in_errors
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import (
    INDEX_PREFIX_BYTES,
    ROW_PREFIX_BYTES,
    TABLE_SPACE,
    is_of_index,
    key_of_staged,
    staged_key,
    staged_keys,
)
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Cleared, Evaluation, Removal
from cortado.store.mvcc.mutations import Changes, Mutations
from cortado.store.mvcc.reader import Reader, Version, get_in_pieces, logical_of
from cortado.store.mvcc.staged import LargeTransaction, Staged, Unresolved, encode_firsts
from cortado.store.mvcc.transacting import conflict_of
from cortado.store.mvcc.versions import Item, contents_of
from cortado.store.staging.records import TASK_MAX, TRY_MAX, LargeState, Record, find_record, record_of

LOCKED_RETRY_MS: Final = 200
MOVED_BYTES_MAX: Final = 512 << 10
"""Above it a write moves no more of the values that it meets: its own effects have to fit into its entry, too."""
_VERSIONS_MAX: Final = 1_000
_SEARCHED_ROWS: Final = 64
_TRY_BITS: Final = TRY_MAX.bit_length()
_part_of: Final[Callable[[bytes], bytes]] = itemgetter(slice(ROW_PREFIX_BYTES))
"""The common prefix of all keys of a table's rows, or of all its entries."""
_index_of: Final[Callable[[bytes], bytes]] = itemgetter(slice(INDEX_PREFIX_BYTES))


def attempt_of(task: int, attempt: int) -> int:
    """One number for a task and its try. Raises InvalidArgument."""
    for number, most, field in ((task, TASK_MAX, "task"), (attempt, TRY_MAX, "attempt")):
        if not 0 <= number <= most:
            raise InvalidArgument(field, f"must be between 0 and {most}", str(number))
    return task << _TRY_BITS | attempt


def task_of(number: int) -> int:
    """Return the task of a number that :func:`attempt_of` has made."""
    return number >> _TRY_BITS


def stage(
    reader: Reader,
    unresolved: Unresolved,
    transaction_id: bytes,
    attempt: int,
    written: Evaluation,
    *,
    is_unchanged: bool,
    unchanged_since: Timestamp | None = None,
    asker: Asker = ANYBODY,
) -> Evaluation:
    """Stage ``written``, the evaluation of a bulk load of the same rows; replies as that.

    ``is_unchanged``: no row may have changed since the transaction began (L12); nor ``unchanged_since`` then. Raises
    NotFound, TransactionAborted, InvalidArgument (it has been committed, or may not write this table), WriteConflict,
    SnapshotTooOld, KeyLocked, AlreadyExists (it has staged one of these rows, or unique values, before).
    """
    record = open_record(reader, transaction_id, asker)
    changes = written.mutations
    keys = [key for key in changes.keys if key[:1] == TABLE_SPACE]
    _check_range(record, keys)
    starts = [*([record.start] if is_unchanged else []), *([] if unchanged_since is None else [unchanged_since])]
    if starts:
        _check_unchanged(reader, record, [key for key in keys if not is_of_index(key)], min(starts))
    others, own = Met(unresolved), dict[LogicalKey, Staged]()
    staged = staged_keys(keys)
    for key, there in _in_the_way(reader, unresolved, changes, staged):
        if there.transaction_id != transaction_id:
            others.take(key, there)
            continue
        _check_other_try(record, key, attempt, there)
        own[key] = there
    of_table: Iterable[bytes | None] = changes.payloads
    if len(keys) < len(changes):
        of_table = compress(of_table, [key[:1] == TABLE_SPACE for key in changes.keys])
    contents = contents_of(keys, of_table, changes.expiries)
    payloads: list[bytes | None] = [*encode_firsts(transaction_id, attempt, contents)]
    for place, key in enumerate(keys) if own else ():
        if key in own:
            payloads[place] = own[key].beside(attempt, contents[place])
    mutations = Mutations(staged, payloads)
    for key, payload in zip(changes.keys, changes.payloads, strict=True) if len(keys) < len(changes) else ():
        if key[:1] != TABLE_SPACE:
            # The key is of the catalogue: an index that cannot be built with these rows is known to have failed at
            # once.
            mutations.keys.append(key)
            mutations.payloads.append(payload)
    return others.moved(replace(written, mutations=mutations))


def past_staged(reader: Reader, unresolved: Unresolved, evaluation: Evaluation) -> Evaluation:
    """Return the write, as it is if no keys are staged, else together with the values that it moves. Raises
    KeyLocked."""
    written = evaluation.mutations.keys
    if not unresolved.meets(written):
        return evaluation
    keys = [key for key in written if unresolved.covers(key)]
    others = Met(unresolved)
    for key, there in _staged(reader, staged_keys(keys)):
        others.take(key, there)
    return others.moved(evaluation)


def check_settled(reader: Reader, keys: Sequence[LogicalKey]) -> None:
    """Raises KeyLocked if an open transaction has staged one of them: it is about to be another one."""
    for key, there in _staged(reader, staged_keys(keys)):
        record = find_record(reader, there.transaction_id)
        if record is not None and record.state is LargeState.OPEN:
            raise _locked(key, record.unresolved())


def open_record(reader: Reader, transaction_id: bytes, asker: Asker) -> Record:
    """L7, L16. Raises NotFound, TransactionAborted, InvalidArgument if it has been committed."""
    record = record_of(reader, transaction_id, asker)
    if record.state is LargeState.ABORTED:
        raise TransactionAborted(record.cause)
    if record.state is LargeState.COMMITTED:
        problem = f"has been committed at {record.commit_ts}, and takes no more rows"
        raise InvalidArgument("transaction_id", problem, transaction_id.hex())
    return record


def _locked(key: LogicalKey, by: LargeTransaction) -> KeyLocked:
    shown = shown_in_errors(key, by.names)
    return KeyLocked(retry_delay_ms=LOCKED_RETRY_MS, key=shown, transaction=by.transaction_id.hex())


class Met:
    """The staged values of other transactions that a write has met."""

    def __init__(self, unresolved: Unresolved) -> None:
        self._unresolved = unresolved
        self._items: list[Item] = []
        self._cleared: list[Cleared] = []
        self._size_bytes = 0

    def take(self, key: LogicalKey, there: Staged) -> None:
        """Another transaction's value. Raises KeyLocked; also if there is more to move than fits beside a write: the
        leader does that in a moment."""
        other: LargeTransaction | None = self._unresolved.all.get(there.transaction_id)
        if (other is not None and other.is_open) or self._size_bytes > MOVED_BYTES_MAX:
            raise _locked(key, other or LargeTransaction(there.transaction_id, ()))
        item = None if other is None else other.item_of(key, there)
        self._size_bytes += 2 * len(key) + (0 if item is None else len(item[0]) + len(item[1]))
        if item is not None:
            self._items.append(item)
        staged = staged_key(key)
        self._cleared.append(Cleared(staged, successor_of_prefix(staged), _VERSIONS_MAX))

    def moved(self, evaluation: Evaluation) -> Evaluation:
        """Return the write, with the values of others that it moves and takes away."""
        if not self._cleared:
            return evaluation
        removal = evaluation.removal or Removal()
        mutations = evaluation.mutations
        return replace(
            evaluation,
            # Not as a draft, or packed: those are items of their own commit alone.
            mutations=Mutations(list(mutations.keys), list(mutations.payloads), dict(mutations.expiries)),
            restored=[*evaluation.restored, *self._items],
            removal=replace(removal, cleared=[*removal.cleared, *self._cleared]),
        )


def put_in_place(piece: Piece) -> Evaluation:
    """Move the values that count to their places, and take all of the piece away; replies the number of stored
    items."""
    return Evaluation(Mutations(), len(piece.stored), removal=Removal(piece.stored), restored=piece.items)


def take_strays_away(reader: Reader, found: Iterable[tuple[bytes, Staged]]) -> Evaluation:
    """Take away stored keys that were staged by no transaction with a record. Raises DataLoss if that record may only
    be damaged."""
    strays: dict[bytes, list[bytes]] = {}
    for key, staged in found:
        strays.setdefault(staged.transaction_id, []).append(key)
    gone = [keys for transaction_id, keys in strays.items() if find_record(reader, transaction_id) is None]
    return Evaluation(Mutations(), None, removal=Removal(sorted(chain.from_iterable(gone))) if gone else None)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the values that an ended transaction has staged: the ``stored`` keys, and the values that count, as
    ``items`` in their place."""

    stored: Sequence[bytes]
    items: Sequence[Item]

    def without_moved(self, reader: Reader) -> Piece:
        """Return the piece without the values that others have moved since: those may have been collected, and are not
        to come back."""
        there = {key for key, _ in _staged(reader, list(dict.fromkeys(map(logical_of, self.stored))))}
        return Piece(
            [each for each in self.stored if key_of_staged(logical_of(each)) in there],
            [each for each in self.items if logical_of(each[0]) in there],
        )


def _check_range(record: Record, keys: Sequence[LogicalKey]) -> None:
    """Raises InvalidArgument if the transaction may not write these keys, which are of one table."""
    own = record.unresolved()
    for key in (min(keys), max(keys)) if keys else ():
        if not own.may_write(key):
            began_with = f"is not a table that transaction {record.transaction_id.hex()} began with"
            problem = f"{began_with}; a table that took its name since is another one"
            raise InvalidArgument("table", problem, dump(key))


def _check_unchanged(reader: Reader, record: Record, rows: Sequence[LogicalKey], since: Timestamp) -> None:
    """L12. Raises WriteConflict, SnapshotTooOld."""
    # So few are searched for at once, as the bulk load has searched for all of them: the newest changes in memory are
    # mostly those that the transaction itself has staged, and do not reach back to its start.
    for place in range(0, len(rows), _SEARCHED_ROWS):
        changed = reader.changed_since(rows[place : place + _SEARCHED_ROWS], (), since)
        conflict_of(changed, since, "write", record.names)


def _check_other_try(record: Record, key: LogicalKey, attempt: int, there: Staged) -> None:
    """Raises AlreadyExists if it is no other try of the same task that has staged this key."""
    for other in there.contents:
        if other == attempt or other >> _TRY_BITS != attempt >> _TRY_BITS:
            shown = shown_in_errors(key, record.names)
            raise AlreadyExists("in this transaction, a write of", shown)


def _in_the_way(
    reader: Reader, unresolved: Unresolved, changes: Changes, staged: Sequence[LogicalKey]
) -> list[tuple[LogicalKey, Staged]]:
    """Return the same as :func:`_staged` for the rows and entries that change. New entries of indexes that are not
    unique are staged together with their rows, by the same stager: alone none is there, and they are most of all."""
    if len(unresolved.all) > 1 or len(staged) < len(changes):
        return list(_staged(reader, staged))
    is_lone = [payload != b"" for payload in changes.payloads]
    found = list(_staged(reader, list(compress(staged, is_lone))))
    if found:
        found += _staged(reader, list(compress(staged, map(not_, is_lone))))
    return found


def _staged(reader: Reader, staged: Sequence[LogicalKey]) -> Iterator[tuple[LogicalKey, Staged]]:
    """Yield the values under some staged keys, by the keys that they are for."""
    # The rows, and the entries of each index, stand together: if all of them are new, one search tells.
    for part, of_part in groupby(staged, key=_part_of):
        for _, together in groupby(of_part, key=_index_of) if part[-1:] == b"i" else [(part, of_part)]:
            keys = list(together)
            versions: Iterator[Version | None] = (each for piece in get_in_pieces(reader, keys) for each in piece)
            for key, version in zip(keys, versions, strict=True):
                if version is not None:
                    yield key_of_staged(key), Staged.decode(key, version.payload)
