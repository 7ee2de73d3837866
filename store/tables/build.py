"""Indexes of tables that have rows: begun, built step by step, dropped.

::

    begin_build      the index is BUILDING: from this commit on every write maintains it (X1)
         │           a job is there
         │           once large transactions that began before have ended (X3)
    build_step       some rows of the *newest* state: the entries that they lack, and the job's cursor (X2)
         │  ...      rows before the cursor have their entries, and writes keep them; rows behind it may
    build_step       behind the last row: the index is READY, and is read at this commit's time and later (X4)

A step is evaluated at append, like any write, so nothing comes between the row that it reads and the entry that it
puts. An index filled from a snapshot would have to catch up with the writes meanwhile, and could lose entries there.

A row that an open large transaction has staged is waited for: the transaction has not seen the entry of its present
state, and would not remove it.

If two rows share a value of a unique index, or a row cannot have an entry, the step makes the index FAILED instead, and
names the rows. Writes do the same when they find it (:mod:`cortado.store.tables.building`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cortado.errors import AlreadyExists, DataLoss, InvalidArgument, NotFound, TooLarge
from cortado.proto.internal.jobs_pb2 import StoredIndexBuild
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import INDEXES_MAX, IndexDeclaration, resolve_parts
from cortado.store.catalog.descriptors import IndexDescriptor, IndexState, TableDescriptor
from cortado.store.catalog.dropped import drop_of_index, drop_ranges
from cortado.store.clock.timestamp import Timestamp
from cortado.store.jobs.job import Job, JobKind, JobState, begin_job, check_unfinished, find_job, job_of, put_job
from cortado.store.keys import names
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import KeyRange, primary_key_of, row_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.mvcc.stored_messages import decode_stored
from cortado.store.staging.records import find_record
from cortado.store.staging.stage import check_settled
from cortado.store.tables.building import FAILED_KEYS_MAX, CannotBuild, failed
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.entries import IndexEntries, entries_of_columns, indexed_paths
from cortado.store.tables.indexes import index_label
from cortado.store.tables.view import TableView

STEP_ROWS: Final = 500
STEP_MS: Final = 2.0
_PIECE_ROWS: Final = 100
_PIECE_BYTES: Final = 256 << 10


@dataclass(frozen=True, slots=True)
class IndexBegun:
    """The reply of :func:`begin_build`."""

    table: TableDescriptor
    job: Job


@dataclass(frozen=True, slots=True)
class IndexDropped:
    """The reply of :func:`drop_index`: the table without it."""

    table: TableDescriptor


@dataclass(frozen=True, slots=True)
class Pace:
    """The bounds of a step: a number of rows, and a time by ``clock_ms``. It reads no further than ``upto``, so that
    writes in flight behind that are not sorted in vain; ``total`` is the counted number of the table's rows."""

    clock_ms: Callable[[], float]
    rows: int = STEP_ROWS
    ms: float = STEP_MS
    upto: LogicalKey | None = None
    total: int = 0


# --- begin ---------------------------------------------------------------------------------------------------------


def begin_build(
    catalog: Catalog,
    commit_ts: Timestamp,
    database: str,
    name: str,
    declaration: IndexDeclaration,
    asker: Asker = ANYBODY,
) -> Evaluation:
    """Begin a new index of a table, to be built by a job of the caller's; replies IndexBegun.

    Raises NotFound (database, table), InvalidArgument (a name, a path or its type), AlreadyExists, TooLarge, and
    ResourceExhausted if the caller has its share of jobs.
    """
    table = catalog.table(names.check_database(database), names.check_table(name))
    names.check_index(declaration.name, "index.name")
    there = table.index(declaration.name)
    if there is not None:
        is_failed = there.state is IndexState.FAILED
        raise AlreadyExists("index", f"{there.name} of table {table.full_name}{' (failed: drop it)' * is_failed}")
    count = len(table.indexes)
    if count >= INDEXES_MAX:
        problem = f"table {table.full_name} has {count} already, the most that are allowed"
        raise TooLarge("index", problem, declaration.name, count, INDEXES_MAX)
    _, schema = catalog.newest_schema(table.subject)
    parts = resolve_parts(schema, declaration.parts, "index.parts")
    mutations = Mutations()
    index_id = table.next_index_id
    parameters = _encode(StoredIndexBuild(table_id=table.table_id, index_id=index_id, database=database, table=name))
    target = index_label(table, IndexDescriptor(index_id, declaration.name, parts))
    job = begin_job(catalog.reader, mutations, JobKind.INDEX, target, parameters, commit_ts, asker)
    index = IndexDescriptor(
        index_id, declaration.name, parts, declaration.unique, IndexState.BUILDING, job_id=job.job_id
    )
    table = replace(
        table, indexes=(*table.indexes, index), version=table.version + 1, next_index_id=table.next_index_id + 1
    )
    _put_table(catalog, mutations, table)
    return Evaluation(mutations, IndexBegun(table, job))


# --- a step --------------------------------------------------------------------------------------------------------


def build_step(
    reader: Reader, commit_ts: Timestamp, catalog: Catalog, job_id: int, pace: Pace, unresolved: Iterable[bytes] = ()
) -> Evaluation:
    """Evaluate the next step of a running job; replies the job. It changes nothing if the job does not run (any more),
    or has to wait for one of the large transactions ``unresolved``.

    Raises KeyLocked, NotFound (job), DataLoss for damage in the store.
    """
    job = job_of(reader, job_id)
    mutations = Mutations()
    if job.state is not JobState.RUNNING:
        return Evaluation(mutations, job)
    job = replace(job, total=job.total or pace.total)
    build = decode_stored(StoredIndexBuild, job.parameters, "jobs")
    table = _find_table(catalog, build)
    index = None if table is None else _index_of(table, build.index_id)
    if table is None or index is None:
        gone = f"{'index' if table is not None else 'table'} is not there any more"
        job = job.ended(JobState.CANCELLED, commit_ts, f"the {gone}")
    elif index.state is IndexState.FAILED:
        job = job.ended(JobState.FAILED, commit_ts, index.failure)
    elif index.state is IndexState.READY:
        job = job.ended(JobState.DONE, commit_ts)
    else:
        build.database, build.table = table.database, table.name
        job = replace(job, parameters=_encode(build))
        view = TableView(catalog, table.database, table.name)
        if not job.cursor and _is_staged_without(reader, table.table_id, index.index_id, unresolved):
            return Evaluation(mutations, job)
        try:
            job = _backfill(reader, view, index, job, pace, mutations)
            if job.state is JobState.DONE:
                job = job.ended(JobState.DONE, commit_ts)
                index = replace(index, state=IndexState.READY, ready_ts=commit_ts)
                _put_table(catalog, mutations, table.with_index(index))
        except CannotBuild as found:
            mutations = Mutations()
            job = job.ended(JobState.FAILED, commit_ts, found.problem)
            _put_table(catalog, mutations, table.with_index(failed(index, found.problem, found.rows)))
    put_job(mutations, job)
    return Evaluation(mutations, job)


def _is_staged_without(reader: Reader, table_id: int, index_id: int, unresolved: Iterable[bytes]) -> bool:
    """Return whether an unfinished large transaction may have staged rows of the table without their entries (X3). Once
    it has ended, the newest state has these rows, and the build adds their missing entries."""
    return any(
        each.table_id == table_id and index_id not in each.index_ids
        for record in (find_record(reader, transaction_id) for transaction_id in unresolved)
        if record is not None and not record.is_resolved
        for each in record.tables
    )


def rows_left(catalog: Catalog, job: Job) -> KeyRange | None:
    """Return the range of rows that a job's steps have not read yet; None if its table is gone."""
    table = _find_table(catalog, decode_stored(StoredIndexBuild, job.parameters, "jobs"))
    if table is None:
        return None
    start, end = row_range(table.table_id, table.key)
    return LogicalKey(job.cursor) if job.cursor else start, end


def _find_table(catalog: Catalog, build: StoredIndexBuild) -> TableDescriptor | None:
    return catalog.find_table_with(build.table_id, build.database, build.table)


def _backfill(
    reader: Reader, view: TableView, index: IndexDescriptor, job: Job, pace: Pace, mutations: Mutations
) -> Job:
    """Return the job after the next rows, DONE behind the last one. Raises CannotBuild, KeyLocked."""
    start, end = row_range(view.table.table_id, view.table.key)
    cursor = LogicalKey(job.cursor) if job.cursor else start
    stop = end if pace.upto is None else min(end, max(pace.upto, cursor))
    until_ms = pace.clock_ms() + pace.ms
    put: dict[LogicalKey, tuple[bytes, int]] = {}
    done = 0
    pieces = _pieces(reader, cursor, stop, pace.rows)
    cursor = stop
    for keys, versions in pieces:
        check_settled(reader, keys)
        _add_missing(reader, view, index, keys, versions, put)
        done += len(keys)
        if done >= pace.rows or pace.clock_ms() >= until_ms:
            cursor = LogicalKey(successor_of_prefix(keys[-1]))
            break
    for key, (payload, expires_ms) in put.items():
        mutations.put(key, payload, expires_ms)
    job = replace(job, cursor=cursor, done=job.done + done)
    return replace(job, state=JobState.DONE) if cursor >= end else job


def _pieces(
    reader: Reader, start: LogicalKey, end: LogicalKey, rows: int
) -> Iterator[tuple[list[LogicalKey], list[Version]]]:
    """Yield the rows of a range in pieces, which decode in well under a millisecond or reach a bound of bytes."""
    keys: list[LogicalKey] = []
    versions: list[Version] = []
    size_bytes = 0
    for key, version in reader.scan(start, end):
        keys.append(key)
        versions.append(version)
        size_bytes += len(version.payload)
        if len(keys) >= min(_PIECE_ROWS, rows) or size_bytes >= _PIECE_BYTES:
            yield keys, versions
            keys, versions, size_bytes = [], [], 0
    if keys:
        yield keys, versions


def _add_missing(
    reader: Reader,
    view: TableView,
    index: IndexDescriptor,
    keys: Sequence[LogicalKey],
    versions: Sequence[Version],
    put: dict[LogicalKey, tuple[bytes, int]],
) -> None:
    """Add the entries that these rows lack to ``put``, which has those of the rows before: each with its payload, and
    the expiry of its row. Raises CannotBuild."""
    primary_keys = list(map(primary_key_of, keys))
    payloads = [version.payload for version in versions]
    problems: list[tuple[str, str]] = []
    for entries, rows in _entries(view, index, primary_keys, payloads, problems):
        for place, holder in enumerate(reader.get_many(entries.keys)):
            key, primary_key = entries.keys[place], primary_keys[rows[place]]
            held_by = put.get(key, (None, 0))[0] if holder is None else holder.payload
            if held_by is None:
                put[key] = (primary_key if index.unique else b""), versions[rows[place]].expires_ms
            elif index.unique and held_by != primary_key:
                shown = view.show_key(primary_key), view.show_key(held_by)
                problems += [(each, f"rows {shown[0]} and {shown[1]} have the same values") for each in shown]
    if problems:
        rows_named = list(dict.fromkeys(row for row, _ in problems))[:FAILED_KEYS_MAX]
        raise CannotBuild(view, index, problems[0][1], rows_named)


def _entries(
    view: TableView,
    index: IndexDescriptor,
    primary_keys: Sequence[bytes],
    payloads: Sequence[bytes],
    problems: list[tuple[str, str]],
) -> Iterator[tuple[IndexEntries, Sequence[int]]]:
    """Yield the entries of rows, and which rows: all at once or, if one cannot have an entry, one by one. ``problems``
    takes those that cannot, and why."""
    try:
        yield from list(_entries_of(view, index, primary_keys, payloads))
    except (InvalidArgument, DataLoss, NotFound) as misfit:
        if len(payloads) == 1:
            problems.append((view.show_key(primary_keys[0]), misfit.message()))
            return
        for row, (primary_key, payload) in enumerate(zip(primary_keys, payloads, strict=True)):
            for entries, _ in _entries(view, index, [primary_key], [payload], problems):
                yield entries, [row]


def _entries_of(
    view: TableView, index: IndexDescriptor, primary_keys: Sequence[bytes], payloads: Sequence[bytes]
) -> Iterator[tuple[IndexEntries, Sequence[int]]]:
    for rows, columns in decode_columns(view, payloads, view.newest, set(indexed_paths([index]))):
        [entries] = entries_of_columns(view.table, [index], columns, [primary_keys[row] for row in rows])
        yield entries, rows


# --- end -----------------------------------------------------------------------------------------------------------


def drop_index(catalog: Catalog, commit_ts: Timestamp, database: str, name: str, index: str) -> Evaluation:
    """Drop the index from the table, and end the job that builds it; replies IndexDropped.

    Its entries are cleared later. Raises NotFound (database, table, index), TooLarge.
    """
    table = catalog.table(names.check_database(database), names.check_table(name))
    there = table.index(names.check_index(index, "index"))
    if there is None:
        raise NotFound("index", f"{index} of table {table.full_name}")
    mutations = Mutations()
    job = find_job(catalog.reader, there.job_id) if there.job_id else None
    if job is not None and not job.state.has_ended:
        put_job(mutations, job.ended(JobState.CANCELLED, commit_ts, "the index was dropped"))
    return Evaluation(mutations, IndexDropped(_remove(catalog, commit_ts, table, there, mutations)))


def cancel_build(catalog: Catalog, commit_ts: Timestamp, job_id: int) -> Evaluation:
    """End a job that builds an index, and drop what it has built; replies the job. Raises NotFound, InvalidArgument."""
    job = check_unfinished(job_of(catalog.reader, job_id)).ended(JobState.CANCELLED, commit_ts, "on request")
    mutations = Mutations()
    put_job(mutations, job)
    build = decode_stored(StoredIndexBuild, job.parameters, "jobs")
    table = _find_table(catalog, build)
    index = None if table is None else _index_of(table, build.index_id)
    if table is not None and index is not None:
        _remove(catalog, commit_ts, table, index, mutations)
    return Evaluation(mutations, job)


def _remove(
    catalog: Catalog, commit_ts: Timestamp, table: TableDescriptor, index: IndexDescriptor, mutations: Mutations
) -> TableDescriptor:
    drop_ranges(catalog, mutations, [drop_of_index(table, index.name)], commit_ts)
    kept = tuple(each for each in table.indexes if each is not index)
    table = replace(table, indexes=kept, version=table.version + 1)
    mutations.put(stored.table_key(table.database, table.name), stored.encode_table(table))
    return table


def _index_of(table: TableDescriptor, index_id: int) -> IndexDescriptor | None:
    return next((each for each in table.indexes if each.index_id == index_id), None)


def _put_table(catalog: Catalog, mutations: Mutations, table: TableDescriptor) -> None:
    mutations.put(stored.table_key(table.database, table.name), stored.encode_table(table))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))


def _encode(build: StoredIndexBuild) -> bytes:
    return build.SerializeToString(deterministic=True)
