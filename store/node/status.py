"""What a node says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cortado.store.node.admission import GateUse
from cortado.store.node.patrol import PatrolProgress
from cortado.store.node.peer_clocks import ClockOffset
from cortado.store.node.snapshots.receiver import ReceiverProgress

NO_LEADER: Final = "no leader"


class Role(StrEnum):
    """What a node is to its group."""

    LEADER = "leader"
    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    """A voter that knows of no leader."""
    LEARNER = "learner"
    """No voter (yet): it takes the log and does not count."""


@dataclass(frozen=True, slots=True)
class DamagedItem:
    """A stored ``key`` that is not what was written (empty where it is not known), as people read it, and why it is not
    repaired yet; it ``is_lost`` where every other member has said that it has no whole copy."""

    key: bytes
    text: str
    problem: str
    is_lost: bool


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """``refused_for`` says why the last batch of writes was refused for want of room; empty when writes go well.

    ``leader`` is a node id, ``leader_address`` where it is reached; both are empty while none is known.
    ``snapshot`` says how far a snapshot is that is brought here, for people; empty where there is none. ``unreadable``
    says why nothing is read here while the data is no state. ``patrol`` says how far the pass over everything is.
    ``damage`` is what is known to be damaged here, or the first of ``damaged`` such items; ``repaired`` ranges were
    made whole since the start.
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
    slowed: str = ""
    """To which rate writes are slowed, and for whom; empty where they are not."""
    patrol: PatrolProgress | None = None
    damage: Sequence[DamagedItem] = ()
    damaged: int = 0
    repaired: int = 0

    @property
    def state(self) -> str:
        """``serving``, ``stopping``, ``no leader``, or ``unreadable:`` or ``read-only:`` with the reason."""
        if self.is_stopping:
            return "stopping"
        if self.unreadable:
            return f"unreadable: {self.unreadable}"
        if self.refused_for:
            return f"read-only: {self.refused_for}"
        return "serving" if self.leader else NO_LEADER


def snapshot_text(progress: ReceiverProgress | None) -> str:
    """How far a snapshot is that is brought to this node; empty where there is none."""
    if progress is None:
        return ""
    size = f" of {progress.size_bytes}" if progress.size_bytes else ""
    problem = f", {progress.problem}" if progress.problem else ""
    return f"{progress.received_bytes}{size} bytes from {progress.peer or 'a member'}{problem}"
