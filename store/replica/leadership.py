"""This node's leadership, worked out from the log: a pure function of it, with events for changes.

::

    FOLLOWER ──── the log names this node as leader ────► ELECTED
       ▲                                                     │  its first own entry of the term is applied,
       │                                                     │  and enough voters' clocks are known
       │◄──────────── another leader, or another term ───────┤
       │                                                     ▼
       `◄──────────── another leader, or another term ──── READY        evaluates writes, answers reads

An elected leader may not evaluate yet: entries that an earlier leader committed may wait to be applied, and timestamps
that it gave out lie below those of these entries. Nor may one that has just started, and has heard no other clock
yet: if its own is wrong, its timestamps would stay.

The order of events is fixed: a term of our own is lost before the next one is gained, so that nothing appended in one
is answered in the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cortado.errors import NotLeader
from cortado.raft.group import RaftLog


@dataclass(frozen=True, slots=True)
class Lost:
    """This node leads ``term`` no longer."""

    term: int


@dataclass(frozen=True, slots=True)
class Elected:
    """This node was elected in ``term``."""

    term: int


@dataclass(frozen=True, slots=True)
class Established:
    """Everything before the term that this node leads is applied here."""


Event: TypeAlias = Lost | Elected | Established


class Leadership:
    """One group's leadership, as this node saw it last."""

    def __init__(self, node_id: str, log: RaftLog, knows_time: Callable[[], bool]) -> None:
        """``knows_time`` tells whether enough clocks are known to bound the time that this node issues."""
        self._node_id = node_id
        self._log = log
        self._knows_time = knows_time
        self.is_elected = False
        """True from the election to its loss; evaluating begins later, with the first own entry applied."""
        self.is_ready = False
        """True from the first own entry of the term that is applied, once the clocks of enough voters are known."""
        self._term = 0
        self._seen_leader = ""
        self._transferee = ""
        self._vetoes: set[str] = set()
        self.changes = 0
        """How often another leader was seen, since the start."""

    # --- state -------------------------------------------------------------------------------------------------

    @property
    def term(self) -> int | None:
        """Return the term that this node leads; None if it leads none."""
        return self._term if self.is_elected else None

    @property
    def is_current(self) -> bool:
        """Return whether the log still says that this node leads the term that it was elected in."""
        return self.is_elected and self._log.leader == self._node_id and self._log.term == self._term

    @property
    def is_up_to_date(self) -> bool:
        """Return whether there is a leader, and :meth:`observe` would tell nothing new."""
        log, leader = self._log, self._log.leader
        if not leader or leader != self._seen_leader:
            return False
        if leader != self._node_id:
            return not self.is_elected
        return self.is_ready and log.is_leader and log.term == self._term

    @property
    def vetoes(self) -> frozenset[str]:
        """Return why this node may not lead; empty if it may."""
        return frozenset(self._vetoes)

    def not_leader(self) -> NotLeader:
        """Return the error that sends a caller to the leader, with its address if known."""
        leader = self._log.leader
        if leader in ("", self._node_id):
            leader = self._transferee
        member = self._log.roster.member(leader)
        if member is None:
            return NotLeader("no leader is known here")
        return NotLeader("this node does not lead", leader=member.address)

    # --- events ------------------------------------------------------------------------------------------------

    def observe(self) -> list[Event]:
        """Return the changes since the last call, in the order in which to act on them."""
        log = self._log
        leader = log.leader
        events: list[Event] = []
        if leader and leader != self._seen_leader:
            self._seen_leader = leader
            self.changes += 1
        if self.is_elected and not (leader == self._node_id and log.term == self._term):
            events.append(Lost(self._term))
            self.is_elected = self.is_ready = False
        if leader == self._node_id:
            if not self.is_elected:
                self.is_elected, self._term = True, log.term
                events.append(Elected(self._term))
            if not self.is_ready and log.is_leader and self._knows_time():
                self.is_ready, self._transferee = True, ""
                events.append(Established())
        elif leader:
            self._transferee = ""
        return events

    def veto(self, reason: str, is_held: bool) -> bool:
        """Keep this node from leading for ``reason``, or no longer. True if that is new."""
        if is_held == (reason in self._vetoes):
            return False
        (self._vetoes.add if is_held else self._vetoes.discard)(reason)
        self._log.may_lead = not self._vetoes
        return True

    def transferring(self, to: str) -> None:
        """Note that a transfer to ``to`` has begun: callers are sent there once this node does not lead any more."""
        self._transferee = to
