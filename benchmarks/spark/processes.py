"""CPU time of processes and of all that they have started, those included that have ended."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.cluster.members import cpu_seconds

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds: of the clock, and of CPU by storage (nodes, or PostgreSQL's processes), by Spark's JVM, by Python (its
    workers, and the driver's)."""

    wall: float
    storage: float
    jvm: float
    python: float

    @property
    def cpu(self) -> float:
        return self.storage + self.jvm + self.python


def tree_cpu_s(pid: int) -> float:
    """Of a process and its descendants; of those that have ended, too, which their parents have counted."""
    before: dict[int, int] = {}
    # A process that ends while this reads may be counted by neither itself nor its parent.
    while (found := _ticks(pid)).keys() != before.keys():
        before = found
    return sum(found.values()) / _TICKS_A_SECOND


def _ticks(pid: int) -> dict[int, int]:
    """What each process of a tree has used, and those that it has waited for."""
    children: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        # Between the listing and the reading it may have ended.
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children[int(fields[1])].append(int(entry.name))
                ticks[int(entry.name)] = sum(int(each) for each in fields[11:15])
    found: dict[int, int] = {}
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        if each in ticks:
            found[each] = ticks[each]
        waiting += children[each]
    return found


class Stopwatch:
    """Counts from the making to :meth:`read`."""

    def __init__(self, storage: Sequence[int], jvm: int) -> None:
        self._storage = storage
        self._jvm = jvm
        self._before = self._now()

    def read(self) -> Spent:
        now = self._now()
        return Spent(*(after - before for before, after in zip(self._before, now, strict=True)))

    def _now(self) -> tuple[float, float, float, float]:
        storage = sum(tree_cpu_s(pid) for pid in self._storage)
        jvm = cpu_seconds(self._jvm)
        # The workers are the JVM's children; the driver's Python is this process.
        python = tree_cpu_s(self._jvm) - jvm + time.process_time()
        return time.perf_counter(), storage, jvm, python
