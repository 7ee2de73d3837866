"""The state that the rooms of one replica share: identity, leadership, time, journal, engine, outbox."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from cortado.errors import NotLeader
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.engine import LEADER, Engine
from cortado.raft.journal import Journal
from cortado.raft.log import Doubt, Examine, Room
from cortado.raft.outbox import AT_ONCE, Outbox
from cortado.raft.reads import Freshness
from cortado.raft.settings import RaftSettings


@dataclass(slots=True)
class Core:
    """``now_ms`` is the time of the last tick: an event between two ticks has the time of the first."""

    node_id: str
    group_id: int
    settings: RaftSettings
    random: random.Random
    journal: Journal
    engine: Engine
    outbox: Outbox
    now_ms: float
    applied: tuple[int, int]
    is_leading: bool = field(init=False)
    """Leads in the engine's eyes; its term may have no applied entry yet. The engine tells each change."""
    may_lead: bool = True
    transferee: str = ""
    """The member to which a leader hands leadership; empty while no hand-over is under way."""
    heard_of_leader: bool = False
    """Whether a message of the term's leader came since the last tick."""
    usual_sync_ms: float = 0.0
    """The slowest of our last transactions, less and less of it with each that was faster."""
    counted_alone_to: int = 0
    """Up to here entries were counted as committed by ourselves alone, when a leadership of ours ended."""
    is_installing: bool = False
    """From the writes of a snapshot's reset until they are durable: they name our term and vote, so no others may come
    between, and nothing is applied to a state that is being replaced."""
    led_term: int = 0
    """The last term that this process led: no other member leads it, also once we lead it no more."""
    term_at_start: int = field(init=False)
    """The term of the log that this process began with; 0 if it began with none."""
    incarnation: int = 0
    """Drawn at the start: tells times of this process from those of an earlier one."""
    freshness: Freshness = field(default_factory=Freshness)
    room: Room | None = None
    """The bytes that this node may still store, as measured last; None: not known."""
    room_beside_bytes: int = 0
    """The log's ``pushed_bytes`` at that time."""
    examine: Examine | None = None
    lost_ends: dict[str, int] = field(default_factory=dict)
    """Members that say that we acknowledged what our log does not hold, each with the term in which it led us; until
    that is settled (:mod:`~cortado.raft.disputes`)."""
    doubts: list[Doubt] = field(default_factory=list)
    """Doubts of followers about a leader's entries, until the node takes them."""

    def __post_init__(self) -> None:
        self.term_at_start = self.journal.term
        self._entered(self.engine.role)
        self.engine.on_role = self._entered

    def _entered(self, role: int) -> None:
        self.is_leading = role == LEADER
        if self.is_leading:
            self.led_term = self.journal.term

    def may_vote_for(self, candidate: str, last_term: int) -> bool:
        """Return whether a candidate with a log that ends in ``last_term`` holds all that an earlier life may have
        acknowledged."""
        return all(term < last_term or leader == candidate for leader, term in self.lost_ends.items())

    @property
    def has_applied_own_term(self) -> bool:
        return self.applied[1] == self.journal.term

    @property
    def may_append(self) -> bool:
        """Leads, has applied an entry of its own term, and no hand-over is under way."""
        return self.is_leading and self.applied[1] == self.journal.term and not self.transferee

    def check_may_append(self) -> None:
        """Raises NotLeader."""
        if not self.may_append:
            raise self.not_leader()

    def not_leader(self) -> NotLeader:
        """Return the error for a caller that must go elsewhere, or wait."""
        if self.is_leading:
            problem = "leadership is being handed over" if self.transferee else "the new leader is not ready yet"
            return NotLeader(problem)
        member = self.journal.roster.member(self.engine.leader)
        address = "" if member is None else member.address
        return NotLeader(f"{self.node_id} does not lead group {self.group_id}", leader=address)

    @property
    def durable_commit_index(self) -> int:
        """Return the commit index, at most our durable index if we may have counted alone: without another voter, the
        engine counts an entry that our own disk may not have yet."""
        commit_index, durable_index = self.journal.commit_index, self.journal.durable_index
        if self.is_leading or durable_index < self.counted_alone_to:
            return min(commit_index, durable_index)
        return commit_index

    @property
    def appliable_index(self) -> int:
        """Return the last index that is committed and in our own log files: entries up to it may be applied."""
        return min(self.journal.commit_index, self.journal.durable_index)

    def acknowledge(self, answered: pb.RaftMessage, to: str, answer: pb.Acknowledgement, needs: int) -> None:
        """Answer a leader's message, and say how much room there is."""
        if self.room is not None:
            left = self.room.less(self.journal.pushed_bytes - self.room_beside_bytes)
            answer.room.bytes, answer.room.freeing_bytes = left.bytes, left.freeing_bytes
        reply = pb.RaftMessage(acknowledgement=answer, echo_ms=answered.sent_ms, incarnation=self.incarnation)
        self.send(to, reply, needs)

    def send(self, to: str, message: pb.RaftMessage, needs: int = AT_ONCE) -> None:
        self.outbox.put(to, message, self.now_ms, needs)
