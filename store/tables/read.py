"""Documents by key, and a stored row in the version and form that the reader wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from cortado.schema.documents import decode_document, encode_document
from cortado.schema.json_format import to_json_value
from cortado.schema.json_text import json_text
from cortado.schema.limits import READ_BYTES_MAX
from cortado.store.keys.types import KeyValue
from cortado.store.mvcc.reader import Reader, Version, get_in_pieces
from cortado.store.tables.rows import StoredRow, decode_payload
from cortado.store.tables.view import TableView

PIECE_BYTES: Final = 1 << 20


def get(reader: Reader, view: TableView, key: Sequence[KeyValue]) -> StoredRow | None:
    """Return the document of a whole primary key as it is stored; None if there is none. Raises InvalidArgument."""
    return _stored(reader.get(view.row_key(view.encode_key(key))))


def get_many(reader: Reader, view: TableView, keys: Sequence[Sequence[KeyValue]]) -> Iterator[StoredRow | None]:
    """Yield the result of :func:`get` for each key, in the order asked, read in pieces as they are taken. Errors name
    ``keys[i]``."""
    row_keys = [view.row_key(view.encode_key(key, f"keys[{place}]")) for place, key in enumerate(keys)]
    return map(_stored, chain.from_iterable(get_in_pieces(reader, row_keys, max_bytes=PIECE_BYTES)))


def document_of(view: TableView, row: StoredRow, schema_id: int = 0) -> dict[str, Any]:
    """Return the document as the schema of that id reads it (0: the newest version). Raises as
    :meth:`TableView.writer`."""
    reader_id = schema_id or view.newest_id
    reader_schema = view.writer(reader_id)
    if reader_id == row.schema_id:
        return decode_document(reader_schema, row.body)
    return decode_document(view.stored_schema(row.schema_id), row.body, reader_schema)


def transcode(view: TableView, row: StoredRow, schema_id: int) -> StoredRow:
    """Return the row as if the schema of that id had written it; 0 leaves it as it was written."""
    if schema_id in (0, row.schema_id):
        return row
    return StoredRow(
        schema_id,
        encode_document(view.writer(schema_id), document_of(view, row, schema_id), bytes_max=READ_BYTES_MAX),
        row.ts,
        row.expires_ms,
    )


def json_of(view: TableView, row: StoredRow, schema_id: int = 0) -> str:
    """Return the document as JSON text, as the schema of that id reads it (0: the newest version)."""
    schema = view.writer(schema_id or view.newest_id)
    return json_text(to_json_value(schema, document_of(view, row, schema_id)))


def _stored(version: Version | None) -> StoredRow | None:
    if version is None:
        return None
    schema_id, body = decode_payload(version.payload)
    return StoredRow(schema_id, body, version.ts, version.expires_ms)
