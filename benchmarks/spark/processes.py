"""CPU time of processes and of all their descendants, the ended ones included."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.cluster.members import cpu_seconds

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds: of the clock, and of CPU by storage (nodes, or PostgreSQL's processes), by Spark's JVM, and by Python
    (its workers, and the driver's)."""

    wall: float
    storage: float
    jvm: float
    python: float

    @property
    def cpu(self) -> float:
        return self.storage + self.jvm + self.python


@dataclass(frozen=True, slots=True)
class Used:
    """Ticks of CPU of one process: its own, and those of its children that it has waited for."""

    parent: int
    own: int
    waited: int


Tree = Mapping[tuple[int, int], Used]
"""A process and its descendants, by id and the time at which they began: an id may come again."""


def tree_of(pid: int) -> Tree:
    """Return the tree as it is."""
    before: Tree = {}
    # A process that ends while this reads may be counted by neither itself nor its parent.
    while (found := _tree(pid)).keys() != before.keys():
        before = found
    return before


def spent_s(before: Tree, after: Tree) -> float:
    """Return the CPU seconds of a tree between two times.

    A process that has ended meanwhile is counted by the parent that waited for it, with all its use before. Spark's
    daemons wait for none of their workers. So the workers' use from the first time to their end, after a minute of
    idling, is left out.
    """
    gone: dict[int, int] = defaultdict(int)
    for key in before.keys() - after.keys():
        gone[before[key].parent] += before[key].own + before[key].waited
    ticks = 0
    for key, now in after.items():
        was = before.get(key, Used(now.parent, 0, 0))
        ticks += now.own - was.own + max(0, now.waited - was.waited - gone[key[0]])
    return ticks / _TICKS_A_SECOND


def _tree(pid: int) -> Tree:
    children: dict[int, list[int]] = defaultdict(list)
    used: dict[int, tuple[int, Used]] = {}
    for entry in Path("/proc").iterdir():
        # Between the listing and the reading it may have ended.
        if entry.name.isdigit():
            with suppress(OSError):
                fields = [int(each) for each in (entry / "stat").read_text().rpartition(")")[2].split()[1:20]]
                each = int(entry.name)
                children[fields[0]].append(each)
                used[each] = (fields[18], Used(fields[0], sum(fields[10:12]), sum(fields[12:14])))
    found: dict[tuple[int, int], Used] = {}
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        if each in used:
            found[each, used[each][0]] = used[each][1]
        waiting += children[each]
    return found


class Stopwatch:
    """Counts from the making to :meth:`read`."""

    def __init__(self, storage: Sequence[int], jvm: int) -> None:
        self._storage = storage
        self._jvm = jvm
        self._trees = self._now()
        self._before = self._plain()

    def read(self) -> Spent:
        wall, jvm, own = (after - before for before, after in zip(self._before, self._plain(), strict=True))
        *storage, of_spark = (spent_s(before, after) for before, after in zip(self._trees, self._now(), strict=True))
        # The workers are the JVM's children; the driver's Python is this process.
        return Spent(wall, sum(storage), jvm, of_spark - jvm + own)

    def _now(self) -> list[Tree]:
        return [tree_of(pid) for pid in (*self._storage, self._jvm)]

    def _plain(self) -> tuple[float, float, float]:
        return time.perf_counter(), cpu_seconds(self._jvm), time.process_time()
