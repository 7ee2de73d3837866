"""Expired rows and pairs on three nodes: absent from one timestamp on at each of them, with their entries, also in an
idle cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from cortado.errors import ConditionFailed, UniqueViolation
from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2
from cortado.store.client import Changed, Client, Deleted, Index
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.server.convert import timestamp_message
from support.cluster import Cluster, cortado, running_cluster
from support.server_process import wait_until
from support.wire import Wire, patient

pytestmark = pytest.mark.process

SCHEMA = {
    "type": "record",
    "name": "Session",
    "fields": [{"name": "id", "type": "string"}, {"name": "code", "type": "string"}, {"name": "left", "type": "int"}],
}
TABLE = documents_pb2.TableName(database="shop", table="sessions")
SOON = timedelta(seconds=4)
"""Later than the reads and refusals that come before it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("expiry")) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.endpoints) as made:
        made.create_database("shop")
        made.schemas.register("shop.sessions", SCHEMA)
        indexes = [Index("by_code", ["code"], unique=True), Index("by_left", ["left"])]
        made.create_table("shop.sessions", ["id"], indexes=indexes)
        yield made


def seen_at(address: str, at: Timestamp, key: str, code: str) -> tuple[bool, bool, bool, bool]:
    """Return one node's own answers: of the row, of its entries in both indexes, and of the pair."""
    wire = Wire(address)
    moment = common_pb2.ReadAt(timestamp=timestamp_message(at))
    row_key = common_pb2.Key(parts=[common_pb2.Value(string=key)])
    row = documents_pb2.GetDocumentRequest(table=TABLE, key=row_key, at=moment)
    got = patient(lambda: wire.documents.Get(row, timeout=10))

    def by(index: str, value: common_pb2.Value) -> bool:
        within = common_pb2.KeyRange(prefix=common_pb2.Key(parts=[value]))
        asked = documents_pb2.ScanRequest(table=TABLE, index=index, range=within, at=moment, format=1)
        replies = patient(lambda: list(wire.documents.Scan(asked, timeout=10)))
        rows = [row for reply in replies for row in reply.json_rows]
        return any(f'"{key}"' in row for row in rows)

    request = kv_pb2.KvGetRequest(namespace="sessions", key=key.encode(), at=moment)
    pair = patient(lambda: wire.kv.Get(request, timeout=10))
    coded, left = by("by_code", common_pb2.Value(string=code)), by("by_left", common_pb2.Value(int64=7))
    return got.HasField("found"), coded, left, pair.HasField("pair")


def test_each_replica_sees_it_up_to_one_timestamp_and_a_unique_value_is_free_again(
    cluster: Cluster, client: Client
) -> None:
    sessions, kv = client.table("shop.sessions"), client.kv("sessions")
    at = datetime.now(UTC) + SOON
    sessions.put({"id": "a", "code": "x", "left": 7}, expires=at)
    kv.put(b"a", b"signed in", expires=at)
    found = sessions.get("a")
    assert found is not None
    with pytest.raises(UniqueViolation):
        sessions.put({"id": "b", "code": "x", "left": 1})
    # Without writes, time goes on.
    wait_until(lambda: sessions.get("a") is None and kv.get(b"a") is None, "the session expires")
    assert time.time() * 1_000 >= found.expires_ms - 1_000
    sessions.put({"id": "b", "code": "x", "left": 1}, if_absent=True)
    assert [each.value["id"] for each in sessions.scan(index="by_code", prefix="x")] == ["b"]
    cluster.wait_converged()
    last = Timestamp(0, found.expires_ms - 1, LOGICAL_MAX)
    for name in cluster.nodes:
        address = cluster.addresses[name]
        assert seen_at(address, last, "a", "x") == (True, True, True, True), name
        assert seen_at(address, Timestamp(0, found.expires_ms, 0), "a", "x") == (False, False, False, False), name
    assert "no problems" in cortado("table", "verify-indexes", "shop.sessions", "--endpoint", cluster.endpoints)


def test_updates_keep_it_puts_begin_anew_and_conditions_find_nothing(client: Client) -> None:
    sessions, kv = client.table("shop.sessions"), client.kv("sessions")
    client.alter_table("shop.sessions", ttl_ms=3_600_000)
    sessions.put({"id": "c", "code": "c", "left": 7})
    before = sessions.get("c")
    assert before is not None
    assert abs(before.expires_ms - time.time() * 1_000 - 3_600_000) < 60_000
    assert sessions.update("c", {"left": 8}).expires_ms == before.expires_ms
    assert sessions.add("c", "left", 1) == 9
    assert sessions.update("c", {"left": 7}, expires="never").expires_ms == 0
    kv.put(b"counter", (5).to_bytes(8), expires=timedelta(milliseconds=1))
    wait_until(lambda: kv.get(b"counter") is None, "the counter expires")
    assert kv.add(b"counter", 1) == 1
    kv.put(b"gone", b"v", expires=datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(ConditionFailed):
        kv.put(b"gone", b"w", if_present=True)
    client.alter_table("shop.sessions", ttl_ms=0)


def test_a_transaction_sees_what_it_wrote_and_commits_when_it_expires(client: Client) -> None:
    with client.transaction(isolation="serializable") as txn:
        rows, pairs = txn.table("shop.sessions"), txn.kv("sessions")
        assert rows.get("t") is None
        rows.put({"id": "t", "code": "t", "left": 7}, expires=timedelta(hours=1))
        pairs.put(b"t", b"v", expires=timedelta(hours=1))
        own = rows.get("t")
        assert own is not None
        assert own.expires_ms > time.time() * 1_000
        assert [each.value["id"] for each in rows.scan(index="by_code", prefix="t")] == ["t"]
    found, pair = client.table("shop.sessions").get("t"), client.kv("sessions").get(b"t")
    assert found is not None
    assert pair is not None
    assert abs(found.expires_ms - pair.expires_ms) < 1_000


def test_a_watch_tells_when_and_no_delete_follows(client: Client) -> None:
    kv = client.kv("watched")
    began = kv.put(b"begin", b"")
    kv.put(b"a", b"v", expires=timedelta(milliseconds=300))
    wait_until(lambda: kv.get(b"a") is None, "it expires")
    kv.put(b"end", b"")
    changes = []
    with kv.watch(after=began) as watch:
        for event in watch:
            if isinstance(event, Changed | Deleted):
                changes.append(event)
                if event.key == b"end":
                    break
    first, end = changes
    assert isinstance(first, Changed)
    assert 0 < first.expires_ms <= first.ts.wall_ms + 300
    assert isinstance(end, Changed)
    assert end.expires_ms == 0


def test_a_bulk_load_and_the_command_line_say_when(cluster: Cluster, client: Client) -> None:
    sessions = client.table("shop.sessions")
    sessions.put_many(
        [{"id": f"bulk-{n}", "code": f"bulk-{n}", "left": n} for n in range(50)], expires=timedelta(hours=1)
    )
    one = sessions.get("bulk-7")
    assert one is not None
    assert one.expires_ms
    server = ("--endpoint", cluster.endpoints)
    cortado("put", "shop.sessions", '{"id": "cli", "code": "cli", "left": 1}', "--ttl", "30m", *server)
    assert '"expires_ms"' in cortado("get", "shop.sessions", "cli", "--meta", "-o", "json", *server)
    cortado("update", "shop.sessions", "cli", "--set", "left=2", "--ttl", "none", *server)
    assert '"expires_ms"' not in cortado("get", "shop.sessions", "cli", "--meta", "-o", "json", *server)
    assert "until" in cortado("debug", "mvcc", "row", "shop.sessions", "bulk-7", "--endpoint", cluster.addresses["n1"])
    assert "no problems" in cortado("table", "verify-indexes", "shop.sessions", *server)
