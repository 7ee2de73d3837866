"""One load, in turns: each system once, and again. The first turn is not counted: it is held against the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from pyspark.sql import DataFrame

from benchmarks.spark.loads import Load
from benchmarks.spark.processes import Spent, Stopwatch

Act = Callable[[], None]


class Side(Protocol):
    """One system. It leaves out loads that it cannot do."""

    name: str
    pids: Sequence[int]
    """The processes that store, each with its descendants."""
    brings_rows: bool
    """Whether its rows are the requested ones, and not made up."""

    def settings(self) -> str:
        """Return one line: version and settings that are not its default."""

    def read(self, load: str) -> DataFrame | None:
        """Return a fresh DataFrame of a read."""

    def write(self, load: str, rows: DataFrame) -> Act | None:
        """Make room for the rows, if they are new, and return the act that writes them."""

    def stored(self) -> DataFrame:
        """Return all rows of the table that was written last."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How many turns each system has of a load: at most ``number``, and none begins when ``seconds`` have passed since
    the load began, comparison included; but at least one."""

    number: int
    seconds: float = inf

    def taken(self) -> Iterator[int]:
        """Yield their numbers: 0 is not counted."""
        began = time.monotonic()
        yield 0
        for turn in range(1, self.number + 1):
            if turn > 1 and time.monotonic() - began > self.seconds:
                return
            yield turn


class WrongAnswer(Exception):
    """A system's result, or its stored rows, are wrong."""


def reads_in_turns(
    load: Load, sides: Sequence[Side], rows: DataFrame, turns: Turns, jvm: int
) -> Mapping[str, list[Spent]]:
    """Return the costs of each turn of a read, by the system's name. Raises WrongAnswer."""
    assert load.expects is not None
    expected = load.expects(rows, rows.count())
    able = [side for side in sides if side.read(load.name) is not None]
    spent: dict[str, list[Spent]] = {side.name: [] for side in able}
    for turn in turns.taken():
        for side in able:
            if not turn and side.brings_rows:
                _compare(f"{load.title} from {side.name}", load, _read(side, load), expected)
                continue
            watch = Stopwatch(side.pids, jvm)
            _use(_read(side, load), load)
            if turn:
                spent[side.name].append(watch.read())
    return spent


def writes_in_turns(
    load: Load, sides: Sequence[Side], frames: Sequence[DataFrame], turns: Turns, jvm: int
) -> Mapping[str, list[Spent]]:
    """Return the same of a write, of one of the ``frames`` after the other, so that each turn changes stored rows."""
    spent: dict[str, list[Spent]] = {}
    for turn in turns.taken():
        rows = frames[turn % len(frames)]
        for side in sides:
            act = side.write(load.name, rows)
            if act is None:
                continue
            watch = Stopwatch(side.pids, jvm)
            act()
            if turn:
                spent.setdefault(side.name, []).append(watch.read())
            elif side.brings_rows:
                _compare(f"{load.title} to {side.name}", load, side.stored().select(rows.columns), rows)
    return spent


def _read(side: Side, load: Load) -> DataFrame:
    frame = side.read(load.name)
    assert frame is not None
    return frame


def _use(frame: DataFrame, load: Load) -> None:
    if load.is_collected:
        frame.collect()
    else:
        frame.write.format("noop").mode("overwrite").save()


def _compare(what: str, load: Load, found: DataFrame, expected: DataFrame) -> None:
    if load.is_collected:
        is_same = sorted(map(tuple, found.collect())) == sorted(map(tuple, expected.collect()))
    else:
        both = found.count(), expected.count()
        is_same = both[0] == both[1] and not expected.exceptAll(found).take(1)
    if not is_same:
        raise WrongAnswer(f"{what}: not the rows that were asked for")
