"""Operations on rows, one after another: each row before, and after all of them.

A stage lies over the newest state. An operation sees its row as those before it left it. In the end each row has one
change, from the stored state to the last one, and uniqueness is judged on that (``batch.py``)::

    put (a, 1)     no row  -> a=1
    update (a, 2)   a=1    -> a=2       one change in the end: no row -> a=2
    delete (b)      b=7    -> no row    and another one

A put into a table without indexes does not even read the stored row: nothing depends on it.
"""

from __future__ import annotations

from typing import Any, Final

from cortado.errors import ConditionFailed, InvalidArgument, NotFound, TooLarge
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Kind, Primitive, Schema, Union
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.counting import INT32, INT64, Bounds, add_within
from cortado.store.mvcc.evaluation import Absent, Condition, Present, check_condition
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Version
from cortado.store.mvcc.transacting import Origin, own_version
from cortado.store.tables.batch import RowChange, mutations_of
from cortado.store.tables.building import BuildFailures
from cortado.store.tables.changes import apply_changes, type_at
from cortado.store.tables.columns import decode_indexed
from cortado.store.tables.json_input import encode_json_document
from cortado.store.tables.operations import (
    Add,
    AvroDocument,
    Check,
    Delete,
    DocumentInput,
    JsonDocument,
    Put,
    PutMode,
    Update,
)
from cortado.store.tables.prepared import PreparedDocument
from cortado.store.tables.rows import DOCUMENT_BYTES_MAX, encode_payload, value_at
from cortado.store.tables.view import TableView

_MODE_CONDITIONS: Final[dict[PutMode, Condition | None]] = {
    PutMode.UPSERT: None,
    PutMode.INSERT: Absent(),
    PutMode.REPLACE: Present(),
}
_NUMBERS: Final[dict[Kind, Bounds]] = {Kind.INT: INT32, Kind.LONG: INT64}


class RowStage:
    """Every method takes ``row``, the operation's place, which errors name."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._reader = origin.reader
        self._changes: dict[LogicalKey, RowChange] = {}
        self._failures = BuildFailures()

    def mutations(self) -> Mutations:
        """Return the mutations of all changes. Raises UniqueViolation, WriteConflict, KeyTooLong."""
        return mutations_of(self._origin, self._changes.values(), self._failures)

    def put(self, view: TableView, put: Put, row: int = 0, prepared: PreparedDocument | None = None) -> RowChange:
        """Raises InvalidDocument, TooLarge, KeyTooLong, NotFound (schema), ConditionFailed, WriteConflict."""
        if prepared is not None and prepared.fits(view):
            payload, new = prepared.result()
        else:
            payload, new = read_input(view, put.document)
        primary_key = view.key_of(new)
        row_key = view.row_key(primary_key)
        old, live = None, None
        if view.indexes or put.condition is not None or put.mode is not PutMode.UPSERT:
            live = self._live(row_key)
            for condition in (_MODE_CONDITIONS[put.mode], put.condition):
                self._check(condition, view, primary_key, live, row)
            old = self._stored(view, row_key, live)
        expiry = Expiry(view.table.ttl_ms) if put.expiry is None else put.expiry
        expires = self._old_expires_ms(row_key, live), expiry.expires_ms(self._reader)
        return self._take(row_key, RowChange(view, primary_key, old, new, payload, row, *expires))

    def update(self, view: TableView, update: Update, row: int = 0) -> RowChange:
        """Change a document's fields. Raises as :meth:`put`; NotFound if there is no such document; InvalidArgument
        without any change."""
        if not update.changes and update.expiry is None:
            raise InvalidArgument("changes", "must name at least one field, or the expiry must be said")
        primary_key = view.encode_key(update.key)
        live = self._live(view.row_key(primary_key))
        self._check(update.condition, view, primary_key, live, row)
        old = self._existing(view, primary_key, live, row)
        with self._origin.resting_on(view.row_key(primary_key), lambda: view.show_key(primary_key), row):
            changed = apply_changes(view, old, update.changes, json=update.json)
            return self._change(view, primary_key, live, (old, changed), row, update.expiry)

    def delete(self, view: TableView, delete: Delete, row: int = 0) -> bool:
        """Delete a document. Returns whether there was one. Raises InvalidArgument, KeyTooLong, ConditionFailed,
        WriteConflict."""
        primary_key = view.encode_key(delete.key)
        row_key = view.row_key(primary_key)
        live = self._live(row_key)
        self._check(delete.condition, view, primary_key, live, row)
        if live is None:
            return False
        if row_key in self._changes and self._reader.get(row_key) is None:
            # It came with this transaction, and goes with it.
            del self._changes[row_key]
        else:
            old, old_expires_ms = self._stored(view, row_key, live), self._old_expires_ms(row_key, live)
            self._take(row_key, RowChange(view, primary_key, old, None, None, row, old_expires_ms))
        return True

    def add(self, view: TableView, add: Add, row: int = 0) -> tuple[int, RowChange]:
        """Return the sum, and the row's change. Raises as :meth:`update`; OutOfBounds; InvalidArgument if the field
        holds no whole number."""
        primary_key = view.encode_key(add.key)
        live = self._live(view.row_key(primary_key))
        old = self._existing(view, primary_key, live, row)
        bounds = _bounds_of(view, add.field)
        shown = view.show_key(primary_key)
        with self._origin.resting_on(view.row_key(primary_key), lambda: shown, row):
            value = value_at(old, add.field)
            if value is None:
                raise InvalidArgument("field", f"{add.field} is null in {shown}: set it first")
            total = add_within(value, add.delta, (add.min, add.max), bounds, f"{shown}.{add.field}", row)
        changed = apply_changes(view, old, {add.field: total}, json=False)
        return total, self._change(view, primary_key, live, (old, changed), row)

    def check(self, view: TableView, check: Check, row: int = 0) -> None:
        """Raises InvalidArgument, KeyTooLong, ConditionFailed, WriteConflict."""
        primary_key = view.encode_key(check.key)
        self._check(check.condition, view, primary_key, self._live(view.row_key(primary_key)), row)

    def _live(self, row_key: LogicalKey) -> Version | None:
        change = self._changes.get(row_key)
        if change is None:
            return self._origin.read(self._reader.get(row_key))
        return own_version(change.payload, change.expires_ms)

    def _old_expires_ms(self, row_key: LogicalKey, live: Version | None) -> int:
        """Return the row's expiry before the transaction; 0 for one that was not read."""
        change = self._changes.get(row_key)
        if change is not None:
            return change.old_expires_ms
        return 0 if live is None else live.expires_ms

    def _stored(self, view: TableView, row_key: LogicalKey, live: Version | None) -> Any:
        """Return the document before the transaction, if index entries may have to go."""
        change = self._changes.get(row_key)
        if change is not None:
            return change.old
        if live is None or not view.indexes:
            return None
        self._origin.decode(len(live.payload))
        return decode_indexed(view, live.payload, row_key, self._failures)

    def _existing(self, view: TableView, primary_key: bytes, live: Version | None, row: int) -> dict[str, Any]:
        if live is None:
            shown = view.show_key(primary_key)
            self._origin.refuse(NotFound("document", shown), [view.row_key(primary_key)], lambda: shown, row)
        self._origin.decode(len(live.payload))
        return view.decode(live.payload)

    def _change(
        self,
        view: TableView,
        primary_key: bytes,
        live: Version | None,
        documents: tuple[Any, Any],
        row: int,
        expiry: Expiry | None = None,
    ) -> RowChange:
        """From the first of the documents, which is ``live``, to the second."""
        before, after = documents
        body = encode_document(view.newest, after)
        _check_size(body)
        # As the schema reads it back: a value that was given in a wider Python type must not reach an index as it came.
        new = decode_document(view.newest, body)
        row_key = view.row_key(primary_key)
        old = self._changes[row_key].old if row_key in self._changes else before
        old_expires_ms = self._old_expires_ms(row_key, live)
        kept_ms = 0 if live is None else live.expires_ms
        expires_ms = kept_ms if expiry is None else expiry.expires_ms(self._reader)
        payload = encode_payload(view.newest_id, body)
        return self._take(row_key, RowChange(view, primary_key, old, new, payload, row, old_expires_ms, expires_ms))

    def _take(self, row_key: LogicalKey, change: RowChange) -> RowChange:
        self._changes[row_key] = change
        return change

    def _check(
        self, condition: Condition | None, view: TableView, primary_key: bytes, live: Version | None, row: int
    ) -> None:
        if condition is None:
            return
        shown = view.show_key(primary_key)
        try:
            check_condition(condition, shown, live, row=row)
        except ConditionFailed as refusal:
            self._origin.refuse(refusal, [view.row_key(primary_key)], lambda: shown, row)


def _bounds_of(view: TableView, path: str) -> Bounds:
    """Return the bounds of the whole numbers that a field holds. Raises NotFound, InvalidArgument."""
    found = type_at(view.newest.root, path, view.table)
    if isinstance(found, Union):
        found = found.nullable or found
    bounds = _NUMBERS.get(found.kind) if isinstance(found, Primitive) and found.logical is None else None
    if bounds is None:
        raise InvalidArgument(
            "field", f"{path} of table {view.table.full_name} must be an int or a long to be added to"
        )
    return bounds


# --- input ---------------------------------------------------------------------------------------------------------


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
    """Return the Avro body of a document in ``schema``; one that came as Avro is not checked here but for its size."""
    body = document.body if isinstance(document, AvroDocument) else encode_json_document(schema, document.text)
    _check_size(body)
    return body


def _check_size(body: bytes) -> None:
    if len(body) > DOCUMENT_BYTES_MAX:
        problem = f"a document may have {DOCUMENT_BYTES_MAX} bytes of Avro"
        raise TooLarge("document", problem, f"{len(body)} bytes", len(body), DOCUMENT_BYTES_MAX)
