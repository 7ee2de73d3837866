"""What `make bench-cluster` prints is what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.cluster.etcd_api import PutRequest, RangeRequest, RequestOp, TxnRequest
from benchmarks.cluster.fast_client import _latencies_us
from benchmarks.cluster.load import Outcome, percentile
from benchmarks.cluster.members import Use
from benchmarks.cluster.tables import Point, Results, lines, markdown

OUTCOME = Outcome(
    rate=1_000, p50_ms=1.25, p99_ms=9.5, leader=Use(0.5, 100), followers=(Use(0.25, 90), Use(0.5, 120)),
    client_cores=0.3, failed=0,
)  # fmt: skip


def test_percentiles_are_values_that_were_seen() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([7], 0.99) == 7
    assert percentile(list(range(100)), 0.50) == 50
    assert percentile(list(range(100)), 0.99) == 99


def test_both_systems_stand_in_one_line_and_an_aim_is_reached_or_missed() -> None:
    results = Results()
    for rows, aim, rate in ((1, 2.0, 2_000.0), (100, 3.0, 2_500.0), (1_000, 0.0, 500.0)):
        results.points.append(Point("etcd", f"{rows}", "2 x 32", rows, aim, OUTCOME))
        results.points.append(Point("cortado", f"{rows}", "2 x 32", rows, aim, replace(OUTCOME, rate=rate)))
    shown = lines(results)
    assert shown[0][:6] == ["1", "2 x 32", "1,000", "2,000", "2.00", "2 reached"]
    assert shown[1][:6] == ["100", "2 x 32", "1,000 (100,000)", "2,500 (250,000)", "2.50", "3 missed"]
    assert shown[2][4:6] == ["0.50", ""]
    assert shown[0][6:] == ["1.2 / 1.2", "9.5 / 9.5", "0.50 / 0.50", "0.75 / 0.75", "0.30 / 0.30", "120 / 120"]


def test_one_system_alone_is_shown_too_and_failures_are_not_hidden() -> None:
    results = Results(failover_ms={"cortado": [900.0, 700.0]})
    results.points.append(Point("cortado", "put", "1", 1, 1.0, replace(OUTCOME, failed=3)))
    (line,) = lines(results)
    assert line[2:6] == ["-", "1,000, 3 failed", "", "1"]
    assert "cortado: 700, 900 ms from kill -9" in markdown(results)


def test_the_requests_are_etcds_bytes() -> None:
    # As etcd's own stubs serialize them: field numbers and wire types.
    assert PutRequest(key=b"k", value=b"v").SerializeToString() == b"\x0a\x01k\x12\x01v"
    assert RangeRequest(key=b"a", range_end=b"b", limit=3).SerializeToString() == b"\x0a\x01a\x12\x01b\x18\x03"
    put = RequestOp(request_put=PutRequest(key=b"k", value=b"v"))
    assert TxnRequest(success=[put]).SerializeToString() == b"\x12\x08\x12\x06\x0a\x01k\x12\x01v"


def test_answers_of_the_client_in_c_are_counted_where_they_were_answers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1700000000000000\t200\t1500\n1700000000000001\t503\t10\n1700000000000002\t200\t900\n")
    assert list(_latencies_us(log)) == [1500, 900]
