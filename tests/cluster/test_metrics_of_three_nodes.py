"""The metrics of three real nodes, and of one with certificates and little room: all there, all alive, all told alike.

One story is told once: nodes join, serve, are too slow, fall behind, die and come back. Everything that a scrape shows
meanwhile is kept, and the tests look at it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cortado.errors import OutcomeUnknown, QuotaExceeded, ResourceExhausted
from cortado.proto.v1 import (
    collection_pb2,
    collection_pb2_grpc,
    common_pb2,
    documents_pb2,
    documents_pb2_grpc,
    kv_pb2,
    kv_pb2_grpc,
    large_transactions_pb2,
    large_transactions_pb2_grpc,
    watch_pb2,
    watch_pb2_grpc,
)
from cortado.store.client import Client, Index
from cortado.store.client.endpoints import Tls
from cortado.store.client.statistics import NodeStatistics, Statistics
from cortado.store.observe.definitions import DEFINITIONS, Kind
from support.certificates import Certifier
from support.cluster import Cluster, cortado, running_cluster
from support.observed import Scraped, metrics_url, page, readiness, scrape, value
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

OPTIONS = (
    *("--metrics-listen", "0", "--log-format", "json", "--slow-request-ms", "1", "--ready-lag-ms", "3000"),
    # So little that each bound is met.
    *("--limit.entries-in-flight-max", "1", "--limit.batch-commands-max", "2", "--limit.writes-max", "12"),
    *("--raft.retain-entries", "20", "--raft.retain-bytes", "1000000"),
    *("--retention", "1s"),
)
VALUE = b"v" * 50_000
CALLERS = 24

# Metrics that never change on a node, or that can be neither brought about nor caught here. test_collecting checks that
# the latter follow their counts.
CONSTANT = {
    *(
        "build_info",
        "queue_entries_limit",
        "queue_bytes_limit",
        "entries_in_flight_limit",
        "entries_in_flight_bytes_limit",
        "clock_offset_limit_seconds",
    ),
    *(
        "map_limit_bytes",
        "reserve_bytes",
        "page_bytes",
        "engine_readers_limit",
        "certificate_not_after_timestamp_seconds",
    ),
    *("process_max_fds", "process_start_time_seconds"),
}
FLEETING = {
    *("snapshot_installing", "watches_catching_up", "watch_queued_events", "watch_queued_bytes", "watch_lag_seconds"),
    *(
        "watch_overflows_total",
        "watch_passes_total",
        "watch_passes_by_index_total",
        "storage_refused_total",
        "log_write_refused_total",
    ),
    *("peer_queue_messages", "large_transactions_unresolved"),
    *("peer_queue_bytes", "process_threads", "engine_readers", "may_lead", "clock_ahead_seconds", "clock_jump_seconds"),
    *("damaged_items", "patrol_damaged_total", "repairs_total", "repaired_items_total"),
    *("entries_examined_total", "entries_doubted_total", "entries_disowned_total"),
    *("log_messages_refused_total", "log_disputes"),
    *("writes_slowed", "writes_slowed_seconds_total", "commits_evaluated_again_total"),
}


@dataclass
class Story:
    """The observations, in their order."""

    scrapes: dict[str, list[Scraped]] = field(default_factory=dict)
    top: list[dict[str, Any]] = field(default_factory=list)
    ready: list[tuple[str, int, set[str], int]] = field(default_factory=list)
    """When, status of /readyz, its reasons, gRPC's health."""
    logs: dict[str, str] = field(default_factory=dict)
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)
    by_rpc: Statistics | None = None

    def look(self, *servers: tuple[str, ServerProcess]) -> None:
        for name, server in servers:
            self.scrapes.setdefault(name, []).append(scrape(server))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    told = Story()
    with running_cluster(tmp_path_factory.mktemp("metrics"), *OPTIONS, count=1) as cluster:
        told.look(*cluster.nodes.items())
        told.pages = {path: page(metrics_url(cluster.nodes["n1"]) + path) for path in ("/", "/healthz")}
        cluster.add("n2")
        cluster.add("n3")
        cluster.wait_converged()
        told.look(*cluster.nodes.items())
        _serve(told, cluster)
        _fall_behind(told, cluster)
        _stall(told, cluster)
        _lose_the_leader(told, cluster)
        _lose_the_majority(told, cluster)
        told.logs = {name: node.log for name, node in cluster.nodes.items()}
    _run_out_of_room(told, tmp_path_factory.mktemp("room"))
    return told


def _serve(told: Story, cluster: Cluster) -> None:
    leader = cluster.leader()
    follower = next(name for name in cluster.nodes if name != leader)
    with Client(cluster.endpoints) as client, watching(cluster.addresses[leader]):
        kv = client.kv("n")
        for number in range(30):
            kv.put(b"%d" % number, VALUE)
            kv.get(b"%d" % number)
        told.look((leader, cluster.nodes[leader]))
        assert len(list(kv.scan())) == 30
        with client.transaction() as transaction:
            transaction.kv("n").put(b"1", VALUE)
        kv.get(b"1", at=datetime.now(UTC) + timedelta(milliseconds=100))
        with grpc.insecure_channel(cluster.addresses[follower]) as channel, suppress(grpc.RpcError):
            at = common_pb2.ReadAt(stale_ms=0)
            kv_pb2_grpc.KeyValueStub(channel).Get(kv_pb2.KvGetRequest(namespace="n", key=b"1", at=at), timeout=5)
    cortado("clock", "bump-epoch", "--yes", "-e", cluster.endpoints)
    told.look(*cluster.nodes.items())
    _use_up(told, cluster)
    _lease(told, cluster)
    _build(told, cluster)
    _stage(told, cluster)


def _use_up(told: Story, cluster: Cluster) -> None:
    """A quota of a namespace that grows."""

    def number(name: str, **labels: str) -> float:
        leader = cluster.leader()
        told.look((leader, cluster.nodes[leader]))
        return value(told.scrapes[leader][-1], name, **labels)

    fullest = "cortado_quota_stored_fullest_ratio"
    with Client(cluster.endpoints) as client:
        client.kv("m").put(b"1", VALUE)
        client.admin.quotas.set("namespace:m", stored_bytes=len(VALUE) * 2)
        wait_until(lambda: number("cortado_quotas", kind="namespace") == 1, "there is a quota")
        wait_until(lambda: 0 < number(fullest) < 1, "some of it is used")
        client.kv("m").put(b"2", VALUE)
        wait_until(lambda: number(fullest) > 1, "all of it is used")
        for refused in (1, 2):
            with pytest.raises(QuotaExceeded):
                client.with_timeout(1).kv("m").put(b"3", VALUE)
            assert number("cortado_quota_refused_total", kind="namespace", limit="stored_bytes") == refused
        client.admin.quotas.remove("namespace:m")
        wait_until(lambda: number("cortado_quotas", kind="namespace") == 0, "it is gone")


def _build(told: Story, cluster: Cluster) -> None:
    """An index, of a table large enough to be seen while it is built."""
    fields = [{"name": "id", "type": "long"}, {"name": "level", "type": "int"}]
    with Client(cluster.endpoints) as client:
        client.schemas.register("made.things", {"type": "record", "name": "Thing", "fields": fields})
        client.create_database("made")
        client.create_table("made.things", ["id"])
        client.table("made.things").put_many({"id": n, "level": n % 10} for n in range(20_000))
        client.create_index("made.things", Index("by_level", ["level"]), wait=False)

        def is_built() -> bool:
            leader = cluster.leader()
            told.look((leader, cluster.nodes[leader]))
            return not value(told.scrapes[leader][-1], "cortado_jobs_running")

        wait_until(is_built, "the index is built")

        def is_kept() -> bool:
            """Ask again until no write of the build comes between: the second aggregate keeps columns."""
            assert client.table("made.things").aggregate("sum(level) as levels") == [{"levels": 90_000}]
            is_built()
            leader = cluster.leader()
            return value(told.scrapes[leader][-1], "cortado_kept_columns_bytes") > 0

        wait_until(is_kept, "columns are kept")
        is_kept()


def _stage(told: Story, cluster: Cluster) -> None:
    """A row for a large transaction whose lease is not renewed."""

    def number(name: str) -> float:
        leader = cluster.leader()
        told.look((leader, cluster.nodes[leader]))
        return value(told.scrapes[leader][-1], name)

    table = {"database": "made", "table": "things"}
    with grpc.insecure_channel(cluster.addresses[cluster.leader()]) as channel:
        tables = [large_transactions_pb2.TransactionTable(**table)]
        begin = large_transactions_pb2.BeginLargeTransactionRequest(
            transaction_id=bytes(16), tables=tables, ttl_ms=1_000
        )
        large_transactions_pb2_grpc.LargeTransactionsStub(channel).Begin(begin, timeout=5)
        start = documents_pb2.BulkStart(
            table=documents_pb2.TableName(**table), staging=documents_pb2.Staging(transaction_id=bytes(16))
        )
        chunk = documents_pb2.BulkChunk(json_rows=['{"id": 1000000, "level": 1}'])
        messages = [documents_pb2.BulkRequest(start=start), documents_pb2.BulkRequest(chunk=chunk)]
        for reply in documents_pb2_grpc.DocumentsStub(channel).Bulk(iter(messages), timeout=10):
            assert reply.written == 1
    wait_until(lambda: number("cortado_large_transactions_open") == 0, "the transaction has expired")
    wait_until(lambda: number("cortado_large_transaction_items_resolved_total") > 0, "what it has staged is taken away")


def _lease(told: Story, cluster: Cluster) -> None:
    """One that its holder releases, and one that is not renewed any more."""

    def number(name: str) -> float:
        leader = cluster.leader()
        told.look((leader, cluster.nodes[leader]))
        return value(told.scrapes[leader][-1], name)

    with Client(cluster.endpoints) as client, client.hold(ttl_s=1):
        wait_until(lambda: number("cortado_lease_oldest_seconds") > 0, "the lease is seen")
    with grpc.insecure_channel(cluster.addresses[cluster.leader()]) as channel:
        asked = collection_pb2.AcquireLeaseRequest(lease_id=bytes(16), ttl_ms=1_000)
        collection_pb2_grpc.CollectionStub(channel).AcquireLease(asked, timeout=5)
    wait_until(lambda: number("cortado_leases_expired_total") > 0, "a lease has ended")
    wait_until(lambda: number("cortado_collected_items_total") > 0, "old versions were collected")


@contextmanager
def watching(address: str) -> Iterator[None]:
    """A watch that has had its first reply, and takes no more."""
    with grpc.insecure_channel(address) as channel:
        replies = watch_pb2_grpc.WatchStub(channel).KeyValue(watch_pb2.WatchKeyValueRequest(namespace="n"))
        next(replies)
        try:
            yield
        finally:
            replies.cancel()


def _fall_behind(told: Story, cluster: Cluster) -> None:
    leader = cluster.leader()
    behind = next(name for name in cluster.nodes if name != leader)
    cluster.kill(behind)
    with Client(cluster.endpoints) as client:
        for number in range(60):
            client.kv("n").put(b"%d" % number, VALUE)
    told.look((leader, cluster.nodes[leader]))
    cluster.start(behind)

    def is_installed() -> bool:
        told.look((behind, cluster.nodes[behind]), (leader, cluster.nodes[leader]))
        return value(told.scrapes[behind][-1], "cortado_snapshots_installed_total") > 0

    wait_until(is_installed, f"{behind} has a snapshot")
    cluster.wait_converged()
    told.look(*cluster.nodes.items())


def _stall(told: Story, cluster: Cluster) -> None:
    """No member answers the leader, while more is written and read than it may keep in flight."""
    leader = cluster.leader()
    others = [name for name in cluster.nodes if name != leader]
    stop = threading.Event()
    callers = [threading.Thread(target=_call, args=(cluster.addresses[leader], n, stop)) for n in range(CALLERS)]
    for each in callers:
        each.start()
    wait_until(lambda: _is_refused(told, leader, cluster.nodes[leader]), "writes are refused")
    for name in others:
        cluster.pause(name)
    wait_until(lambda: _is_leaderless(told, leader, cluster.nodes[leader]), "the leader gives up")
    stop.set()
    for name in others:
        cluster.resume(name)
    for each in callers:
        each.join()
    cluster.wait_converged()
    told.look(*cluster.nodes.items())


def _call(address: str, number: int, stop: threading.Event) -> None:
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = kv_pb2_grpc.KeyValueStub(channel)
        while not stop.wait(0.02):
            with suppress(grpc.RpcError):
                if number % 8 == 0:
                    stub.Get(kv_pb2.KvGetRequest(namespace="n", key=b"1"), timeout=5)
                else:
                    stub.Put(kv_pb2.KvPutRequest(namespace="n", key=b"%d" % number, value=VALUE), timeout=5)


def _is_refused(told: Story, name: str, server: ServerProcess) -> bool:
    told.look((name, server))
    return value(told.scrapes[name][-1], "cortado_queue_refused_total", queue="writes") > 0


def _is_leaderless(told: Story, name: str, server: ServerProcess) -> bool:
    told.look((name, server))
    return value(told.scrapes[name][-1], "cortado_has_leader") == 0


def _lose_the_leader(told: Story, cluster: Cluster) -> None:
    old = cluster.leader()
    cluster.kill(old)
    new = cluster.leader(besides=[old])
    wait_until(lambda: readiness(cluster.nodes[new])[0] == 200, f"{new} is ready")
    told.look((new, cluster.nodes[new]))
    shown = cortado("top", "--once", "--interval", "0.3", "-o", "json", "-e", cluster.endpoints)
    told.top = [json.loads(line) for line in shown.splitlines()]
    cluster.start(old)
    cluster.wait_converged()


def _lose_the_majority(told: Story, cluster: Cluster) -> None:
    alone, *others = cluster.nodes
    server = cluster.nodes[alone]

    def look(when: str, wanted: int) -> None:
        wait_until(lambda: readiness(server)[0] == wanted, f"/readyz says {wanted} {when}")
        wait_until(lambda: _health(cluster.addresses[alone]) == (1 if wanted == 200 else 2), f"health {when}")
        status, said = readiness(server)
        reasons = {each["reason"] for each in said["reasons"]}
        told.ready.append((when, status, reasons, _health(cluster.addresses[alone])))
        told.look((alone, server))

    look("before", 200)
    cluster.kill(*others)
    look("alone", 503)
    cluster.start(*others)
    look("after", 200)


def _health(address: str) -> int:
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        return int(health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5).status)


def _run_out_of_room(told: Story, folder: Path) -> None:
    """A node with certificates, and a map that a few values fill."""
    certifier = Certifier(folder / "certs")
    node, me = certifier.node("n1"), certifier.client("me")
    options = ("--node-id", "n1", "--map-size", "2MiB", "--metrics-listen", "0")
    files = ("--tls-cert", str(node.cert), "--tls-key", str(node.key), "--tls-ca", str(node.ca))
    with running_server(folder / "data", *options, *files) as server:
        tls = Tls(str(me.ca), str(me.cert), str(me.key))
        told.look(("tls", server))
        with Client(server.endpoint, tls=tls, timeout_s=1) as client:

            def is_full() -> bool:
                with suppress(ResourceExhausted, OutcomeUnknown):
                    client.kv("n").put(b"%d" % next(numbers), VALUE)
                return readiness(server)[0] == 503

            numbers = count()
            # Entries that wait to be applied count as if they took room of their own, so the first refusal is not
            # final.
            wait_until(is_full, "there is no room")
        status, said = readiness(server)
        told.ready.append(("full", status, {each["reason"] for each in said["reasons"]}, 0))
        told.look(("tls", server))
        with NodeStatistics(server.endpoint, tls=tls) as asked:
            told.by_rpc = asked.read()


# --- observed metrics -----------------------------------------------------------------------------------------


def series(scrapes: Sequence[Scraped], name: str) -> dict[tuple[tuple[str, str], ...], list[float]]:
    """Return a metric's samples by their labels; for a histogram, its count."""
    definition = DEFINITIONS[name]
    wanted = definition.full_name + ("_count" if definition.kind is Kind.HISTOGRAM else "")
    found: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for scraped in scrapes:
        for (each, labels), number in scraped.items():
            if each == wanted:
                found.setdefault(labels, []).append(number)
    return found


SHOWN_FROM_THE_FIRST = (
    "refusals_total", "streams_total", "requests_total", "table_rows", "table_bytes", "database_rows", "database_bytes",
)  # fmt: skip


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_documented_metric_is_in_a_scrape(story: Story, name: str) -> None:
    assert any(series(scrapes, name) for scrapes in story.scrapes.values())


def test_nothing_is_in_a_scrape_that_is_not_documented(story: Story) -> None:
    known = {each.full_name for each in DEFINITIONS.values()}
    for scrapes in story.scrapes.values():
        for scraped in scrapes:
            for name, _ in scraped:
                assert name in known or name.rpartition("_")[0] in known, name


@pytest.mark.parametrize("name", sorted(DEFINITIONS.keys() - CONSTANT - FLEETING))
def test_a_metric_changes_when_what_it_counts_happens(story: Story, name: str) -> None:
    histories = [values for scrapes in story.scrapes.values() for values in series(scrapes, name).values()]
    # A metric that appears with its first event may have one value there, and has no value before.
    has_begun = name in SHOWN_FROM_THE_FIRST and any(map(any, histories))
    assert has_begun or any(len(set(values)) > 1 for values in histories)


def test_counters_of_a_process_never_fall(story: Story) -> None:
    for scrapes in story.scrapes.values():
        for name, definition in DEFINITIONS.items():
            if definition.kind is Kind.GAUGE:
                continue
            started = [value(each, "cortado_process_start_time_seconds") for each in scrapes]
            for start in set(started):
                lived = [scraped for scraped, at in zip(scrapes, started, strict=True) if at == start]
                for values in series(lived, name).values():
                    assert values == sorted(values), name


def test_a_killed_leader_is_counted_as_a_change_of_leaders(story: Story) -> None:
    (told,) = story.top
    changes = [value(each, "cortado_leader_changes_total") for each in story.scrapes[told["leader"]]]
    assert max(changes) >= 2


def test_top_shows_who_leads_now_and_who_does_not_answer(story: Story) -> None:
    (told,) = story.top
    nodes = {node["node_id"]: node for node in told["nodes"]}
    assert len(nodes) == 3
    assert nodes[told["leader"]]["role"] == "leader"
    assert nodes[told["leader"]]["ready"] is True
    assert nodes[told["leader"]]["writes_per_s"] is not None
    (silent,) = [node for node in nodes.values() if not node["reached"]]
    assert silent["problem"]
    assert silent["role"] is None
    (follower,) = [node for node in nodes.values() if node["role"] == "follower"]
    assert follower["lag_entries"] is not None


def test_ready_means_that_it_can_serve_and_grpc_says_the_same(story: Story) -> None:
    seen = {when: (status, reasons, health) for when, status, reasons, health in story.ready}
    assert seen["before"] == (200, set(), 1)
    assert seen["alone"] == (503, {"no_leader"}, 2)
    assert seen["after"] == (200, set(), 1)
    assert seen["full"][:2] == (503, {"no_room"})


def test_a_log_as_json_has_one_object_a_line_with_slow_calls_and_no_value(story: Story) -> None:
    slow = []
    for name, text in story.logs.items():
        for line in text.splitlines():
            if line.startswith("listening "):
                continue
            said = json.loads(line)
            assert {"time", "level", "logger", "message"} <= said.keys()
            if said["logger"].endswith("slow"):
                assert said["node_id"] == name
                slow.append(said)
        assert "vvvvvvvv" not in text
    puts = [said for said in slow if said["method"] == "cortado.v1.KeyValue/Put" and "commit" in said["split_ms"]]
    assert puts
    assert puts[0]["of"] == {"namespace": "n"}
    assert puts[0]["peer"]
    assert len(puts[0].get("request_id", "")) in (0, 40)


def test_the_rpc_tells_the_same_with_certificates(story: Story) -> None:
    said, scraped = story.by_rpc, story.scrapes["tls"][-1]
    assert said is not None
    assert [reason for reason, _ in said.problems] == ["no_room"]
    named = {name.removesuffix("_count") for name, _ in scraped if not name.endswith(("_bucket", "_sum"))}
    assert said.values.keys() | said.histograms.keys() >= named
    assert said.value("cortado_map_limit_bytes") == value(scraped, "cortado_map_limit_bytes")
    assert said.value("cortado_requests_total", "cortado.v1.KeyValue/Put", "OK") == value(
        scraped, "cortado_requests_total", method="cortado.v1.KeyValue/Put", code="OK"
    )


def test_pages_that_there_are_not_are_named_and_a_living_process_says_so(story: Story) -> None:
    assert story.pages["/"] == (404, "there is /metrics, /healthz, /readyz\n")
    assert story.pages["/healthz"] == (200, "alive\n")
