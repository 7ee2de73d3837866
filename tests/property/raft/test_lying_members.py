"""A member may send any message: each message is refused or believed. It ends no node, and breaks no invariant, for
invariants can only be broken by a defect of ours.

The liar knows the group well: its numbers are near the truth, since others are refused at once.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Encoded, Entry, Nothing, Payload
from cortado.raft.records import KIND_CONFIGURATION, KIND_DATA, KIND_EXAMINED, KIND_REGISTRY, Record
from cortado.raft.registry import Roster
from cortado.raft.settings import RaftSettings
from support.examples import examples
from support.raft_hand import GROUP, Hand, members

STEPS = 80
VICTIM = "n1"
LIAR = "n3"
ROSTERS = (
    Roster.of(members(3)),
    Roster.of(members(2), members(3)[2:]),
    Roster.of(members(1)),
    Roster.of((), members(3)),
    Roster(),
)


class Liar:
    """Sends the victim the messages that ``draw`` makes, and moves the victim along."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.group = Hand(3, settings=RaftSettings(retain_entries=draw.choice((0, 3, 1_000))))
        self.now_ms = 0.0

    def near(self, value: int) -> int:
        return max(0, value + self.draw.choice((-3, -1, -1, 0, 0, 0, 1, 1, 2, 5)))

    def record(self, index: int, term: int) -> bytes:
        payload: Payload = Encoded(b"lie")
        kind = self.draw.choice((KIND_DATA, KIND_DATA, KIND_EXAMINED, KIND_CONFIGURATION, KIND_REGISTRY))
        if kind in (KIND_CONFIGURATION, KIND_REGISTRY):
            roster = self.draw.choice(ROSTERS)
            payload = roster.configuration if kind == KIND_CONFIGURATION else roster.registry
        return Record(kind, payload, index, term).stored(GROUP)

    def message(self) -> pb.RaftMessage:
        draw, log = self.draw, self.group.logs[VICTIM]
        indexes = log.last[0], log.durable_commit_index, log.window.base[0]
        term, index = self.near(log.term), self.near(draw.choice(indexes))
        of = log.window.term_at(index)
        entry_term = min(of if of is not None and draw.random() < 0.7 else self.near(log.last[1]), max(term, 0))
        message = pb.RaftMessage(term=term, sent_ms=self.now_ms)
        match draw.randrange(9):
            case 7:
                message.inquiry.index = index
            case 8:
                finding = pb.Finding(index=index, is_committed=draw.random() < 0.7, entry_term=entry_term)
                finding.leader, finding.voted_for = draw.choice(("", LIAR, VICTIM)), draw.choice(("", LIAR, "n2"))
                message.finding.CopyFrom(finding)
            case 0 | 1:
                append = message.append
                append.prev_index, append.prev_term = index, entry_term
                append.commit_index, append.round = self.near(index + 2), draw.randrange(3)
                for place in range(draw.randrange(4)):
                    entry_term = min(term, entry_term + draw.choice((0, 0, 1)))
                    append.records.append(self.record(index + 1 + place, entry_term))
            case 2:
                message.heartbeat.commit_index, message.heartbeat.round = self.near(index), draw.randrange(3)
            case 3:
                outcome = {draw.choice(("matched_index", "wanted_index")): self.near(log.last[0])}
                answer = pb.Acknowledgement(rejected_prev_index=index, round=draw.randrange(9), **outcome)
                message.acknowledgement.CopyFrom(answer)
            case 4:
                is_pre_vote = draw.random() < 0.4
                request = pb.VoteRequest(term=term + is_pre_vote, is_pre_vote=is_pre_vote, is_transfer=True)
                request.last_index, request.last_term = self.near(log.last[0]), min(term, self.near(log.last[1]))
                message.vote_request.CopyFrom(request)
            case 5:
                response = pb.VoteResponse(term=self.near(log.term), is_pre_vote=draw.random() < 0.5, is_granted=True)
                message.vote_response.CopyFrom(response)
                if draw.random() < 0.3:
                    message.timeout_now.SetInParent()
            case _:
                notice = pb.SnapshotNotice(snapshot_id="s", index=max(1, index), term=entry_term, size_bytes=1)
                notice.roster.CopyFrom(draw.choice(ROSTERS).to_message())
                message.snapshot.CopyFrom(notice)
        return message

    def install(self) -> None:
        log = self.group.logs[VICTIM]
        offer = log.window.snapshot_offer
        if offer is None or self.group.outstanding.get(VICTIM) or self.group.applying.get(VICTIM):
            return
        self.group.install(VICTIM, offer.meta, [Entry(offer.meta.index, offer.meta.term, Nothing())])

    def step(self) -> None:
        draw, group, log = self.draw, self.group, self.group.logs[VICTIM]
        match draw.randrange(14):
            case 0:
                self.now_ms += draw.choice((1.0, 60.0, 1_400.0))
                log.tick(self.now_ms)
            case 1:
                group.take(VICTIM)
            case 2:
                group.store(VICTIM)
            case 3:
                group.sync(VICTIM)
            case 12:
                group.take_committed(VICTIM)
            case 13:
                group.apply(VICTIM)
            case 4:
                self.install()
            case 5 if draw.random() < 0.3:
                group.start(VICTIM)
            case 6:
                log.window.compact(log.applied[0])
            case 7 if log.is_leader:
                log.append(Encoded(b"true"))
            case _:
                log.step(LIAR, self.message().SerializeToString())
        group.logs[VICTIM].outbox()


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(200), deadline=None)
def test_nothing_that_a_member_says_breaks_an_invariant(seed: int) -> None:
    liar = Liar(random.Random(seed))
    for _ in range(STEPS):
        liar.step()
