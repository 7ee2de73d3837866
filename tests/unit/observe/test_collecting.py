"""The collected metrics are the values of the node's parts, also if no real node can be brought to that state."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from cortado.errors import QuotaExceeded
from cortado.store.auth.roles import Demand, Permission, Resource
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.host.host import Host
from cortado.store.mvcc.staged import LargeTransaction, Unresolved
from cortado.store.observe.collecting import Sources, collect
from cortado.store.observe.definitions import DEFINITIONS, Kind
from cortado.store.observe.exposition import expose
from cortado.store.observe.families import Family, Value
from cortado.store.observe.lag import LogClock
from cortado.store.observe.measures import Histogram, Traffic
from cortado.store.observe.readiness import Readiness, Reason
from cortado.store.observe.requests import Requests
from cortado.store.observe.stored_sizes import StoredSizes
from cortado.store.peers.transport import PeerStatus
from cortado.store.process.process import NodeIdentity, Surroundings
from cortado.store.quotas.meters import Meters
from cortado.store.quotas.quota import Quota, Target
from cortado.store.replica.driver import Driver
from cortado.store.replica.feed.watches import WatchStatistics
from support.engines import open_stores
from support.memory_snapshot_files import MemorySnapshotFiles
from support.nodes import NOW_MS, SetClock, followed

PEER = PeerStatus("n2", "127.0.0.1:2", False, "", 0.0, 5, 600, 7, "away", Traffic(1, 2, 3, 4, 5))


class Collected:
    """A node alone in this process, with parts of it replaced, and its collected metrics."""

    def __init__(self, folder: Path) -> None:
        self.stores = open_stores(folder, Identity("c", "n1", "s"))
        self.engine = self.stores.engine
        self.now_ms = 0.0
        self.values: dict[str, dict[tuple[str, ...], Value]] = {}
        self.families: list[Family] = []
        self.requests = Requests()

    def __call__(self, change: Any = lambda _node: None) -> dict[str, dict[tuple[str, ...], Value]]:
        asyncio.run(self._collect(change))
        return self.values

    async def _collect(self, change: Any) -> None:
        node = Host(
            NodeIdentity("c", "n1", "s"),
            Surroundings(
                engine=self.engine,
                log_files=self.stores.log_files,
                snapshot_files=MemorySnapshotFiles(),
                host_time=followed(SetClock()),
                monotonic_ms=lambda: self.now_ms,
                random=Random(0),
            ),
        )
        await node.start()
        readiness = Readiness(lambda: self.now_ms)
        readiness.attach(node)
        sources = Sources(
            host=node,
            transport=SimpleNamespace(status=lambda: [PEER]),  # type: ignore[arg-type]
            engine=self.engine,
            requests=self.requests,
            readiness=readiness,
            log_clock=LogClock(),
            calls_use=lambda: (3, 40),
            meters=_meters(),
            sizes=StoredSizes({"shop.orders": (3, 500)}, {"shop": (4, 700)}),
            certificates=SimpleNamespace(  # type: ignore[arg-type]
                current=lambda: SimpleNamespace(not_after_s=1_000.0, authority_not_after_s=2_000.0)
            ),
            monotonic_ms=lambda: self.now_ms,
        )
        change(node)
        self.families = collect(sources)
        self.values = {each.definition.name: dict(each.samples) for each in self.families}
        node.meta.store.unreadable = ""
        await node.stop()


def _meters() -> Meters:
    """Return the meters of one quota, which is used up."""
    meters, target = Meters(lambda: 0.0), Target("database:shop")
    meters.use({target: Quota(target, stored_bytes=10)})
    meters.measured(meters.by_target[target], 15)
    with pytest.raises(QuotaExceeded):
        meters.check_room([Demand(Permission.WRITE, Resource("table:shop.orders"))])
    return meters


@pytest.fixture
def collected(tmp_path: Path) -> Any:
    made = Collected(tmp_path / "data")
    yield made
    made.stores.close()


def test_every_definition_has_a_value_of_its_kind_with_its_labels(collected: Collected) -> None:
    call = collected.requests.method("cortado.v1.KeyValue/Get").begin()
    collected.requests.method("cortado.v1.KeyValue/Get").end(call, "OK", SimpleNamespace())  # type: ignore[arg-type]
    stream = collected.requests.method("cortado.v1.KeyValue/Scan")
    stream.is_stream = True
    stream.opened()
    stream.closed("OK")
    collected.requests.refusals["writes"] += 1
    found = collected()
    # Metrics that exist only among several nodes.
    among_several = {
        name for name in DEFINITIONS if name.startswith(("member_", "clock_offset_low", "clock_offset_hi"))
    }
    assert DEFINITIONS.keys() - found.keys() == among_several
    for name, samples in found.items():
        for labels, value in samples.items():
            assert len(labels) == len(DEFINITIONS[name].labels)
            assert isinstance(value, Histogram) == (DEFINITIONS[name].kind.value == "histogram"), name


def test_large_transactions_are_counted_by_whether_they_take_rows(collected: Collected) -> None:
    def change(node: Any) -> None:
        states = ({}, {"is_aborted": True}, {"commit_ts": Timestamp(0, 1, 0)})
        found = [LargeTransaction(bytes([number]) * 16, (), **state) for number, state in enumerate(states)]
        node.meta.store.unresolved = Unresolved(found)

    found = collected(change)
    assert found["large_transactions_open"] == {(): 1}
    assert found["large_transactions_unresolved"] == {(): 2}


def test_commits_are_counted_by_outcome_and_those_that_were_evaluated_again_too(collected: Collected) -> None:
    def change(node: Any) -> None:
        commits = node.meta.driver.pipeline.measures.commits
        commits.committed, commits.refused, commits.conflicts["range"], commits.evaluated_again = 1, 2, 3, 4

    found = collected(change)
    outcomes = {
        "committed": 1,
        "refused": 2,
        "write conflict": 0,
        "read conflict": 0,
        "range conflict": 3,
        "table conflict": 0,
        "namespace conflict": 0,
    }
    assert found["commits_total"] == {(name,): count for name, count in outcomes.items()}
    assert found["commits_evaluated_again_total"] == {(): 4}


@pytest.mark.parametrize(
    ("accept", "content_type", "parse"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8", text_string_to_metric_families),
        ("text/html, application/openmetrics-text; version=1.0.0;q=0.5", "application/openmetrics-text", openmetrics),
    ],
)
def test_both_formats_of_prometheus_are_what_its_own_parsers_read(
    collected: Collected, accept: str, content_type: str, parse: Any
) -> None:
    found = collected()
    body, said = expose(collected.families, accept)
    assert said.startswith(content_type)
    families = {family.name: family for family in parse(body.decode())}
    for name, samples in found.items():
        definition = DEFINITIONS[name]
        # A counter's family has the name without its ending.
        family = families[definition.full_name.removesuffix("_total")]
        assert family.type == definition.kind
        assert family.documentation == definition.meaning
        if definition.kind is not Kind.HISTOGRAM:
            told = {tuple(each.labels[label] for label in definition.labels): each.value for each in family.samples}
            assert told == samples
        else:
            counts = [each.value for each in family.samples if each.name.endswith("_bucket")]
            assert counts == sorted(counts)


def test_what_watches_say_is_told(collected: Collected) -> None:
    said = WatchStatistics(*range(1, len(dataclasses.fields(WatchStatistics)) + 1))

    def change(node: Host) -> None:
        node.meta.watches.statistics = lambda: said  # type: ignore[method-assign]

    found = collected(change)
    told = {name: samples[()] for name, samples in found.items() if name.startswith("watch")}
    assert told == {
        "watches_open": said.watches,
        "watch_ranges": said.ranges,
        "watches_catching_up": said.catching_up,
        "watch_queued_events": said.queued_events,
        "watch_queued_bytes": said.queued_bytes,
        "watch_recent_bytes": said.recent_bytes,
        "watch_events_total": said.events,
        "watch_overflows_total": said.overflows,
        "watch_passes_total": said.passes,
        "watch_passes_by_index_total": said.passes_by_index,
        "watch_lag_seconds": said.resolved_lag_ms / 1000,
    }


def test_what_streams_between_peers_say_is_told(collected: Collected) -> None:
    found = collected()
    told = {name: samples[("n2",)] for name, samples in found.items() if name.startswith("peer_")}
    assert told == {
        "peer_connected": False,
        "peer_connections_total": 1,
        "peer_sent_batches_total": 2,
        "peer_sent_bytes_total": 3,
        "peer_received_batches_total": 4,
        "peer_received_bytes_total": 5,
        "peer_dropped_total": 7,
        "peer_queue_messages": 5,
        "peer_queue_bytes": 600,
    }


def test_a_snapshot_that_is_installed_shows_and_is_a_reason_not_to_serve(collected: Collected) -> None:
    def change(node: Host) -> None:
        node.meta.store.unreadable = "a snapshot is being installed"

    found = collected(change)
    assert found["snapshot_installing"][()] is True
    assert found["ready"][()] is False
    assert found["not_ready"][(Reason.INSTALLING_SNAPSHOT.value,)] is True


def test_a_node_that_was_told_not_to_lead_says_so(collected: Collected) -> None:
    found = collected(lambda node: node.meta.driver.veto("clock", True))
    assert found["may_lead"][()] is False


def test_what_has_no_room_is_counted_by_store(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(node: Host) -> None:
        writing, applying = node.meta.driver.writer.measures, node.meta.driver.applier.measures
        writing.refused, applying.refused = 2, 3
        monkeypatch.setattr(Driver, "refused_for", "the disk is full")

    found = collected(change)
    assert found["log_write_refused_total"][()] == 2
    assert found["storage_refused_total"][()] == 3
    assert found["storage_writable"][()] is False
    assert found["not_ready"][(Reason.NO_ROOM.value,)] is True


def test_writes_of_the_log_are_timed_and_its_files_are_measured(collected: Collected) -> None:
    found = collected()
    writes = found["log_write_seconds"][()]
    assert isinstance(writes, Histogram)
    assert writes.count > 0, "that the node leads is in the log"
    [file] = (collected.engine.path / "log").iterdir()
    assert found["log_segments"][()] == found["log_oldest_segment"][()] == found["log_newest_segment"][()] == 1
    assert found["log_disk_bytes"][()] == file.stat().st_size
    assert 0 < found["log_segment_free_bytes"][()] < file.stat().st_size


def test_what_is_in_a_queue_is_told_with_its_bounds(collected: Collected) -> None:
    def change(node: Host) -> None:
        node.process.writes.enter(500)

    found = collected(change)
    assert found["queue_entries"][("writes",)] == 1
    assert found["queue_bytes"][("writes",)] == 500
    assert found["queue_entries"][("call_streams",)] == 3
    assert found["queue_entries"][("calls_of_streams",)] == 40


def test_time_that_is_ahead_of_the_clock_shows(collected: Collected) -> None:
    found = collected(lambda node: node.process.clock.update(Timestamp(0, NOW_MS + 200, 0)))
    assert found["clock_ahead_seconds"][()] == 0.2


def test_times_are_in_seconds_since_1970(collected: Collected) -> None:
    found = collected()
    assert found["certificate_not_after_timestamp_seconds"] == {("node",): 1_000.0, ("authority",): 2_000.0}
    assert found["clock_ahead_seconds"][()] == 0.0
    assert found["clock_last_timestamp_seconds"][()] in (0.0, NOW_MS / 1000)


def test_resources_that_refuse_are_bounded_in_number() -> None:
    from cortado.errors import ResourceExhausted

    requests = Requests()
    for number in range(1_000):
        requests.refused(ResourceExhausted("full", resource=f"r{number}"))
    assert len(requests.refusals) <= 65
    assert sum(requests.refusals.values()) == 1_000
