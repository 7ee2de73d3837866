"""All versions of a key as they are stored, with the meaning of their payloads."""

from __future__ import annotations

import json
from typing import Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from cortado.errors import CortadoError, InvalidArgument, NotFound
from cortado.proto.internal import catalog_pb2
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.schema.documents import decode_document
from cortado.schema.json_format import to_json_value
from cortado.schema.json_text import json_text
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO
from cortado.store.engine.interface import Space
from cortado.store.keys.codec import encode_parts, successor_of_prefix
from cortado.store.keys.decoded import DecodedKey, KeyKind, KeyNames, decode_key
from cortado.store.keys.dump import dump_parts
from cortado.store.keys.keyspace import index_prefix, kv_key, row_prefix
from cortado.store.keys.types import KeyPart
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, request_shape
from cortado.store.mvcc.stored_messages import decode_stored
from cortado.store.mvcc.versions import DELETE, EXPIRING, PAYLOAD, PUT, RESIDUE, checksum, expiry_of, payload_of
from cortado.store.server.convert import key_values, timestamp_message
from cortado.store.server.inspection.state import Stored, bounded
from cortado.store.tables.rows import decode_payload

VERSIONS_MAX: Final = 1_000
PAYLOAD_BYTES_DEFAULT: Final = 64 << 10
PAYLOAD_BYTES_MAX: Final = 1 << 20
_PAGE_BYTES: Final = 512 << 10
_REPLY_BYTES: Final = 1 << 20
# A document may be several times as large as JSON; one that is larger is left to its bytes, so that it fits a message.
_VALUE_CHARS_MAX: Final = 1 << 20
_KINDS: Final = {PUT: "put", EXPIRING: "put", DELETE: "delete"}
_CATALOG_VALUES: Final[dict[object, type[Message]]] = {
    "catalog": catalog_pb2.StoredCounters,
    "database": catalog_pb2.StoredDatabase,
    "table": catalog_pb2.StoredTable,
    "schema": catalog_pb2.StoredSchema,
    "subject": catalog_pb2.StoredSubject,
    "namespace": catalog_pb2.StoredNamespace,
}


def read_versions(stored: Stored, request: pb.ReadVersionsRequest) -> pb.ReadVersionsResponse:
    """Return a page of versions; the caller sets the header.

    Raises InvalidArgument, InvalidPageToken, NotFound (the table or index), DataLoss (the catalog; a damaged version is
    shown).
    """
    size = bounded("page_size", request.page_size, VERSIONS_MAX, VERSIONS_MAX)
    payload_max = bounded("payload_bytes_max", request.payload_bytes_max, PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX)
    start, end = target_range(stored, request)
    shape = request_shape("ReadVersions", start, end, payload_max)
    if request.page_token:
        start = decode_token(request.page_token, shape).resume_within(start, end)
    reader = _Reader(stored, payload_max)
    piece = stored.begin_slice()
    with stored.engine.read() as txn:
        page = txn.page(Space.DATA, start, end, max_items=size, max_bytes=_PAGE_BYTES)
    reply = pb.ReadVersionsResponse()
    reply_bytes = 0
    for key, value in zip(page.keys, page.values, strict=True):
        if reply.versions and (piece.is_over or reply_bytes > _REPLY_BYTES):
            reply.next_page_token = encode_token(PageToken(ZERO, key), shape)
            return reply
        version = reader.version(key, value)
        reply_bytes += version.ByteSize()
        reply.versions.append(version)
    if not page.exhausted:
        # No stored key is the beginning of another, so nothing lies between.
        reply.next_page_token = encode_token(PageToken(ZERO, page.keys[-1] + b"\0"), shape)
    return reply


# --- which keys ------------------------------------------------------------------------------------------------


def target_range(stored: Stored, request: pb.ReadVersionsRequest) -> tuple[bytes, bytes]:
    """Return the range of engine keys that a request asks for, [start, end). Raises InvalidArgument, NotFound,
    DataLoss."""
    match request.WhichOneof("target"):
        case "key":
            start = _logical(request.key)
        case "kv":
            start = _pair(stored, request.kv)
        case "row":
            table = stored.catalog().table(request.row.database, request.row.table)
            values = key_values(request.row.key, table.key, "row.key")
            start = row_prefix(table.table_id) + encode_parts(values, table.key[: len(values)])
        case "index":
            start = _entries(stored.catalog(), request.index)
        case _:
            raise InvalidArgument("target", "must be set: key, kv, row or index")
    return start, successor_of_prefix(start)


def _pair(stored: Stored, target: pb.KvTarget) -> bytes:
    generation = generation_of(stored.catalog().reader, target.namespace)
    return kv_key(target.namespace, target.key, generation)


def _logical(key: bytes) -> bytes:
    """Return a stored key without its timestamp. An unknown key may be a damaged one, and is returned as it is."""
    if not key.strip(b"\xff"):
        raise InvalidArgument("key", "must be a stored key", key.hex() or "nothing")
    decoded = decode_key(key)
    if decoded.kind in (KeyKind.ROW, KeyKind.INDEX_ENTRY, KeyKind.PAIR, KeyKind.CATALOG, KeyKind.STAGED):
        return key if decoded.ts is None else key[:-TIMESTAMP_BYTES]
    if decoded.kind is KeyKind.UNKNOWN:
        return key
    raise InvalidArgument("key", f"is of the {decoded.kind}, which has no versions", key.hex())


def _entries(catalog: Catalog, target: pb.IndexTarget) -> bytes:
    table = catalog.table(target.database, target.table)
    index = table.index(target.index)
    if index is None:
        raise NotFound("index", f"{table.full_name}.{target.index}")
    # Behind the indexed values an entry may hold the primary key.
    parts: tuple[KeyPart, ...] = index.parts + table.key
    values = key_values(target.values, parts, "index.values")
    return index_prefix(table.table_id, index.index_id) + encode_parts(values, parts[: len(values)])


# --- decoded versions ------------------------------------------------------------------------------------------


class _Reader:
    """Decodes versions with the newest catalog, as reads do."""

    def __init__(self, stored: Stored, payload_bytes_max: int) -> None:
        self._stored = stored
        self._payload_bytes_max = payload_bytes_max
        self._names: KeyNames = stored.names()
        self._catalog: Catalog | None = None

    def version(self, key: bytes, value: bytes) -> pb.StoredVersion:
        decoded = decode_key(key)
        payload = payload_of(value) or value[PAYLOAD]
        shown = pb.StoredVersion(
            key=pb.StoredKey(key=key, text=decoded.text(self._names)),
            timestamp=None if decoded.ts is None else timestamp_message(decoded.ts),
            kind=_KINDS.get(value[:1], "unknown"),
            payload_bytes=len(payload),
            payload=payload[: self._payload_bytes_max],
            is_intact=checksum(key + value) == RESIDUE,
            expires_ms=expiry_of(value),
        )
        if not shown.is_intact:
            shown.problem = "wrong checksum"
        elif shown.kind == "put":
            self._explain(shown, decoded, payload)
        return shown

    def _explain(self, shown: pb.StoredVersion, key: DecodedKey, payload: bytes) -> None:
        try:
            if key.kind is KeyKind.ROW:
                shown.schema_id, shown.value = self._document(payload)
            elif key.kind is KeyKind.INDEX_ENTRY:
                shown.value = dump_parts(payload) if payload else ""
            elif key.kind is KeyKind.CATALOG:
                shown.value = _catalog_value(key, payload)
        except CortadoError as problem:
            shown.problem = problem.message()

    def _document(self, payload: bytes) -> tuple[int, str]:
        schema_id, body = decode_payload(payload)
        if self._catalog is None:
            self._catalog = self._stored.catalog()
        schema = self._catalog.schema(schema_id)
        text = json_text(to_json_value(schema, decode_document(schema, body)))
        return schema_id, text if len(text) <= _VALUE_CHARS_MAX else ""


def _catalog_value(key: DecodedKey, payload: bytes) -> str:
    kind = _CATALOG_VALUES.get(key.parts[0].value if key.parts else None)
    if kind is None:
        return ""
    message = decode_stored(kind, payload, "catalogue")
    return json.dumps(MessageToDict(message, preserving_proto_field_name=True), ensure_ascii=False)
