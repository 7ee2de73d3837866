"""Documents by key: ``/v1/db/{database}/{table}/{key}``. The parts of the key are segments, texts of their types.

A document is JSON, in the form of :mod:`cortado.schema.json_format`, or ``avro/binary``: its Avro body in the table's
newest schema, or in the version that ``schemaVersion`` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import ConditionFailed, InvalidArgument, NotFound
from cortado.schema.documents import decode_document
from cortado.store.client.documents import Document
from cortado.store.client.put_mode import PutMode
from cortado.store.client.table import AsyncTable
from cortado.store.client.values import Key, Part, datetime_of
from cortado.store.gateway.calls import Call, json_response
from cortado.store.gateway.conditions import Condition, is_unchanged, quoted
from cortado.store.gateway.operations import (
    AT,
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    JSON,
    TTL,
    Operation,
    Parameter,
)
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.transfer.key_text import parse_key

AVRO: Final = "avro/binary"
DOCUMENT: Final = "/v1/db/{database}/{table}/{key:path}"

SCHEMA_VERSION: Final = Parameter("schemaVersion", "The version of the schema to read or write with.", kind="integer")
FIELDS: Final = Parameter("fields", "Only these fields, with commas between them.")

_SCHEMA_VERSION_MAX: Final = (1 << 32) - 1


def operations() -> list[Operation]:
    """What is served of documents by key."""
    return [
        Operation(
            "GET",
            DOCUMENT,
            get,
            "The document of a key.",
            (AT, SCHEMA_VERSION, FIELDS, IF_NONE_MATCH),
            gives={200: (JSON, AVRO), 304: ()},
        ),
        Operation(
            "PUT",
            DOCUMENT,
            put,
            "Stores a whole document under the key that it holds.",
            (TTL, SCHEMA_VERSION, IF_MATCH, IF_ABSENT),
            takes=(JSON, AVRO),
            gives={200: (JSON,), 201: (JSON,)},
        ),
        Operation(
            "PATCH",
            DOCUMENT,
            patch,
            "Sets the fields that the body names, by their paths, and no others; answers the document after it.",
            (TTL, IF_MATCH),
            takes=(JSON,),
        ),
        Operation("DELETE", DOCUMENT, delete, "Deletes the document of a key.", (IF_MATCH,)),
    ]


def table_of(call: Call) -> AsyncTable:
    """The table that the path names, in the version of its schema that is asked for."""
    name = f"{call.name('database')}.{call.name('table')}"
    version = call.number("schemaVersion", 1, _SCHEMA_VERSION_MAX)
    return call.client.table(name, schema_version=version)


async def key_of(call: Call, table: AsyncTable) -> Key:
    """The key that the path names."""
    return parse_key(call.rest("key"), (await table.descriptor()).key)


async def get(call: Call) -> Response:
    """The document, with its etag and when it expires."""
    if call.text("at") is not None:
        call.client = call.client.at(call.text("at"))
    table = table_of(call)
    key = await key_of(call, table)
    found = await _found(call, table, key)
    if found is None:
        raise NotFound("document", f"{'/'.join(call.rest('key'))} in table {table.full_name}")
    headers = {"ETag": quoted(found.etag), "Cache-Control": "no-cache", "Vary": "Accept"}
    if is_unchanged(call.headers, found.etag):
        return Response(status_code=304, headers=headers)
    if found.expires_ms:
        headers["Cortado-Expires-Ms"] = str(found.expires_ms)
    if call.accepts(AVRO):
        if call.text("fields") is not None:
            raise InvalidArgument("fields", f"must not be given together with Accept: {AVRO}")
        schema_id, body = await table.codec.encode(found.value)
        return Response(body, 200, {**headers, "Cortado-Schema-Id": str(schema_id)}, AVRO)
    return json_response(found.to_json(), headers=headers)


async def _found(call: Call, table: AsyncTable, key: Key) -> Document | None:
    fields = call.text("fields")
    if fields is None:
        return await table.get(key)
    columns = [each.strip() for each in fields.split(",")]
    return await anext(table.scan(prefix=key, columns=columns, limit=1), None)


async def put(call: Call) -> Response:
    """The etag of what was stored; 201 where it was asked to be new."""
    table, asked = table_of(call), call.condition()
    key = await key_of(call, table)
    if call.media_type() == AVRO:
        document = decode_document((await table.codec.schema())[1], await call.body())
    else:
        document = await table.codec.from_json(await call.json())
    check_key(document, key, (await table.descriptor()).key)
    etag = await table.put(document, mode=mode_of(asked), if_match=asked.if_match, expires=call.expires())
    return json_response({"etag": etag}, 201 if asked.if_absent else 200, {"ETag": quoted(etag)})


async def patch(call: Call) -> Response:
    """The document after it."""
    table, asked = table_of(call), call.condition()
    key = await key_of(call, table)
    given = await call.json()
    if not isinstance(given, dict):
        raise InvalidArgument("body", "must be an object of field paths and values", type(given).__name__)
    changes = await table.codec.changes_from_json(given)
    # What is not there is NotFound in any case, so * asks for nothing more.
    updated = await table.update(key, changes, if_match=asked.if_match, expires=call.expires())
    return json_response(updated.to_json(), headers={"ETag": quoted(updated.etag)})


async def delete(call: Call) -> Response:
    """Whether it existed."""
    table, asked = table_of(call), call.condition()
    key = await key_of(call, table)
    existed = await table.delete(key, if_match=asked.if_match)
    if asked.if_present and not existed:
        raise ConditionFailed("/".join(call.rest("key")), "present", "absent")
    return json_response({"existed": existed})


def mode_of(asked: Condition) -> PutMode:
    """The rows that a put with this condition writes."""
    return "insert" if asked.if_absent else "replace" if asked.if_present else "upsert"


def check_key(document: Mapping[str, Any], key: Key, parts: tuple[KeyPart, ...]) -> None:
    """Raises InvalidArgument where a document holds another key than the path names: one of them is a mistake."""
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
