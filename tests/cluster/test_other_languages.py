"""The steps of a client in docs/other-languages.md, with raw stubs: nothing but gRPC and generated code."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2

from cortado.proto.v1 import (
    cluster_pb2,
    cluster_pb2_grpc,
    common_pb2,
    documents_pb2,
    documents_pb2_grpc,
    kv_pb2,
    kv_pb2_grpc,
    schemas_pb2,
    schemas_pb2_grpc,
    tables_pb2,
    tables_pb2_grpc,
    transactions_pb2,
    transactions_pb2_grpc,
    watch_pb2,
    watch_pb2_grpc,
)
from support.cluster import Cluster
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

PAGE = (Path(__file__).parents[2] / "docs/other-languages.md").read_text()
JSON = common_pb2.DOCUMENT_FORMAT_JSON
TIMEOUT_S = 10.0
T = TypeVar("T")

# For each type of a part: how Avro declares it, how JSON writes two of its values, the lesser first, and how a key
# has them.
TYPES: dict[str, tuple[object, tuple[object, object], tuple[dict[str, Any], dict[str, Any]]]] = {
    "bool": ("boolean", (False, True), ({"bool": False}, {"bool": True})),
    "int64": ("long", (-(2**63), 7), ({"int64": str(-(2**63))}, {"int64": "7"})),
    "float64": ("double", (-0.5, 0.5), ({"float64": -0.5}, {"float64": 0.5})),
    "bytes": ("bytes", ("AP8=", "AQ=="), ({"bytes": "AP8="}, {"bytes": "AQ=="})),
    "string": ("string", ("UA", "ü"), ({"string": "UA"}, {"string": "ü"})),
    "timestamp": (
        {"type": "long", "logicalType": "timestamp-micros"},
        ("1969-12-31T23:59:59Z", "2025-11-20T13:00:00Z"),
        ({"timestampMicros": "-1000000"}, {"timestampMicros": "1763643600000000"}),
    ),
    "date": (
        {"type": "int", "logicalType": "date"},
        ("1969-12-31", "2025-11-20"),
        ({"dateDays": -1}, {"dateDays": 20412}),
    ),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        ("-12.50", "0.10"),
        ({"decimal": "-12.50"}, {"decimal": "0.10"}),
    ),
    "uuid": (
        {"type": "string", "logicalType": "uuid"},
        ("00010203-0405-0607-0809-0a0b0c0d0e0f", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        ({"uuid": "AAECAwQFBgcICQoLDA0ODw=="}, {"uuid": "/////////////////////w=="}),
    ),
}


class Refused(Exception):
    """How a call ended, and what its details say."""

    def __init__(self, error: grpc.RpcError) -> None:
        super().__init__(error.details())
        self.code = error.code()
        self.info = error_details_pb2.ErrorInfo()
        self.bad_request = error_details_pb2.BadRequest()
        self.retry = error_details_pb2.RetryInfo()
        found = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
        for detail in status_pb2.Status.FromString(found).details if found else ():
            for kind in (self.info, self.bad_request, self.retry):
                detail.Unpack(kind)


def ask(call: Callable[..., T], request: Any) -> T:
    """One call with a deadline. Raises Refused."""
    try:
        return call(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        raise Refused(error) from None


def request_id(timestamp: common_pb2.Timestamp) -> bytes:
    at = timestamp.epoch.to_bytes(2) + timestamp.wall_ms.to_bytes(6) + timestamp.logical.to_bytes(4)
    return at + os.urandom(8)


@pytest.fixture(scope="module")
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.endpoint) as opened:
        yield opened


@pytest.fixture(scope="module")
def languages(channel: grpc.Channel) -> str:
    """A database for the tests here."""
    ask(tables_pb2_grpc.TablesStub(channel).CreateDatabase, tables_pb2.CreateDatabaseRequest(database="languages"))
    return "languages"


def make_table(channel: grpc.Channel, database: str, name: str, avro: object) -> documents_pb2.TableName:
    """A table with a key of one part, ``k``."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "k", "type": avro}, {"name": "n", "type": "int"}]}
    subject = f"{database}.{name}"
    register = schemas_pb2.RegisterSchemaRequest(subject=subject, schema=json.dumps(schema))
    ask(schemas_pb2_grpc.SchemasStub(channel).Register, register)
    key = [tables_pb2.KeyPart(path="k")]
    create = tables_pb2.CreateTableRequest(database=database, name=name, key=key)
    ask(tables_pb2_grpc.TablesStub(channel).CreateTable, create)
    return documents_pb2.TableName(database=database, table=name)


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_each_type_travel_as_typed_values(channel: grpc.Channel, languages: str, kind: str) -> None:
    avro, values, parts = TYPES[kind]
    table = make_table(channel, languages, kind, avro)
    documents = documents_pb2_grpc.DocumentsStub(channel)
    for number, value in reversed(list(enumerate(values))):
        document = common_pb2.Document(json=json.dumps({"k": value, "n": number}))
        ask(documents.Put, documents_pb2.PutDocumentRequest(table=table, document=document))
    keys = [json_format.ParseDict({"parts": [part]}, common_pb2.Key()) for part in parts]
    for number, key in enumerate(keys):
        found = ask(documents.Get, documents_pb2.GetDocumentRequest(table=table, key=key, format=JSON)).found
        assert json.loads(found.document.json) == {"k": values[number], "n": number}
    rows = [
        json.loads(row)["n"]
        for reply in documents.Scan(documents_pb2.ScanRequest(table=table, format=JSON), timeout=TIMEOUT_S)
        for row in reply.json_rows
    ]
    assert rows == [0, 1]
    half = common_pb2.KeyRange(start=keys[0], end=keys[1])
    scan = documents.Scan(documents_pb2.ScanRequest(table=table, range=half, format=JSON), timeout=TIMEOUT_S)
    assert [json.loads(row)["n"] for reply in scan for row in reply.json_rows] == [0]
    assert f"| {kind} |" in PAGE
    if kind != "uuid":
        assert any(f"`{json.dumps(part)}`" in PAGE for part in parts), f"the page shows no key of {kind}"


def test_a_value_of_another_type_is_refused_with_details_that_name_it(channel: grpc.Channel, languages: str) -> None:
    table = make_table(channel, languages, "wrong", "long")
    key = common_pb2.Key(parts=[common_pb2.Value(string="7")])
    with pytest.raises(Refused) as refused:
        ask(documents_pb2_grpc.DocumentsStub(channel).Get, documents_pb2.GetDocumentRequest(table=table, key=key))
    assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (refused.value.info.domain, refused.value.info.reason) == ("cortado.v1", "INVALID_ARGUMENT")
    (violation,) = refused.value.bad_request.field_violations
    assert violation.field.startswith("key")
    assert violation.description


def test_a_write_that_is_sent_again_has_one_effect(channel: grpc.Channel) -> None:
    kv = kv_pb2_grpc.KeyValueStub(channel)
    now = ask(cluster_pb2_grpc.ClusterStub(channel).Clock, cluster_pb2.ClockRequest()).now
    absent = common_pb2.Condition(absent=True)
    write = kv_pb2.KvPutRequest(
        namespace="languages", key=b"once", value=b"1", condition=absent, request_id=request_id(now)
    )
    first, again = ask(kv.Put, write), ask(kv.Put, write)
    assert again.etag == first.etag
    with pytest.raises(Refused) as other:
        ask(kv.Put, kv_pb2.KvPutRequest(namespace="languages", key=b"else", value=b"1", request_id=write.request_id))
    assert other.value.code is grpc.StatusCode.INVALID_ARGUMENT
    write.request_id = request_id(first.header.timestamp)
    with pytest.raises(Refused) as condition:
        ask(kv.Put, write)
    assert (condition.value.code, condition.value.info.reason) == (grpc.StatusCode.ABORTED, "CONDITION_FAILED")


def test_a_transaction_lives_in_the_client(channel: grpc.Channel) -> None:
    kv, transactions = kv_pb2_grpc.KeyValueStub(channel), transactions_pb2_grpc.TransactionsStub(channel)

    def read(key: bytes, **at: Any) -> kv_pb2.KvGetResponse:
        at_start = common_pb2.ReadAt(footprint=True, **at)
        return ask(kv.Get, kv_pb2.KvGetRequest(namespace="bank", key=key, at=at_start))

    def put(key: bytes, value: bytes) -> common_pb2.Operation:
        return common_pb2.Operation(put_pair=common_pb2.KvPut(namespace="bank", key=key, value=value))

    def commit(start: common_pb2.Timestamp, footprints: list[bytes]) -> transactions_pb2.CommitRequest:
        return transactions_pb2.CommitRequest(
            start=start,
            isolation=transactions_pb2.ISOLATION_SERIALIZABLE,
            operations=[put(b"a", b"-1")],
            footprints=footprints,
            request_id=request_id(start),
        )

    first = read(b"a")
    start = first.header.timestamp
    second = read(b"b", timestamp=start)
    assert read(b"a", timestamp=start, own_writes=[put(b"a", b"-1")]).pair.value == b"-1"
    request = commit(start, [first.footprint, second.footprint])
    done = ask(transactions.Commit, request)
    assert ask(transactions.Commit, request) == done
    settled = ask(transactions.Settle, transactions_pb2.SettleRequest(request_id=request.request_id))
    assert transactions_pb2.CommitResponse.FromString(settled.reply) == done
    with pytest.raises(Refused) as conflict:
        ask(transactions.Commit, commit(start, [first.footprint]))
    assert (conflict.value.code, conflict.value.info.reason) == (grpc.StatusCode.ABORTED, "WRITE_CONFLICT")
    late = commit(done.header.timestamp, [])
    assert not ask(transactions.Settle, transactions_pb2.SettleRequest(request_id=late.request_id)).happened
    with pytest.raises(Refused) as aborted:
        ask(transactions.Commit, late)
    assert (aborted.value.code, aborted.value.info.reason) == (grpc.StatusCode.ABORTED, "TRANSACTION_ABORTED")


def test_a_watch_goes_on_after_what_was_resolved(channel: grpc.Channel) -> None:
    kv, watches = kv_pb2_grpc.KeyValueStub(channel), watch_pb2_grpc.WatchStub(channel)

    def put(value: bytes) -> None:
        ask(kv.Put, kv_pb2.KvPutRequest(namespace="languages-watched", key=b"k", value=value))

    def changes(after: common_pb2.Timestamp) -> tuple[list[bytes], common_pb2.Timestamp]:
        """Until something came and is resolved."""
        options = watch_pb2.WatchOptions(after=common_pb2.ReadAt(timestamp=after))
        request = watch_pb2.WatchKeyValueRequest(namespace="languages-watched", options=options)
        stream = watches.KeyValue(request, timeout=TIMEOUT_S)
        seen: list[bytes] = []
        for reply in stream:
            seen += [change.value for change in reply.changes]
            if seen and reply.HasField("resolved"):
                stream.cancel()
                return seen, reply.resolved
        raise AssertionError("the watch ended")

    put(b"first")
    seen, resolved = changes(common_pb2.Timestamp())
    assert seen == [b"first"]
    put(b"second")
    assert changes(resolved)[0] == [b"second"]


def test_a_stream_ends_at_its_deadline(channel: grpc.Channel) -> None:
    watch = watch_pb2_grpc.WatchStub(channel).KeyValue(watch_pb2.WatchKeyValueRequest(namespace="quiet"), timeout=0.3)
    with pytest.raises(grpc.RpcError) as late:
        list(watch)
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def leader_of(cluster: Cluster, call: Callable[[grpc.Channel], Any]) -> str:
    """The address at which a call was answered in the end, as the page says: follow NOT_LEADER from any node."""
    addresses = list(cluster.addresses.values())
    address, until_s = addresses[-1], time.monotonic() + 30
    while time.monotonic() < until_s:
        with grpc.insecure_channel(address) as channel:
            try:
                call(channel)
                return address
            except Refused as refused:
                assert refused.code is grpc.StatusCode.UNAVAILABLE
                assert refused.info.reason == "NOT_LEADER"
                named = refused.info.metadata["leader"]
        address = named or addresses[(addresses.index(address) + 1) % len(addresses)]
    raise AssertionError("no leader was found")


def test_a_node_that_does_not_lead_names_the_one_that_does(three_nodes: Cluster) -> None:
    leader = three_nodes.addresses[three_nodes.leader()]
    follower = three_nodes.addresses[three_nodes.follower()]
    request = kv_pb2.KvPutRequest(namespace="languages", key=b"k", value=b"v")
    with grpc.insecure_channel(follower) as channel, pytest.raises(Refused) as refused:
        ask(kv_pb2_grpc.KeyValueStub(channel).Put, request)
    assert (refused.value.code, refused.value.info.reason) == (grpc.StatusCode.UNAVAILABLE, "NOT_LEADER")
    assert refused.value.info.metadata["leader"] == leader
    found = leader_of(three_nodes, lambda channel: ask(kv_pb2_grpc.KeyValueStub(channel).Put, request))
    assert found == leader
    read = kv_pb2.KvGetRequest(namespace="languages", key=b"k", at=common_pb2.ReadAt(stale_ms=60_000))
    with grpc.insecure_channel(follower) as channel:
        ask(kv_pb2_grpc.KeyValueStub(channel).Get, read)


def test_the_page_names_codes_and_reasons_that_there_are() -> None:
    from cortado import errors

    known = {each.reason for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "reason")}
    codes = {code.name for code in grpc.StatusCode}
    fields = {"CHANGE_KIND_PUT", "NULL_VALUE"}
    for word in re.findall(r"`([A-Z][A-Z_]{4,})`", PAGE):
        assert word in known | codes | fields, word
