"""A host with its disk and its clocks, and the processes that live on it one after the other."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cortado.errors import DataLoss, ResourceExhausted
from cortado.raft.group import RaftLog
from cortado.raft.registry import Member, Roster
from cortado.raft.settings import RaftSettings
from cortado.store.clock.hlc import MAX_OFFSET_MS
from cortado.store.clock.host_time import HostTime
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.failures import StorageFailed
from cortado.store.host.host import Host as NodeHost
from cortado.store.process.limits import NodeLimits
from cortado.store.process.process import NodeIdentity, Surroundings
from cortado.store.process.snapshot_settings import SnapshotSettings
from support.memory_snapshot_files import MemorySnapshotFiles
from support.simulation.clocks import HostClock
from support.simulation.disk import Disk, SimulatedEngine, SimulatedLoopStorage, SimulatedThread
from support.simulation.groups import ONE_GROUP, Groups
from support.simulation.log_disk import open_log_files
from support.simulation.loop import NodeLoop
from support.simulation.network import SimulatedTransport

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster


WRITING_HERE_PART: Final = 0.6
"""Of all lives. The others write their logs by threads alone."""


def small_snapshots() -> SnapshotSettings:
    """Return settings with many small pieces, so that a crash or a cut comes between any two of them."""
    return SnapshotSettings(
        slice_bytes=2_000,
        slice_items=24,
        chunk_bytes=1_000,
        sync_bytes=4_000,
        transaction_bytes=3_000,
        transaction_items=24,
        keep_ms=3_000,
        retry_ms_min=20,
        retry_ms_max=1_000,
    )


@dataclass
class NodeOptions:
    """How nodes of one run are set up: small bounds, so that events that are rare at large happen often."""

    raft: RaftSettings = field(default_factory=RaftSettings)
    limits: NodeLimits = field(default_factory=NodeLimits)
    snapshots: SnapshotSettings = field(default_factory=small_snapshots)
    retention_ms: int = KEEP_ALL
    groups: Groups = ONE_GROUP


class Host:
    """One machine: it survives the death of its process."""

    def __init__(self, cluster: Cluster, node_id: str, *, is_first: bool, disk: Disk, clock: HostClock) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.address = f"{node_id}.sim:7621"
        self.peer_address = f"{node_id}.sim:7622"
        self.disk = disk
        self.clock = clock
        self.is_first = is_first
        self.storage_id = f"{node_id}-disk-0"
        self.cluster_id = "sim" if is_first else ""
        self.joined = Roster()
        self.snapshot_files = MemorySnapshotFiles()
        self.life: Life | None = None
        self.lives = 0
        self.is_log_refused = False
        """A process ended, since the log on the disk is damaged."""

    @property
    def member(self) -> Member:
        """This node, as it binds itself."""
        return Member(self.node_id, self.peer_address, self.storage_id, self.address)

    def start(self) -> Life:
        """Start a new process on the content of the disk."""
        assert self.life is None, f"{self.node_id} runs already"
        self.lives += 1
        self.life = Life(self)
        self.life.start()
        return self.life

    def crash(self) -> None:
        """Kill the process (kill -9) and lose power in one: unsynced writes are gone, or not."""
        life, self.life = self.life, None
        if life is None:
            return
        life.end()
        self.disk.crash()
        self.snapshot_files.crash()
        self.cluster.calls.broken(life)

    def wipe(self) -> None:
        """Replace the dead disk by an empty one, with a directory of a new name."""
        assert self.life is None
        self.is_first = False
        self.disk.wipe()
        self.is_log_refused = False
        self.snapshot_files = MemorySnapshotFiles()
        self.storage_id = f"{self.node_id}-disk-{self.lives}"
        self.cluster_id = ""


class NoThreads(Executor):
    """The scan thread's place: the loop runs its steps itself."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: there is nothing to end."""


class Life:
    """One process: a node on a loop of its own."""

    def __init__(self, host: Host) -> None:
        cluster = host.cluster
        self.host = host
        self.node_id = host.node_id
        self.identity = Identity(host.cluster_id, host.node_id, host.storage_id)
        self.wall_ms = host.clock.wall_ms
        self.monotonic_ms = host.clock.monotonic_ms
        self.is_listening = False
        self.is_stopping = False
        self.callers: dict[asyncio.Future[Any], None] = {}
        name = f"{host.node_id}#{host.lives}"
        self.loop = NodeLoop(  # type: ignore[abstract]
            cluster.scheduler,
            name,
            cluster.problem,
            rate=host.clock.rate,
            offset_s=host.clock.booted_ms / 1000,
            step_takes_s=self._step_takes_s,
        )
        self.io = NodeLoop(cluster.scheduler, name + "/disk", cluster.problem)  # type: ignore[abstract]
        self.engine = SimulatedEngine(host.disk)
        self.node: NodeHost
        self.source = random.Random(f"{cluster.seed}/life/{name}")
        self._steps = random.Random(f"{cluster.seed}/steps/{name}")
        self.writes_here = random.Random(f"{cluster.seed}/here/{name}").random() < WRITING_HERE_PART
        """Whether the loop may run small writes of the log itself."""

    def start(self) -> None:
        self.loop.call_soon(self._make)

    def end(self) -> None:
        self.is_listening = False
        self.loop.kill()
        self.io.kill()
        self.engine.close()

    def _make(self) -> None:
        cluster, host = self.host.cluster, self.host
        self.loop.life = self
        try:
            self.node = cluster.make_node(self)
        except Exception as error:
            cluster.node_failed(self, error)
            return
        self.loop.create_task(self._run(), name=f"{host.node_id} main")

    async def _run(self) -> None:
        """Run as the server does: serve until the node can't go on, and then end the process."""
        try:
            await self.node.start()
            self.is_listening = True
            error = await self.node.process.life.failed()
        except asyncio.CancelledError:
            raise
        except Exception as failure:
            error = failure
        self.host.cluster.node_failed(self, error)

    @property
    def log(self) -> RaftLog:
        """The log of the node's meta group, to be looked at."""
        return self.node.meta.log

    def make_thread(self, _loop: object, name: str) -> SimulatedThread:
        """Make one of the threads that write, each with a disk's queue of its own."""
        disk = self.host.disk
        return SimulatedThread(self.loop, self.io, disk, disk.log if name == "log" else self.engine)

    def make_here(self, _loop: object) -> SimulatedLoopStorage:
        """Make the writes of the log that the loop runs itself."""
        return SimulatedLoopStorage(self.loop, self.io, self.host.disk, self.host.cluster.counts)

    def _step_takes_s(self) -> float:
        """Return how long a step on the scan thread takes."""
        return self._steps.uniform(0.05, 0.5) / 1000


def make_node(life: Life, options: NodeOptions) -> NodeHost:
    """Make the production node, with everything that it touches of the world replaced."""
    host, cluster = life.host, life.host.cluster
    node = NodeHost(
        NodeIdentity(life.identity.cluster_id, life.node_id, life.identity.storage_id, host.address, host.peer_address),
        Surroundings(
            engine=life.engine,
            log_files=open_log_files(host.disk.log),
            snapshot_files=host.snapshot_files,
            host_time=HostTime(host.clock.wall_ms, host.clock.monotonic_ms, max_offset_ms=MAX_OFFSET_MS),
            monotonic_ms=host.clock.monotonic_ms,
            random=life.source,
            transport=SimulatedTransport(cluster.network, life),
            thread=life.make_thread,
            here=life.make_here if life.writes_here else None,
            run_scan=NoThreads(),
        ),
        limits=options.limits,
        raft=options.raft,
        snapshot_settings=options.snapshots,
        retention_ms=options.retention_ms,
        joining=None if host.is_first else host.joined,
    )
    node.groups = options.groups
    return node


def expected_end(life: Life, error: BaseException) -> str:
    """Return the reason for which a process must end: a failed sync, also while it starts; a damaged log; or a disk
    that was full when it began, or when it completed a half-done write of a crash. Otherwise return an empty string."""
    log = life.host.disk.log
    if isinstance(error, ResourceExhausted) and life.host.disk.log.is_full and not life.is_listening:
        return "a full disk at its start"
    if isinstance(error, DataLoss) and (log.damaged() or log.has_lost_end):
        return "a damaged log"
    return "a failed sync" if isinstance(error, StorageFailed) or life.host.disk.is_in_doubt else ""
