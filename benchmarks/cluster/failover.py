"""How long clients cannot write when the leader is killed (kill -9), with default settings.

Several callers put one key after another. The leader is killed; what counts is the time from the kill to the end of the
first put that began after it and was acknowledged. Then the killed one is started again and has time to catch up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final, Protocol

import grpc

from benchmarks.cluster.etcd_api import EtcdApi
from benchmarks.cluster.members import Cluster, wait_for
from benchmarks.cluster.workloads import VALUE_BYTES, CortadoStore

CALLERS: Final = 4
PUTS_BETWEEN: Final = 200
"""That all callers together have acknowledged before the next kill."""


class Writer(Protocol):
    def put(self, key: bytes, value: bytes) -> object: ...


class _EtcdWriter:
    """Tries one endpoint after the other until one takes the put, as etcd's own clients do."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        # As our client: connect again soon after a break.
        options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 500)]
        self._members = [EtcdApi(grpc.insecure_channel(each, options=options)) for each in endpoints]

    def put(self, key: bytes, value: bytes) -> None:
        for _ in range(1_000):
            try:
                self._members[0].put(key, value, timeout_s=1.0)
                return
            except grpc.RpcError:
                self._members.append(self._members.pop(0))
                time.sleep(0.02)
        raise TimeoutError("etcd took no put")


def _open(cluster: Cluster) -> Writer:
    endpoints = [member.endpoint for member in cluster.members]
    return _EtcdWriter(endpoints) if cluster.name == "etcd" else CortadoStore(endpoints, timeout_s=30)


class _Puts(threading.Thread):
    """Puts until it is told to end, and remembers when each began and ended."""

    def __init__(self, writer: Writer, number: int) -> None:
        super().__init__(daemon=True)
        self._writer = writer
        self._number = number
        self.ended = False
        self.acknowledged: list[tuple[float, float]] = []
        self.failed: list[BaseException] = []

    def run(self) -> None:
        count = 0
        while not self.ended:
            began_s = time.monotonic()
            count += 1
            try:
                self._writer.put(b"failover-%d-%d" % (self._number, count), bytes(VALUE_BYTES))
            except Exception as error:
                self.failed.append(error)
                time.sleep(0.01)
            else:
                self.acknowledged.append((began_s, time.monotonic()))


def trials(cluster: Cluster, count: int) -> list[float]:
    """Milliseconds for each of ``count`` kills."""
    # One connection for each caller: what one of them waits for tells the others nothing.
    callers = [_Puts(_open(cluster), number) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    try:
        return [_trial(cluster, callers) for _ in range(count)]
    finally:
        for caller in callers:
            caller.ended = True
        for caller in callers:
            caller.join(10)


def _trial(cluster: Cluster, callers: Sequence[_Puts]) -> float:
    goal = sum(len(caller.acknowledged) for caller in callers) + PUTS_BETWEEN
    wait_for(lambda: sum(len(caller.acknowledged) for caller in callers) >= goal, "puts are acknowledged")
    leader = cluster.leader()
    assert leader is not None
    killed_s = time.monotonic()
    leader.end(kill=True)
    wait_for(lambda: _first_after(callers, killed_s) is not None, "clients write again", 60)
    first = _first_after(callers, killed_s)
    assert first is not None
    leader.start()
    time.sleep(2)
    return (first - killed_s) * 1_000


def _first_after(callers: Sequence[_Puts], killed_s: float) -> float | None:
    ends = [end for caller in callers for began, end in caller.acknowledged[-500:] if began > killed_s]
    return min(ends, default=None)
