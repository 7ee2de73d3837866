"""Callers in processes of their own, so that no interpreter's lock bounds what a system is asked.

    python -m benchmarks.cluster.load SYSTEM ENDPOINTS WORKLOAD CALLERS SEED KIND

is one of them: it connects, calls for a while uncounted, says ``ready``, and waits for a line with the seconds to
count. Then it prints what it saw as one line of JSON. :func:`measure` runs several at once, with meters at the nodes.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from benchmarks.cluster.members import Cluster, Meter, Use
from benchmarks.cluster.workloads import WORKLOADS, AsyncStore, Store, Workload, open_async_store, open_store

WARM_CALLS: Final = 20
"""Of each caller, before anything is counted."""


@dataclass(frozen=True, slots=True)
class Load:
    """``processes`` times ``each`` callers with one call in flight, threads or, where ``tasks``, tasks of one loop."""

    workload: str
    processes: int
    each: int
    tasks: bool = False

    @property
    def callers(self) -> int:
        return self.processes * self.each

    @property
    def shape(self) -> str:
        """For people: "64", "2 x 32", "64 tasks"."""
        shape = str(self.each) if self.processes == 1 else f"{self.processes} x {self.each}"
        return f"{shape} tasks" if self.tasks else shape


@dataclass(frozen=True, slots=True)
class Seen:
    """What one process of callers saw."""

    latencies_us: list[int]
    cores: float
    failed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Calls a second, latencies in milliseconds, and what it cost: cores of CPU, and memory at its highest."""

    rate: float
    p50_ms: float
    p99_ms: float
    leader: Use
    followers: tuple[Use, ...]
    client_cores: float
    failed: int


# --- the measuring side --------------------------------------------------------------------------------------------


def measure(cluster: Cluster, load: Load, seconds: float) -> Outcome:
    """Ask ``cluster`` for ``seconds``, and meter it. Raises RuntimeError where a caller ends early."""
    leader = cluster.leader()
    if leader is None:
        raise RuntimeError(f"{cluster.name} has no leader")
    others = [member for member in cluster.members if member is not leader]
    endpoints = ",".join(each.endpoint for each in (leader, *others))
    callers = [_start(cluster.name, endpoints, load, seed) for seed in range(load.processes)]
    try:
        for caller in callers:
            _expect_ready(caller)
        meters = [Meter(member.pid) for member in (leader, *others)]
        for caller in callers:
            assert caller.stdin is not None
            caller.stdin.write(f"{seconds}\n".encode())
            caller.stdin.close()
        time.sleep(seconds)
        uses = [meter.read() for meter in meters]
        seen = [Seen(**json.loads(_rest(caller))) for caller in callers]
    finally:
        for caller in callers:
            caller.kill()
            caller.wait()
    return _summary(seen, uses, seconds)


def _start(system: str, endpoints: str, load: Load, seed: int) -> subprocess.Popen[bytes]:
    kind = "tasks" if load.tasks else "threads"
    arguments = [system, endpoints, load.workload, str(load.each), str(seed), kind]
    command = [sys.executable, "-m", "benchmarks.cluster.load", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _expect_ready(caller: subprocess.Popen[bytes]) -> None:
    assert caller.stdout is not None
    if caller.stdout.readline() != b"ready\n":
        raise RuntimeError("a load generator ended before it was ready")


def _rest(caller: subprocess.Popen[bytes]) -> bytes:
    assert caller.stdout is not None
    return caller.stdout.read()


def _summary(seen: Sequence[Seen], uses: Sequence[Use], seconds: float) -> Outcome:
    latencies = sorted(each for one in seen for each in one.latencies_us)
    return Outcome(
        rate=len(latencies) / seconds,
        p50_ms=percentile(latencies, 0.50) / 1_000,
        p99_ms=percentile(latencies, 0.99) / 1_000,
        leader=uses[0],
        followers=tuple(uses[1:]),
        client_cores=sum(one.cores for one in seen),
        failed=sum(one.failed for one in seen),
    )


def percentile(ordered: Sequence[int], share: float) -> float:
    """The value below which ``share`` of them lie; 0 where there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


# --- the asking side -----------------------------------------------------------------------------------------------


class Caller(threading.Thread):
    """One call after another."""

    def __init__(self, store: Store, workload: Workload, seed: int, times: Times) -> None:
        super().__init__(daemon=True)
        self._store = store
        self._workload = workload
        self._random = random.Random(seed)
        self._times = times
        self.latencies_us: list[int] = []
        self.failed = 0

    def run(self) -> None:
        for _ in range(WARM_CALLS):
            self._one()
        self._times.warm.release()
        while not self._times.ended:
            began_ns = time.perf_counter_ns()
            worked = self._one()
            ended_ns = time.perf_counter_ns()
            if self._times.counts(ended_ns) and worked:
                self.latencies_us.append((ended_ns - began_ns) // 1_000)

    def _one(self) -> bool:
        try:
            self._workload.check(self._workload.ask(self._store, self._random))
        except Exception as error:
            if not self.failed:
                print(f"a call failed: {error!r}", file=sys.stderr)
            self.failed += 1
            return False
        return True


class AsyncCaller:
    """One call after another, as a task."""

    def __init__(self, store: AsyncStore, workload: Workload, seed: int, times: Times) -> None:
        self._store = store
        self._workload = workload
        self._random = random.Random(seed)
        self._times = times
        self.latencies_us: list[int] = []
        self.failed = 0

    async def warm(self) -> None:
        for _ in range(WARM_CALLS):
            await self._one()

    async def run(self) -> None:
        while not self._times.ended:
            began_ns = time.perf_counter_ns()
            worked = await self._one()
            ended_ns = time.perf_counter_ns()
            if self._times.counts(ended_ns) and worked:
                self.latencies_us.append((ended_ns - began_ns) // 1_000)

    async def _one(self) -> bool:
        try:
            self._workload.check(await self._workload.ask(self._store, self._random))
        except Exception as error:
            if not self.failed:
                print(f"a call failed: {error!r}", file=sys.stderr)
            self.failed += 1
            return False
        return True


class Times:
    """When calls count."""

    def __init__(self) -> None:
        self.warm = threading.Semaphore(0)
        self.begin_ns = self.end_ns = sys.maxsize
        self.ended = False

    def count(self, seconds: float) -> float:
        """From now on, for so long. Returns the CPU time that the process has used until now."""
        cpu_s = time.process_time()
        self.end_ns = (began_ns := time.perf_counter_ns()) + int(seconds * 1e9)
        self.begin_ns = began_ns
        return cpu_s

    def counts(self, ended_ns: int) -> bool:
        return self.begin_ns <= ended_ns < self.end_ns


def _ask(system: str, endpoints: str, workload: str, threads: int, seed: int) -> Seen:
    store = open_store(system, endpoints.split(","))
    times = Times()
    callers = [Caller(store, WORKLOADS[workload], seed * 1_000 + number, times) for number in range(threads)]
    for caller in callers:
        caller.start()
    for _ in callers:
        times.warm.acquire()
    print("ready", flush=True)
    seconds = float(sys.stdin.readline())
    cpu_s = times.count(seconds)
    time.sleep(seconds)
    cores = (time.process_time() - cpu_s) / seconds
    times.ended = True
    for caller in callers:
        caller.join(15)
    latencies = [each for caller in callers for each in caller.latencies_us]
    return Seen(latencies, cores, sum(caller.failed for caller in callers))


async def _ask_by_tasks(system: str, endpoints: str, workload: str, tasks: int, seed: int) -> Seen:
    store = open_async_store(system, endpoints.split(","))
    times = Times()
    callers = [AsyncCaller(store, WORKLOADS[workload], seed * 1_000 + number, times) for number in range(tasks)]
    await asyncio.gather(*(caller.warm() for caller in callers))
    running = asyncio.gather(*(caller.run() for caller in callers))
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    seconds = float(await loop.run_in_executor(None, sys.stdin.readline))
    cpu_s = times.count(seconds)
    await asyncio.sleep(seconds)
    cores = (time.process_time() - cpu_s) / seconds
    times.ended = True
    await asyncio.wait_for(running, 15)
    await store.close()
    latencies = [each for caller in callers for each in caller.latencies_us]
    return Seen(latencies, cores, sum(caller.failed for caller in callers))


if __name__ == "__main__":
    system, endpoints, workload, callers, seed, kind = sys.argv[1:]
    if kind == "tasks":
        seen = asyncio.run(_ask_by_tasks(system, endpoints, workload, int(callers), int(seed)))
    else:
        seen = _ask(system, endpoints, workload, int(callers), int(seed))
    # Not through dataclasses.asdict, which copies every number by itself.
    print(json.dumps({each.name: getattr(seen, each.name) for each in fields(seen)}), flush=True)
