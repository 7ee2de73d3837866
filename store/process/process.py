"""What the replicas of one node share of its process.

::

    Surroundings ──► Process ◄── Replica, one for each group
    (outside)          │
                       ├── clock, and the peers' clocks beside it
                       ├── limits, settings, gates and one budget
                       ├── the thread of scans
                       └── Life: stops, or failed

The host makes one :class:`Process`, and all of its replicas hold it. They know nothing of the host and of each other.
Time, randomness, disk and network come in by the door (:class:`Surroundings`): on a loop with virtual time, with
threads and an executor that run in place, a node is a deterministic function of its input.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from cortado.errors import Unavailable
from cortado.raft.registry import Member
from cortado.raft.settings import RaftSettings
from cortado.store.auth.caller import holder
from cortado.store.clock.hlc import Clock
from cortado.store.clock.host_time import HostTime
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.interface import Engine
from cortado.store.log_files.log_files import LogFiles
from cortado.store.process.admission import Gate
from cortado.store.process.budget import Budget
from cortado.store.process.clock_watch import ClockWatch
from cortado.store.process.limits import NodeLimits
from cortado.store.process.scan_threads import ScanThreads
from cortado.store.process.snapshot_files import SnapshotFiles
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.process.storage_thread import Storage, StorageThread
from cortado.store.process.transport import NoPeers, Transport

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """The answering node, named in the header of every reply. ``storage_id`` names the data directory (empty: in
    memory). This node serves clients at ``address`` (host:port), and peers at ``peer_address``."""

    cluster_id: str
    node_id: str
    storage_id: str = ""
    address: str = ""
    peer_address: str = ""

    def as_member(self, storage_id: str) -> Member:
        """Return this node as a group's member, bound to ``storage_id``."""
        return Member(self.node_id, self.peer_address, storage_id, self.address)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything outside that a node touches. Only the node writes to the stores.

    ``host_time`` knows the wall clock, ``monotonic_ms`` measures durations. ``random`` draws election timers and the
    values that tell this incarnation of the node from earlier ones. ``thread`` makes the threads that write, each with
    its name; ``here`` runs small writes of the log on the loop while the disk is quick (unless given, none do);
    ``run_scan`` runs slices of scans (one thread, unless given).
    """

    engine: Engine
    log_files: LogFiles
    snapshot_files: SnapshotFiles
    host_time: HostTime
    monotonic_ms: Callable[[], float]
    random: Random
    transport: Transport = field(default_factory=NoPeers)
    thread: Callable[[asyncio.AbstractEventLoop, str], Storage] = StorageThread
    here: Callable[[asyncio.AbstractEventLoop], Storage] | None = None
    run_scan: Executor | None = None


class Life:
    """Whether the process goes on: it may stop, or have failed."""

    def __init__(self) -> None:
        self.is_stopping = False
        self._failure: BaseException | None = None
        self._is_failed = asyncio.Event()

    def fail(self, error: BaseException) -> None:
        """End the node: a replica stopped for good, and its stores, which others share, are in doubt."""
        if self._failure is None:
            self._failure = error
            self._is_failed.set()

    async def failed(self) -> BaseException:
        """Return only when the node can't go on: then the process must end."""
        await self._is_failed.wait()
        assert self._failure is not None
        return self._failure


@dataclass(frozen=True, slots=True)
class Process:
    """The parts of a node that its replicas and its services share, each set once.

    A leader keeps old versions for ``retention_ms``.
    """

    identity: NodeIdentity
    limits: NodeLimits
    raft: RaftSettings
    snapshot_settings: SnapshotSettings
    retention_ms: int
    engine: Engine
    """All stored items, to be looked at as they lie there. Only the replicas write to it."""
    log_files: LogFiles
    snapshot_files: SnapshotFiles
    transport: Transport
    random: Random
    host_time: HostTime
    monotonic_ms: Callable[[], float]
    clock: Clock
    clock_watch: ClockWatch
    budget: Budget
    writes: Gate
    reads: Gate
    scans: Gate
    bulk_streams: Gate
    scan_threads: ScanThreads
    life: Life

    def scan(self, step: Callable[[], T]) -> Awaitable[T]:
        """Run one bounded slice of a scan on the scan thread; slices of all scans alternate."""
        return self.scan_threads.scan(step)

    def scan_stream(self, step: Callable[[], T]) -> Awaitable[T]:
        """Run a slice as :meth:`scan`, of a scan that shares no state with others: slices may run side by side."""
        return self.scan_threads.scan_stream(step)

    def admit(self, size_bytes: int, *, behind_bytes: int, frees: bool) -> None:
        """Admit as :meth:`~cortado.store.engine.interface.Engine.admit`; if the disk cannot say, end the process."""
        try:
            self.engine.admit(size_bytes, behind_bytes=behind_bytes, frees=frees)
        except StorageFailed as failed:
            self.life.fail(failed)
            raise Unavailable("the disk failed; this process must end") from failed


def make_process(
    identity: NodeIdentity,
    around: Surroundings,
    *,
    limits: NodeLimits,
    raft: RaftSettings,
    snapshot_settings: SnapshotSettings,
    max_clock_offset_ms: int,
    retention_ms: int,
) -> Process:
    """Make the parts that are this process's own, within bounds that were checked."""
    host_time, monotonic_ms = around.host_time, around.monotonic_ms
    return Process(
        identity=identity,
        limits=limits,
        raft=raft,
        snapshot_settings=snapshot_settings,
        retention_ms=retention_ms,
        engine=around.engine,
        log_files=around.log_files,
        snapshot_files=around.snapshot_files,
        transport=around.transport,
        random=around.random,
        host_time=host_time,
        monotonic_ms=monotonic_ms,
        clock=Clock(host_time.now_ms, max_offset_ms=max_clock_offset_ms),
        clock_watch=ClockWatch(
            identity.node_id,
            host_time,
            monotonic_ms,
            max_offset_ms=max_clock_offset_ms,
            election_ms_max=raft.election_ms_max,
        ),
        budget=Budget(limits),
        writes=Gate("writes", count_max=limits.writes_max, bytes_max=limits.write_bytes_max),
        reads=Gate("reads", count_max=limits.reads_max),
        scans=Gate("scans", count_max=limits.scans_max, holder=holder),
        bulk_streams=Gate("bulk streams", count_max=limits.bulk_streams_max, holder=holder),
        scan_threads=ScanThreads(around.run_scan),
        life=Life(),
    )
