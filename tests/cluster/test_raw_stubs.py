"""Nothing but raw stubs and JSON documents: a client without any code of the project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cortado.errors import ResourceExhausted
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from cortado.proto.v1.calls_pb2_grpc import CallsStub
from cortado.proto.v1.kv_pb2_grpc import KeyValueStub
from cortado.store.wire.api_level import API_LEVEL
from support.server_process import running_server, wait_until
from support.wire import (
    Wire,
    delete_document,
    int_key,
    json_document,
    put_document,
    put_pair,
    refused,
    table_name,
    timestamp_of,
    update_document,
)

pytestmark = pytest.mark.process

USERS = table_name("shop.users")
JSON = common_pb2.DOCUMENT_FORMAT_JSON


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with running_server(tmp_path_factory.mktemp("raw") / "data") as server:
        yield Wire(server.endpoint)


@pytest.fixture(scope="module")
def users(wire: Wire) -> Wire:
    """The table shop.users with ten documents."""
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="shop"))
    wire.register(
        "shop.users",
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "email", "type": ["null", "string"], "default": None},
    )
    by_email = tables_pb2.Index(name="by_email", parts=[tables_pb2.KeyPart(path="email")], unique=True)
    wire.create_table("shop", "users", ["id"], by_email)
    for i in range(10):
        document = json_document({"id": i, "name": f"user {i}", "email": f"u{i}@example.org"})
        wire.documents.Put(documents_pb2.PutDocumentRequest(table=USERS, document=document))
    return wire


def test_register_create_put_get_scan(users: Wire) -> None:
    found = users.documents.Get(documents_pb2.GetDocumentRequest(table=USERS, key=int_key(3), format=JSON)).found
    assert json.loads(found.document.json) == {"id": 3, "name": "user 3", "email": "u3@example.org"}
    replies = users.documents.Scan(documents_pb2.ScanRequest(table=USERS, format=JSON))
    rows = [json.loads(row)["id"] for reply in replies for row in reply.json_rows]
    assert rows == list(range(10))


def test_an_absent_document_is_not_an_error(users: Wire) -> None:
    reply = users.documents.Get(documents_pb2.GetDocumentRequest(table=USERS, key=int_key(99), format=JSON))
    assert not reply.HasField("found")
    many = documents_pb2.MultiGetRequest(table=USERS, keys=[int_key(99), int_key(1)], format=JSON)
    found = users.documents.MultiGet(many).found
    assert [each.HasField("document") for each in found] == [False, True]


def test_a_scan_by_index_range_with_filter_columns_and_order(users: Wire) -> None:
    request = documents_pb2.ScanRequest(
        table=USERS,
        index="by_email",
        range=common_pb2.KeyRange(
            start=common_pb2.Key(parts=[common_pb2.Value(string="u2@example.org")]),
            end=common_pb2.Key(parts=[common_pb2.Value(string="u8@example.org")]),
        ),
        reverse=True,
        filter="id != 5",
        columns=["id"],
        limit=4,
        format=JSON,
    )
    rows = [json.loads(row) for reply in users.documents.Scan(request) for row in reply.json_rows]
    assert rows == [{"id": 7}, {"id": 6}, {"id": 4}, {"id": 3}]


def test_pages_of_a_scan_show_one_state_while_others_write(users: Wire) -> None:
    rows: list[int] = []
    token, pages = b"", 0
    while True:
        request = documents_pb2.ScanRequest(table=USERS, page_size=3, page_token=token, format=JSON, columns=["id"])
        replies = list(users.documents.Scan(request))
        rows += [json.loads(row)["id"] for reply in replies for row in reply.json_rows]
        pages += 1
        document = json_document({"id": 100 + pages, "name": "later"})
        users.documents.Put(documents_pb2.PutDocumentRequest(table=USERS, document=document))
        token = replies[-1].next_page_token
        if not token:
            break
    for i in range(pages):
        users.documents.Delete(documents_pb2.DeleteDocumentRequest(table=USERS, key=int_key(101 + i)))
    assert rows == list(range(10))
    assert pages == 4


def test_an_update_by_mask_and_the_document_as_it_was(users: Wire) -> None:
    before = users.documents.Get(documents_pb2.GetDocumentRequest(table=USERS, key=int_key(1), format=JSON))
    updated = users.documents.Update(
        documents_pb2.UpdateDocumentRequest(
            table=USERS,
            key=int_key(1),
            changes_json='{"name": "renamed"}',
            condition=common_pb2.Condition(etag=before.found.etag),
            format=JSON,
        )
    )
    assert json.loads(updated.found.document.json)["name"] == "renamed"
    at = common_pb2.ReadAt(timestamp=before.header.timestamp)
    then = users.documents.Get(documents_pb2.GetDocumentRequest(table=USERS, key=int_key(1), format=JSON, at=at))
    assert then.found == before.found
    assert timestamp_of(updated.header.timestamp) > timestamp_of(before.header.timestamp)


def test_a_batch_is_all_or_nothing_and_a_read_at_a_wall_time_sees_it(users: Wire) -> None:
    operations = [
        put_document("shop.users", {"id": 50, "name": "new"}),
        update_document("shop.users", int_key(2), {"name": "changed"}),
    ]
    written = users.commit(*operations)
    at = common_pb2.ReadAt(wall_ms=written.header.timestamp.wall_ms)
    many = documents_pb2.MultiGetRequest(table=USERS, keys=[int_key(50), int_key(2)], at=at, format=JSON)
    found = users.documents.MultiGet(many).found
    assert [json.loads(each.document.json)["name"] for each in found] == ["new", "changed"]
    assert {each.etag for each in found} == {written.etag}
    users.commit(delete_document("shop.users", int_key(50)))


def test_a_bulk_stream_answers_every_chunk_and_every_bad_row(users: Wire) -> None:
    def requests() -> Iterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=USERS))
        for sequence in range(20):
            rows = [json.dumps({"id": 1000 + 10 * sequence + i, "name": "bulk"}) for i in range(10)]
            rows[3] = '{"id": "not a number", "name": "bulk"}'
            yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, json_rows=rows))

    replies = list(users.documents.Bulk(requests()))
    assert [reply.sequence for reply in replies] == list(range(20))
    assert {reply.written for reply in replies} == {9}
    errors = [error for reply in replies for error in reply.errors]
    assert {(error.row, error.reason) for error in errors} == {(3, "INVALID_DOCUMENT")}
    check = list(users.tables.CheckTable(tables_pb2.CheckTableRequest(database="shop", name="users")))
    assert check[-1].done and not any(reply.problems for reply in check)
    split = users.documents.Split(documents_pb2.SplitRequest(table=USERS, parts=4))
    # Deleted keys count until they are collected.
    assert 0 <= sum(split.rows) - check[-1].rows_checked <= 10
    assert len(split.ranges) == 4


def test_a_bulk_caller_who_waits_for_each_answer_gets_it(users: Wire) -> None:
    answered: list[int] = []

    def requests() -> Iterator[documents_pb2.BulkRequest]:
        yield documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=USERS))
        for sequence in range(5):
            rows = [json.dumps({"id": 5000 + sequence, "name": "waiting"})]
            yield documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk(sequence=sequence, json_rows=rows))
            wait_until(lambda sequence=sequence: len(answered) > sequence, f"chunk {sequence} is answered")

    answered.extend(reply.sequence for reply in users.documents.Bulk(requests(), timeout=30))
    assert answered == [0, 1, 2, 3, 4]


def test_schemas_evolve_and_say_why_not(users: Wire) -> None:
    listed = users.schemas.ListVersions(schemas_pb2.ListVersionsRequest(subject="shop.users")).versions
    first = listed[0]
    again = users.schemas.Register(schemas_pb2.RegisterSchemaRequest(subject="shop.users", schema=first.schema))
    assert (again.created, again.version) == (False, first)
    worse = json.loads(first.schema)
    worse["fields"][1]["type"] = "int"
    check = users.schemas.Check(schemas_pb2.CheckSchemaRequest(subject="shop.users", schema=json.dumps(worse)))
    assert not check.compatible
    assert {(found.version, found.path) for found in check.incompatibilities} == {(1, "R.name")}
    assert check.mode == schemas_pb2.COMPATIBILITY_MODE_BACKWARD_TRANSITIVE
    users.schemas.SetCompatibility(
        schemas_pb2.SetCompatibilityRequest(subject="shop.users", mode=schemas_pb2.COMPATIBILITY_MODE_NONE)
    )
    mode = users.schemas.GetCompatibility(schemas_pb2.GetCompatibilityRequest(subject="shop.users")).mode
    assert mode == schemas_pb2.COMPATIBILITY_MODE_NONE
    by_id = users.schemas.Get(schemas_pb2.GetSchemaRequest(schema_id=first.schema_id)).version
    assert (by_id.schema_id, by_id.schema, by_id.subject, by_id.version) == (first.schema_id, first.schema, "", 0)
    with_id = schemas_pb2.GetSchemaRequest(schema_id=first.schema_id, subject="shop.users")
    assert users.schemas.Get(with_id).version == first
    same = users.schemas.Register(schemas_pb2.RegisterSchemaRequest(subject="shop.copy", schema=first.schema)).version
    assert (same.schema_id, same.subject, same.version) == (first.schema_id, "shop.copy", 1)


def test_listings_come_in_pages(users: Wire) -> None:
    for number in range(5):
        users.register(f"paged.subject-{number}", {"name": "id", "type": "long"})
    names: list[str] = []
    token = b""
    while True:
        reply = users.schemas.ListSubjects(schemas_pb2.ListSubjectsRequest(page_size=2, page_token=token))
        names += [each.subject for each in reply.subjects]
        token = reply.next_page_token
        if not token:
            break
    assert names[:5] == [f"paged.subject-{number}" for number in range(5)]
    assert names == sorted(set(names))
    assert "shop.users" in names
    tables = users.tables.ListTables(tables_pb2.ListTablesRequest(database="shop")).tables
    described = users.tables.DescribeTable(tables_pb2.DescribeTableRequest(database="shop", name="users")).table
    assert list(tables) == [described]
    assert described.key[0].type == tables_pb2.KEY_TYPE_INT64


def test_a_scan_that_nobody_reads_any_more_stops(users: Wire) -> None:
    for start in range(0, 8_000, 1_000):
        users.commit(*(put_pair("big", b"%05d" % i, bytes(4_000)) for i in range(start, start + 1_000)))
    scan = users.kv.Scan(kv_pb2.KvScanRequest(namespace="big"))
    next(scan)

    def scans() -> int:
        status = users.cluster.Status(cluster_pb2.StatusRequest())
        return next(int(queue.count) for queue in status.queues if queue.name == "scans")

    assert scans() == 1
    scan.cancel()
    wait_until(lambda: scans() == 0, "the scan has stopped")


def test_a_map_that_is_full_refuses_writes_while_reads_go_on(tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--map-size", "4MiB") as server:
        wire = Wire(server.endpoint)
        wire.kv.Put(kv_pb2.KvPutRequest(namespace="t", key=b"first", value=b"v"))

        def fill() -> None:
            for i in range(10_000):
                wire.kv.Put(kv_pb2.KvPutRequest(namespace="t", key=b"%d" % i, value=bytes(20_000)))

        error = refused(fill)
        assert isinstance(error, ResourceExhausted)
        assert error.resource == "map"
        assert error.retry_delay_ms > 0
        assert wire.kv.Get(kv_pb2.KvGetRequest(namespace="t", key=b"first")).pair.value == b"v"

        def is_read_only() -> bool:
            # Entries that wait to be applied count as if they took room of their own, so the first refusal is not
            # final.
            refused(fill)
            return wire.cluster.Status(cluster_pb2.StatusRequest()).state.startswith("read-only: ")

        wait_until(is_read_only, "there is no room for any write")
        assert server.stop() == 0
    with running_server(tmp_path / "data", "--map-size", "64MiB") as server:
        wire = Wire(server.endpoint)
        wire.kv.Put(kv_pb2.KvPutRequest(namespace="t", key=b"more", value=bytes(20_000)))
        assert wire.cluster.Status(cluster_pb2.StatusRequest()).state == "serving"


def test_a_client_of_a_higher_level_of_the_api_is_refused_on_every_way(wire: Wire) -> None:
    agent = f"somebody/9.0 api/{API_LEVEL + 1}"
    with grpc.insecure_channel(wire.endpoint, options=[("grpc.primary_user_agent", agent)]) as channel:
        newer = KeyValueStub(channel)
        ways = (
            lambda: newer.Get(kv_pb2.KvGetRequest(namespace="x", key=b"k"), timeout=10),
            lambda: list(newer.Scan(kv_pb2.KvScanRequest(namespace="x"), timeout=10)),
            lambda: list(CallsStub(channel).Exchange(iter(()), timeout=10)),
        )
        for way in ways:
            with pytest.raises(grpc.RpcError) as error:
                way()
            assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert f"this server has level {API_LEVEL}" in error.value.details()
