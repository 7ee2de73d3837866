"""Calls of documents for two nodes that are asked the same: plain ones, and such as go the general way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Final

from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_document_schema
from cortado.store.host.host import Host
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService

DATABASE: Final = "d"
PLAIN: Final = "plain"
EXPIRING: Final = "expiring"
INDEXED: Final = "indexed"
_FIELDS: Final[list[dict[str, Any]]] = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
_MORE: Final[dict[str, Any]] = {"name": "note", "type": ["null", "string"], "default": None}
TEXTS: Final = [
    json.dumps({"type": "record", "name": "Row", "fields": fields}) for fields in (_FIELDS, [*_FIELDS, _MORE])
]
_SCHEMAS: Final = [parse_document_schema(text) for text in TEXTS]


async def create_tables(node: Host) -> None:
    """Create three tables of one schema, the first version of it."""
    tables, schemas = TablesService(node), SchemasService(node)
    await tables.create_database(tables_pb2.CreateDatabaseRequest(database=DATABASE))
    await schemas.register(schemas_pb2.RegisterSchemaRequest(subject="d.rows", schema=TEXTS[0]))
    index = tables_pb2.Index(name="by_name", parts=[tables_pb2.KeyPart(path="name")], unique=True)
    for name, fields in ((PLAIN, {}), (EXPIRING, {"ttl_ms": 60}), (INDEXED, {"indexes": [index]})):
        key = [tables_pb2.KeyPart(path="id")]
        request = tables_pb2.CreateTableRequest(database=DATABASE, name=name, subject="d.rows", key=key, **fields)
        await tables.create_table(request)


def document(number: int, name: str = "n", version: int = 0) -> common_pb2.Document:
    more = {"note": "a note"} if version else {}
    body = encode_document(_SCHEMAS[version], {"id": number, "name": name} | more)
    return common_pb2.Document(schema_id=version + 1, avro=body)


def key(*values: int | str) -> common_pb2.Key:
    parts = [
        common_pb2.Value(int64=each) if isinstance(each, int) else common_pb2.Value(string=each) for each in values
    ]
    return common_pb2.Key(parts=parts)


class DocumentAsker:
    """Draws requests: each method returns the method that is called, and its request."""

    def __init__(self, source: random.Random, request_id: Callable[[], bytes]) -> None:
        self._random = source
        self._request_id = request_id
        self._puts: list[bytes] = []
        self.versions = 1

    def register(self) -> tuple[str, bytes]:
        """Register the next version of the schema."""
        self.versions = 2
        request = schemas_pb2.RegisterSchemaRequest(subject="d.rows", schema=TEXTS[1], request_id=self._request_id())
        return "Schemas/Register", request.SerializeToString()

    def put(self) -> tuple[str, bytes]:
        request = self._put().SerializeToString()
        self._puts.append(request)
        return "Documents/Put", request

    def get(self) -> tuple[str, bytes]:
        return "Documents/Get", self._get().SerializeToString()

    def other_put(self) -> tuple[str, bytes]:
        request, source = self._put(), self._random
        match source.randrange(12):
            case 0:
                request.mode = documents_pb2.PUT_MODE_INSERT
            case 1:
                request.mode = documents_pb2.PUT_MODE_REPLACE
            case 2:
                request.condition.absent = True
            case 3:
                request.expiry.ttl_ms = source.randrange(1, 200)
            case 4:
                request.request_id = b""
            case 5:
                request.document.avro = source.choice((b"", b"\2", b"\xff" * 20))
            case 6:
                request.document.schema_id = source.choice((0, 2, 77))
            case 7:
                request.document.json = source.choice(('{"id": 5, "name": "json"}', '{"id": null}', "{"))
            case 8:
                request.ClearField("document")
            case 9:
                request.table.table = source.choice((INDEXED, INDEXED, "nothing", ""))
            case 10 if self._puts:
                return "Documents/Put", source.choice(self._puts[-100:])
            case _:
                request.table.table = INDEXED
        return "Documents/Put", request.SerializeToString()

    def other_get(self) -> tuple[str, bytes]:
        request, source = self._get(), self._random
        match source.randrange(7):
            case 0:
                request.format = common_pb2.DOCUMENT_FORMAT_JSON
            case 1:
                request.schema_id = source.choice((1, 2, 77))
            case 2:
                request.key.CopyFrom(source.choice((key(), key(1, 2), key("text"))))
            case 3:
                request.table.table = source.choice(("nothing", ""))
            case 4:
                request.table.table = INDEXED
            case 5:
                request.at.footprint = True
            case _:
                request.format = 9
        return "Documents/Get", request.SerializeToString()

    def _put(self) -> documents_pb2.PutDocumentRequest:
        source = self._random
        name = source.choice(("", "a", "b", "n" * 300))
        written = document(source.randrange(12), name, source.randrange(self.versions))
        return documents_pb2.PutDocumentRequest(table=self._table(), document=written, request_id=self._request_id())

    def _get(self) -> documents_pb2.GetDocumentRequest:
        return documents_pb2.GetDocumentRequest(table=self._table(), key=key(self._random.randrange(12)))

    def _table(self) -> documents_pb2.TableName:
        return documents_pb2.TableName(database=DATABASE, table=self._random.choice((PLAIN, PLAIN, PLAIN, EXPIRING)))
