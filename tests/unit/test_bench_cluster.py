"""`make bench-cluster` prints its measures, in turns and of both the same."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks import markdown as pages
from benchmarks import report
from benchmarks.cluster import cortado_load, etcd_nodes, etcd_program, tables, turns, workloads
from benchmarks.cluster.drivers import LoadProcess, Seen, percentile
from benchmarks.cluster.h2load import H2load, data_bytes, latencies_us, request
from benchmarks.cluster.members import Cluster, Member, Use
from benchmarks.cluster.tables import Measured, Results, costs, markdown, rates
from benchmarks.cluster.turns import Outcome, in_turns, middle
from benchmarks.cluster.workloads import LOADS, TRANSACTIONS, Load
from cortado.proto.v1 import kv_pb2

OUTCOME = Outcome(
    rate=1_000, p50_ms=1.25, p99_ms=9.5, leader=Use(0.5, 100), followers=(Use(0.25, 90), Use(0.5, 120)),
    client_cores=0.25, failed=0,
)  # fmt: skip
GO = (Path(etcd_program.__file__).parent / "etcd_load" / "main.go").read_text()


def measured(load: Load, etcd: list[float], cortado: list[float]) -> Measured:
    rounds = {"etcd": etcd, "cortado": cortado}
    return Measured(load, {name: [replace(OUTCOME, rate=rate) for rate in each] for name, each in rounds.items()})


# --- turns ---------------------------------------------------------------------------------------------------------


class FakeCluster:
    """Only has a leader, which is this process."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name = name
        self.said = said
        self.members = [FakeMember(f"{name}1"), FakeMember(f"{name}2")]
        self.leads = 0

    def leader(self) -> Member:
        return cast(Member, self.members[self.leads])

    def settle(self) -> None:
        self.said.append(f"{self.name} settles")


class FakeMember:
    pid = 0

    def __init__(self, name: str) -> None:
        self.name = name


class FakeDriver:
    def __init__(self, cluster: FakeCluster, leader: FakeMember) -> None:
        self.cluster = cluster
        self.leader = leader
        cluster.said.append(f"{leader.name} opened")

    def begin(self, seconds: float) -> None:
        self.cluster.said.append(f"{self.leader.name} begins {seconds:g}")

    def end(self) -> Seen:
        self.cluster.said.append(f"{self.leader.name} ends")
        return Seen(calls=10, p50_us=1_500, p99_us=2_000, cpu_s=0.25, failed=1)

    def close(self) -> None:
        self.cluster.said.append(f"{self.leader.name} closed")


class FakeMeter:
    def __init__(self, pid: int) -> None:
        pass

    def read(self) -> Use:
        return Use(0.5, 100)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "time", SimpleNamespace(sleep=lambda _: None))
    monkeypatch.setattr(turns, "Meter", FakeMeter)


def opens(cluster: Cluster, leader: Member) -> FakeDriver:
    return FakeDriver(cast(FakeCluster, cluster), cast(FakeMember, leader))


@pytest.mark.usefixtures("quick")
def test_systems_take_turns_round_by_round_with_callers_that_stay() -> None:
    said: list[str] = []
    clusters = [FakeCluster("c", said), FakeCluster("e", said)]
    outcomes = in_turns(cast(list[Cluster], clusters), opens, rounds=2, seconds=0.5)
    assert said == [
        "c settles", "c1 opened", "c1 begins 0.5", "c1 ends", "e settles", "e1 opened", "e1 begins 0.5", "e1 ends",
        "c settles", "c1 begins 0.5", "c1 ends", "e settles", "e1 begins 0.5", "e1 ends",
        "e1 closed", "c1 closed",
    ]  # fmt: skip
    assert [len(each) for each in outcomes.values()] == [2, 2]
    assert outcomes["c"][0] == Outcome(20, 1.5, 2.0, Use(0.5, 100), (Use(0.5, 100),), 0.5, 1)


@pytest.mark.usefixtures("quick")
def test_callers_follow_a_leader_that_changed_between_rounds() -> None:
    said: list[str] = []
    cluster = FakeCluster("c", said)

    def opens_and_moves(given: Cluster, leader: Member) -> FakeDriver:
        cluster.leads = 1
        return opens(given, leader)

    in_turns([cast(Cluster, cluster)], opens_and_moves, rounds=2, seconds=0.5)
    assert [each for each in said if each.endswith(("opened", "closed"))] == [
        "c1 opened", "c1 closed", "c2 opened", "c2 closed",
    ]  # fmt: skip


def test_of_rounds_the_median_counts_and_no_failure_is_lost() -> None:
    rounds = [replace(OUTCOME, rate=rate, leader=Use(rate, rate), failed=1) for rate in (5.0, 100.0, 7.0)]
    assert middle(rounds) == replace(OUTCOME, rate=7.0, leader=Use(7.0, 100.0), failed=3)


def test_percentiles_are_values_that_were_seen() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([7], 0.99) == 7
    assert percentile(list(range(100)), 0.50) == 50
    assert percentile(list(range(100)), 0.99) == 99


# --- what asks -----------------------------------------------------------------------------------------------------

CALLERS = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print("counting", flush=True)
    print('{"calls": %d, "p50_us": 2, "p99_us": 3, "cpu_s": 0.5, "failed": 0}' % (float(line) * 100), flush=True)
"""


def test_a_load_process_waits_for_its_rounds() -> None:
    driver = LoadProcess([sys.executable, "-c", CALLERS])
    try:
        for seconds in (1.0, 2.0):
            driver.begin(seconds)
            assert driver.end() == Seen(int(seconds * 100), 2, 3, 0.5, 0)
    finally:
        driver.close()


def test_a_load_process_that_ends_early_is_no_result() -> None:
    with pytest.raises(RuntimeError, match="ended early"):
        LoadProcess([sys.executable, "-c", ""])


def test_both_programs_know_every_workload_that_they_are_asked_for() -> None:
    asked = {load.workload for load in (*LOADS, *TRANSACTIONS) if not load.workload.startswith(workloads.BY_H2LOAD)}
    assert asked == set(cortado_load.WORKLOADS)
    declared = re.search(r"var workloads = map\[string\]ask\{(.*?)\n\}", GO, re.DOTALL)
    assert declared is not None
    assert asked == set(re.findall(r'"(\w+)":', declared[1]))


def test_both_programs_write_the_same_keys_and_sizes() -> None:
    formats = {name: value for name, value in vars(workloads).items() if name.endswith("_KEY")}
    assert set(re.findall(r'Key += "(.*)"', GO)) == {each.decode() for each in formats.values()}
    flags = set(re.findall(r'flag\.Int\("([\w-]+)"', GO))
    assert flags == {*workloads.sizes(), "callers"}


def test_etcd_is_asked_by_its_own_client_or_not_at_all(tmp_path: Path) -> None:
    command = etcd_nodes.EtcdCluster("etcd", "etcd_load", tmp_path).load_command("put", 64, ["a:1", "b:2"])
    assert command is not None
    assert (command[0], command[-2:]) == ("etcd_load", ["put", "a:1,b:2"])
    assert {"-callers=64", "-value-bytes=200", "-keys=1000000"} <= set(command)
    assert etcd_nodes.EtcdCluster("etcd", None, tmp_path).load_command("put", 64, ["a:1"]) is None


def test_a_program_that_cannot_be_built_says_which_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(etcd_program.shutil, "which", lambda _: None)
    monkeypatch.setattr(etcd_program, "CLIENT", tmp_path / "none")
    with pytest.raises(etcd_program.NotBuilt, match="golang-go golang-etcd-server-dev"):
        etcd_program.build()


def test_the_unary_requests_are_each_systems_bytes() -> None:
    # etcd's as its own stubs serialize them: field numbers, wire types, and a length of two bytes from 128 on.
    key = b"\x0a\x0fstored-00000007"
    assert request("etcd", "unary_get", b"") == key
    assert request("etcd", "unary_put", b"v" * 200) == key + b"\x12\xc8\x01" + b"v" * 200
    put = kv_pb2.KvPutRequest.FromString(request("cortado", "unary_put", b"v"))
    assert (put.namespace, put.key, put.value) == ("bench", b"stored-00000007", b"v")
    assert kv_pb2.KvGetRequest.FromString(request("cortado", "unary_get", b"")).key == put.key


def test_answers_of_h2load_are_counted_where_they_were_answers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1700000000000000\t200\t1500\n1700000000000001\t503\t10\n1700000000000002\t200\t900\n")
    assert list(latencies_us(log)) == [1500, 900]
    assert data_bytes("traffic: 1.4MB (1437) total, 22KB (22) headers (space savings 91.0%), 1.3MB (1300) data") == 1300


H2LOAD = """#!/bin/sh
while [ "$1" != --log-file ]; do shift; done
printf '0\\t200\\t1500\\n1\\t200\\t900\\n' > "$2"
echo 'traffic: 1KB (1437) total, 22B (22) headers (space savings 91.0%), 0B (DATA) data'
"""


@pytest.mark.parametrize(
    ("workload", "data", "read", "refusal"),
    [
        ("unary_get", 2 * (5 + 7), b"", ""),
        ("unary_get", 5 + 7, b"", "some were refused"),
        ("unary_put", 2 * (5 + 7), b"...value...", ""),
        ("unary_put", 2 * (5 + 7), b"...older...", "does not have what was put"),
    ],
)
def test_calls_that_were_refused_are_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: str, data: int, read: bytes, refusal: str
) -> None:
    program = tmp_path / "h2load"
    program.write_text(H2LOAD.replace("DATA", str(data)))
    program.chmod(0o755)
    monkeypatch.setattr("os.urandom", lambda _: b"value")
    answers = {"unary_get": read or b"7 bytes", "unary_put": b"7 bytes"}
    driver = H2load(str(program), "etcd", workload, 64, "127.0.0.1:1")
    monkeypatch.setattr(driver, "_call", lambda which, _: answers[which])
    driver.begin(0.01)
    if refusal:
        with pytest.raises(RuntimeError, match=refusal):
            driver.end()
    else:
        assert driver.end().calls == 2
    driver.close()


# --- output --------------------------------------------------------------------------------------------------------


def test_both_systems_stand_in_one_line_and_an_aim_is_reached_or_missed() -> None:
    results = Results(
        measured=[
            measured(Load("put", "put", 1, aim=2.0), [900, 1_000, 1_000], [2_000, 2_000, 2_500]),
            measured(Load("batch", "batch", 64, 100, 3.0), [1_000], [2_500]),
            measured(Load("get", "get", 64), [1_000], [500]),
        ]
    )
    shown = rates(results)
    assert shown[0][:7] == ["put", "1", "1,000", "2,000", "2.00", "2.00 to 2.50", "2 reached"]
    assert shown[1][:7] == ["batch", "64", "1,000 (100,000)", "2,500 (250,000)", "2.50", "2.50 to 2.50", "3 missed"]
    assert shown[2][4:7] == ["0.50", "0.50 to 0.50", ""]
    assert shown[0][7:] == ["1.2 / 1.2", "9.5 / 9.5"]
    assert costs(results)[2] == ["get", "64", "500 / 1,000", "750 / 1,500", "250 / 500", "1,500 / 3,000", "120 / 120"]


def test_a_lone_put_may_take_half_as_long_again_as_etcds() -> None:
    (lone,) = (load for load in LOADS if (load.workload, load.callers) == ("put", 1))
    assert measured(lone, [1_500], [1_001]).reached
    assert not measured(lone, [1_500], [999]).reached


def test_one_system_alone_is_shown_too_and_failures_are_not_hidden() -> None:
    results = Results(failover_ms={"cortado": [900.0, 700.0]}, settings=["etcd is not installed"])
    results.measured.append(Measured(Load("put", "put", 1, aim=1.0), {"cortado": [replace(OUTCOME, failed=3)]}))
    (line,) = rates(results)
    assert line[2:7] == ["-", "1,000, 3 failed", "", "", "1"]
    page = markdown(results)
    assert "cortado: 700, 900 ms from kill -9" in page
    assert "etcd is not installed." in page


def test_a_saved_result_is_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    results = Results(settings=["s"], measured=[measured(LOADS[0], [1_000], [500])], failover_ms={"etcd": [1.5]})
    saved = results.save()
    assert json.loads(saved.read_text())["machine"] == results.machine
    assert Results.load(saved) == results
    assert "**missed**" in markdown(Results.load(saved))


def test_the_newest_results_of_each_kind_make_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (pages, report):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "cluster")
    assert pages.newest() == []
    rows = [{"name": "load", "rate": 10.0, "unit": "rows", "below_name": "", "below": 0.0, "aim": 0.0}]
    for day in (1, 2):
        (tmp_path / f"2026010{day}.json").write_text(json.dumps({"machine": {}, "results": {"engine": rows}}))
    saved = Results(measured=[measured(LOADS[0], [1_000], [500])]).save()
    assert pages.newest() == [tmp_path / "20260102.json", saved]
    pages.main(pages.newest())
    page = capsys.readouterr().out
    assert "| load | 10 rows |" in page
    assert "| put | 1 | 1,000 | 500 | 0.50 |" in page
