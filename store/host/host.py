"""One node: the process, its own parts, and the replicas on it.

::

    services ──► Host ──┬── Process: what the replicas share (``process.py``)
    peers ─────►        ├── a thread that writes to the log files, and one that writes to the data
                        ├── the loop's delay, and the patrol of all stored data
                        └── Replica, one for each group: log, driver, reads, members, watches, snapshots

The host admits a request, and the replica whose keys it names answers it (:meth:`Host.replica_of`). If it names no key,
the replica of the group that holds the catalogue and the members does (:attr:`Host.meta`). A request for a document
names its table, which only the catalogue turns into a key (:meth:`Host.replica_of_table`). There is one group so far,
with all keys.

Every coroutine runs on the loop that called :meth:`Host.start`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence, Set
from typing import Final

from cortado.errors import CortadoError, NotFound
from cortado.raft.registry import Roster
from cortado.raft.settings import RaftSettings
from cortado.store.clock.hlc import MAX_OFFSET_MS
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.engine.interface import Space
from cortado.store.host.loop_delay import LoopDelay
from cortado.store.host.opening import open_group
from cortado.store.host.patrol import Patrol
from cortado.store.keys.keyspace import namespace_range, table_range
from cortado.store.log_files.verifying import SegmentDamage
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.slices import SliceReader
from cortado.store.process.admission import Gate
from cortado.store.process.budget import Share
from cortado.store.process.limits import NodeLimits
from cortado.store.process.log_storage import LogStorage
from cortado.store.process.process import NodeIdentity, Surroundings, make_process
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.process.snapshot_files import delete_files, group_of, names_in
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.process.storage_thread import Storage
from cortado.store.replica.context import GroupContext
from cortado.store.replica.group_range import META_GROUP, GroupRange
from cortado.store.replica.replica import Replica
from cortado.store.replica.write.log_entry import ENTRY_OVERHEAD_BYTES

_LOG: Final = logging.getLogger(__name__)
_BAD_CLOCK: Final = "clock"


class Host:
    """Make it, :meth:`start` it on a running loop, :meth:`stop` it there. Everything but scans runs on the loop."""

    groups: Sequence[GroupRange] = (META_GROUP,)
    """The groups that a start opens. Tests have more of them, with ranges that never change."""
    meta: Replica
    """The replica of the group that holds the catalogue and the members; set once the host is started."""
    log_thread: Storage
    storage_thread: Storage

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
        """Without a log it begins groups of one. If it is ``joining``, it stays empty until a leader brings it up:
        ``joining`` are the members that let it in, which it hears until it has a log. A leader keeps old versions for
        ``retention_ms``.

        Raises InvalidArgument for limits that do not fit each other. The caller closes the stores, after stop.
        """
        limits, raft = limits or NodeLimits(), raft or RaftSettings()
        snapshot_settings = snapshot_settings or SnapshotSettings()
        raft.check()
        limits.check(raft.entry_bytes_max - ENTRY_OVERHEAD_BYTES)
        snapshot_settings.check()
        self.process = make_process(
            identity,
            around,
            limits=limits,
            raft=raft,
            snapshot_settings=snapshot_settings,
            max_clock_offset_ms=max_clock_offset_ms,
            retention_ms=retention_ms,
        )
        """The parts that the replicas share."""
        self.loop_delay = LoopDelay(around.monotonic_ms)
        self.scan_path = "python: nothing else was chosen"
        """The reader of scans' slices: ``compiled``, or ``python:`` and why."""
        self.patrol = Patrol(
            around.engine,
            around.log_files,
            pass_ms=limits.patrol_ms,
            run_scan=self.process.scan,
            is_readable=self._is_readable,
            on_damage=self._patrol_found,
            on_log_damage=self._found_segment,
            monotonic_ms=around.monotonic_ms,
        )
        """Reads all that is stored again and again."""
        self._joining = joining
        self._around = around
        self._started_ms = around.monotonic_ms()
        self.replicas: dict[int, Replica] = {}
        """By group, once the host is started."""

    # --- start and stop ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve. In a group of one, return when this node leads it, or read-only if there is no room for that. In a
        larger group, return at once; :attr:`Replica.ready` tells when it has found its leader.

        Raises DataLoss if the stored data is damaged, ResourceExhausted if there is no room to begin a log.
        """
        loop = asyncio.get_running_loop()
        stored = self.process.log_files.take_groups()
        opened = [open_group(self.process, of, stored, joining=self._joining) for of in self.groups]
        self.log_thread = self._make_log_storage(loop)
        self.storage_thread = self._around.thread(loop, "storage")
        for each in opened:
            self.process.budget.keep(each.store.kept)
            group = GroupContext(self.process, self.log_thread, self.storage_thread, *each)
            self.replicas[each.of.group_id] = Replica(group)
        self.meta = self.replicas[META_GROUP.group_id]
        self.meta.driver.on_configured = self._connect
        self.loop_delay.start(loop)
        self.process.clock_watch.start(self._voters, self._veto_clock)
        await self._delete_strange_snapshots()
        for replica in self.replicas.values():
            await replica.look_for_leftovers()
        await self._verify()
        for replica in self.replicas.values():
            await replica.serve()

    async def _delete_strange_snapshots(self) -> None:
        """Delete the snapshot files that belong to no group here; each replica looks after its own."""
        files, groups = self.process.snapshot_files, self.replicas.keys()
        await self.process.scan(
            lambda: delete_files(files, [name for name in names_in(files) if group_of(name) not in groups])
        )

    async def _verify(self) -> None:
        """Verify as much as the walk at a start has time for, and go on in the background."""
        for each in self.process.engine.disordered:
            if each.space is Space.CHANGES:
                # A reader of the index sees it, and looks at the versions instead.
                _LOG.warning("keys of the index of changes are out of their order")
                continue
            damage = Damage.of_disorder(each)
            _LOG.critical("stored data is damaged: %s", damage.what)
            for replica in self.replicas.values():
                replica.integrity.found(damage)
        await self.patrol.walk(self.process.limits.walk_ms)
        self.patrol.start()

    def _patrol_found(self, damage: Damage) -> None:
        """Report a find, on the scan thread. Bad items in a state that is being replaced are no damage of it."""
        for each in self.replicas.values():
            if not each.store.unreadable:
                each.integrity.found(damage)

    def _found_segment(self, damage: SegmentDamage) -> None:
        """Report a damaged log file, which may hold entries of every group."""
        for each in self.replicas.values():
            each.integrity.found_segment(damage)

    def _is_readable(self) -> bool:
        return any(not each.store.unreadable for each in self.replicas.values())

    def _connect(self, roster: Roster) -> None:
        """Connect to the members of the meta group, which every node is one of."""
        self.process.transport.configure(roster)
        # With two nodes either clock may be right; with three, the other two can tell at once.
        self.process.clock_watch.compare()

    def _make_log_storage(self, loop: asyncio.AbstractEventLoop) -> Storage:
        thread = self._around.thread(loop, "log")
        if self._around.here is None:
            return thread
        return LogStorage(thread, self._around.here(loop), self.process.monotonic_ms)

    @property
    def refused_for(self) -> str:
        """Return why there was no room for the last writes; empty while they go well. It is known while :meth:`start`
        waits, which lasts until committed entries can be applied."""
        return next((each.driver.refused_for for each in self.replicas.values() if each.driver.refused_for), "")

    async def stop(self, hand_over: bool = True) -> None:
        """Refuse new work, finish the work in flight, end the threads. A leader hands over first if it can, and serves
        until then, so that callers find the next one at once."""
        if hand_over and not self.process.life.is_stopping:
            for each in self.replicas.values():
                await each.hand_over()
        self.process.life.is_stopping = True
        await self.patrol.stop()
        for each in self.replicas.values():
            await each.stop()
        self.log_thread.stop()
        self.storage_thread.stop()
        self.loop_delay.stop()
        self.process.clock_watch.stop()
        self.process.scan_threads.stop()

    # --- replicas ----------------------------------------------------------------------------------------------

    def replica_of(self, key: bytes) -> Replica:
        """Return the replica of the group that holds ``key``."""
        [replica] = [each for each in self.replicas.values() if each.holds(key)]
        return replica

    def replica_of_namespace(self, name: str) -> Replica:
        """Return the one replica that holds a namespace's pairs. Raises InvalidArgument."""
        return self.replica_of(namespace_range(name)[0])

    def replica_of_table(self, database: str, name: str) -> Replica:
        """Return the replica of the group that holds a table's rows and entries. Of several groups the catalog tells
        which; a table that is not there is the meta group's to refuse."""
        meta = self.meta
        if len(self.replicas) == 1:
            return meta
        try:
            table = meta.catalog(meta.reader(meta.read_ts())).table(database, name)
        except CortadoError:
            return meta
        return self.replica_of(table_range(table.table_id)[0])

    def receive(self, sender: str, group_id: int, bodies: Sequence[bytes]) -> None:
        """Take a peer's messages from the transport; the peer has presented itself. Messages for a group without a
        replica here are dropped."""
        replica = self.replicas.get(group_id)
        if replica is not None:
            replica.driver.receive(sender, bodies)

    def read_snapshot(self, group_id: int, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        """Read a snapshot's bytes from ``offset`` on, for a peer. Raises NotFound if there is no such snapshot."""
        replica = self.replicas.get(group_id)
        if replica is None:
            raise NotFound("snapshot", f"{snapshot_id} of group {group_id}")
        return replica.snapshot_sender.read(snapshot_id, offset)

    async def read_range(self, group_id: int, ask: Ask) -> Answer:
        """Read the stored items of a range, or of its first part, for a peer that repairs its own. Raises NotFound,
        Unavailable if the data is no state."""
        replica = self.replicas.get(group_id)
        if replica is None:
            raise NotFound("group", str(group_id))
        return await replica.read_range(ask)

    # --- the process's own parts -------------------------------------------------------------------------------

    @property
    def uptime_ms(self) -> int:
        return int(self.process.monotonic_ms() - self._started_ms)

    @property
    def queues(self) -> tuple[Gate | Share, ...]:
        """Return the gates and shares before each queue of requests."""
        process = self.process
        gates = (process.writes, process.reads, process.scans, process.bulk_streams, self.meta.watches.gate)
        return (*gates, process.budget.calls, process.budget.chunks)

    def use_scan_kernel(self, kernel: SliceReader, threads: int) -> None:
        """Let ``kernel`` read slices of scans from now on, and streamed scans on ``threads`` threads."""
        for each in self.replicas.values():
            each.store.kernel = kernel
        self.process.scan_threads.widen(threads)

    def observe_peer_clock(self, node_id: str, low_ms: float, high_ms: float) -> None:
        """Note that a peer's physical clock minus our monotonic one lies between these."""
        self.process.clock_watch.observe(node_id, low_ms, high_ms)

    def _voters(self) -> Set[str]:
        return set(self.meta.configuration.voters)

    def _veto_clock(self, is_off: bool) -> bool:
        """Veto leading with a clock that is out of bounds: it would carry all others along."""
        is_new = [each.driver.veto(_BAD_CLOCK, is_off) for each in self.replicas.values()]
        return any(is_new)
