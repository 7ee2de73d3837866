"""A node's status: that of its process, and of its replica of the group that holds the members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cortado.store.host.host import Host
from cortado.store.host.patrol import PatrolProgress
from cortado.store.process.admission import GateUse
from cortado.store.process.peer_clocks import ClockOffset
from cortado.store.replica.repair.cases import DamagedItem
from cortado.store.replica.replica import Role
from cortado.store.replica.snapshots.receiver import ReceiverProgress

NO_LEADER: Final = "no leader"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """``refused_for`` says why the last batch of writes was refused for want of room; empty when writes go well.

    ``leader`` is a node id, ``leader_address`` its address; both are empty while no leader is known. ``snapshot`` is
    the progress of a snapshot brought here, as text; empty if there is none. ``unreadable`` says why nothing is read
    here while the data is no state. ``patrol`` is the progress of the pass over everything. ``damage`` is the known
    damage here, or the first of ``damaged`` such items; ``repaired`` ranges were made whole since the start.
    """

    refused_for: str
    is_stopping: bool
    role: Role
    term: int
    leader: str
    leader_address: str
    applied_index: int
    last_index: int
    uptime_ms: int
    map_used_bytes: int
    map_limit_bytes: int
    disk_free_bytes: int
    queues: Sequence[GateUse]
    loop_lag_ms_max: int
    clock_offsets: Sequence[ClockOffset] = ()
    snapshot: str = ""
    unreadable: str = ""
    restoring: str = ""
    """The backup that the cluster takes, and its progress; empty if it takes none."""
    disputes: Sequence[str] = ()
    """Members' unsettled objections to this node's log."""
    slowed: str = ""
    """The rate to which writes are slowed, and for which member; empty if they are not."""
    patrol: PatrolProgress | None = None
    damage: Sequence[DamagedItem] = ()
    damaged: int = 0
    repaired: int = 0
    scan_path: str = ""
    """The reader of scans' slices: ``compiled``, or ``python:`` and why."""

    @property
    def state(self) -> str:
        """Return ``serving``, ``stopping``, ``no leader``, or ``unreadable:``, ``restoring:`` or ``read-only:`` and
        why."""
        if self.is_stopping:
            return "stopping"
        if self.unreadable:
            return f"unreadable: {self.unreadable}"
        if self.restoring:
            return f"restoring: {self.restoring}"
        if self.refused_for:
            return f"read-only: {self.refused_for}"
        return "serving" if self.leader else NO_LEADER


def node_status(host: Host) -> NodeStatus:
    """Return use and limits of everything bounded."""
    replica, engine = host.meta, host.process.engine
    driver, log, integrity = replica.driver, replica.log, replica.integrity
    use = engine.use()
    leader = replica.leader
    return NodeStatus(
        refused_for=driver.pipeline.room.problem() or driver.refused_for,
        is_stopping=host.process.life.is_stopping,
        role=replica.role,
        term=log.term,
        leader=log.leader,
        leader_address="" if leader is None else leader.address,
        applied_index=driver.applied.index,
        last_index=log.last[0],
        uptime_ms=host.uptime_ms,
        map_used_bytes=use.used_bytes,
        map_limit_bytes=use.limit_bytes,
        disk_free_bytes=engine.disk_free_bytes(),
        queues=[queue.use() for queue in host.queues],
        loop_lag_ms_max=host.loop_delay.max_ms(),
        clock_offsets=host.process.clock_watch.offsets(),
        snapshot=_snapshot_text(replica.snapshot_receiver.progress),
        unreadable=replica.store.unreadable,
        restoring=replica.features.progress,
        disputes=log.disputes.open,
        slowed=driver.compaction.slowed,
        patrol=host.patrol.progress,
        damage=integrity.repairs.items(),
        damaged=integrity.repairs.counts.damaged,
        repaired=integrity.repairs.counts.repaired,
        scan_path=host.scan_path,
    )


def _snapshot_text(progress: ReceiverProgress | None) -> str:
    """Return the progress of a snapshot brought to this node; empty if there is none."""
    if progress is None:
        return ""
    size = f" of {progress.size_bytes}" if progress.size_bytes else ""
    problem = f", {progress.problem}" if progress.problem else ""
    return f"{progress.received_bytes}{size} bytes from {progress.peer or 'a member'}{problem}"
