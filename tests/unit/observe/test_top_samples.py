"""The view that ``cortado top`` has of two readings of a node: rates and latencies of the time between, nothing made
up."""

from __future__ import annotations

from typing import Any

import pytest

from cortado.store.cli.node_table import node_table, problem_lines
from cortado.store.cli.samples import NodeSample, not_reached, sample
from cortado.store.client.statistics import HistogramValue, Statistics

PUT, GET = "cortado.v1.KeyValue/Put", "cortado.v1.KeyValue/Get"
BOUNDS = (0.001, 0.01, 0.1)


def statistics(node_id: str, at_s: float, *, puts: int = 0, gets: int = 0, **more: Any) -> Statistics:
    """Return the statistics of a node that was started at 100 s, unless ``started_s`` says otherwise."""
    started_s = more.pop("started_s", 100.0)
    slow = more.pop("slow", 0)
    values: dict[str, dict[tuple[str, ...], float]] = {
        "cortado_uptime_seconds": {(): at_s - started_s},
        "cortado_role": {("leader",): float(node_id == "n1"), ("follower",): float(node_id != "n1")},
        "cortado_requests_total": {
            (PUT, "OK"): puts,
            (GET, "OK"): gets,
            ("cortado.v1.Statistics/ReadStatistics", "OK"): at_s,
        },
    }
    for name, labelled in more.items():
        values[f"cortado_{name}"] = labelled
    durations = {
        (PUT,): HistogramValue(BOUNDS, (puts - slow, 0, slow, 0), 0.0),
        (GET,): HistogramValue(BOUNDS, (gets, 0, 0, 0), 0.0),
    }
    return Statistics("c", node_id, at_s, (), values, {"cortado_request_duration_seconds": durations})


def between(now: Statistics, before: Statistics | None, leader: Statistics | None = None) -> NodeSample:
    return sample("127.0.0.1:1", True, now, before, leader)


def test_rates_are_differences_by_the_nodes_own_clock() -> None:
    found = between(statistics("n1", 204.0, puts=500, gets=90), statistics("n1", 200.0, puts=100, gets=50))
    assert (found.writes_per_s, found.reads_per_s) == (100.0, 10.0)
    assert found.role == "leader"


def test_latencies_are_of_what_happened_between_and_not_before() -> None:
    before = statistics("n1", 200.0, puts=10_000, slow=10_000)
    found = between(statistics("n1", 201.0, puts=10_100, slow=10_000), before)
    assert found.write_p99_s is not None
    assert found.write_p99_s <= 0.001
    assert found.read_p99_s is None


@pytest.mark.parametrize("before", [None, statistics("n1", 200.0, puts=900, started_s=50.0)])
def test_a_process_that_was_not_there_before_has_no_rates_yet(before: Statistics | None) -> None:
    found = between(statistics("n1", 201.0, puts=5), before)
    assert (found.writes_per_s, found.write_p99_s, found.cpu_percent) == (None, None, None)
    assert found.reached


def test_lag_is_what_the_leader_says_of_a_member() -> None:
    lags = {"member_lag_entries": {("n2",): 40.0}, "member_lag_seconds": {("n2",): 1.5}}
    leader, follower = statistics("n1", 200.0, **lags), statistics("n2", 300.0)
    assert (between(follower, None, leader).lag_entries, between(follower, None, leader).lag_s) == (40, 1.5)
    assert between(leader, None, leader).lag_entries is None
    assert between(follower, None, None).lag_entries is None


def test_the_fullest_queue_is_the_one_nearest_to_a_bound_of_its_own() -> None:
    queues = {
        "queue_entries": {("writes",): 10.0, ("reads",): 60.0, ("unbounded",): 1e9},
        "queue_entries_limit": {("writes",): 1_000.0, ("reads",): 100.0},
        "queue_bytes": {("writes",): 90.0},
        "queue_bytes_limit": {("writes",): 100.0, ("reads",): 0.0},
    }
    found = between(statistics("n1", 200.0, **queues), None)
    assert (found.queue, found.queue_use) == ("writes", 0.9)


@pytest.mark.parametrize(("low", "high", "offset_s"), [(-0.3, -0.2, -0.2), (0.1, 0.4, 0.1), (-0.1, 0.2, 0.0)])
def test_a_clock_is_off_by_as_much_as_it_must_be(low: float, high: float, offset_s: float) -> None:
    clocks = {"clock_offset_low_seconds": {("n2",): low}, "clock_offset_high_seconds": {("n2",): high}}
    assert between(statistics("n1", 200.0, **clocks), None).clock_offset_s == pytest.approx(offset_s)


LARGE = {"disk_free_bytes": {(): 1023.0 * (1 << 30)}, "process_resident_memory_bytes": {(): 99.9 * (1 << 20)}}
NODES = [
    between(statistics("n1", 204.0, puts=123_456, **LARGE), statistics("n1", 200.0)),
    between(statistics("n2", 204.0), None, statistics("n1", 200.0, member_lag_entries={("n2",): 123_456.0})),
    not_reached("n3", "127.0.0.1:3", True, "failed to connect to all addresses; last error: nothing \x1b[31m there"),
]


@pytest.mark.parametrize("width", [40, 80, 100, 140, 200])
def test_a_line_never_wraps_and_shows_more_where_there_is_room(width: int) -> None:
    from rich.console import Console

    console = Console(width=width, no_color=True, force_terminal=False, record=True)
    with console.capture() as captured:
        console.print(node_table(NODES, "n1", width))
    lines = captured.get().splitlines()
    assert len(lines) == 2 + len(NODES)
    assert all(len(line) <= width for line in lines)
    titles = [title for title in ("role", "writes/s", "wr p99", "lag", "disk", "memory", "clock") if title in lines[0]]
    assert len(titles) >= {40: 1, 80: 5, 100: 6, 140: 7, 200: 7}[width]
    assert "…" not in captured.get()


def test_who_does_not_answer_is_named_with_why_and_moves_no_cursor() -> None:
    (line,) = problem_lines(NODES)
    assert line.plain == r"n3 at 127.0.0.1:3 does not answer: nothing \x1b[31m there"
