"""The record of a large transaction: the one place that says whether it is committed.

::

    begun ──► OPEN ── commit: the attempts that count ──► COMMITTED ──► resolved: all in place ──► forgotten after
                └───── abort, or its lease has ended ───► ABORTED ────► resolved: all away ──────► a day

======================  =======================  =====================================================================
key, in the space ``m``  value                    holds
======================  =======================  =====================================================================
``txn`` id, as hex       StoredLargeTransaction   its state, when it began, what it may write
``txns``                 ids, one after another   which of them are not resolved: found without a search
``app`` principal name   StoredApplication        up to which number of its own an application has committed, and whose
                                                  numbering that is; without a principal the key is ``app`` name
======================  =======================  =====================================================================

- **L2** Its timestamp is that of the entry that commits it. Chosen any earlier it would lie below reads that were
  served.
- **L6** The commit names the attempts that count: rows staged by an attempt that was repeated, or given up, do not.
- **L8** The record says resolved last, when nothing is staged any more. Staged values without a record belong to no
  transaction.
- **L13** Its start is leased for as long as it is open: the versions that it compares rows with are not collected. Its
  writers keep the lease alive, and once that has ended the leader aborts the transaction.
- **L14** The record outlives the transaction by a day, that of an application by an hour: a caller that commits it
  again is told its outcome.
- **L15** An application has one open transaction at a time: the next one aborts it. So the rest of a process that died
  is out of the way once its successor begins.
- **L16** One principal's transactions are unknown to another, and its applications are its own
  (:mod:`cortado.store.auth.owners`): under the same names they neither abort nor number each other's.

A commit with an application's number has one effect however late it is repeated: the number and its owner are kept for
ever. Two that number under one name would each take the other's commits for its own. A number that no count reaches
would end all further commits: it is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from cortado.errors import AlreadyExists, DataLoss, InvalidArgument, NotFound, TooLarge
from cortado.proto.internal import staging_pb2 as pb
from cortado.store.auth.owners import ANYBODY, Asker, check_share, own_id
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexState
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection import leases
from cortado.store.keys.decoded import KeyNames
from cortado.store.keys.keyspace import meta_key, meta_range, names_of, table_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, Version, logical_of, read_list, suffix_from
from cortado.store.mvcc.staged import TRANSACTION_ID_BYTES, LargeTransaction, Unresolved
from cortado.store.mvcc.stored_messages import decode_stored
from cortado.store.mvcc.versions import Item, decode_version

UNRESOLVED_MAX: Final = 100
CHANGED_KEYS_MAX: Final = 2 * UNRESOLVED_MAX
"""A write that begins or ends large transactions has no more keys."""
TABLES_MAX: Final = 100
ATTEMPTS_MAX: Final = 100_000
TASK_MAX: Final = (1 << 20) - 1
TRY_MAX: Final = (1 << 12) - 1
APPLICATION_CHARS_MAX: Final = 200
VERSION_MAX: Final = (1 << 63) - 1
VERSION_FIRST_MAX: Final = 1 << 62
VERSION_STEP_MAX: Final = 1 << 53
"""Nanoseconds since 1970 may number commits, and a third of a year may pass between two."""

EXPIRED: Final = "expired"
OPERATOR: Final = "operator"
TABLE: Final = "table"
REPEATED: Final = "repeated"
SUPERSEDED: Final = "superseded"
UNRESOLVED_KEY: Final = meta_key("txns")
_RANGE: Final = meta_range("txn")
_engine_key: Final[Callable[[Item], LogicalKey]] = itemgetter(0)


class LargeState(StrEnum):
    """See the picture above."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


_STATES: Final = {pb.StoredLargeTransaction.State.Value(each.name): each for each in LargeState}


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A table as it was when the transaction began."""

    table_id: int
    database: str
    name: str
    index_ids: tuple[int, ...]

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class Record:
    """A large transaction. ``commit_ts`` is set if it is committed, ``cause`` if it is aborted: EXPIRED, OPERATOR,
    TABLE (one of its tables, or an index of one, was dropped), REPEATED (its application has committed it before),
    SUPERSEDED (its application has begun another one). ``application``, ``owner`` and ``principal`` are empty if there
    was none."""

    transaction_id: bytes
    start: Timestamp
    tables: tuple[StagedTable, ...]
    label: str = ""
    state: LargeState = LargeState.OPEN
    commit_ts: Timestamp | None = None
    attempts: tuple[int, ...] = ()
    is_resolved: bool = False
    cause: str = ""
    application: str = ""
    owner: str = ""
    principal: str = ""

    @property
    def lease_id(self) -> bytes:
        """The id that the lease on its start is stored under."""
        return own_id(self.principal, self.transaction_id)

    @property
    def names(self) -> KeyNames:
        """Return the names of its tables, to name their keys in errors."""
        return KeyNames({each.table_id: each.full_name for each in self.tables})

    def unresolved(self) -> LargeTransaction:
        """Return the part of it that readers and writers need."""
        ranges = tuple(table_range(each.table_id) for each in self.tables)
        is_aborted, attempts = self.state is LargeState.ABORTED, frozenset(self.attempts)
        return LargeTransaction(self.transaction_id, ranges, is_aborted, self.commit_ts, attempts, self.names)

    def encode(self) -> bytes:
        return pb.StoredLargeTransaction(
            state=self.state.name,
            start=bytes(self.start),
            label=self.label,
            tables=[
                pb.StoredStagedTable(
                    table_id=each.table_id, database=each.database, table=each.name, index_ids=each.index_ids
                )
                for each in self.tables
            ],
            commit_timestamp=b"" if self.commit_ts is None else bytes(self.commit_ts),
            attempts=self.attempts,
            is_resolved=self.is_resolved,
            cause=self.cause,
            application=self.application,
            owner=self.owner,
            principal=self.principal,
        ).SerializeToString(deterministic=True)


@dataclass(frozen=True, slots=True)
class Application:
    """An application, the number of this commit, and the owner of that numbering."""

    name: str
    version: int
    owner: str = ""


class Author(NamedTuple):
    """The caller, and the application that it numbers commits for."""

    asker: Asker = ANYBODY
    application: Application | None = None


NO_AUTHOR: Final = Author()


# --- stored records ------------------------------------------------------------------------------------------------


def record_key(transaction_id: bytes) -> LogicalKey:
    """Return the key of the record of that id."""
    return meta_key("txn", transaction_id.hex())


def decode_record(key: LogicalKey, payload: bytes) -> Record:
    """Raises DataLoss."""
    try:
        stored = pb.StoredLargeTransaction.FromString(payload)
        return Record(
            bytes.fromhex(str(names_of(key)[1])),
            Timestamp.from_bytes(stored.start),
            tuple(
                StagedTable(each.table_id, each.database, each.table, tuple(each.index_ids)) for each in stored.tables
            ),
            stored.label,
            _STATES[stored.state],
            Timestamp.from_bytes(stored.commit_timestamp) if stored.commit_timestamp else None,
            tuple(stored.attempts),
            stored.is_resolved,
            stored.cause,
            stored.application,
            stored.owner,
            stored.principal,
        )
    except (DecodeError, InvalidArgument, ValueError, IndexError, KeyError) as malformed:
        raise DataLoss("large transaction", f"the record {key.hex()} cannot be read") from malformed


def find_record(reader: Reader, transaction_id: bytes) -> Record | None:
    """Return the record of that id, None if there is no record, or no longer one."""
    key = record_key(transaction_id)
    version = reader.get(key)
    return None if version is None else decode_record(key, version.payload)


def record_of(reader: Reader, transaction_id: bytes, asker: Asker = ANYBODY) -> Record:
    """Raises InvalidArgument; NotFound, also for one that is another principal's."""
    check_id(transaction_id)
    record = find_record(reader, transaction_id)
    if record is None or not asker.owns(record.principal):
        raise NotFound("transaction", transaction_id.hex())
    return record


def is_leased(reader: Reader, transaction_id: bytes) -> bool:
    """Return whether the lease on its start lasts."""
    record = find_record(reader, transaction_id)
    return record is not None and leases.find_lease(reader, record.lease_id) is not None


def records_of(reader: Reader) -> list[tuple[Record, Version]]:
    """Return all of them, and the versions that they are in."""
    return [(decode_record(key, version.payload), version) for key, version in reader.scan(*_RANGE)]


def unresolved_of(reader: Reader) -> Unresolved:
    """Return those that have not ended, as ``reader`` sees it; one whose record was given up as damaged is left out.
    Raises DataLoss."""
    records = [find_record(reader, transaction_id) for transaction_id in _listed(reader)]
    return Unresolved(record.unresolved() for record in records if record is not None)


def _listed(reader: Reader) -> Sequence[bytes]:
    """Return the ids of those that are not resolved, ascending. Raises DataLoss."""
    return read_list(reader, UNRESOLVED_KEY, TRANSACTION_ID_BYTES, "large transactions")


def changes_records(keys: Sequence[LogicalKey]) -> bool:
    """Return whether a write of these keys begins or ends large transactions: such a write is a small one."""
    return len(keys) <= CHANGED_KEYS_MAX and any(_RANGE[0] <= key < _RANGE[1] for key in keys)


def holds_records(items: Sequence[Item]) -> bool:
    """Return whether versions, in the order of their keys, begin or end large transactions."""
    place = bisect_left(items, _RANGE[0], key=_engine_key)
    return place < len(items) and items[place][0] < _RANGE[1]


def applied_records(items: Sequence[Item], before: Unresolved) -> Unresolved:
    """Return those that have not ended once these versions, in the order of their keys, are applied. Raises
    DataLoss."""
    place = bisect_left(items, _RANGE[0], key=_engine_key)
    known = dict(before.all)
    changed = False
    while place < len(items) and items[place][0] < _RANGE[1]:
        key, version = logical_of(items[place][0]), decode_version(*items[place], suffix_from(items[place][0]))
        record = None if version is None else decode_record(key, version.payload)
        if record is None or record.is_resolved:
            known.pop(bytes.fromhex(str(names_of(key)[1])), None)
        else:
            known[record.transaction_id] = record.unresolved()
        place, changed = place + 1, True
    return Unresolved(known.values()) if changed else before


# --- changes -------------------------------------------------------------------------------------------------------


def check_id(transaction_id: bytes) -> None:
    """Raises InvalidArgument."""
    if len(transaction_id) != TRANSACTION_ID_BYTES:
        problem = f"must have {TRANSACTION_ID_BYTES} bytes"
        raise InvalidArgument("transaction_id", problem, f"{len(transaction_id)} bytes")


def begin(
    catalog: Catalog,
    commit_ts: Timestamp,
    transaction_id: bytes,
    tables: Sequence[tuple[str, str]],
    ttl_ms: int,
    label: str,
    unresolved: Unresolved,
    author: Author = NO_AUTHOR,
) -> Evaluation:
    """Begin a large transaction that may write these tables; replies its Record. Repeated, it replies the outcome.

    ``unresolved`` are those of the newest state: the records of a day are too many to be counted. If its
    ``application`` has committed that number, or a higher one, it is aborted from the beginning; otherwise the
    application's open transactions are (L15). Raises InvalidArgument (another owner's application, too), TooLarge,
    NotFound (database, table), AlreadyExists (another one has that id), ResourceExhausted (too many have not ended, or
    too many of this principal).
    """
    check_id(transaction_id)
    reader, (asker, application) = catalog.reader, author
    known = find_record(reader, transaction_id)
    if known is not None:
        is_same = (sorted((each.database, each.name) for each in known.tables), known.label) == (
            sorted(set(tables)),
            label,
        )
        if not is_same or not asker.owns(known.principal):
            raise AlreadyExists("transaction", transaction_id.hex())
        return Evaluation(Mutations(), known)
    if not tables:
        raise InvalidArgument("tables", "must not be empty")
    if len(tables) > TABLES_MAX:
        raise TooLarge("tables", f"must be at most {TABLES_MAX}", str(len(tables)), len(tables), TABLES_MAX)
    descriptors = [catalog.table(*name) for name in sorted(set(tables))]
    staged = tuple(
        StagedTable(each.table_id, each.database, each.name, tuple(index.index_id for index in each.maintained))
        for each in descriptors
    )
    record = Record(transaction_id, commit_ts, staged, label, principal=asker.principal)
    before: list[Record] = []
    if application is not None:
        record = replace(record, application=application.name, owner=application.owner)
        before = _open_of(reader, application, asker, unresolved)
        if _has_committed(reader, application, asker):
            record = replace(record, state=LargeState.ABORTED, cause=REPEATED, is_resolved=True)
            mutations = Mutations()
            mutations.put(record_key(transaction_id), record.encode())
            return Evaluation(mutations, record)
    own = sum(_principal_of(reader, each) == asker.principal for each in unresolved.all) if asker.principal else 0
    check_share(asker, "transactions", own=own, total=len(unresolved.all), limit=UNRESOLVED_MAX)
    leased = leases.acquire(transaction_id, None, ttl_ms, label, lambda: asker)(reader, commit_ts).mutations
    mutations = Mutations(list(leased.keys), list(leased.payloads))
    mutations.put(record_key(transaction_id), record.encode())
    mutations.put(UNRESOLVED_KEY, b"".join(sorted([*unresolved.all, transaction_id])))
    for each in before:
        mutations.put(
            record_key(each.transaction_id), replace(each, state=LargeState.ABORTED, cause=SUPERSEDED).encode()
        )
    return Evaluation(mutations, record)


def commit(
    reader: Reader,
    commit_ts: Timestamp,
    catalog: Catalog,
    transaction_id: bytes,
    attempts: Sequence[int],
    author: Author = NO_AUTHOR,
) -> Evaluation:
    """Make what these ``attempts``, ascending, have staged visible at this entry's timestamp (L2, L6); replies the
    Record.

    Repeated, or too late, it replies what became of it before. It is aborted if its ``application`` has committed that
    number, or a higher one, before; and if a table, or one of the indexes that it has staged entries for, is not there
    any more. Raises InvalidArgument (another owner's application, too), NotFound.
    """
    asker, application = author
    record = record_of(reader, transaction_id, asker)
    if record.state is not LargeState.OPEN:
        return Evaluation(Mutations(), record)
    mutations = Mutations()
    if application is not None:
        if _has_committed(reader, application, asker):
            return _ended(reader, replace(record, state=LargeState.ABORTED, cause=REPEATED), mutations)
        stored = pb.StoredApplication(version=application.version, owner=application.owner)
        mutations.put(application_key(asker.principal, application.name), stored.SerializeToString(deterministic=True))
    if not _has_its_tables(record, catalog):
        return _ended(reader, replace(record, state=LargeState.ABORTED, cause=TABLE), Mutations())
    committed = replace(record, state=LargeState.COMMITTED, commit_ts=commit_ts, attempts=tuple(attempts))
    return _ended(reader, committed, mutations)


def abort(reader: Reader, transaction_id: bytes, cause: str, asker: Asker = ANYBODY) -> Evaluation:
    """End it if it is open, so that nothing of it ever happens; replies the Record. Raises InvalidArgument; NotFound,
    also if it is not the caller's to end."""
    record = record_of(reader, transaction_id, ANYBODY if asker.operates else asker)
    if record.state is not LargeState.OPEN:
        return Evaluation(Mutations(), record)
    return _ended(reader, replace(record, state=LargeState.ABORTED, cause=cause), Mutations())


def expire(reader: Reader, transaction_id: bytes) -> Evaluation:
    """As :func:`abort` if its lease has ended."""
    if is_leased(reader, transaction_id):
        return Evaluation(Mutations(), None)
    return abort(reader, transaction_id, EXPIRED)


def resolve(reader: Reader, transaction_id: bytes) -> Evaluation:
    """Nothing is staged of it any more (L8)."""
    record = find_record(reader, transaction_id)
    mutations = Mutations()
    if record is not None and record.state is not LargeState.OPEN and not record.is_resolved:
        mutations.put(record_key(transaction_id), replace(record, is_resolved=True, attempts=()).encode())
        mutations.put(UNRESOLVED_KEY, b"".join([each for each in _listed(reader) if each != transaction_id]))
    return Evaluation(mutations, None)


def forget(reader: Reader, ids: Sequence[bytes]) -> Evaluation:
    """Delete the records of those that are resolved."""
    mutations = Mutations()
    for transaction_id in ids:
        record = find_record(reader, transaction_id)
        if record is not None and record.is_resolved:
            mutations.delete(record_key(transaction_id))
    return Evaluation(mutations, None)


def application_key(principal: str, name: str) -> LogicalKey:
    """Return the key of an application's number."""
    return meta_key("app", principal, name) if principal else meta_key("app", name)


def _has_committed(reader: Reader, application: Application, asker: Asker) -> bool:
    """That number of its own, or a higher one; before its principal was known, too. Raises InvalidArgument if it is
    another owner's, or a number that no count reaches."""
    before = reader.get(application_key(asker.principal, application.name))
    if before is None and asker.principal:
        before = reader.get(application_key("", application.name))
    if before is None:
        return _check_version(application.version, VERSION_FIRST_MAX, "its first one")
    stored = decode_stored(pb.StoredApplication, before.payload, "large transaction")
    _check_owner(application, stored.owner)
    _check_version(application.version, stored.version + VERSION_STEP_MAX, f"its last one is {stored.version}")
    return stored.version >= application.version


def _check_version(version: int, most: int, why: str) -> bool:
    """Returns False. Raises InvalidArgument: behind an absurd number nothing would ever be committed."""
    if version > most:
        raise InvalidArgument(
            "version", f"must be at most {most}: an application's numbers count, and {why}", str(version)
        )
    return False


def _principal_of(reader: Reader, transaction_id: bytes) -> str:
    record = find_record(reader, transaction_id)
    return "" if record is None else record.principal


def _open_of(reader: Reader, application: Application, asker: Asker, unresolved: Unresolved) -> list[Record]:
    """Return the open transactions of an application, which is the caller's. Raises InvalidArgument if they are another
    owner's."""
    found: list[Record] = []
    for transaction_id, transaction in unresolved.all.items():
        record = find_record(reader, transaction_id) if transaction.is_open else None
        if record is None or record.principal != asker.principal:
            continue
        if record.application == application.name:
            _check_owner(application, record.owner)
            found.append(record)
    return found


def _check_owner(application: Application, owner: str) -> None:
    if owner != application.owner:
        own, other = (f"of {each}" if each else "of no owner" for each in (application.owner, owner))
        problem = f"numbers the commits {other}, and this is one {own}: give them names of their own"
        raise InvalidArgument("application", problem, application.name)


def _ended(reader: Reader, record: Record, mutations: Mutations) -> Evaluation:
    mutations.put(record_key(record.transaction_id), record.encode())
    leases.end_with(mutations, reader, [record.lease_id])
    return Evaluation(mutations, record)


def _has_its_tables(record: Record, catalog: Catalog) -> bool:
    """Return whether every table is there, under any name, with the indexes that entries were staged for. An index that
    was begun since is still being built: its build waits for the transaction (X3)."""
    for each in record.tables:
        table = catalog.find_table_with(each.table_id, each.database, each.name)
        if table is None:
            return False
        ready = {index.index_id for index in table.indexes if index.state is IndexState.READY}
        if not ready <= set(each.index_ids) <= {index.index_id for index in table.indexes}:
            return False
    return True
