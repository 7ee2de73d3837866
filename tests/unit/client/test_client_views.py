"""Views of the past: everything is read at one time, unless a call names another, and nothing is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from cortado.errors import Cancelled, InvalidArgument, Unsupported
from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2
from cortado.store.client import AsyncClient, Client, Delete, Put, Stale
from cortado.store.clock.timestamp import Timestamp
from support.faces import FACES, open_client
from support.fake_server import FakeServer, header, refuse

THEN = Timestamp(0, 500, 3)
ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
TABLE = tables_pb2.Table(
    table_id=1,
    database="d",
    name="t",
    subject="d.t",
    key=[tables_pb2.KeyPart(path="id", type=tables_pb2.KEY_TYPE_INT64)],
)
WRITES: list[Callable[[Client], Any]] = [
    lambda past: past.kv("n").put(b"k", b"v"),
    lambda past: past.kv("n").delete(b"k"),
    lambda past: past.kv("n").delete_range(prefix=b"k"),
    lambda past: past.kv("n").batch([Put(b"k", b"v"), Delete(b"l")]),
    lambda past: past.table("d.t").put({"id": 1}),
    lambda past: past.table("d.t").delete(1),
    lambda past: past.table("d.t").put_many([{"id": 1}]),
    lambda past: past.schemas.register("d.t", ROW),
    lambda past: past.schemas.set_compatibility("d.t", "NONE"),
    lambda past: past.create_database("d"),
    lambda past: past.create_table("d.t", ["id"]),
    lambda past: past.admin.members.add("n2", "127.0.0.1:1"),
    lambda past: past.admin.members.remove("n2"),
    lambda past: past.admin.members.transfer_leader("n2"),
    lambda past: past.admin.bump_epoch(0),
]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    version = schemas_pb2.SchemaVersion(schema_id=1, subject="d.t", version=1, schema=json.dumps(ROW))
    with FakeServer().running() as running:
        running.handlers |= {
            "KeyValue.Get": lambda request, context: kv_pb2.KvGetResponse(header=header(500)),
            "KeyValue.Scan": lambda request, context: iter([kv_pb2.KvScanResponse(header=header())]),
            "KeyValue.ScanPage": lambda request, context: kv_pb2.KvScanResponse(header=header()),
            "KeyValue.Put": lambda request, context: kv_pb2.KvPutResponse(header=header(), etag="0.1.1"),
            "Tables.DescribeTable": lambda request, context: tables_pb2.DescribeTableResponse(
                header=header(), table=TABLE
            ),
            "Schemas.Get": lambda request, context: schemas_pb2.GetSchemaResponse(header=header(), version=version),
            "Documents.Get": lambda request, context: documents_pb2.GetDocumentResponse(header=header()),
            "Documents.MultiGet": lambda request, context: documents_pb2.MultiGetResponse(header=header()),
            "Documents.Scan": lambda request, context: iter([documents_pb2.ScanResponse(header=header())]),
            "Documents.Split": lambda request, context: documents_pb2.SplitResponse(header=header()),
            "Tables.CheckTable": lambda request, context: iter(
                [tables_pb2.CheckTableResponse(header=header(), done=True)]
            ),
        }
        yield running


@pytest.fixture(params=FACES)
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=5) as opened:
        yield opened


def asked_at(server: FakeServer) -> list[common_pb2.ReadAt]:
    """Return the requested read time of each request that has one."""
    return [request.at for _, request in server.requests if "at" in request.DESCRIPTOR.fields_by_name]


def test_every_read_of_a_view_is_at_its_time(server: FakeServer, client: Client) -> None:
    past = client.at(THEN)
    table = past.table("d.t")
    past.kv("n").get(b"k")
    list(past.kv("n").scan())
    list(past.kv("n").scan(limit=3))
    table.get(1)
    table.get_many([1, 2])
    list(table.scan())
    list(table.scan_batches())
    table.split(2)
    past.verify_indexes("d.t")
    past.now()
    at = common_pb2.ReadAt(timestamp=common_pb2.Timestamp(wall_ms=500, logical=3))
    assert asked_at(server) == [at] * 11, "the table is described as it was then, too"
    client.kv("n").get(b"k")
    assert asked_at(server)[-1].WhichOneof("kind") is None


def test_a_view_without_cache_describes_tables_that_the_client_knows(server: FakeServer, client: Client) -> None:
    client.table("d.t").get(1)
    client.table("d.t").get(1)
    assert len(server.calls("Tables.DescribeTable")) == 1
    client.without_cache().table("d.t").get(1)
    assert len(server.calls("Tables.DescribeTable")) == 2
    client.table("d.t").get(1)
    assert len(server.calls("Tables.DescribeTable")) == 2


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        (THEN, "timestamp"),
        (str(THEN), "timestamp"),
        (datetime(2025, 1, 1, tzinfo=UTC), "wall_ms"),
        ("2025-01-01T00:00:00Z", "wall_ms"),
        (Stale(500), "stale_ms"),
    ],
)
def test_a_view_takes_all_that_at_takes(server: FakeServer, client: Client, at: Any, kind: str) -> None:
    client.at(at).kv("n").get(b"k")
    assert asked_at(server)[-1].WhichOneof("kind") == kind


def test_a_call_may_name_another_time_and_a_view_of_a_view_too(server: FakeServer, client: Client) -> None:
    past = client.at(THEN)
    past.kv("n").get(b"k", at=Timestamp(0, 400, 0))
    past.at(Timestamp(0, 300, 0)).kv("n").get(b"k")
    past.with_timeout(3).kv("n").get(b"k")
    assert [at.timestamp.wall_ms for at in asked_at(server)] == [400, 300, 500]


def test_those_who_ask_a_snapshot_first_at_once_are_told_one_time(server: FakeServer) -> None:
    times = iter([500, 600, 700])
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(header=header(next(times)))

    async def ask() -> None:
        async with AsyncClient(server.endpoint, timeout_s=5) as client:
            view = client.snapshot(stale_ms=50)
            await asyncio.gather(*[view.kv("n").get(b"k") for _ in range(3)])

    asyncio.run(ask())
    first, *others = asked_at(server)
    assert first == common_pb2.ReadAt(stale_ms=50)
    assert others == [common_pb2.ReadAt(timestamp=common_pb2.Timestamp(wall_ms=500))] * 2


def test_a_snapshot_whose_first_read_failed_has_no_time_yet(server: FakeServer, client: Client) -> None:
    answer = server.handlers["KeyValue.Get"]
    server.handlers["KeyValue.Get"] = lambda request, context: refuse(context, InvalidArgument("key", "is bad"))
    view = client.snapshot()
    with pytest.raises(InvalidArgument):
        view.kv("n").get(b"k")
    server.handlers["KeyValue.Get"] = answer
    for _ in range(2):
        view.kv("n").get(b"k")
    assert [at.WhichOneof("kind") for at in asked_at(server)] == [None, None, "timestamp"]


@pytest.mark.parametrize("at", [None, "yesterday", datetime(2025, 1, 1), 5])
def test_a_view_of_no_time_is_refused_at_once(client: Client, at: Any) -> None:
    with pytest.raises(InvalidArgument, match="at:"):
        client.at(at)


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_written_through_a_view(server: FakeServer, client: Client, write: Callable[[Client], Any]) -> None:
    with pytest.raises(Unsupported, match="writing through a view of the past"):
        write(client.at(THEN))
    sent = {name for name, _ in server.requests}
    assert sent <= {"Tables.DescribeTable", "Schemas.Get"}
    assert client.kv("n").put(b"k", b"v") == "0.1.1"


def test_nothing_is_watched_through_a_view(client: Client) -> None:
    for watched in (client.at(THEN).kv("n"), client.at(THEN).table("d.t")):
        with pytest.raises(Unsupported, match="watching through a view of the past"):
            watched.watch()


def test_views_share_the_connection_and_its_end(client: Client) -> None:
    past = client.at(THEN)
    past.kv("n").get(b"k")
    client.close()
    with pytest.raises(Cancelled, match="closed"):
        past.kv("n").get(b"k")
