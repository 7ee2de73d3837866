"""Who leads: the election timer, pre-votes, votes.

PySyncObj holds the term, the vote and the comparison of logs. This room decides *when* a vote is asked for or given:

- A voter that has not heard of a leader for a random time asks for *pre-votes* first (Ongaro 2014, §9.6). They bind no
  voter and change no term, so a node that was cut off does not depose a leader that the others follow.
- A voter that heard of a leader within ``election_ms_min`` gives no vote and no pre-vote, and does not even take the
  request's term. So does a leader. Neither does a process that has just started: it may have been such a voter in its
  last incarnation. The lease rests on this. A request that the leader asked for (a hand-over) is the exception.
- A vote is counted once per term and voter, and from voters of our own configuration only.
- While our term or vote is on its way to the disk, no other attempt begins, and afterwards the others' disks are given
  the time that ours took: on slow disks each attempt would otherwise void the one before it, for ever.

Any replica with a configuration votes by log and term alone, be it a learner in its own eyes: it may have been promoted
by an entry that it has not seen and that the candidate has, and then the candidate cannot win without it. A replica
without a configuration has never joined, or has lost its disk: it gives no vote, since it does not know which entries
it acknowledged before.
"""

from __future__ import annotations

from typing import NamedTuple

from cortado.invariants import invariant
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.core import Core
from cortado.raft.engine import CANDIDATE, Sent


class ElectionCounts(NamedTuple):
    """Rounds of pre-votes that were asked for, terms that were begun, votes that were given to others."""

    pre_vote_rounds: int
    campaigns: int
    votes_given: int


class Elections:
    """The timer's deadline is :attr:`deadline_ms`; it means nothing while we lead or are no voter."""

    def __init__(self, core: Core, *, is_first_incarnation: bool) -> None:
        """``is_first_incarnation`` if this replica cannot have voted or heard of a leader before."""
        self._core = core
        self._heard_ms = float("-inf") if is_first_incarnation else core.now_ms
        self._pre_votes: set[str] = set()
        self._pre_vote_term = 0
        self._votes: set[str] = set()
        self._is_transfer = False
        self._waits_for_disk = False
        self.pre_vote_rounds = 0
        self.campaigns = 0
        self.votes_given = 0
        self.deadline_ms = core.now_ms if self._is_alone else self._drawn_deadline_ms()

    @property
    def _is_alone(self) -> bool:
        configuration = self._core.journal.configuration
        return configuration.majority == 1 and configuration.is_voter(self._core.node_id)

    def _drawn_deadline_ms(self) -> float:
        core = self._core
        return core.now_ms + core.random.uniform(core.settings.election_ms_min, core.settings.election_ms_max)

    @property
    def is_led(self) -> bool:
        """Return whether a leader lives, as far as we can tell: we lead, or heard of one within ``election_ms_max``."""
        core = self._core
        if core.is_leading or core.heard_of_leader:
            return True
        return core.now_ms - self._heard_ms <= core.settings.election_ms_max

    def _retry_deadline_ms(self) -> float:
        """Return a near deadline after an attempt of our own: as far as we know there is no leader. The vote may have
        been split, or refused by a voter that heard the leader a moment later than we did."""
        core, settings = self._core, self._core.settings
        spread_ms = (settings.election_ms_max - settings.election_ms_min) / 2
        return core.now_ms + 2 * settings.heartbeat_ms + core.random.uniform(0, spread_ms)

    @property
    def may_campaign(self) -> bool:
        """Return whether this replica is a voter that may lead, and holds all that it acknowledged, as far as it
        knows."""
        core = self._core
        return core.may_lead and core.journal.configuration.is_voter(core.node_id) and not core.lost_ends

    def restart_timer(self) -> None:
        self.deadline_ms = self._drawn_deadline_ms()

    # --- campaigning ------------------------------------------------------------------------------------------------

    def _note_leader(self) -> None:
        """A message of our term's leader came since the last tick: no later than now."""
        self._core.heard_of_leader = False
        self._heard_ms = self._core.now_ms
        self._pre_vote_term = 0
        self.restart_timer()

    def tick(self, *, is_disk_hung: bool) -> None:
        core = self._core
        if core.heard_of_leader:
            self._note_leader()
        if core.is_leading or not self._is_term_stored() or core.now_ms < self.deadline_ms:
            return
        self.deadline_ms = self._retry_deadline_ms()
        if is_disk_hung or not self.may_campaign:
            return
        if self._is_alone:
            self.campaign()
        else:
            self._ask_for_pre_votes()

    def _is_term_stored(self) -> bool:
        """Return whether our term and vote are durable; when they become so, the timer starts anew."""
        core = self._core
        if not core.journal.is_vote_durable:
            self._waits_for_disk = True
            self.deadline_ms = max(self.deadline_ms, core.now_ms + core.settings.heartbeat_ms)
        elif self._waits_for_disk:
            self._waits_for_disk = False
            if core.engine.role == CANDIDATE:
                # A voter may have one transaction under way before it comes to ours.
                self.deadline_ms = self._retry_deadline_ms() + 2 * core.usual_sync_ms
            else:
                self.restart_timer()
        return not self._waits_for_disk

    def _ask_for_pre_votes(self) -> None:
        core = self._core
        self.pre_vote_rounds += 1
        self._pre_vote_term = core.journal.term + 1
        self._pre_votes = {core.node_id}
        request = self._request(self._pre_vote_term, is_pre_vote=True)
        for voter in core.journal.configuration.voters:
            if voter != core.node_id:
                message = pb.RaftMessage()
                message.vote_request.CopyFrom(request)
                core.send(voter, message)

    def campaign(self, *, is_transfer: bool = False) -> None:
        """Begin a term, and ask for votes. A leader does not: it may have asked once more just before it won."""
        core = self._core
        if core.is_leading:
            return
        self.campaigns += 1
        self._is_transfer = is_transfer
        self._pre_vote_term = 0
        self._votes = {core.node_id}
        self.deadline_ms = self._retry_deadline_ms()
        core.engine.campaign()

    def send_request(self, to: str, message: Sent) -> None:
        """PySyncObj asks for a vote. It may leave when our own is durable."""
        core = self._core
        request = self._request(message["term"], is_pre_vote=False)
        core.send(to, pb.RaftMessage(vote_request=request), core.journal.vote_sequence)

    def _request(self, term: int, *, is_pre_vote: bool) -> pb.VoteRequest:
        last_index, last_term = self._core.journal.last
        return pb.VoteRequest(
            term=term,
            is_pre_vote=is_pre_vote,
            last_index=last_index,
            last_term=last_term,
            is_transfer=self._is_transfer and not is_pre_vote,
        )

    def on_response(self, sender: str, response: pb.VoteResponse) -> None:
        core = self._core
        if not response.is_granted or not core.journal.configuration.is_voter(sender):
            return
        if not self.may_campaign:
            # Since it asked, its data turned out to be damaged, say, or the entry that made it a voter was taken back.
            return
        if response.is_pre_vote:
            if response.term == self._pre_vote_term == core.journal.term + 1:
                self._pre_votes.add(sender)
                if len(self._pre_votes) >= core.journal.configuration.majority:
                    self.campaign()
        elif core.engine.role == CANDIDATE and response.term == core.journal.term and sender not in self._votes:
            self._votes.add(sender)
            core.engine.grant_vote(sender)

    # --- voting -----------------------------------------------------------------------------------------------------

    def on_request(self, sender: str, message: pb.RaftMessage) -> None:
        core, request = self._core, message.vote_request
        if not core.journal.configuration.voters:
            return
        if not request.is_transfer and self._follows_a_leader():
            if request.is_pre_vote:
                self._answer(sender, request, is_granted=False)
            return
        if message.term > core.journal.term and request.is_pre_vote:
            core.engine.step_down(message.term)
        if request.is_pre_vote:
            is_granted = request.term > core.journal.term and self._is_up_to_date(sender, request)
            self._answer(sender, request, is_granted=is_granted)
        elif request.term < core.journal.term:
            self._answer(sender, request, is_granted=False)
        elif request.term == core.journal.term and core.journal.voted_for == sender:
            # Asked again, since the answer was lost. PySyncObj would be silent.
            self._answer(sender, request, is_granted=True)
        elif not core.may_vote_for(sender, request.last_term):
            if request.term > core.journal.term:
                core.engine.step_down(request.term)
        else:
            core.engine.request_vote(sender, request.term, request.last_index, request.last_term)

    def _follows_a_leader(self) -> bool:
        core = self._core
        if core.is_leading or core.heard_of_leader:
            return True
        return core.now_ms - self._heard_ms < core.settings.election_ms_min

    def _is_up_to_date(self, sender: str, request: pb.VoteRequest) -> bool:
        last_index, last_term = self._core.journal.last
        is_as_long = (request.last_term, request.last_index) >= (last_term, last_index)
        return is_as_long and self._core.may_vote_for(sender, request.last_term)

    def send_vote(self, to: str, message: Sent) -> None:
        """PySyncObj gives its vote. It leaves when it is durable."""
        given = self._core.journal.term, self._core.journal.voted_for
        invariant(given == (message["term"], to), "a vote that is sent is the one that is stored", given, to)
        self.votes_given += 1
        self.restart_timer()
        self._answer(to, pb.VoteRequest(term=message["term"]), is_granted=True)

    def _answer(self, to: str, request: pb.VoteRequest, *, is_granted: bool) -> None:
        core = self._core
        response = pb.VoteResponse(term=request.term, is_pre_vote=request.is_pre_vote, is_granted=is_granted)
        core.send(to, pb.RaftMessage(vote_response=response), core.journal.vote_sequence)
