"""Nodes in this process: over the twin in memory, on a physical clock that the test sets, and with a disk that the
test can hold, fill or break."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import TypeVar

from cortado.store.clock.host_time import HostTime
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, WriteTransaction
from cortado.store.engine.memory import MemoryEngine
from cortado.store.keys.keyspace import kv_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.node.limits import NodeLimits
from cortado.store.node.node import Node, NodeIdentity

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
    """A host's time that follows ``clock`` wherever it is set, as if most nodes had confirmed it."""
    return HostTime(clock, monotonic_ms, max_offset_ms=math.inf, slew=math.inf)


class TrickyEngine(MemoryEngine):
    """A memory engine whose commits a test can hold back, refuse or break.

    While held, commits wait at their end, with everything in them and nothing visible. ``failures`` are raised by the
    next commits, one each.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open = threading.Event()
        self._open.set()
        self.failures: list[Exception] = []
        self.commits = 0
        self.held = 0

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def write(self) -> AbstractContextManager[WriteTransaction]:  # type: ignore[override]
        return self._write()

    @contextmanager
    def _write(self) -> Iterator[WriteTransaction]:
        with super().write() as txn:
            yield txn
            self.held += 1
            assert self._open.wait(WAIT_S), "a held commit was never released"
            self.held -= 1
            if self.failures:
                raise self.failures.pop(0)
        self.commits += 1


def make_node(engine: Engine | None = None, *, clock: SetClock | None = None, limits: NodeLimits | None = None) -> Node:
    return Node(
        engine or MemoryEngine(),
        identity=NodeIdentity("cluster-a", "node-1"),
        host_time=followed(clock or SetClock()),
        monotonic_ms=monotonic_ms,
        limits=limits,
    )


@asynccontextmanager
async def running_node(
    engine: Engine | None = None, *, clock: SetClock | None = None, limits: NodeLimits | None = None
) -> AsyncIterator[Node]:
    """A node that was started, and is stopped at the end."""
    node = make_node(engine, clock=clock, limits=limits)
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
    """A write of one key that reads nothing."""

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


def read(node: Node, name: str, ts: Timestamp | None = None) -> bytes | None:
    version = node.reader(node.read_ts() if ts is None else ts).get(key(name))
    return None if version is None else version.payload
