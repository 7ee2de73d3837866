"""`make bench-ycsb` asks the questions of YCSB's workloads, and prints its measures."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks import markdown as pages
from benchmarks import report
from benchmarks.cluster.members import Use
from benchmarks.cluster.turns import Outcome
from benchmarks.ycsb.draws import THETA, Draw, Latest, Scattered, Zipfian, scattered
from benchmarks.ycsb.load import Asking, Records, key, record
from benchmarks.ycsb.results import Measured, Results
from benchmarks.ycsb.workloads import FIELD_BYTES, FIELDS, SCHEMA, WORKLOADS, Operation, Workload

DRAWN = 20_000


def counted(draw: Draw, count: int) -> Counter[int]:
    chance = random.Random(7)
    return Counter(draw(chance, count) for _ in range(DRAWN))


# --- draws ---------------------------------------------------------------------------------------------------------


def test_the_most_popular_records_come_as_often_as_zipfs_law_says() -> None:
    count = 1_000
    zeta = sum(1 / each**THETA for each in range(1, count + 1))
    seen = counted(Zipfian(), count)
    for rank in range(2):
        assert seen[rank] / DRAWN == pytest.approx(1 / (rank + 1) ** THETA / zeta, rel=0.1)
    assert max(seen) < count
    # Beyond the first two the generator is an approximation.
    assert sum(seen[rank] for rank in range(100)) / DRAWN == pytest.approx(0.69, abs=0.03)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kind", [Zipfian, Scattered, Latest])
def test_few_records_are_all_drawn_and_no_others(kind: type[Draw], count: int) -> None:
    assert set(counted(kind(), count)) <= set(range(count))
    assert set(counted(Zipfian(), count)) == set(range(count))


def test_records_that_come_are_drawn_as_if_they_had_always_been_there() -> None:
    grown = Zipfian()
    for count in (10, 500, 1_000):
        grown(random.Random(1), count)
    assert counted(grown, 1_000) == counted(Zipfian(), 1_000)


def test_the_latest_is_the_most_popular_and_scattered_ones_lie_anywhere() -> None:
    assert counted(Latest(), 100).most_common(1)[0][0] == 99
    ((popular, times),) = counted(Scattered(), 100).most_common(1)
    assert popular == scattered(0) % 100
    assert times > DRAWN / 10


# --- workloads -----------------------------------------------------------------------------------------------------


def test_the_mixes_are_ycsbs() -> None:
    assert {each.name: dict(each.mix) for each in WORKLOADS} == {
        "a": {"read": 0.5, "update": 0.5},
        "b": {"read": 0.95, "update": 0.05},
        "c": {"read": 1.0},
        "d": {"read": 0.95, "insert": 0.05},
        "e": {"scan": 0.95, "insert": 0.05},
        "f": {"read": 0.5, "modify": 0.5},
    }
    assert [each.name for each in WORKLOADS if each.draws == "latest"] == ["d"]


def test_a_record_has_ten_fields_of_a_hundred_bytes_and_a_key_of_its_own() -> None:
    made = record(5, random.Random(1))
    assert list(made) == [each["name"] for each in SCHEMA["fields"]]
    assert [len(made[name]) for name in FIELDS] == [FIELD_BYTES] * 10
    assert len({key(number) for number in range(10_000)}) == 10_000


def test_a_record_is_drawn_once_all_before_it_are_acknowledged() -> None:
    records = Records(10)
    assert [records.begin(), records.begin(), records.begin()] == [10, 11, 12]
    records.acknowledged(11)
    assert records.count == 10
    records.acknowledged(10)
    assert records.count == 12


class FakeTable:
    """A dictionary; ``broken`` answers wrongly."""

    def __init__(self, count: int, *, broken: bool = False) -> None:
        chance = random.Random(0)
        self.rows = {each["id"]: each for each in (record(number, chance) for number in range(count))}
        self.broken = broken
        self.said: Counter[str] = Counter()

    async def get(self, name: str) -> SimpleNamespace | None:
        self.said["get"] += 1
        return None if self.broken else SimpleNamespace(value=self.rows[name])

    async def update(self, name: str, changes: dict[str, bytes]) -> None:
        self.said["update"] += 1
        ((field, value),) = changes.items()
        assert field in FIELDS
        assert len(value) == FIELD_BYTES
        self.rows[name] = {**self.rows[name], field: value}

    async def put(self, document: dict[str, Any]) -> None:
        self.said["put"] += 1
        assert document["id"] not in self.rows
        self.rows[document["id"]] = document

    async def scan(self, lower: tuple[str], limit: int) -> AsyncIterator[SimpleNamespace]:
        self.said["scan"] += 1
        found = [] if self.broken else sorted(name for name in self.rows if name >= lower[0])
        for name in found[:limit]:
            yield SimpleNamespace(value=self.rows[name])


def asked(workload: Workload, table: FakeTable, times: int) -> None:
    asking = Asking(cast(Any, table), workload, Records(100))
    chance = random.Random(3)

    async def ask() -> None:
        for _ in range(times):
            await asking.one(chance)

    asyncio.run(ask())


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_a_workload_asks_for_its_mix(workload: Workload) -> None:
    table = FakeTable(100)
    asked(workload, table, 1_000)
    calls: dict[Operation, dict[str, float]] = {
        "read": {"get": 1}, "update": {"update": 1}, "insert": {"put": 1}, "scan": {"scan": 1},
        "modify": {"get": 1, "update": 1},
    }  # fmt: skip
    expected: Counter[str] = Counter()
    for operation, share in workload.mix.items():
        for call, times in calls[operation].items():
            expected[call] += int(1_000 * share * times)
    assert set(table.said) == set(expected)
    for call, times in expected.items():
        assert table.said[call] == pytest.approx(times, abs=50)


@pytest.mark.parametrize("name", ["c", "e", "f"])
def test_a_wrong_answer_is_no_result(name: str) -> None:
    (workload,) = (each for each in WORKLOADS if each.name == name)
    with pytest.raises(ValueError, match="a wrong answer"):
        asked(workload, FakeTable(100, broken=True), 100)


# --- output --------------------------------------------------------------------------------------------------------


def test_a_saved_result_is_the_same_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    outcome = Outcome(1_000, 1.25, 9.5, Use(0.5, 100), (Use(0.25, 90), Use(0.25, 120)), 0.125, 2)
    shown = Results(settings=["s"], measured=[Measured("c", {"one": [outcome], "three": [outcome]})])
    saved = shown.save()
    assert Results.load(saved) == shown
    pages.main([saved])
    page = capsys.readouterr().out
    assert "s." in page
    assert "| C, reads | three | 1,000 | 1.2 | 9.5 | 1,000 | 125 | 2 |" in page
