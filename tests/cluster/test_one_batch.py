"""Sixty-four callers in one batch of the node: one document, one unique value, nothing lost, one winner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import grpc
import pytest

from cortado.errors import UniqueViolation
from cortado.proto.v1 import calls_pb2, calls_pb2_grpc, cluster_pb2, common_pb2, documents_pb2, tables_pb2
from cortado.store.client import Client
from support.grpc_errors import from_rpc_error
from support.server_process import ServerProcess, running_server
from support.wire import Wire, int_key, json_document, table_name

pytestmark = pytest.mark.process

CALLERS = 64
TABLE = table_name("d.t")
JSON = common_pb2.DOCUMENT_FORMAT_JSON


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def wire(server: ServerProcess) -> Wire:
    """The table d.t: a document has a field for each caller, a group, and a unique name that may be null."""
    wire = Wire(server.endpoint)
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="d"))
    wire.register(
        "d.t",
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "last", "type": "long", "default": -1},
        *({"name": f"f{caller}", "type": "long", "default": -1} for caller in range(CALLERS)),
    )
    by_name = tables_pb2.Index(name="by_name", parts=[tables_pb2.KeyPart(path="name")], unique=True)
    by_last = tables_pb2.Index(name="by_last", parts=[tables_pb2.KeyPart(path="last")])
    wire.create_table("d", "t", ["id"], by_name, by_last)
    return wire


def put(wire: Wire, number: int, name: str | None) -> grpc.Future:
    document = json_document({"id": number, "name": name})
    return wire.documents.Put.future(documents_pb2.PutDocumentRequest(table=TABLE, document=document), timeout=10)


def update(wire: Wire, number: int, changes: dict[str, object]) -> grpc.Future:
    request = documents_pb2.UpdateDocumentRequest(table=TABLE, key=int_key(number), changes_json=json.dumps(changes))
    return wire.documents.Update.future(request, timeout=10)


def last_index(wire: Wire) -> int:
    return int(wire.cluster.Status(cluster_pb2.StatusRequest(), timeout=10).last_index)


def test_sixty_four_callers_in_one_batch_lose_nothing_and_one_takes_the_unique_value(
    server: ServerProcess, wire: Wire
) -> None:
    put(wire, 0, None).result()
    for number in range(1, CALLERS + 1):
        put(wire, number, f"own {number}").result()
    before = last_index(wire)
    # All calls to a paused server have arrived at once when it continues.
    server.pause()
    updates = [update(wire, 0, {f"f{caller}": caller, "last": caller}) for caller in range(CALLERS)]
    races = [update(wire, number, {"name": "wanted"}) for number in range(1, CALLERS + 1)]
    inserts = [put(wire, 1_000 + number, "new and wanted") for number in range(CALLERS)]
    server.resume()
    for each in updates:
        each.result()
    for race in (races, inserts):
        ended = [each.exception() for each in race]
        assert ended.count(None) == 1, "one winner"
        assert {type(from_rpc_error(error)) for error in ended if error is not None} == {UniqueViolation}
    # All updates and two winners wrote; refused callers did not.
    assert last_index(wire) - before < CALLERS + 2, "some callers shared a batch"

    found = wire.documents.Get(documents_pb2.GetDocumentRequest(table=TABLE, key=int_key(0), format=JSON)).found
    document = json.loads(found.document.json)
    assert [document[f"f{caller}"] for caller in range(CALLERS)] == list(range(CALLERS))
    with Client(server.endpoint) as client:
        table = client.table("d.t")
        for name in ("wanted", "new and wanted"):
            assert len(list(table.scan(index="by_name", prefix=(name,)))) == 1
        assert [each.value["id"] for each in table.scan(index="by_last", prefix=(document["last"],))] == [0]
        report = client.verify_indexes("d.t")
        assert (report.rows_checked, report.problems) == (CALLERS + 2, ())


def in_one_message(wire: Wire, requests: list[documents_pb2.UpdateDocumentRequest]) -> list[bool]:
    """Whether each went well, of updates that reach the server in one message, in this order."""
    method = "cortado.v1.Documents/Update"
    calls = [
        calls_pb2.Call(id=number, method=method, request=request.SerializeToString(), timeout_ms=10_000)
        for number, request in enumerate(requests, start=1)
    ]
    outbox: SimpleQueue[calls_pb2.CallBatch | None] = SimpleQueue()
    outbox.put(calls_pb2.CallBatch(calls=calls))
    ended: dict[int, bool] = {}
    for batch in calls_pb2_grpc.CallsStub(wire.channel).Exchange(iter(outbox.get, None), timeout=30):
        ended |= {each.id: not each.status for each in batch.replies}
        if len(ended) == len(calls):
            outbox.put(None)
    return [ended[number] for number in range(1, len(calls) + 1)]


def test_a_unique_value_that_is_given_up_in_a_batch_can_be_taken_in_it(server: ServerProcess, wire: Wire) -> None:
    put(wire, 0, "the baton").result()
    for number in range(1, CALLERS):
        put(wire, number, None).result()
    before = last_index(wire)
    # Each step rests on the one before it.
    steps = [
        documents_pb2.UpdateDocumentRequest(table=TABLE, key=int_key(holder), changes_json=json.dumps({"name": name}))
        for number in range(CALLERS - 1)
        for holder, name in ((number, None), (number + 1, "the baton"))
    ]
    assert all(in_one_message(wire, steps))
    assert last_index(wire) - before < CALLERS, "in some batch it was given up and taken"
    with Client(server.endpoint) as client:
        (holder,) = client.table("d.t").scan(index="by_name", prefix=("the baton",))
        assert holder.value["id"] == CALLERS - 1
        assert client.verify_indexes("d.t").problems == ()
