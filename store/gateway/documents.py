"""Documents by key: ``/v1/db/{database}/{table}/{key}``. The parts of the key are segments, texts of their types.

A document is JSON, in the form of :mod:`cortado.schema.json_format`, or ``avro/binary``: its Avro body in the table's
newest schema, or in the version that ``schemaVersion`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import ConditionFailed, InvalidArgument, InvalidDocument, NotFound
from cortado.schema.documents import decode_document
from cortado.schema.json_format import from_json_value
from cortado.schema.model import Schema
from cortado.store.client.documents import Document, type_at
from cortado.store.client.scans import Scan
from cortado.store.client.table import AsyncTable
from cortado.store.client.values import Key, Part, datetime_of
from cortado.store.gateway import listings
from cortado.store.gateway.calls import (
    AT,
    COLUMNS,
    IDEMPOTENCY,
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    JSON,
    LONGS,
    SCHEMA_VERSION,
    TTL,
    Call,
    Operation,
    json_response,
)
from cortado.store.gateway.conditions import is_unchanged, quoted
from cortado.store.gateway.containers import CONTAINER
from cortado.store.gateway.elements import LINES
from cortado.store.gateway.values import document_json, has_text_longs, longs_from_text
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.transfer.key_text import parse_key

AVRO: Final = "avro/binary"
DOCUMENT: Final = "/v1/db/{database}/{table}/{key:path}"


def operations() -> list[Operation]:
    """Return the rows for documents by key."""
    return [
        Operation(
            "GET",
            DOCUMENT,
            get,
            "The document of a key; for some of its parts, the documents whose keys begin with them.",
            (AT, SCHEMA_VERSION, COLUMNS, LONGS, IF_NONE_MATCH, *listings.LISTING),
            gives={200: (JSON, AVRO, LINES, CONTAINER), 304: ()},
        ),
        Operation(
            "PUT",
            DOCUMENT,
            put,
            "Stores a whole document under the key that it holds.",
            (TTL, SCHEMA_VERSION, LONGS, IF_MATCH, IF_ABSENT, IDEMPOTENCY),
            takes=(JSON, AVRO),
            gives={200: (JSON,), 201: (JSON,)},
        ),
        Operation(
            "PATCH",
            DOCUMENT,
            patch,
            "Sets the fields that the body names, by their paths, and no others; answers the document after it.",
            (TTL, LONGS, IF_MATCH, IDEMPOTENCY),
            takes=(JSON,),
        ),
        Operation("DELETE", DOCUMENT, delete, "Deletes the document of a key.", (IF_MATCH, IDEMPOTENCY)),
    ]


async def key_of(call: Call, table: AsyncTable) -> Key:
    """Return the key that the path names."""
    return parse_key(call.rest("key"), (await table.descriptor()).key)


async def get(call: Call) -> Response:
    """Return the document, with its etag and expiry; for a part of a key, all documents whose keys begin so."""
    table = call.table(call.reader())
    parts, given = (await table.descriptor()).key, call.rest("key")
    if call.text("index") is not None or len(given) < len(parts):
        return await listings.documents(call)
    for each in listings.LISTING:
        if call.text(each.name) is not None:
            raise InvalidArgument(each.name, "is for many documents, and the path names one: all parts of a key")
    found = await _found(call, table, parse_key(given, parts))
    if found is None:
        raise NotFound("document", f"{'/'.join(given)} in table {table.full_name}")
    headers = {"ETag": quoted(found.etag), "Cache-Control": "no-cache", "Vary": "Accept"}
    if is_unchanged(call.headers, found.etag):
        return Response(status_code=304, headers=headers)
    if found.expires_ms:
        headers["Cortado-Expires-Ms"] = str(found.expires_ms)
    if call.wanted((JSON, AVRO)) == AVRO:
        if call.text("columns") is not None:
            raise InvalidArgument("columns", f"must not be given together with Accept: {AVRO}")
        schema_id, body = await table.codec.encode(found.value)
        return Response(body, 200, {**headers, "Cortado-Schema-Id": str(schema_id)}, AVRO)
    return json_response(document_json(call, found), headers=headers)


async def _found(call: Call, table: AsyncTable, key: Key) -> Document | None:
    columns = call.columns()
    if columns is None:
        return await table.get(key)
    scan = Scan(prefix=key, columns=columns, with_versions=True)
    found, _ = await table._open_page(scan, b"", rows_max=1, bytes_max=1)
    return found[0] if found else None


async def put(call: Call) -> Response:
    """Return the etag of the stored document; 201 if it had to be new."""
    table, asked = call.table(await call.writer()), call.condition()
    key = await key_of(call, table)
    document = await _document_of(call, table)
    check_key(document, key, (await table.descriptor()).key)
    conditions = {"if_absent": asked.if_absent, "if_present": asked.if_present}
    etag = await table.put(document, **conditions, if_etag=asked.if_etag, expires=call.expires())
    return json_response({"etag": etag}, 201 if asked.if_absent else 200, {"ETag": quoted(etag)})


async def _document_of(call: Call, table: AsyncTable) -> dict[str, Any]:
    """Return the document of the body. Raises InvalidDocument."""
    read: Callable[[Schema], Any]
    if call.media_type() == AVRO:
        read = partial(decode_document, body=await call.body())
    else:
        read = partial(_document_of_json, given=await call.json(), has_text_longs=has_text_longs(call))
    try:
        document = await call.beside(partial(read, (await table.codec.schema())[1]))
    except InvalidDocument:
        # It may fit a schema that was registered since.
        if not await table.codec.refresh():
            raise
        document = await call.beside(partial(read, (await table.codec.schema())[1]))
    found: dict[str, Any] = document
    return found


def _document_of_json(schema: Schema, *, given: Any, has_text_longs: bool) -> Any:
    return from_json_value(schema.root, longs_from_text(schema.root, given) if has_text_longs else given)


async def patch(call: Call) -> Response:
    """Return the document after it."""
    table, asked = call.table(await call.writer()), call.condition()
    key = await key_of(call, table)
    given = await call.json()
    if not isinstance(given, dict):
        raise InvalidArgument("body", "must be an object of field paths and values", type(given).__name__)
    if has_text_longs(call):
        root = (await table.codec.schema())[1].root
        given = {path: longs_from_text(type_at(root, path), each) for path, each in given.items()}
    changes = await table.codec.changes_from_json(given)
    # A missing document is NotFound in any case, so * asks for nothing more.
    updated = await table.update(key, changes, if_etag=asked.if_etag, expires=call.expires())
    return json_response(document_json(call, updated), headers={"ETag": quoted(updated.etag)})


async def delete(call: Call) -> Response:
    """Return whether it existed."""
    table, asked = call.table(await call.writer()), call.condition()
    key = await key_of(call, table)
    existed = await table.delete(key, if_etag=asked.if_etag)
    if asked.if_present and not existed:
        raise ConditionFailed("/".join(call.rest("key")), "present", "absent")
    return json_response({"existed": existed})


def check_key(document: Mapping[str, Any], key: Key, parts: tuple[KeyPart, ...]) -> None:
    """Raise InvalidArgument if a document holds another key than the path names: one of them is a mistake."""
    for part, named in zip(parts, key, strict=True):
        held = _held(document, part.path)
        if not _is_same(held, named, part.type):
            raise InvalidArgument(f"key.{part.path}", f"must be in the document as in the path, {named!r}", repr(held))


def _held(document: Mapping[str, Any], path: str) -> Any:
    found: Any = document
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _is_same(held: Any, named: Part, kind: KeyType) -> bool:
    if kind is KeyType.TIMESTAMP:
        named = datetime_of(named) if isinstance(named, int) else named
        held = datetime_of(held) if isinstance(held, int) else held
        if getattr(held, "tzinfo", named) is None:  # A local timestamp, which a key has as if it were UTC.
            held = held.replace(tzinfo=UTC)
    is_nan = held != held and named != named
    return bool(held == named or is_nan)
