"""Bad input over the wire: one precise error each, nothing changed, and the server well afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado import errors
from cortado.errors import CortadoError
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from support.server_process import ServerProcess, running_server
from support.wire import Wire, int_key, json_document, put_pair, refused, table_name

pytestmark = pytest.mark.process

T = table_name("db.t")
Value = common_pb2.Value


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("bad") / "data") as server:
        yield server
        assert "Traceback" not in server.log, server.log


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> Wire:
    wire = Wire(server.endpoint)
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
    wire.register("db.t", {"name": "a", "type": "long"}, {"name": "b", "type": "string"})
    index = tables_pb2.Index(name="by_b", parts=[tables_pb2.KeyPart(path="b")])
    wire.create_table("db", "t", ["a"], index)
    wire.register(
        "db.wide",
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "x", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    )
    wire.create_table("db", "wide", ["u", "d", "x"])
    wire.register("db.linked", {"name": "a", "type": "long"}, {"name": "next", "type": ["null", "R"]})
    wire.create_table("db", "linked", ["a"])
    return wire


def get(key: common_pb2.Key, table: str = "db.t", **more: Any) -> Callable[[Wire], Any]:
    request = documents_pb2.GetDocumentRequest(table=table_name(table), key=key, **more)
    return lambda wire: wire.documents.Get(request)


def put(document: common_pb2.Document, **more: Any) -> Callable[[Wire], Any]:
    return lambda wire: wire.documents.Put(documents_pb2.PutDocumentRequest(table=T, document=document, **more))


def scan(**fields: Any) -> Callable[[Wire], Any]:
    return lambda wire: wire.documents.Scan(documents_pb2.ScanRequest(**{"table": T, **fields}))


def bulk(*requests: documents_pb2.BulkRequest) -> Callable[[Wire], Any]:
    return lambda wire: wire.documents.Bulk(iter(requests))


def kv_put(**fields: Any) -> Callable[[Wire], Any]:
    return lambda wire: wire.kv.Put(kv_pb2.KvPutRequest(**{"namespace": "n", "key": b"k", **fields}))


def create(**fields: Any) -> Callable[[Wire], Any]:
    request = tables_pb2.CreateTableRequest(
        **{"database": "db", "name": "new", "subject": "db.t", "key": [tables_pb2.KeyPart(path="a")], **fields}
    )
    return lambda wire: wire.tables.CreateTable(request)


def part(path: str, **more: Any) -> tables_pb2.KeyPart:
    return tables_pb2.KeyPart(path=path, **more)


START = documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=T))
FUTURE = common_pb2.ReadAt(timestamp=common_pb2.Timestamp(epoch=0, wall_ms=1 << 47, logical=0))
GOOD = json_document({"a": 1, "b": "x"})
U, D, X = Value(uuid=bytes(16)), Value(date_days=1), Value(decimal="1.50")

CASES: dict[str, tuple[Callable[[Wire], Any], type[CortadoError], str]] = {
    # --- names
    "an unknown database": (get(int_key(1), "nix.t"), errors.NotFound, "no database nix"),
    "an unknown table": (get(int_key(1), "db.nix"), errors.NotFound, "no table db.nix"),
    "no table name": (get(int_key(1), "db."), errors.InvalidArgument, "table: must not be empty"),
    "an unknown index": (scan(index="nix"), errors.NotFound, "no index nix of table db.t"),
    "an unknown column": (scan(columns=["nix"]), errors.NotFound, "no field nix"),
    "an unknown schema id": (get(int_key(1), schema_id=999), errors.NotFound, "no schema with id 999"),
    "a table that exists": (create(name="t"), errors.AlreadyExists, "table db.t already exists"),
    "a key field that is not there": (create(key=[part("nix")]), errors.CortadoError, "nix"),
    "a declared type of a part": (create(key=[part("a", type=2)]), errors.InvalidArgument, "key[0].type: must not be"),
    "no key": (create(key=[]), errors.InvalidArgument, "key: must have at least one part"),
    "an index id": (
        create(indexes=[tables_pb2.Index(index_id=7, name="i", parts=[part("b")])]),
        errors.InvalidArgument,
        "indexes[0].index_id: must not be set",
    ),
    # --- keys
    "a key part of another type": (
        get(common_pb2.Key(parts=[Value(string="1")])),
        errors.InvalidArgument,
        "key.a: is of type int64: set int64 (got string)",
    ),
    "a key part without a value": (
        get(common_pb2.Key(parts=[Value()])),
        errors.InvalidArgument,
        "key.a: has no value: set int64, or null",
    ),
    "a missing key part": (get(common_pb2.Key()), errors.InvalidArgument, "has a key of 1 parts (a) (got 0 parts)"),
    "a key part too many": (get(int_key(1, 2)), errors.InvalidArgument, "key: has 2 parts, 1 are declared: a"),
    "a null in a key": (
        get(common_pb2.Key(parts=[Value(null=common_pb2.NULL_VALUE)])),
        errors.InvalidArgument,
        "key.a: a part of the primary key cannot be null",
    ),
    "a UUID of 15 bytes": (
        get(common_pb2.Key(parts=[Value(uuid=bytes(15)), D, X]), "db.wide"),
        errors.InvalidArgument,
        "key.u: a UUID must have 16 bytes (got 15 bytes)",
    ),
    "a day beyond the calendar": (
        get(common_pb2.Key(parts=[U, Value(date_days=10_000_000), X]), "db.wide"),
        errors.InvalidArgument,
        "key.d: must be a day between 0001-01-01 and 9999-12-31",
    ),
    "a decimal that is not one": (
        get(common_pb2.Key(parts=[U, D, Value(decimal="1,5")]), "db.wide"),
        errors.InvalidArgument,
        "key.x: must be a decimal number such as -12.50 (got '1,5')",
    ),
    "a decimal without end": (
        get(common_pb2.Key(parts=[U, D, Value(decimal="NaN")]), "db.wide"),
        errors.InvalidArgument,
        "key.x: must be a finite decimal number",
    ),
    # --- documents
    "a document without a body": (put(common_pb2.Document()), errors.InvalidArgument, "document: must set one of avro"),
    "JSON that is none": (put(common_pb2.Document(json="{")), errors.InvalidDocument, "must be JSON"),
    "a wrong type in a document": (put(json_document({"a": "1", "b": "x"})), errors.InvalidDocument, "a: "),
    "a missing field": (put(json_document({"a": 1})), errors.InvalidDocument, "b: "),
    "truncated Avro": (put(common_pb2.Document(schema_id=1, avro=b"\x02\x10x")), errors.InvalidDocument, "b: "),
    "Avro with bytes left over": (
        put(common_pb2.Document(schema_id=1, avro=b"\x02\x02xyz")),
        errors.InvalidDocument,
        "",
    ),
    "Avro of no schema": (put(common_pb2.Document(avro=b"\x02\x02x")), errors.CortadoError, "schema"),
    "a document too large": (
        put(common_pb2.Document(schema_id=1, avro=bytes((1 << 20) + 1))),
        errors.TooLarge,
        "may have 1048576 bytes",
    ),
    "a stale etag": (
        put(GOOD, condition=common_pb2.Condition(etag="0.1.0")),
        errors.ConditionFailed,
        "expected 0.1.0, found absent",
    ),
    "an etag that is none": (
        put(GOOD, condition=common_pb2.Condition(etag="x")),
        errors.InvalidArgument,
        "condition.etag: not an etag",
    ),
    "a value as a document's condition": (
        put(GOOD, condition=common_pb2.Condition(value=b"x")),
        errors.InvalidArgument,
        "condition.value: is a condition of the key-value API",
    ),
    "a condition that is false": (
        put(GOOD, condition=common_pb2.Condition(absent=False)),
        errors.InvalidArgument,
        "condition.absent: must be true",
    ),
    "an unknown put mode": (put(GOOD, mode=77), errors.InvalidArgument, "mode: is not a put mode"),
    "an unknown format": (scan(format=77), errors.InvalidArgument, "format: is not a document format"),
    "changes that are no object": (
        lambda wire: wire.documents.Update(
            documents_pb2.UpdateDocumentRequest(table=T, key=int_key(1), changes_json="[1]")
        ),
        errors.InvalidArgument,
        "changes_json: must be a JSON object",
    ),
    "an empty batch": (
        lambda wire: wire.commit(),
        errors.InvalidArgument,
        "operations: must not be empty",
    ),
    "an operation that does nothing": (
        lambda wire: wire.commit(put_pair("n", b"k"), common_pb2.Operation()),
        errors.InvalidArgument,
        "operations[1]: must set one of the operations",
    ),
    "too many keys": (
        lambda wire: wire.documents.MultiGet(documents_pb2.MultiGetRequest(table=T, keys=[int_key(1)] * 10_001)),
        errors.TooLarge,
        "keys: must be at most 10000 (got 10001)",
    ),
    # --- ranges, scans, pages
    "a prefix and a bound": (
        scan(range=common_pb2.KeyRange(start=int_key(1), prefix=int_key(2))),
        errors.InvalidArgument,
        "range.prefix: excludes start and end",
    ),
    "a bound of another type": (
        scan(range=common_pb2.KeyRange(start=common_pb2.Key(parts=[Value(bool=True)]))),
        errors.InvalidArgument,
        "range.start.a: is of type int64",
    ),
    "a filter that does not parse": (scan(filter="a = "), errors.InvalidFilter, "at character"),
    "a filter of another type": (scan(filter="a = 'x'"), errors.InvalidFilter, ""),
    "a page token that is none": (scan(page_token=b"xx"), errors.InvalidPageToken, "is not a page token"),
    "zero parts": (
        lambda wire: wire.documents.Split(documents_pb2.SplitRequest(table=T)),
        errors.InvalidArgument,
        "parts: must be between 1 and 4096 (got 0)",
    ),
    # --- time
    "a read in the future": (get(int_key(1), at=FUTURE), errors.TimestampInFuture, "ahead of the server's clock"),
    "a wall time in the future": (
        get(int_key(1), at=common_pb2.ReadAt(wall_ms=(1 << 47))),
        errors.TimestampInFuture,
        "ahead of the server's clock",
    ),
    "an epoch that has not begun": (
        get(int_key(1), at=common_pb2.ReadAt(timestamp=common_pb2.Timestamp(epoch=9))),
        errors.TimestampInFuture,
        "",
    ),
    "a timestamp out of range": (
        get(int_key(1), at=common_pb2.ReadAt(timestamp=common_pb2.Timestamp(epoch=70_000))),
        errors.InvalidArgument,
        "timestamp.epoch: must be between 0 and 65535 (got 70000)",
    ),
    "a bump from another epoch": (
        lambda wire: wire.cluster.BumpEpoch(cluster_pb2.BumpEpochRequest(from_epoch=5)),
        errors.InvalidArgument,
        "from_epoch: the current epoch is 0 (got 5)",
    ),
    # --- bulk
    "a bulk stream without a start": (
        bulk(documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(json_rows=["{}"]))),
        errors.InvalidArgument,
        "message: must be start, first and once",
    ),
    "two starts": (bulk(START, START), errors.InvalidArgument, "message: must be a chunk"),
    "an empty bulk message": (bulk(START, documents_pb2.BulkRequest()), errors.InvalidArgument, "message: must be a"),
    "a bulk stream to an unknown table": (
        bulk(documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=table_name("db.nix")))),
        errors.NotFound,
        "no table db.nix",
    ),
    "a chunk without rows": (
        bulk(START, documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk())),
        errors.InvalidArgument,
        "chunk: must set rows or json_rows",
    ),
    "lengths that do not add up": (
        bulk(
            START,
            documents_pb2.BulkRequest(
                chunk=documents_pb2.BulkChunk(
                    rows=common_pb2.RowBatch(schema_id=1, bodies=b"\x02\x02x", lengths=b"\x09\0\0\0")
                )
            ),
        ),
        errors.InvalidArgument,
        "rows.lengths",
    ),
    # --- key-value
    "an empty key": (kv_put(key=b""), errors.InvalidArgument, "key: must not be empty"),
    "a namespace that is no name": (kv_put(namespace="a b"), errors.InvalidArgument, "namespace: "),
    "a key too long": (kv_put(key=bytes([1]) * 500), errors.KeyTooLong, "the limit is 499"),
    "a value too large": (kv_put(value=bytes((1 << 20) + 1)), errors.TooLarge, "at most 1048576 bytes"),
    "a request id of two bytes": (kv_put(request_id=b"xx"), errors.InvalidArgument, "request_id: must have 20 bytes"),
    "a request id of tomorrow": (
        kv_put(request_id=b"\0\0" + (1 << 47).to_bytes(6) + bytes(12)),
        errors.ClockOutOfBounds,
        "request_id begins with a timestamp that is ahead",
    ),
    "a pair without a key in a batch": (
        lambda wire: wire.commit(common_pb2.Operation(put_pair=common_pb2.KvPut(namespace="n"))),
        errors.InvalidArgument,
        "operations[0].key: must not be empty",
    ),
    # --- schemas
    "a schema that is none": (
        lambda wire: wire.schemas.Register(schemas_pb2.RegisterSchemaRequest(subject="s", schema="{")),
        errors.InvalidSchema,
        "must be JSON",
    ),
    "an incompatible schema": (
        lambda wire: wire.register("db.t", {"name": "a", "type": "string"}, {"name": "b", "type": "string"}),
        errors.IncompatibleSchema,
        "R.a",
    ),
    "more changes than a schema may have fields": (
        lambda wire: wire.documents.Update(
            documents_pb2.UpdateDocumentRequest(
                table=T, key=int_key(1), changes_json=json.dumps({f"k{i}": 1 for i in range(2_001)})
            )
        ),
        errors.NotFound,
        "no document",
    ),
    "a column within a record that may hold itself": (
        lambda wire: wire.documents.Scan(documents_pb2.ScanRequest(table=table_name("db.linked"), columns=["next.a"])),
        errors.InvalidArgument,
        "columns: leads through next, of type R, which may hold itself",
    ),
    "a batch of too many operations": (
        lambda wire: wire.commit(*[common_pb2.Operation()] * 10_001),
        errors.TooLarge,
        "operations: must be at most 10000 (got 10001)",
    ),
    "a large document with a mistake": (
        put(json_document({"a": 1, "b": "x" * 100_000, "c": 1})),
        errors.InvalidDocument,
        "c: the schema has no such field",
    ),
    "an unknown subject": (
        lambda wire: wire.schemas.GetCompatibility(schemas_pb2.GetCompatibilityRequest(subject="nix")),
        errors.NotFound,
        "no subject nix",
    ),
    "a schema neither by id nor by subject": (
        lambda wire: wire.schemas.Get(schemas_pb2.GetSchemaRequest()),
        errors.InvalidArgument,
        "schema_id: must be set, or else subject",
    ),
    "a schema by id and by version": (
        lambda wire: wire.schemas.Get(schemas_pb2.GetSchemaRequest(schema_id=1, subject="db.t", version=1)),
        errors.InvalidArgument,
        "schema_id: excludes version",
    ),
    "a schema that is another subject's": (
        lambda wire: wire.schemas.Get(schemas_pb2.GetSchemaRequest(schema_id=999, subject="db.t")),
        errors.NotFound,
        "no schema with id 999 in subject db.t",
    ),
    "a schema of documents that is no record": (
        lambda wire: wire.schemas.Register(schemas_pb2.RegisterSchemaRequest(subject="db.t", schema='"string"')),
        errors.InvalidSchema,
        "schema: must be a record: the documents of table db.t follow subject db.t",
    ),
    "an unknown compatibility mode": (
        lambda wire: wire.schemas.SetCompatibility(schemas_pb2.SetCompatibilityRequest(subject="db.t", mode=77)),
        errors.InvalidArgument,
        "mode: is not a compatibility mode",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_precise_error_and_changes_nothing(wire: Wire, name: str) -> None:
    call, kind, message = CASES[name]
    before = wire.cluster.Status(cluster_pb2.StatusRequest()).last_index
    error = refused(lambda: call(wire))
    assert isinstance(error, kind), repr(error)
    assert message in error.message()
    status = wire.cluster.Status(cluster_pb2.StatusRequest())
    assert (status.last_index, status.state) == (before, "serving")


def test_a_page_token_is_good_for_its_own_request_alone(wire: Wire) -> None:
    for a in range(5):
        wire.documents.Put(documents_pb2.PutDocumentRequest(table=T, document=json_document({"a": a, "b": "x"})))
    first = list(wire.documents.Scan(documents_pb2.ScanRequest(table=T, page_size=2)))[-1]
    error = refused(lambda: scan(page_token=first.next_page_token, reverse=True)(wire))
    assert isinstance(error, errors.InvalidPageToken)
    forged = bytearray(first.next_page_token)
    forged[5] ^= 1
    assert isinstance(refused(lambda: scan(page_token=bytes(forged))(wire)), errors.InvalidPageToken)
