"""One chunk of a bulk stream, prepared as far as that does not depend on stored rows.

The bodies are decoded column by column, and only the key's and the indexed fields become values; every row is checked
on the way. The result is parallel lists of keys and payloads of the good rows, and an error for each bad one::

    bodies + lengths -> columns of the key and of indexed fields -> row keys, index entries, payloads

A bad row is found either by the decoder, which names it, or because a whole column could not be turned into keys. Then
the rows are tried one by one, the bad ones are set aside, and the others go through again: only bad input is slow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from cortado.errors import (
    ConditionFailed,
    CortadoError,
    InvalidArgument,
    InvalidDocument,
    KeyTooLong,
    TooLarge,
    UniqueViolation,
    WriteConflict,
)
from cortado.schema.columnar.column import Column
from cortado.schema.columnar.columns import field_column
from cortado.schema.fields import select_fields
from cortado.schema.model import Schema
from cortado.store.catalog.catalog import Catalog
from cortado.store.keys.bulk import row_keys
from cortado.store.keys.keyspace import ROW_PREFIX_BYTES, index_key, primary_key_of, row_key
from cortado.store.keys.packing import cut
from cortado.store.keys.types import KeyPart, KeyValue, LogicalKey
from cortado.store.tables.building import CannotBuild, is_building
from cortado.store.tables.columns import read_columns
from cortado.store.tables.entries import IndexEntries, entries_of_columns, indexed_paths
from cortado.store.tables.indexes import index_label
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode, JsonDocument, JsonRows
from cortado.store.tables.rows import BATCH_BYTES_MAX, BATCH_ROWS_MAX, DOCUMENT_BYTES_MAX, encode_payload, path_names
from cortado.store.tables.stage import encode_body
from cortado.store.tables.view import TableView

RowErrors = dict[int, CortadoError]
P = TypeVar("P")


@dataclass(slots=True)
class PreparedChunk:
    """The good rows of a chunk as parallel lists, in order; ``places`` has the place of each in the request.

    Valid for any state of the store in which the table and its newest schema are those of ``view``.
    """

    view: TableView
    places: Sequence[int]
    row_keys: list[LogicalKey]
    primary_keys: list[bytes]
    payloads: list[bytes]
    entries: list[IndexEntries]
    errors: RowErrors = field(default_factory=dict)
    expiries: Sequence[int] | None = None
    """The kept expiry of each row, 0 for never; None if the chunk has one for all."""
    failures: Sequence[CannotBuild] = ()
    """Indexes that cannot be built with these rows. ``entries`` has none of theirs."""

    def __len__(self) -> int:
        return len(self.row_keys)

    def fits(self, view: TableView) -> bool:
        return self.view.table == view.table and self.view.newest_id == view.newest_id

    def without(self, failure: CannotBuild) -> PreparedChunk:
        """Return the same rows, without maintenance of that index."""
        return dataclasses.replace(
            self,
            view=self.view.without([failure.index]),
            entries=[each for each in self.entries if each.index != failure.index],
            failures=(*self.failures, failure),
        )


@dataclass(frozen=True, slots=True)
class PreparedParts:
    """The good rows of a chunk that hold some fields alone: their ``columns`` by the fields' names, as the newest
    schema has them. Good for as long as :class:`PreparedChunk`."""

    view: TableView
    places: Sequence[int]
    row_keys: list[LogicalKey]
    columns: Mapping[str, Column]
    errors: RowErrors

    def fits(self, view: TableView) -> bool:
        return self.view.table == view.table and self.view.newest_id == view.newest_id


Prepared: TypeAlias = PreparedChunk | PreparedParts


def prepare_chunk(catalog: Catalog, chunk: BulkChunk) -> Prepared:
    """Decode and check a chunk. Raises NotFound (database, table, schema, field), InvalidArgument and TooLarge for the
    chunk as a whole; a row's error is in ``errors``."""
    view = TableView(catalog, chunk.database, chunk.table)
    return _prepare_parts(view, chunk) if chunk.columns else prepare_documents(view, chunk)


def prepare_documents(view: TableView, chunk: BulkChunk) -> PreparedChunk:
    """Prepare a chunk of whole rows as :func:`prepare_chunk` does."""
    building = list(filter(is_building, view.indexes))
    if not building:
        return _prepare_for(view, chunk)
    first = _outcome(view, chunk)
    if isinstance(first, PreparedChunk) and not first.errors:
        return first
    # A row is bad. If it is good without an index that is being built, the index alone is at fault.
    plain = _prepare_for(view.without(building), chunk)
    failures = []
    for index in building:
        others = [each for each in building if each is not index]
        found = _outcome(view.without(others), chunk)
        if isinstance(found, CortadoError):
            failures.append(CannotBuild(view, index, found.message()))
        elif found.errors.keys() != plain.errors.keys():
            bad = sorted(found.errors.keys() - plain.errors.keys())
            rows = [view.show_key(primary_key_of(plain.row_keys[plain.places.index(row)])) for row in bad]
            failures.append(CannotBuild(view, index, found.errors[bad[0]].message(), rows))
    prepared = _prepare_for(view.without([each.index for each in failures]), chunk)
    return dataclasses.replace(prepared, failures=failures)


def _outcome(view: TableView, chunk: BulkChunk) -> PreparedChunk | CortadoError:
    try:
        return _prepare_for(view, chunk)
    except CortadoError as refusal:
        return refusal


def _prepare_for(view: TableView, chunk: BulkChunk) -> PreparedChunk:
    errors: RowErrors = {}
    if isinstance(chunk.rows, JsonRows):
        rows = _encode_json(view, chunk.rows, errors)
        schema_id, writer = view.newest_id, view.newest
    else:
        rows = _read_rows(chunk.rows)
        schema_id, writer = chunk.rows.schema_id, view.writer(chunk.rows.schema_id, "rows.schema_id")
    return _good(rows, errors, lambda good: _prepare(view, good, schema_id, writer, errors))


def _prepare_parts(view: TableView, chunk: BulkChunk) -> PreparedParts:
    """Raises as :func:`prepare_chunk`."""
    table = view.table
    assert isinstance(chunk.rows, AvroRows)
    writer = select_fields(view.writer(chunk.rows.schema_id, "rows.schema_id"), chunk.columns, table.full_name)
    newest = select_fields(view.newest, chunk.columns, table.full_name)
    of_key = list(dict.fromkeys(path_names(part.path)[0] for part in table.key))
    missing = [name for name in of_key if name not in chunk.columns]
    more = [name for name in chunk.columns if name not in of_key] if chunk.mode is BulkMode.DELETE else []
    if missing or more:
        what = "must be" if chunk.mode is BulkMode.DELETE else "must have"
        problem = f"{what} the fields of the primary key of table {table.full_name}: {', '.join(of_key)}"
        raise InvalidArgument("columns", problem, ", ".join(chunk.columns))
    keyed, errors = view.without(view.indexes), RowErrors()

    def prepare(rows: _Rows) -> PreparedParts:
        columns, bad = read_columns(rows.bodies, rows.lengths, writer, newest, None)
        if bad:
            raise _BadRows(bad)
        columns = {**columns, **{part.path: _at_path(columns, part.path) for part in table.key}}
        with _by_row(keyed, columns, len(rows.places)):
            return PreparedParts(view, rows.places, _keys_of_columns(keyed, columns), columns, errors)

    return _good(_read_rows(chunk.rows), errors, prepare)


def _at_path(columns: Mapping[str, Column], path: str) -> Column:
    first, _, below = path.partition(".")
    return field_column(columns[first], below) if below else columns[first]


def _good(rows: _Rows, errors: RowErrors, prepare: Callable[[_Rows], P]) -> P:
    """Return the result of ``prepare`` for the rows that are fit to be written; the others' errors go to ``errors``."""
    unfit = np.flatnonzero((rows.lengths == 0) | (rows.lengths > DOCUMENT_BYTES_MAX)).tolist()
    if unfit:
        rows = rows.without({row: _wrong_size(int(rows.lengths[row])) for row in unfit}, errors)
    while True:
        try:
            return prepare(rows)
        except _BadRows as bad:
            rows = rows.without(bad.errors, errors)


class _BadRows(Exception):
    """Some rows are not fit to be written, for these reasons."""

    def __init__(self, errors: Mapping[int, CortadoError]) -> None:
        super().__init__()
        self.errors = errors


@dataclass(frozen=True, slots=True)
class _Rows:
    """Bodies that are still thought to be good, and their places in the request."""

    bodies: bytes
    lengths: npt.NDArray[np.uint32]
    places: Sequence[int]

    def cut(self) -> tuple[bytes, ...]:
        return cut(self.bodies, self.lengths.astype("<u4", copy=False).tobytes())

    def without(self, bad: Mapping[int, CortadoError], errors: RowErrors) -> _Rows:
        """Return the other rows. The errors of the bad ones go to ``errors``, under their places in the request."""
        for row, error in bad.items():
            errors[self.places[row]] = at_row(error, self.places[row])
        kept = [row for row in range(len(self.places)) if row not in bad]
        bodies = self.cut()
        return _Rows(b"".join([bodies[row] for row in kept]), self.lengths[kept], [self.places[row] for row in kept])


def _prepare(view: TableView, rows: _Rows, schema_id: int, writer: Schema, errors: RowErrors) -> PreparedChunk:
    table = view.table
    paths = {*(part.path for part in table.key), *indexed_paths(view.indexes)}
    columns, bad = read_columns(rows.bodies, rows.lengths, writer, view.newest, paths)
    if bad:
        raise _BadRows(bad)
    with _by_row(view, columns, len(rows.places)):
        keys = _keys_of_columns(view, columns)
        primary_keys = [key[ROW_PREFIX_BYTES:] for key in keys] if view.indexes else []
        entries = entries_of_columns(table, view.indexes, columns, primary_keys) if view.indexes else []
    head = encode_payload(schema_id, b"")
    payloads = [head + body for body in rows.cut()]
    return PreparedChunk(view, rows.places, keys, primary_keys, payloads, entries, errors)


def _keys_of_columns(view: TableView, columns: Mapping[str, Column]) -> list[LogicalKey]:
    parts = view.table.key
    values = [columns[part.path].key_values() for part in parts]
    return row_keys(view.table.table_id, parts, values, what=view.key_label)


@contextmanager
def _by_row(view: TableView, columns: Mapping[str, Column], count: int) -> Iterator[None]:
    """Raise _BadRows naming the bad rows if a column as a whole can't be made into keys."""
    try:
        yield
    except InvalidArgument as refused:
        bad_keys = _row_by_row(view, columns, count)
        if not bad_keys:
            raise
        raise _BadRows(bad_keys) from refused


def _row_by_row(view: TableView, columns: Mapping[str, Column], count: int) -> RowErrors:
    """Which rows cannot have their keys, and why."""
    table = view.table
    paths = {*(part.path for part in table.key), *indexed_paths(view.indexes)}
    lists = {path: _as_list(columns[path]) for path in paths}

    def values(parts: Sequence[KeyPart], row: int) -> list[KeyValue]:
        return [lists[part.path][row] for part in parts]

    errors: RowErrors = {}
    for row in range(count):
        try:
            primary_key = row_key(table.table_id, table.key, values(table.key, row), what=view.key_label)
            for index in view.indexes:
                index_key(
                    table.table_id,
                    index.index_id,
                    index.parts,
                    values(index.parts, row),
                    primary_key[ROW_PREFIX_BYTES:],
                    unique=index.unique,
                    what=index_label(table, index),
                )
        except KeyTooLong as error:
            errors[row] = error
        except InvalidArgument as error:
            errors[row] = InvalidDocument(error.field, error.problem, error.value)
    return errors


def _as_list(column: Column) -> Sequence[KeyValue]:
    values = column.key_values()
    return values.tolist() if isinstance(values, np.ndarray) else values


def _read_rows(rows: AvroRows) -> _Rows:
    if len(rows.lengths) % 4:
        raise InvalidArgument("rows.lengths", "must have 4 bytes a row", f"{len(rows.lengths)} bytes")
    lengths = np.frombuffer(rows.lengths, dtype="<u4").astype(np.uint32, copy=False)
    _check_bounds(len(lengths), len(rows.bodies))
    total = int(lengths.sum(dtype=np.uint64))
    if total != len(rows.bodies):
        problem = f"rows.bodies has {len(rows.bodies)} bytes, the lengths add up to another number"
        raise InvalidArgument("rows.lengths", problem, str(total))
    return _Rows(rows.bodies, lengths, range(len(lengths)))


def _encode_json(view: TableView, rows: JsonRows, errors: RowErrors) -> _Rows:
    _check_bounds(len(rows.texts), 0)
    bodies: list[bytes] = []
    places: list[int] = []
    body_bytes = 0
    for place, text in enumerate(rows.texts):
        try:
            bodies.append(encode_body(view.newest, JsonDocument(text)))
            places.append(place)
        except InvalidArgument as error:
            errors[place] = at_row(error, place)
            continue
        # As it grows: defaults may make documents many times larger than their texts.
        body_bytes += len(bodies[-1])
        _check_bounds(len(bodies), body_bytes)
    lengths = np.fromiter(map(len, bodies), dtype=np.uint32, count=len(bodies))
    return _Rows(b"".join(bodies), lengths, places)


def _check_bounds(rows: int, body_bytes: int) -> None:
    if rows > BATCH_ROWS_MAX:
        raise TooLarge("rows", f"a chunk may have {BATCH_ROWS_MAX} rows", str(rows), rows, BATCH_ROWS_MAX)
    if body_bytes > BATCH_BYTES_MAX:
        problem = f"a chunk may have {BATCH_BYTES_MAX} bytes of documents"
        raise TooLarge("rows", problem, f"{body_bytes} bytes", body_bytes, BATCH_BYTES_MAX)


def _wrong_size(length: int) -> InvalidArgument:
    if length == 0:  # No Avro record with a key in it is empty.
        return InvalidDocument("document", "is empty")
    problem = f"a document may have {DOCUMENT_BYTES_MAX} bytes of Avro"
    return TooLarge("document", problem, f"{length} bytes", length, DOCUMENT_BYTES_MAX)


def at_row(error: CortadoError, row: int) -> CortadoError:
    """Return the error with its row's place in the request, if it names one."""
    if isinstance(error, InvalidDocument | ConditionFailed | UniqueViolation | WriteConflict):
        return dataclasses.replace(error, row=row)
    return error
