"""Documents, one by one or as an atomic batch: from an operation to an evaluation.

Each function here is the body of a command: it reads through the reader, refuses by raising, and returns what changes.
A single operation is a batch of one, so there is one way from a document to its row and its index entries::

    Put, Update, Delete  ->  RowChange (old and new document)  ->  Mutations (row, entries removed and added)

An upsert into a table without indexes does not even read the old row: nothing depends on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, assert_never

from cortado.errors import InvalidArgument, NotFound, TooLarge
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Schema
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Absent, Condition, Evaluation, Present, check_condition
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.tables.batch import RowChange, mutations_of
from cortado.store.tables.changes import apply_changes
from cortado.store.tables.columns import decode_indexed
from cortado.store.tables.json_input import encode_json_document
from cortado.store.tables.operations import (
    AvroDocument,
    Delete,
    Deleted,
    DocumentInput,
    JsonDocument,
    Operation,
    Put,
    PutMode,
    Update,
    Updated,
    Written,
)
from cortado.store.tables.prepared import PreparedDocument, prepare_each
from cortado.store.tables.rows import (
    BATCH_BYTES_MAX,
    BATCH_ROWS_MAX,
    DOCUMENT_BYTES_MAX,
    StoredRow,
    decode_payload,
    encode_payload,
)
from cortado.store.tables.view import TableView

_MODE_CONDITIONS: dict[PutMode, Condition | None] = {
    PutMode.UPSERT: None,
    PutMode.INSERT: Absent(),
    PutMode.REPLACE: Present(),
}

NOTHING_PREPARED: Final[Mapping[int, PreparedDocument | None]] = MappingProxyType({})


def prepare_documents(
    catalog: Catalog, documents: Sequence[tuple[str, str, DocumentInput]]
) -> Iterator[PreparedDocument | None]:
    """Read documents (of a database and table) one by one, before their puts are evaluated with what comes out."""
    return prepare_each(catalog, documents, read_input)


def evaluate_put(
    reader: Reader, commit_ts: Timestamp, catalog: Catalog, put: Put, prepared: PreparedDocument | None = None
) -> Evaluation:
    """Reply: :class:`Written`. ``prepared`` saves reading the document.

    Raises NotFound (database, table, schema), InvalidDocument, TooLarge, KeyTooLong, ConditionFailed, UniqueViolation.
    """
    change = _Stage(reader, {0: prepared}).put(TableView(catalog, put.database, put.table), put)
    return Evaluation(mutations_of(reader, [change]), Written(commit_ts))


def evaluate_update(reader: Reader, commit_ts: Timestamp, catalog: Catalog, update: Update) -> Evaluation:
    """Reply: :class:`Updated`. Raises as :func:`evaluate_put`, and NotFound where there is no such document."""
    change = _Stage(reader).update(TableView(catalog, update.database, update.table), update)
    assert change.payload is not None
    schema_id, body = decode_payload(change.payload)
    return Evaluation(mutations_of(reader, [change]), Updated(StoredRow(schema_id, body, commit_ts)))


def evaluate_delete(reader: Reader, commit_ts: Timestamp, catalog: Catalog, delete: Delete) -> Evaluation:
    """Reply: :class:`Deleted`. Raises NotFound (database, table), InvalidArgument, ConditionFailed."""
    change = _Stage(reader).delete(TableView(catalog, delete.database, delete.table), delete)
    if change is None:
        return Evaluation(Mutations(), Deleted(commit_ts, existed=False))
    return Evaluation(mutations_of(reader, [change]), Deleted(commit_ts, existed=True))


def evaluate_batch(
    reader: Reader,
    commit_ts: Timestamp,
    catalog: Catalog,
    operations: Sequence[Operation],
    prepared: Mapping[int, PreparedDocument | None] = NOTHING_PREPARED,
) -> Evaluation:
    """All operations or none, a key at most once. Reply: :class:`Written`; errors name the operation by its place.

    ``prepared`` saves reading the documents of the puts at these places.

    Raises as the single operations do, and TooLarge above 10,000 operations or 4 MiB of documents.
    """
    check_operations(len(operations))
    views: dict[tuple[str, str], TableView] = {}
    changes: list[RowChange] = []
    stage = _Stage(reader, prepared)
    size_bytes = 0
    for row, operation in enumerate(operations):
        name = (operation.database, operation.table)
        view = views.get(name)
        if view is None:
            view = views[name] = TableView(catalog, *name)
        try:
            change = stage.any(view, operation, row)
        except InvalidArgument as error:
            raise dataclasses.replace(error, field=f"operations[{row}].{error.field}".rstrip(".")) from error
        if change is None:
            continue
        size_bytes += len(change.payload or b"")
        if size_bytes > BATCH_BYTES_MAX:
            problem = f"a batch may have {BATCH_BYTES_MAX} bytes of documents: use the bulk stream"
            raise TooLarge("operations", problem, f"more at operation {row}", size_bytes, BATCH_BYTES_MAX)
        changes.append(change)
    return Evaluation(mutations_of(reader, changes), Written(commit_ts))


def check_operations(count: int) -> None:
    """Raises TooLarge where a batch has more operations than it may."""
    if count > BATCH_ROWS_MAX:
        problem = f"a batch may have {BATCH_ROWS_MAX} operations: use the bulk stream"
        raise TooLarge("operations", problem, str(count), count, BATCH_ROWS_MAX)


class _Stage:
    """From operations to changes of rows, each of a row of its own; ``row`` is an operation's place in the batch."""

    def __init__(self, reader: Reader, prepared: Mapping[int, PreparedDocument | None] = NOTHING_PREPARED) -> None:
        self._reader = reader
        self._prepared = prepared
        self._places: dict[LogicalKey, int] = {}

    def any(self, view: TableView, operation: Operation, row: int) -> RowChange | None:
        match operation:
            case Put():
                return self.put(view, operation, row)
            case Update():
                return self.update(view, operation, row)
            case Delete():
                return self.delete(view, operation, row)
            case _:
                assert_never(operation)

    def put(self, view: TableView, put: Put, row: int = 0) -> RowChange:
        prepared = self._prepared.get(row)
        if prepared is not None and prepared.fits(view):
            payload, new = prepared.result()
        else:
            payload, new = read_input(view, put.document)
        primary_key = view.key_of(new)
        row_key = self._claim(view, primary_key, row)
        old = None
        if view.table.indexes or put.condition is not None or put.mode is not PutMode.UPSERT:
            live = self._reader.get(row_key)
            for condition in (_MODE_CONDITIONS[put.mode], put.condition):
                _check(condition, view, primary_key, live, row)
            old = _decode_old(view, live)
        return RowChange(view, primary_key, old, new, payload, row)

    def update(self, view: TableView, update: Update, row: int = 0) -> RowChange:
        primary_key = view.encode_key(update.key)
        live = self._reader.get(self._claim(view, primary_key, row))
        _check(update.condition, view, primary_key, live, row)
        if live is None:
            raise NotFound("document", view.show_key(primary_key))
        old = view.decode(live.payload)
        body = encode_document(view.newest, apply_changes(view, old, update.changes, json=update.json))
        # As the schema reads it back: a value that was given in a wider Python type must not reach an index as it came.
        new = decode_document(view.newest, body)
        return RowChange(view, primary_key, old, new, encode_payload(view.newest_id, body), row)

    def delete(self, view: TableView, delete: Delete, row: int = 0) -> RowChange | None:
        primary_key = view.encode_key(delete.key)
        live = self._reader.get(self._claim(view, primary_key, row))
        _check(delete.condition, view, primary_key, live, row)
        if live is None:
            return None
        return RowChange(view, primary_key, _decode_old(view, live), None, None, row)

    def _claim(self, view: TableView, primary_key: bytes, row: int) -> LogicalKey:
        """The row's key, which no other operation of the batch has. Raises InvalidArgument."""
        row_key = view.row_key(primary_key)
        other = self._places.setdefault(row_key, row)
        if other != row:
            raise InvalidArgument("key", f"operation {other} of the batch has the same key", view.show_key(primary_key))
        return row_key


def read_input(view: TableView, document: DocumentInput) -> tuple[bytes, dict[str, Any]]:
    """``(payload, document as the newest version reads it)``. Raises InvalidDocument, TooLarge, NotFound."""
    schema_id = document.schema_id
    if isinstance(document, JsonDocument) and schema_id == 0:
        schema_id = view.newest_id
    schema = view.writer(schema_id, "document.schema_id")
    body = encode_body(schema, document)
    reader_schema = None if schema_id == view.newest_id else view.newest
    return encode_payload(schema_id, body), decode_document(schema, body, reader_schema)


def encode_body(schema: Schema, document: DocumentInput) -> bytes:
    """The Avro body of a document in ``schema``; one that came as Avro is not checked here but for its size."""
    body = document.body if isinstance(document, AvroDocument) else encode_json_document(schema, document.text)
    _check_size(body)
    return body


def _check(condition: Condition | None, view: TableView, primary_key: bytes, live: Version | None, row: int) -> None:
    if condition is not None:
        check_condition(condition, view.show_key(primary_key), live, row=row)


def _check_size(body: bytes) -> None:
    if len(body) > DOCUMENT_BYTES_MAX:
        problem = f"a document may have {DOCUMENT_BYTES_MAX} bytes of Avro"
        raise TooLarge("document", problem, f"{len(body)} bytes", len(body), DOCUMENT_BYTES_MAX)


def _decode_old(view: TableView, live: Version | None) -> dict[str, Any] | None:
    """The old document, where index entries may have to go."""
    return decode_indexed(view, live.payload) if live is not None and view.table.indexes else None
