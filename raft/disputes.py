"""One member's claims against entries that were committed here, or against this disk.

Raft believes leaders. One message of a member that is wrong could so end every other one. A leader that was elected by
a majority never contradicts a committed entry. If a message does, its sender is wrong, or this replica is: one word
against another does not tell which. So nothing of the message counts, its term included; its sender does not lead us in
that term until it is quiet; and the other voters are asked::

    append, snapshot   another term at a committed index ──┐
    heartbeat          more was acknowledged than is held ─┴─► refused ─► inquiry ─► findings
                                                                                        │
      a majority of the voters, without us, has the same committed ─► DataLoss: this replica is wrong, and ends
      a majority, with us, says otherwise ──────────────────────────► the sender was wrong
      neither ──────────────────────────────────────────────────────► it stays open, and is asked again

A replica ends only by evidence on the disks of a majority of others. So however wrong one member is, a majority stays
up.

*A lost end.* A heartbeat calls no more committed than the receiver acknowledged to its sender. In this life a replica
holds all entries that it acknowledged. An earlier life may have acknowledged more to the leader of the term in which
this life began, and the disk has lost it: a start cannot tell that from a write that was never confirmed. The leader
may have counted our word. So until it is settled we do not campaign, and vote for that leader alone, or for a log that
has an entry of a later term: a leader of a later term held everything that was committed (Ongaro 2014, §3.6.3). With
such an entry we hold it again ourselves; so do we with a snapshot that was under way. Or the sender never led, since
too many voters did not vote for it. Or it still leads, and says that the entry is not committed. Or its own log ends
before the entry: a leader calls committed what its disk holds.

Nothing of this makes Raft Byzantine. A true leader that lies about true entries is believed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.bounds import INDEX_MAX
from cortado.raft.core import Core
from cortado.raft.records import decode_record

_LOG: Final = logging.getLogger(__name__)
_LEADERS: Final = frozenset(("append", "heartbeat", "snapshot"))
# After this many election timeouts without another claim, a sender is heard again. If it was found to be wrong, the
# others may have elected another leader in that time.
_OPEN_ELECTIONS: Final = 10
_CLOSED_ELECTIONS: Final = 2


@dataclass(frozen=True, slots=True)
class Claim:
    """``sender`` says, in a message of ``term``, that an entry of ``entry_term`` is committed at ``index``. None: that
    we acknowledged the entry at ``index``, which this log does not reach."""

    sender: str
    term: int
    index: int
    entry_term: int | None = None

    @property
    def is_of_lost_end(self) -> bool:
        return self.entry_term is None


class _Found(NamedTuple):
    """A voter's answer in its term, about the entry and about the claim's sender."""

    term: int
    is_committed: bool
    entry_term: int
    follows: bool
    voted: bool
    last_index: int

    @classmethod
    def of(cls, claim: Claim, message: pb.RaftMessage) -> _Found:
        finding = message.finding
        leads, voted = finding.leader == claim.sender, finding.voted_for == claim.sender
        return cls(message.term, finding.is_committed, finding.entry_term, leads, voted, finding.last_index)

    def backs(self, claim: Claim) -> bool:
        """Return whether the answer confirms the claim. For a lost end, the sender must also lead that term."""
        if claim.is_of_lost_end:
            return self.is_committed and self.follows and self.term == claim.term
        return self.entry_term == claim.entry_term


@dataclass(slots=True)
class _Dispute:
    """``found`` is the last answer of each voter."""

    claim: Claim
    heard_ms: float
    asked_ms: float = float("-inf")
    is_open: bool = True
    found: dict[str, _Found] = field(default_factory=dict)


class Disputes:
    """One dispute of each kind with a member, at most: the newest."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._disputes: dict[tuple[str, bool], _Dispute] = {}

    @property
    def open(self) -> Sequence[str]:
        """Return a sentence for operators about each open dispute."""
        needed = self._core.journal.configuration.majority
        return [
            f"{each.claim.sender}: {self._words(each.claim)}; {len(self._backers(each))} of {needed} others confirm it"
            for each in self._disputes.values()
            if each.is_open
        ]

    # --- refused messages ---------------------------------------------------------------------------------------------

    def problem_of(self, sender: str, message: pb.RaftMessage, kind: str) -> str:
        """Return why a message counts for nothing, though its numbers are in bounds; empty if it does not contradict
        us."""
        core = self._core
        if kind not in _LEADERS or message.term < core.journal.term:
            return ""
        claim = self._claim_of(sender, message, kind)
        for each in self._disputes.values():
            if (each.claim.sender, each.claim.term) == (sender, message.term):
                each.heard_ms = each.heard_ms if claim is None else core.now_ms
                return f"in term {message.term} it said: {self._words(each.claim)}"
        if claim is None:
            return ""
        if self._may_open(claim):
            self._open(claim)
        return self._words(claim)

    def _claim_of(self, sender: str, message: pb.RaftMessage, kind: str) -> Claim | None:
        core = self._core
        if kind == "heartbeat":
            index = message.heartbeat.commit_index
            return Claim(sender, message.term, index) if index > core.journal.last_index else None
        said = self._other_entry(message, kind)
        return None if said is None else Claim(sender, message.term, *said)

    def _other_entry(self, message: pb.RaftMessage, kind: str) -> tuple[int, int] | None:
        """Return index and term of the first entry that another committed entry contradicts."""
        core, append = self._core, message.append
        committed = self._committed
        if kind == "snapshot":
            return self._other(message.snapshot.index, message.snapshot.term, committed)
        found = self._other(append.prev_index, append.prev_term, committed)
        first = append.prev_index + 1
        # Most messages follow the committed entries: nothing of them is decoded here.
        for index in range(max(first, core.journal.base[0]), min(first + len(append.records), committed + 1)):
            if found is not None:
                break
            try:
                record = decode_record(core.group_id, index, append.records[index - first])
            except DataLoss:
                # Damaged, and dropped as a whole when it is taken.
                return None
            found = self._other(index, record.term, committed)
        return found

    def _other(self, index: int, term: int, committed: int) -> tuple[int, int] | None:
        ours = self._core.journal.term_at(index) if 1 <= index <= committed else None
        return (index, term) if ours not in (None, term) else None

    @property
    def _committed(self) -> int:
        """Return the commit index. An entry that a leader counts alone is not committed before it is on our disk."""
        core = self._core
        return core.durable_commit_index if core.is_leading else core.journal.commit_index

    def _words(self, claim: Claim) -> str:
        journal, place = self._core.journal, f"entry {claim.index}"
        if claim.is_of_lost_end:
            return f"the log ends at entry {journal.last_index}, but {place} was acknowledged"
        ours = journal.term_at(claim.index)
        return f"{place} is one of term {claim.entry_term}, but one of term {ours} was committed"

    # --- settling -----------------------------------------------------------------------------------------------------

    def _may_open(self, claim: Claim) -> bool:
        core = self._core
        if claim.is_of_lost_end and not claim.term == core.journal.term == core.term_at_start:
            return False
        if claim.entry_term == 0:
            # No entry is of that term, and in findings it says that nothing is known.
            return False
        if core.journal.configuration.voters in ((), (core.node_id,)):
            # There is no voter to ask. Alone, no other member leads; without a configuration, we give no vote.
            return False
        is_led = claim.term == core.journal.term and core.engine.leader not in ("", claim.sender)
        return not is_led

    def _open(self, claim: Claim) -> None:
        core, key = self._core, (claim.sender, claim.is_of_lost_end)
        before = self._disputes.get(key)
        dispute = self._disputes[key] = _Dispute(claim, core.now_ms)
        if before is not None:
            dispute.asked_ms = before.asked_ms
        if claim.is_of_lost_end:
            core.lost_ends[claim.sender] = claim.term
            _LOG.critical("%s says of group %d: %s; others are asked", claim.sender, core.group_id, self._words(claim))
        # A member that says something else each time has no more inquiries for it.
        if core.now_ms >= dispute.asked_ms + core.settings.heartbeat_ms:
            self._ask(dispute)

    def _ask(self, dispute: _Dispute) -> None:
        core = self._core
        dispute.asked_ms = core.now_ms
        for voter in core.journal.configuration.voters:
            if voter != core.node_id:
                core.send(voter, pb.RaftMessage(inquiry=pb.Inquiry(index=dispute.claim.index)))

    def on_inquiry(self, sender: str, inquiry: pb.Inquiry) -> None:
        """Answer with the committed entry, and with the leader and vote of our term."""
        core, index = self._core, inquiry.index
        if not 1 <= index <= INDEX_MAX:
            return
        is_committed = index <= core.durable_commit_index
        finding = pb.Finding(
            index=index,
            is_committed=is_committed,
            entry_term=(core.journal.term_at(index) or 0) if is_committed else 0,
            leader=core.engine.leader,
            voted_for=core.journal.voted_for,
            last_index=core.journal.last_index,
        )
        core.send(sender, pb.RaftMessage(finding=finding), core.journal.vote_sequence)

    def on_finding(self, sender: str, message: pb.RaftMessage) -> None:
        """Take a voter's answer. Raises DataLoss if a majority of others has committed an entry that contradicts us."""
        core = self._core
        if not core.journal.configuration.is_voter(sender):
            return
        for dispute in list(self._disputes.values()):
            if dispute.is_open and dispute.claim.index == message.finding.index:
                dispute.found[sender] = _Found.of(dispute.claim, message)
                self._settle(dispute)

    def tick(self) -> None:
        """Settle disputes that can be settled, ask again for open ones, and forget quiet ones. Raises DataLoss as
        :meth:`on_finding`."""
        core = self._core
        for key, dispute in list(self._disputes.items()):
            if dispute.is_open:
                self._settle(dispute)
            is_kept = dispute.is_open and dispute.claim.is_of_lost_end
            elections = _OPEN_ELECTIONS if dispute.is_open else _CLOSED_ELECTIONS
            quiet_ms = dispute.heard_ms + elections * core.settings.election_ms_max
            if not is_kept and core.now_ms >= quiet_ms:
                self._disputes.pop(key, None)
            elif dispute.is_open and core.now_ms >= dispute.asked_ms + core.settings.election_ms_min:
                self._ask(dispute)

    @property
    def due_ms(self) -> float:
        """Return the time at which the next tick has something to do."""
        if not self._disputes:
            return math.inf
        asked_ms = (each.asked_ms for each in self._disputes.values() if each.is_open)
        return min(asked_ms, default=math.inf) + self._core.settings.election_ms_min

    def _backers(self, dispute: _Dispute) -> list[str]:
        """Return the other voters that confirm the claim."""
        core, found = self._core, dispute.found
        others = (each for each in core.journal.configuration.voters if each != core.node_id)
        return [each for each in others if each in found and found[each].backs(dispute.claim)]

    def _settle(self, dispute: _Dispute) -> None:
        core, claim = self._core, dispute.claim
        if claim.is_of_lost_end and core.journal.last[1] > claim.term:
            self._close(dispute, "the log has an entry of a later term, and with it what was committed before")
        elif claim.is_of_lost_end and core.appliable_index >= claim.index:
            self._close(dispute, "a snapshot has brought it again")
            # Its leader was right: it is heard at once.
            del self._disputes[claim.sender, True]
        elif claim.is_of_lost_end and core.journal.term > claim.term:
            # The next leader sends us what we lack.
            return
        elif len(backers := self._backers(dispute)) >= core.journal.configuration.majority:
            detail = f"{self._words(claim)}, as {' and '.join(backers)} confirm: replace this node"
            raise DataLoss(f"group {core.group_id}", detail)
        elif self._is_refuted(dispute):
            self._close(dispute, f"most voters say otherwise, so {claim.sender} is wrong")

    def _is_refuted(self, dispute: _Dispute) -> bool:
        core, claim, configuration = self._core, dispute.claim, self._core.journal.configuration
        found = {each: found for each, found in dispute.found.items() if configuration.is_voter(each)}
        if not claim.is_of_lost_end:
            same = sum(each.entry_term == core.journal.term_at(claim.index) for each in found.values())
            return same + configuration.is_voter(core.node_id) >= configuration.majority
        of_term = {name: each for name, each in found.items() if each.term == claim.term}
        # A voter that joined in this term has not voted in it, and follows the leader that let it in.
        against = {name for name, each in of_term.items() if not each.voted and not each.follows}
        # That we gave no vote proves nothing: it may be lost with the log's end.
        ours = {core.engine.leader, core.journal.voted_for} - {"", claim.sender}
        if configuration.is_voter(core.node_id) and ours:
            against.add(core.node_id)
        # The entry that made the sender a voter may be lost, too.
        voters = len({*configuration.voters, claim.sender})
        never_led = claim.sender in against or voters - len(against) <= voters // 2
        told = found.get(claim.sender)
        if told is None:
            return never_led
        # While it leads, an entry that it called committed stays so.
        takes_back = told.term == claim.term and told.follows and not told.is_committed
        return never_led or takes_back or told.last_index < claim.index

    def _close(self, dispute: _Dispute, outcome: str) -> None:
        dispute.is_open = False
        if dispute.claim.is_of_lost_end:
            self._core.lost_ends.pop(dispute.claim.sender, None)
            _LOG.warning("settled what %s said of entry %d: %s", dispute.claim.sender, dispute.claim.index, outcome)
