"""`make bench-spark` prints its measures, in turns, of systems that brought and stored the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from benchmarks import markdown as pages
from benchmarks import report
from benchmarks.cluster.cortado_nodes import CortadoCluster
from benchmarks.spark import cortado_side, postgres, turns
from benchmarks.spark.cortado_side import CortadoSide
from benchmarks.spark.jdbc_side import JdbcSide
from benchmarks.spark.loads import LOADS, SCHEMA, SQL_COLUMNS, VALUES, Load
from benchmarks.spark.processes import Spent, Tree, Used, spent_s, tree_of
from benchmarks.spark.results import Measured, Results
from benchmarks.spark.turns import Side, Turns, WrongAnswer, reads_in_turns, writes_in_turns

BURNS = "import time\nwhile time.process_time() < {}: pass\n"


# --- CPU time ------------------------------------------------------------------------------------------------------


def test_cpu_time_of_a_process_counts_its_children_that_live_and_those_that_ended() -> None:
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURNS.format(0.2)!r}])\n"
    told = "import os\nspent = os.times()\nprint(spent.children_user + spent.children_system, flush=True)\n"
    grandchildren = f"{child}{told}sys.stdin.read()\n"
    command = [sys.executable, "-c", grandchildren]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        of_its_child_s = float(process.stdout.readline())
        alone = spent_s({}, tree_of(process.pid))
        process.communicate()
    # Both are counted in ticks of the kernel.
    assert 0 < of_its_child_s <= alone + 1e-9


def test_a_process_that_there_is_not_has_used_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert spent_s({}, tree_of(ended.pid)) == 0


def test_what_a_process_had_used_before_is_not_counted_again_when_it_ends() -> None:
    parent, child = (1, 10), (2, 20)
    before = {parent: Used(0, 100, 0), child: Used(1, 900, 50)}
    assert ticks(before, {parent: Used(0, 130, 970)}) == 30 + 20
    assert ticks(before, {parent: Used(0, 130, 0)}) == 30, "nobody waited for it"
    assert ticks(before, {**before, (2, 25): Used(1, 7, 0)}) == 7, "the same id, and another process"


def ticks(before: Tree, after: Tree) -> int:
    return round(spent_s(before, after) * os.sysconf("SC_CLK_TCK"))


# --- turns ---------------------------------------------------------------------------------------------------------


@dataclass
class FakeFrame:
    """Rows, and the operations on them."""

    rows: list[tuple[int, ...]]
    said: list[str] = field(default_factory=list)
    name: str = "rows"
    columns: Sequence[str] = ("id",)

    def count(self) -> int:
        return len(self.rows)

    def collect(self) -> list[tuple[int, ...]]:
        self.said.append(f"{self.name} collects")
        return self.rows

    def exceptAll(self, other: FakeFrame) -> SimpleNamespace:
        left = [row for row in self.rows if row not in other.rows]
        return SimpleNamespace(take=lambda count: left[:count])

    def select(self, _columns: Sequence[str]) -> FakeFrame:
        return self

    @property
    def write(self) -> Any:
        saving = SimpleNamespace(save=lambda: self.said.append(f"{self.name} reads all"))
        return SimpleNamespace(format=lambda _: SimpleNamespace(mode=lambda _: saving))


class FakeSide:
    pids: Sequence[int] = ()

    def __init__(self, name: str, said: list[str], rows: list[tuple[int, ...]], *, brings_rows: bool = True) -> None:
        self.name = name
        self.brings_rows = brings_rows
        self._said = said
        self._rows = rows

    def read(self, load: str) -> FakeFrame | None:
        return None if load == "unknown" else FakeFrame(self._rows, self._said, self.name)

    def write(self, load: str, rows: FakeFrame) -> Callable[[], None] | None:
        return None if load == "unknown" else lambda: self._said.append(f"{self.name} writes {rows.name}")

    def stored(self) -> FakeFrame:
        return FakeFrame(self._rows)


READ = Load("read", "read", expects=lambda frame, _: frame)
FEW = Load("few", "few", expects=lambda frame, _: frame, is_collected=True)
ROWS = cast(Any, FakeFrame([(1,), (2,)], name="one"))


@pytest.fixture
def unmetered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "Stopwatch", lambda *_: SimpleNamespace(read=lambda: Spent(1, 1, 1, 1)))


def sides(*each: FakeSide) -> list[Side]:
    return cast(list[Side], list(each))


@pytest.mark.usefixtures("unmetered")
@pytest.mark.parametrize(("load", "done"), [(READ, "reads all"), (FEW, "collects")])
def test_systems_take_turns_of_a_read_and_the_first_is_not_counted(load: Load, done: str) -> None:
    said: list[str] = []
    both = sides(FakeSide("a", said, [(2,), (1,)]), FakeSide("b", said, [(1,), (2,)]))
    spent = reads_in_turns(load, both, ROWS, Turns(2), 1)
    assert said[-4:] == [f"a {done}", f"b {done}", f"a {done}", f"b {done}"]
    assert {name: len(each) for name, each in spent.items()} == {"a": 2, "b": 2}


@pytest.mark.usefixtures("unmetered")
@pytest.mark.parametrize("load", [READ, FEW])
@pytest.mark.parametrize("rows", [[(1,)], [(1,), (3,)], [(1,), (2,), (2,)]])
def test_a_system_that_brings_other_rows_is_no_result(load: Load, rows: list[tuple[int, ...]]) -> None:
    with pytest.raises(WrongAnswer, match="from b: not the rows"):
        reads_in_turns(load, sides(FakeSide("a", [], [(1,), (2,)]), FakeSide("b", [], rows)), ROWS, Turns(1), 1)


@pytest.mark.usefixtures("unmetered")
def test_what_makes_its_rows_up_is_measured_and_not_compared() -> None:
    spent = reads_in_turns(READ, sides(FakeSide("idle", [], [(9,)], brings_rows=False)), ROWS, Turns(1), 1)
    assert len(spent["idle"]) == 1


@pytest.mark.usefixtures("unmetered")
def test_a_write_takes_its_rows_in_turns_and_is_held_against_what_is_stored() -> None:
    said: list[str] = []
    other = cast(Any, FakeFrame([(1,), (2,)], name="two"))
    spent = writes_in_turns(Load("w", "w"), sides(FakeSide("a", said, [(1,), (2,)])), [ROWS, other], Turns(2), 1)
    assert said == ["a writes one", "a writes two", "a writes one"]
    assert len(spent["a"]) == 2
    with pytest.raises(WrongAnswer, match="w to b: not the rows"):
        writes_in_turns(Load("w", "w"), sides(FakeSide("b", [], [(1,)])), [ROWS], Turns(1), 1)


@pytest.mark.usefixtures("unmetered")
def test_a_system_leaves_out_what_it_cannot_do() -> None:
    assert (
        reads_in_turns(Load("unknown", "", expects=READ.expects), sides(FakeSide("a", [], [])), ROWS, Turns(1), 1) == {}
    )
    assert writes_in_turns(Load("unknown", ""), sides(FakeSide("a", [], [])), [ROWS], Turns(1), 1) == {}


def test_a_load_has_its_turns_while_there_is_time_and_one_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert list(Turns(5).taken()) == [0, 1, 2, 3, 4, 5]
    assert list(Turns(5, 25.0).taken()) == [0, 1, 2, 3]
    assert list(Turns(5, -1.0).taken()) == [0, 1]


# --- questions -----------------------------------------------------------------------------------------------------


def test_both_systems_do_every_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cortado_side, "Client", MagicMock())
    cluster = cast(CortadoCluster, SimpleNamespace(name="one", members=[], endpoints="127.0.0.1:1"))
    for side in (CortadoSide(cluster, MagicMock(), 100), JdbcSide(MagicMock(), MagicMock(), 100)):
        for load in LOADS:
            done = side.read(load.name) if load.is_read else side.write(load.name, MagicMock())
            assert done is not None, f"{side.name}: {load.name}"
        assert side.read("unknown") is None
        assert side.write("unknown", MagicMock()) is None


def test_both_systems_have_the_same_columns() -> None:
    names = [each["name"] for each in SCHEMA["fields"]]
    assert names == [each.rpartition(" ")[2] for each in VALUES]
    assert names == [each.split()[0] for each in SQL_COLUMNS.split(", ")]


def test_what_postgresql_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(postgres.shutil, "which", lambda _: None)
    monkeypatch.setattr(postgres, "FOLDERS", tmp_path)
    monkeypatch.setenv("POSTGRESQL_JDBC_JAR", str(tmp_path / "none.jar"))
    with pytest.raises(postgres.NotThere, match="not installed: postgresql libpostgresql-jdbc-java"):
        postgres.find_postgres()
    (tmp_path / "15" / "bin").mkdir(parents=True)
    (tmp_path / "9.6" / "bin").mkdir(parents=True)
    (tmp_path / "none.jar").touch()
    assert postgres.find_postgres() == (tmp_path / "15" / "bin", tmp_path / "none.jar")


# --- output --------------------------------------------------------------------------------------------------------


def spent(*walls: float) -> list[Spent]:
    return [Spent(wall, wall / 2, wall / 4, wall / 4) for wall in walls]


def test_systems_stand_in_one_line_and_an_aim_is_reached_or_missed() -> None:
    measured = Measured("append", {"jdbc": spent(2, 3, 9), "one": spent(2, 2, 3), "three": spent(4, 4, 3)})
    times, costs = Results(measured=[measured]).sheets()
    (line,) = times.lines
    assert line[:5] == ["append", "3.00", "2.00", "4.00", "-"]
    assert line[5:] == ["1.50", "1.00 to 3.00", "1.5 reached", "0.75", "0.50 to 3.00", "1 missed"]
    assert costs.lines[0][1:3] == ["3.00 (1.50 + 0.75 + 0.75)", "2.00 (1.00 + 0.50 + 0.50)"]
    assert costs.lines[0][5:] == ["1.50", "0.75"]


def test_a_micro_batch_has_an_aim_of_its_own_and_no_peer() -> None:
    (line,) = Results(measured=[Measured("micro_batch", {"one": spent(0.9), "three": spent(1.1)})]).sheets()[0].lines
    assert (line[7], line[10]) == ("1 s reached", "1 s missed")
    assert line[1] == "-"


def test_a_saved_result_is_the_same_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    shown = Results(settings=["PostgreSQL 15"], measured=[Measured("sum", {"jdbc": spent(1), "one": spent(1)})])
    saved = shown.save()
    assert json.loads(saved.read_text())["machine"] == shown.machine
    assert Results.load(saved) == shown
    shown.measured.append(Measured("read", {"one": spent(1)}))
    assert shown.save(saved) == saved
    assert Results.load(saved) == shown
    assert list(tmp_path.rglob("*.json")) == [saved]
    pages.main([saved])
    page = capsys.readouterr().out
    assert "PostgreSQL 15." in page
    assert "| sums of two columns | 1.00 | 1.00 | - | - | 1.00 | 1.00 to 1.00 | 2 **missed** |" in page
