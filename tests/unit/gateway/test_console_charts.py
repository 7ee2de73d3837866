"""The gateway's memory of its cluster, and the lines that are drawn of it."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from cortado.errors import CortadoError, PermissionDenied, Unavailable
from cortado.store.client.cluster import Members, MemberStatus
from cortado.store.client.statistics import HistogramValue, Statistics
from cortado.store.gateway.console import samples as samples_module
from cortado.store.gateway.console.charts import HEIGHT, WIDTH, charts_of
from cortado.store.gateway.console.samples import KEPT, Sample, Samples

PUT = ("cortado.v1.KeyValue/Put", "OK")
CLOCK = ("cortado.v1.Cluster/Clock", "OK")


class World:
    """A cluster with each node's answers in ``said``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *nodes: str) -> None:
        self.now_s = 1_000.0
        self.nodes = list(nodes)
        self.said: dict[str, Statistics | CortadoError] = {}
        self.led_by = nodes[0]
        self.problem: CortadoError | None = None
        self.samples = Samples(lambda: self.now_s)
        monkeypatch.setattr(samples_module, "members_of", self._members)
        monkeypatch.setattr(samples_module, "read", self._read)

    async def _members(self, _client: object) -> Members:
        if self.problem is not None:
            raise self.problem
        listed = tuple(MemberStatus(each, each, each, voter=True, joined=True) for each in self.nodes)
        return Mock(members=listed, leader=self.led_by)

    async def _read(self, _client: object, address: str) -> Statistics:
        found = self.said[address]
        if isinstance(found, CortadoError):
            raise found
        return found

    def take(self, seconds: float = 5.0) -> None:
        asyncio.run(self.samples.take(Mock()))
        self.now_s += seconds


def counted(node: str, at_s: float, puts: int, clocks: int = 0, lags: dict[str, float] | None = None) -> Statistics:
    values: dict[str, Any] = {
        "cortado_uptime_seconds": {(): at_s},
        "cortado_requests_total": {PUT: float(puts), CLOCK: float(clocks)},
        "cortado_map_used_bytes": {(): 4096.0},
    }
    if lags:
        values["cortado_member_lag_seconds"] = {(name,): lag for name, lag in lags.items()}
    durations = {
        (PUT[0],): HistogramValue((0.001, 0.1), (0, puts, 0), 1.0),
        (CLOCK[0],): HistogramValue((0.001, 0.1), (0, 0, clocks), 1.0),
    }
    return Statistics("c", node, at_s, (), values, {"cortado_request_duration_seconds": durations})


def test_a_sample_is_the_difference_of_two_readings_without_the_calls_of_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, "n1", "n2")
    world.said = {"n1": counted("n1", 10.0, 100, 7, {"n2": 1.5}), "n2": counted("n2", 3.0, 0)}
    world.take()
    assert world.samples.of("n1")[0] == Sample(1_000.0, None, None, 0.0, 4096.0)
    world.said = {"n1": counted("n1", 15.0, 150, 900, {"n2": 2.5}), "n2": counted("n2", 8.0, 0)}
    world.take()
    newest = world.samples.of("n1")[-1]
    assert (newest.calls_per_s, newest.lag_s, newest.data_bytes) == (10.0, 0.0, 4096.0)
    assert newest.p99_s is not None
    assert newest.p99_s <= 0.1
    follower = world.samples.of("n2")[-1]
    assert (follower.calls_per_s, follower.p99_s, follower.lag_s) == (0.0, None, 2.5)
    assert world.samples.problem is None


def test_a_node_that_was_started_again_counts_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, "n1")
    for reading in (counted("n1", 100.0, 5_000), counted("n1", 2.0, 10), counted("n1", 7.0, 60)):
        world.said = {"n1": reading}
        world.take()
    assert [each.calls_per_s for each in world.samples.of("n1")] == [None, None, 10.0]


def test_a_silent_node_has_a_gap_and_a_removed_one_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, "n1", "n2")
    world.said = {"n1": counted("n1", 1.0, 0), "n2": counted("n2", 1.0, 0)}
    world.take()
    world.said["n2"] = Unavailable("nothing listens")
    world.take()
    assert world.samples.of("n2")[-1] == Sample(1_005.0)
    world.problem = Unavailable("nobody answers")
    world.take()
    assert world.samples.of("n1")[-1] == Sample(1_010.0)
    assert world.samples.problem == world.problem
    world.problem = None
    world.nodes = ["n1"]
    world.take()
    assert world.samples.nodes == ["n1"]


def test_where_the_gateway_may_not_ask_the_pages_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, "n1")
    world.said = {"n1": PermissionDenied("gateway", "view", "cluster")}
    world.take()
    assert isinstance(world.samples.problem, PermissionDenied)
    assert not world.samples.of("n1")


def test_ten_minutes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, "n1")
    for number in range(KEPT + 30):
        world.said = {"n1": counted("n1", 5.0 * number, 0)}
        world.take()
    assert len(world.samples.of("n1")) == KEPT


def drawn(*samples: Sample) -> Any:
    kept = Samples()
    kept._kept["n1"] = list(samples)  # type: ignore[assignment]
    return charts_of(kept, ["n1"])


def test_a_chart_has_the_newest_at_its_right_edge_and_breaks_where_nothing_is_known() -> None:
    calls, latency, lag, data = drawn(
        Sample(0.0, 10.0, 0.002, 0.0, 100.0),
        Sample(300.0, 40.0, None, 0.0, 100.0),
        Sample(600.0, 20.0, 0.001, 0.0, 150.0),
    )
    assert (calls.title, calls.most) == ("Calls per second", "50.0")
    [line] = calls.lines
    # Five minutes without a sample are a gap on each side: every sample is a dot of its own.
    assert [path.split()[0] for path in line.paths] == [
        f"0.0,{HEIGHT * 0.8:.1f}", f"{WIDTH / 2:.1f},{HEIGHT * 0.2:.1f}", f"{WIDTH:.1f},{HEIGHT * 0.6:.1f}",
    ]  # fmt: skip
    assert (latency.most, len(latency.lines[0].paths), latency.lines[0].last) == ("2 ms", 2, "1 ms")
    assert {path.split()[0].partition(",")[2] for path in lag.lines[0].paths} == {f"{HEIGHT:.1f}"}
    assert (data.most, data.lines[0].last) == ("256 B", "150 B")
    assert calls.said == "Calls per second in the last ten minutes, at most 50.0; now n1 20.0"


def test_samples_beside_each_other_are_one_line() -> None:
    [line] = drawn(*(Sample(5.0 * each, float(each)) for each in range(50)))[0].lines
    assert [len(path.split()) for path in line.paths] == [50]


def test_one_sample_is_no_chart() -> None:
    assert drawn(Sample(0.0, 1.0)) == []
    assert charts_of(Samples(), []) == []
