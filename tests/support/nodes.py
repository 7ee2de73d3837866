"""Nodes in this process: over the twin in memory, on a physical clock that the test sets, and with a disk that the
test can hold, fill or break."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from cortado.raft.log import LogRecord
from cortado.store.clock.host_time import HostTime
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import kv_key
from cortado.store.keys.types import LogicalKey
from cortado.store.log_files.log_files import LogFiles
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.process.process import NodeIdentity, Surroundings
from support.logs import memory_log_disk
from support.memory_engine import MemoryEngine
from support.memory_snapshot_files import MemorySnapshotFiles

T = TypeVar("T")

NOW_MS = 1_763_643_600_000
WAIT_S = 10.0


class SetClock:
    """A physical clock that stands still until it is set."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def monotonic_ms() -> float:
    return time.monotonic() * 1000


def followed(clock: Callable[[], int]) -> HostTime:
    """Return a host's time that follows ``clock`` wherever it is set, as if most nodes had confirmed it."""
    return HostTime(clock, monotonic_ms, max_offset_ms=math.inf, slew=math.inf)


class NodeDisk:
    """A disk in memory that outlives the nodes that run on it. A test can hold back, refuse or break its log.

    While held, appends to the log wait before they write. ``failures`` are raised by the next ones, one each, after
    which nothing was written.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or MemoryEngine()
        self.log = memory_log_disk()
        self.gate = threading.Event()
        self.gate.set()
        self.failures: list[Exception] = []
        self.appends = 0
        self.held = 0

    def hold(self) -> None:
        self.gate.clear()

    def release(self) -> None:
        self.gate.set()


class _TrickyLog(LogFiles):
    """The log files of one life."""

    disk: NodeDisk

    def append(self, records: Sequence[LogRecord]) -> None:
        disk = self.disk
        disk.held += 1
        assert disk.gate.wait(WAIT_S), "a held append was never released"
        disk.held -= 1
        if disk.failures:
            raise disk.failures.pop(0)
        super().append(records)
        disk.appends += 1


def _open_log(disk: NodeDisk) -> LogFiles:
    log_files = _TrickyLog.open(disk.log)
    assert isinstance(log_files, _TrickyLog)
    log_files.disk = disk
    return log_files


def make_node(disk: NodeDisk | None = None, *, clock: SetClock | None = None, limits: NodeLimits | None = None) -> Host:
    disk = disk or NodeDisk()
    return Host(
        NodeIdentity("cluster-a", "node-1"),
        Surroundings(
            engine=disk.engine,
            log_files=_open_log(disk),
            snapshot_files=MemorySnapshotFiles(),
            host_time=followed(clock or SetClock()),
            monotonic_ms=monotonic_ms,
            random=random.Random(0),
        ),
        limits=limits,
    )


@asynccontextmanager
async def running_node(
    disk: NodeDisk | None = None, *, clock: SetClock | None = None, limits: NodeLimits | None = None
) -> AsyncIterator[Host]:
    """Run a node, and stop it at the end."""
    node = make_node(disk, clock=clock, limits=limits)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def run(scenario: Callable[[], Awaitable[T]]) -> T:
    """Run an async test to its end, in a bounded time."""

    async def bounded() -> T:
        return await asyncio.wait_for(scenario(), 60)

    return asyncio.run(bounded())


async def until(condition: Callable[[], bool], what: str) -> None:
    """Return once ``condition`` holds. Raises AssertionError naming ``what``."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what}: not within {WAIT_S} s"
        await asyncio.sleep(0.001)


def key(name: str) -> LogicalKey:
    return kv_key("test", name.encode())


def put(name: str, value: bytes) -> Evaluate:
    """Return a write of one key that reads nothing."""

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        mutations.put(key(name), value)
        return Evaluation(mutations, value)

    return evaluate


def increment(name: str) -> Evaluate:
    """Read a counter and write the next number; the reply is the number."""

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        version = reader.get(key(name))
        count = 1 + (0 if version is None else int(version.payload))
        mutations = Mutations()
        mutations.put(key(name), str(count).encode())
        return Evaluation(mutations, count)

    return evaluate


def read(node: Host, name: str, ts: Timestamp | None = None) -> bytes | None:
    version = node.meta.reader(node.meta.read_ts() if ts is None else ts).get(key(name))
    return None if version is None else version.payload
