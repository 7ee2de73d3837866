"""One node: the process, its own parts, and the replicas on it.

::

    services ──► Host ──┬── engine, log files, and a thread each that writes to them
    peers ─────►        ├── clock, and the peers' clocks beside it
                        ├── gates and one budget: bounds of the line and of work in flight
                        ├── the scan thread, the loop's delay, the transport
                        └── Replica, one for each group: log, driver, reads, members, watches, snapshots

The host admits a request, and the replica whose keys it names answers it (:meth:`Host.replica_of`). If it names no key,
the replica of the group that holds the catalogue and the members does (:attr:`Host.meta`). A request for a document
names its table, which only the catalogue turns into a key. There is one group so far, with all keys.

Time, randomness, disk and network come in by the door (:class:`Surroundings`): on a loop with virtual time, with
threads and an executor that run in place, a node is a deterministic function of its input. Every coroutine runs
on the loop that called :meth:`Host.start`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeVar

from cortado.errors import NotFound, Unavailable
from cortado.raft.registry import Member, Roster
from cortado.raft.settings import RaftSettings
from cortado.store.auth.caller import holder
from cortado.store.clock.hlc import MAX_OFFSET_MS, Clock
from cortado.store.clock.host_time import HostTime
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.interface import Engine
from cortado.store.keys.types import LogicalKey
from cortado.store.log_files.log_files import LogFiles
from cortado.store.mvcc.damage import GROUP_ID
from cortado.store.mvcc.slices import SliceReader
from cortado.store.node.admission import Gate
from cortado.store.node.budget import Budget, Share
from cortado.store.node.clock_watch import ClockWatch
from cortado.store.node.limits import NodeLimits
from cortado.store.node.log_entry import ENTRY_OVERHEAD_BYTES
from cortado.store.node.loop_delay import LoopDelay
from cortado.store.node.opening import open_group
from cortado.store.node.repair.ranges import Answer, Ask
from cortado.store.node.replica import Replica
from cortado.store.node.snapshots.files import SnapshotFiles
from cortado.store.node.snapshots.settings import SnapshotSettings
from cortado.store.node.storage_thread import Storage, StorageThread
from cortado.store.node.transport import NoPeers, Transport
from cortado.store.retentions import KEEP_ALL

T = TypeVar("T")

_BAD_CLOCK: Final = "clock"


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
    its name; ``run_scan`` runs slices of scans (one thread, unless given).
    """

    engine: Engine
    log_files: LogFiles
    snapshot_files: SnapshotFiles
    host_time: HostTime
    monotonic_ms: Callable[[], float]
    random: Random
    transport: Transport = field(default_factory=NoPeers)
    thread: Callable[[asyncio.AbstractEventLoop, str], Storage] = StorageThread
    run_scan: Executor | None = None


class Host:
    """Make it, :meth:`start` it on a running loop, :meth:`stop` it there. Everything but scans runs on the loop."""

    meta: Replica
    """The replica of the group that holds the catalogue and the members; set once the host is started."""
    log_thread: Storage
    storage_thread: Storage
    _failed: asyncio.Future[BaseException]

    def __init__(
        self,
        identity: NodeIdentity,
        around: Surroundings,
        *,
        limits: NodeLimits | None = None,
        raft: RaftSettings | None = None,
        snapshot_settings: SnapshotSettings | None = None,
        max_clock_offset_ms: int = MAX_OFFSET_MS,
        retention_ms: int = KEEP_ALL,
        joining: Roster | None = None,
    ) -> None:
        """Without a log it begins a group of one. If it is ``joining``, it stays empty until a leader brings it up:
        ``joining`` are the members that let it in, which it hears until it has a log. A leader keeps old versions for
        ``retention_ms``.

        Raises InvalidArgument for limits that do not fit each other. The caller closes the stores, after stop.
        """
        self.raft = raft or RaftSettings()
        self.raft.check()
        self.limits = limits = limits or NodeLimits()
        limits.check(self.raft.entry_bytes_max - ENTRY_OVERHEAD_BYTES)
        self.snapshot_settings = snapshot_settings or SnapshotSettings()
        self.snapshot_settings.check()
        self.retention_ms = retention_ms
        self.identity = identity
        self.engine = around.engine
        """All stored items, to be looked at as they lie there. Only the replicas write to it."""
        self.log_files = around.log_files
        self.snapshot_files = around.snapshot_files
        self.transport = around.transport
        self.random = around.random
        self.monotonic_ms = around.monotonic_ms
        self.host_time = around.host_time
        self.clock = Clock(self.host_time.now_ms, max_offset_ms=max_clock_offset_ms)
        self.clock_watch = ClockWatch(
            identity.node_id, self.host_time, self.monotonic_ms, max_offset_ms=max_clock_offset_ms
        )
        self.budget = Budget(limits)
        self.writes = Gate("writes", count_max=limits.writes_max, bytes_max=limits.write_bytes_max)
        self.reads = Gate("reads", count_max=limits.reads_max)
        self.scans = Gate("scans", count_max=limits.scans_max, holder=holder)
        self.bulk_streams = Gate("bulk streams", count_max=limits.bulk_streams_max, holder=holder)
        self.loop_delay = LoopDelay(self.monotonic_ms)
        self.is_stopping = False
        self.scan_path = "python: nothing else was chosen"
        """The reader of scans' slices: ``compiled``, or ``python:`` and why."""
        self._joining = joining
        self._make_thread = around.thread
        self._run_scan = around.run_scan or ThreadPoolExecutor(max_workers=1, thread_name_prefix="cortado-scan")
        self._run_streams = self._run_scan
        self._started_ms = self.monotonic_ms()
        self._replicas: dict[int, Replica] = {}

    # --- start and stop ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve. In a group of one, return when this node leads it, or read-only if there is no room for that. In a
        larger group, return at once; :attr:`Replica.ready` tells when it has found its leader.

        Raises DataLoss if the stored data is damaged, ResourceExhausted if there is no room to begin a log.
        """
        loop = asyncio.get_running_loop()
        self._failed = loop.create_future()
        group = open_group(self, GROUP_ID, joining=self._joining)
        self.log_thread = self._make_thread(loop, "log")
        self.storage_thread = self._make_thread(loop, "storage")
        self.meta = self._replicas[GROUP_ID] = Replica(group)
        self.loop_delay.start(loop)
        self.clock_watch.start(self._voters, self._veto_clock)
        await self.meta.start()

    @property
    def refused_for(self) -> str:
        """Return why there was no room for the last writes; empty while they go well. It is known while :meth:`start`
        waits, which lasts until committed entries can be applied."""
        return next((each.driver.refused_for for each in self._replicas.values() if each.driver.refused_for), "")

    async def stop(self, hand_over: bool = True) -> None:
        """Refuse new work, finish the work in flight, end the threads. A leader hands over first if it can, and serves
        until then, so that callers find the next one at once."""
        if hand_over and not self.is_stopping:
            for each in self._replicas.values():
                await each.hand_over()
        self.is_stopping = True
        for each in self._replicas.values():
            await each.stop()
        self.log_thread.stop()
        self.storage_thread.stop()
        self.loop_delay.stop()
        self.clock_watch.stop()
        self._run_scan.shutdown(wait=True, cancel_futures=True)
        self._run_streams.shutdown(wait=True, cancel_futures=True)

    async def failed(self) -> BaseException:
        """Return only when the node can't go on: then the process must end."""
        return await asyncio.shield(self._failed)

    def fail(self, error: BaseException) -> None:
        """End the node: a replica stopped for good, and its stores, which others share, are in doubt."""
        if not self._failed.done():
            self._failed.set_result(error)

    def admit(self, size_bytes: int, *, behind_bytes: int, frees: bool) -> None:
        """Admit as :meth:`~cortado.store.engine.interface.Engine.admit`; if the disk cannot say, end the process."""
        try:
            self.engine.admit(size_bytes, behind_bytes=behind_bytes, frees=frees)
        except StorageFailed as failed:
            self.fail(failed)
            raise Unavailable("the disk failed; this process must end") from failed

    # --- replicas ----------------------------------------------------------------------------------------------

    def replica_of(self, key: LogicalKey) -> Replica:
        """Return the replica of the group that holds ``key``."""
        [replica] = [each for each in self._replicas.values() if each.holds(key)]
        return replica

    def receive(self, sender: str, group_id: int, bodies: Sequence[bytes]) -> None:
        """Take a peer's messages from the transport; the peer has presented itself. Messages for a group without a
        replica here are dropped."""
        replica = self._replicas.get(group_id)
        if replica is not None:
            replica.driver.receive(sender, bodies)

    def read_snapshot(self, group_id: int, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        """Read a snapshot's bytes from ``offset`` on, for a peer. Raises NotFound if there is no such snapshot."""
        replica = self._replicas.get(group_id)
        if replica is None:
            raise NotFound("snapshot", f"{snapshot_id} of group {group_id}")
        return replica.snapshot_sender.read(snapshot_id, offset)

    async def read_range(self, group_id: int, ask: Ask) -> Answer:
        """Read the stored items of a range, or of its first part, for a peer that repairs its own. Raises NotFound,
        Unavailable if the data is no state."""
        replica = self._replicas.get(group_id)
        if replica is None:
            raise NotFound("group", str(group_id))
        return await replica.read_range(ask)

    # --- the process's own parts -------------------------------------------------------------------------------

    @property
    def uptime_ms(self) -> int:
        return int(self.monotonic_ms() - self._started_ms)

    @property
    def queues(self) -> tuple[Gate | Share, ...]:
        """Return the gates and shares before each queue of requests."""
        gates = (self.writes, self.reads, self.scans, self.bulk_streams, self.meta.watches.gate)
        return (*gates, self.budget.calls, self.budget.chunks)

    async def scan(self, step: Callable[[], T]) -> T:
        """Run one bounded slice of a scan on the scan thread; slices of all scans alternate."""
        return await asyncio.get_running_loop().run_in_executor(self._run_scan, step)

    async def scan_stream(self, step: Callable[[], T]) -> T:
        """Run a slice as :meth:`scan`, of a scan that shares no state with others: it runs beside them if the kernel
        reads without the interpreter's lock."""
        return await asyncio.get_running_loop().run_in_executor(self._run_streams, step)

    def use_scan_kernel(self, kernel: SliceReader, threads: int) -> None:
        """Let ``kernel`` read slices of scans from now on, and streamed scans on ``threads`` threads."""
        for each in self._replicas.values():
            each.store.kernel = kernel
        self._run_streams = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="cortado-stream")

    def observe_peer_clock(self, node_id: str, low_ms: float, high_ms: float) -> None:
        """Note that a peer's physical clock minus our monotonic one lies between these."""
        self.clock_watch.observe(node_id, low_ms, high_ms)

    def _voters(self) -> Set[str]:
        return set(self.meta.configuration.voters)

    def _veto_clock(self, is_off: bool) -> bool:
        """Veto leading with a clock that is out of bounds: it would carry all others along."""
        is_new = [each.driver.veto(_BAD_CLOCK, is_off) for each in self._replicas.values()]
        return any(is_new)
