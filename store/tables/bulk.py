"""A bulk chunk against the stored rows: many rows, each written or refused by itself, in one commit.

The meaning of a chunk is simple: its rows are written one after another, in their order (``sequence.py`` does just
that). So if a key comes twice, the later row wins and both count as written. Nearly every chunk has no key twice and no
unique value in dispute; then the order of its rows makes no difference, and this module does all of them at once:

1. read the old row of every key, unless nothing depends on them (an upsert into a table without indexes);
2. refuse by the mode, and by ``unchanged_since``;
3. compare the entries of old and new rows, index by index, and move those that differ.

The rows of an update hold some fields alone. They are completed with the other fields of the stored rows, all rows
column by column, and then the chunk is one of whole rows that replace others. Those of a delete hold their keys alone.

``unchanged_since`` serves a job (a Spark write) that began at that time and whose tasks may be run twice. A row whose
live version is newer and the same byte for byte was written by the first run: it counts as written, and nothing
changes; one that is to be deleted, and is gone, counts as well. One that is newer and differs is a ``WriteConflict``:
another writer, or a key that the job holds twice. A row that is the same as an *older* version is written again, so
that a second row of its key is found out, too. (A delete after that time is not noticed: a deleted row has no version
to compare.) A table that got its name after that time is a ``WriteConflict``, too: half of the job would lie in another
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

from cortado.errors import InvalidArgument, WriteConflict
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.tables.building import BuildFailures, CannotBuild, is_building
from cortado.store.tables.chunk import Prepared, PreparedChunk, RowErrors, prepare_chunk
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.entries import entries_of_columns, indexed_paths
from cortado.store.tables.operations import BulkChunk, BulkMode, BulkWritten
from cortado.store.tables.packed_chunk import PackedChunk
from cortado.store.tables.parts import complete, keys_of_rows
from cortado.store.tables.sequence import EntryKeys, RowRules, Verdict, write_in_sequence
from cortado.store.tables.view import TableView


def evaluate_bulk(
    reader: Reader,
    commit_ts: Timestamp,
    catalog: Catalog,
    chunk: BulkChunk,
    prepared: Prepared | PackedChunk | None = None,
    *,
    keep_deletes: bool = False,
) -> Evaluation:
    """Reply: :class:`BulkWritten`. ``prepared`` saves the decoding, and is made anew if the table has changed since.

    ``keep_deletes``: rows that are not there are deleted, too, for a caller that keeps the written mutations. Raises
    WriteConflict, and as :func:`prepare_chunk` does; errors of single rows are in the reply.
    """
    view = TableView(catalog, chunk.database, chunk.table)
    if chunk.unchanged_since is not None:
        check_named(view.table, chunk.unchanged_since)
    if isinstance(prepared, PackedChunk) and prepared.fits(view) and _are_all_written(reader, chunk, prepared):
        return Evaluation(prepared.write(_expires_ms(reader, view, chunk)), BulkWritten(commit_ts, len(prepared.rows)))
    if prepared is None or isinstance(prepared, PackedChunk) or not prepared.fits(view):
        prepared = prepare_chunk(catalog, chunk)
    if isinstance(prepared, PreparedChunk):
        return _evaluate_rows(view, prepared, commit_ts, lambda rows: _evaluate(reader, commit_ts, chunk, rows))
    live = reader.get_many(prepared.row_keys)
    if chunk.mode is BulkMode.DELETE:
        doomed = keys_of_rows(prepared)
        return _evaluate_rows(
            view,
            doomed,
            commit_ts,
            lambda rows: _delete(reader, commit_ts, chunk, rows, live, keep_deletes=keep_deletes),
        )
    whole, rows, versions = complete(prepared, live, chunk)
    return _evaluate_rows(view, rows, commit_ts, lambda each: _evaluate(reader, commit_ts, whole, each, versions))


def _are_all_written(reader: Reader, chunk: BulkChunk, packed: PackedChunk) -> bool:
    """Return whether every row of a plain chunk is written as it is: its mode accepts any, and there is no index; or
    none of the rows and of their unique values is stored."""
    is_given = chunk.mode is BulkMode.UPSERT and chunk.unchanged_since is None and not packed.view.indexes
    if is_given:
        return True
    if _any_stored(reader.get_many(packed.rows.keys)):
        return False
    return not any(_any_stored(reader.get_many(each)) for each in packed.exclusive())


def _expires_ms(reader: Reader, view: TableView, chunk: BulkChunk) -> int:
    """Return the wall time at which the chunk's rows expire, 0 for never."""
    return (Expiry(view.table.ttl_ms) if chunk.expiry is None else chunk.expiry).expires_ms(reader)


def _evaluate_rows(
    view: TableView,
    prepared: PreparedChunk,
    commit_ts: Timestamp,
    evaluate: Callable[[PreparedChunk], tuple[Mutations, RowErrors]],
) -> Evaluation:
    """An index that is being built, and cannot be with what these rows do, fails; no row is refused for it."""
    while True:
        try:
            mutations, errors = evaluate(prepared)
            break
        except CannotBuild as failure:
            prepared = prepared.without(failure)
    failures = BuildFailures()
    for each in prepared.failures:
        # The catalogue has the same table as when the chunk was prepared, and may have others since.
        failures.add(CannotBuild(view, each.index, each.problem, each.rows))
    failures.record(mutations)
    written = len(prepared) - len(errors)
    return Evaluation(mutations, BulkWritten(commit_ts, written, tuple(sorted({**prepared.errors, **errors}.items()))))


def check_named(table: TableDescriptor, since: Timestamp) -> None:
    """Raise WriteConflict if the table got its name after ``since``."""
    if table.named_ts > since:
        raise WriteConflict(table.full_name, str(since), str(table.named_ts), kind="table")


def _evaluate(
    reader: Reader,
    commit_ts: Timestamp,
    chunk: BulkChunk,
    prepared: PreparedChunk,
    live: Sequence[Version | None] | None = None,
) -> tuple[Mutations, RowErrors]:
    """Return the changes without those of the catalogue, and the errors of rows that are refused. ``live`` are the
    rows' stored versions, if they were read before. Raises CannotBuild."""
    expires_ms = _expires_ms(reader, prepared.view, chunk)
    rules = RowRules(prepared, chunk.mode, chunk.unchanged_since, commit_ts, expires_ms)
    if live is None:
        is_read = prepared.entries or not rules.accept_all
        live = reader.get_many(prepared.row_keys) if is_read else [None] * len(prepared)
    old = _old_entries(reader, prepared, live)
    errors: RowErrors = {}
    mutations = _write_at_once(reader, prepared, live, old, rules, errors)
    if mutations is None:
        errors = {}
        mutations = write_in_sequence(reader, prepared, live, old, rules, errors)
    return mutations, errors


def _delete(
    reader: Reader,
    commit_ts: Timestamp,
    chunk: BulkChunk,
    prepared: PreparedChunk,
    live: Sequence[Version | None],
    *,
    keep_deletes: bool,
) -> tuple[Mutations, RowErrors]:
    """Delete the rows with these keys, and their entries: as :func:`_evaluate`."""
    old = _old_entries(reader, prepared, live)
    rules = RowRules(prepared, chunk.mode, chunk.unchanged_since, commit_ts, 0)
    errors: RowErrors = {}
    gone: dict[LogicalKey, None] = {}
    for row, version in enumerate(live):
        if version is None:
            if keep_deletes:
                gone[prepared.row_keys[row]] = None
            continue
        verdict = rules.judge(row, version)
        if not isinstance(verdict, Verdict):
            errors[prepared.places[row]] = verdict
            continue
        gone[prepared.row_keys[row]] = None
        gone.update((key, None) for entry_keys in old if (key := entry_keys[row]) is not None)
    return Mutations(list(gone), [None] * len(gone)), errors


def _write_at_once(
    reader: Reader,
    prepared: PreparedChunk,
    live: Sequence[Version | None],
    old: Sequence[EntryKeys],
    rules: RowRules,
    errors: RowErrors,
) -> Mutations | None:
    """Return the mutations, or None if the order of the rows matters; ``errors`` takes the errors of rows."""
    if len(set(prepared.row_keys)) != len(prepared):
        return None
    rows: Sequence[int] = range(len(prepared))
    if not rules.accept_all:
        rows = _accepted(prepared, live, rules, errors)
    mutations = Mutations(_pick(prepared.row_keys, rows), list(_pick(prepared.payloads, rows)))
    for place, new in enumerate(prepared.entries):
        old_keys = old[place] if old else None
        moved = rows if old_keys is None else [row for row in rows if old_keys[row] != new.keys[row]]
        renewed = [] if old_keys is None else _renewed(rows, live, old_keys, new.keys, rules)
        if new.index.unique:
            wanted = [new.keys[row] for row in moved if new.exclusive[row]]
            if len(set(wanted)) != len(wanted) or _any_stored(reader.get_many(wanted)):
                return None
        for written in (moved, renewed):
            mutations.keys += _pick(new.keys, written)
            mutations.payloads += new.payloads(prepared.primary_keys, written)
        removed = [] if old_keys is None else [key for row in moved if (key := old_keys[row]) is not None]
        mutations.keys += removed
        mutations.payloads += [None] * len(removed)
    if prepared.expiries is not None or rules.expires_ms:
        written_keys = compress(mutations.keys, [payload is not None for payload in mutations.payloads])
        if prepared.expiries is None:
            mutations.expiries = dict.fromkeys(written_keys, rules.expires_ms)
        else:
            kept = _expiries_by_key(prepared, rows, prepared.expiries)
            mutations.expiries = {key: kept[key] for key in written_keys if key in kept}
    return mutations


def _renewed(
    rows: Sequence[int],
    live: Sequence[Version | None],
    old_keys: EntryKeys,
    keys: Sequence[LogicalKey],
    rules: RowRules,
) -> Sequence[int]:
    """Return the rows with an entry that stays, and has to expire at another time."""
    return [
        row
        for row in rows
        if (version := live[row]) is not None
        and version.expires_ms != rules.expires_of(row)
        and old_keys[row] == keys[row]
    ]


def _expiries_by_key(prepared: PreparedChunk, rows: Sequence[int], expiries: Sequence[int]) -> dict[LogicalKey, int]:
    """Return the expiries of these rows and of their entries, for those that expire at all."""
    by_key = {}
    for row in rows:
        if expiries[row]:
            by_key[prepared.row_keys[row]] = expiries[row]
            by_key.update((new.keys[row], expiries[row]) for new in prepared.entries)
    return by_key


def _accepted(
    prepared: PreparedChunk, live: Sequence[Version | None], rules: RowRules, errors: RowErrors
) -> Sequence[int]:
    """Return the rows to write: without the refused ones, and those that are there already."""
    if (rules.accept_absent and not _any_stored(live)) or (rules.accept_present and all(live)):
        return range(len(prepared))
    rows = []
    for row, version in enumerate(live):
        verdict = rules.judge(row, version)
        if verdict is Verdict.WRITE:
            rows.append(row)
        elif verdict is not Verdict.UNCHANGED:
            errors[prepared.places[row]] = verdict
    return rows


def _old_entries(reader: Reader, prepared: PreparedChunk, live: Sequence[Version | None]) -> list[EntryKeys]:
    """Return, for each index, the key of each row's stored entry, None if there is no row; empty if there are no rows
    at all.

    Raises CannotBuild."""
    if not prepared.entries or not _any_stored(live):
        return []
    keys: list[EntryKeys] = [
        [None if version is None else key for key, version in zip(new.keys, live, strict=True)]
        for new in prepared.entries
    ]
    changed = [
        (row, version.payload)
        for row, version in enumerate(live)
        if version is not None and version.payload != prepared.payloads[row]
    ]
    if changed:
        for entry_keys, entries in zip(keys, _read_entries(prepared, changed), strict=True):
            for (row, _), key in zip(changed, entries, strict=True):
                entry_keys[row] = key
    for new, entry_keys in zip(prepared.entries, keys, strict=True):
        if new.index.unique and is_building(new.index):
            _keep_own(reader, prepared, entry_keys)
    return keys


def _read_entries(prepared: PreparedChunk, stored: Sequence[tuple[int, bytes]]) -> list[list[LogicalKey]]:
    """For each index the keys of the entries of stored rows. Raises CannotBuild."""
    indexes = [each.index for each in prepared.entries]
    try:
        return _entries_of(prepared, indexes, stored)
    except InvalidArgument:
        for index in filter(is_building, indexes):
            try:
                _entries_of(prepared, [index], stored)
            except InvalidArgument as misfit:
                raise CannotBuild(prepared.view, index, misfit.message()) from misfit
        raise


def _entries_of(
    prepared: PreparedChunk, indexes: Sequence[IndexDescriptor], stored: Sequence[tuple[int, bytes]]
) -> list[list[LogicalKey]]:
    view = prepared.view
    payloads = [payload for _, payload in stored]
    keys = [[LogicalKey(b"")] * len(stored) for _ in indexes]
    for places, columns in decode_columns(view, payloads, view.newest, set(indexed_paths(indexes))):
        primary_keys = [prepared.primary_keys[stored[place][0]] for place in places]
        of_group = entries_of_columns(view.table, indexes, columns, primary_keys)
        for entry_keys, entries in zip(keys, of_group, strict=True):
            for place, key in zip(places, entries.keys, strict=True):
                entry_keys[place] = key
    return keys


def _keep_own(reader: Reader, prepared: PreparedChunk, entry_keys: EntryKeys) -> None:
    """While an index is built, a row's entry may not be there, and another row's in its place."""
    rows = [row for row, key in enumerate(entry_keys) if key is not None]
    wanted = [key for key in entry_keys if key is not None]
    for row, holder in zip(rows, reader.get_many(wanted), strict=True):
        if holder is None or holder.payload != prepared.primary_keys[row]:
            entry_keys[row] = None


def _any_stored(versions: Sequence[Version | None]) -> bool:
    # Versions are always true. To compare each with None by code of ours would cost as much as to read it.
    return any(versions)


def _pick(values: list[LogicalKey] | list[bytes], rows: Sequence[int]) -> list:  # type: ignore[type-arg]
    return list(values) if isinstance(rows, range) else [values[row] for row in rows]
