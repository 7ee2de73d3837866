"""The events of a Raft group, in words: the lines of the transcripts in ``tests/golden/raft/transcripts``.

``4@2`` is the entry at index 4 that the leader of term 2 appended. A message is one phrase, its sender's question or
statement. A :class:`View` is the visible state of one replica; two views of it show its changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.bootstrap import FIRST_INDEX
from cortado.raft.configuration import Configuration
from cortado.raft.engine import CANDIDATE, LEADER
from cortado.raft.group import RaftLog
from cortado.raft.log import Nothing, Payload, RecordKind, SnapshotOffer
from cortado.raft.records import KIND_EXAMINED, Record, Writes, decode_hard_state, decode_record
from cortado.raft.registry import Member, Registry
from support.raft_hand import GROUP

Place = tuple[int, int]


def place_words(place: Place) -> str:
    return f"{place[0]}@{place[1]}"


def payload_words(payload: Payload) -> str:
    if isinstance(payload, Nothing):
        return "nothing"
    if isinstance(payload, Registry):
        return nodes_words(payload)
    return members_words(payload) if isinstance(payload, Configuration) else payload.encode().decode()


def members_words(configuration: Configuration) -> str:
    return "voters " + " ".join(configuration.voters) + "".join(f", learner {each}" for each in configuration.learners)


def nodes_words(registry: Registry) -> str:
    removed = f", removed {' '.join(registry.removed)}" if registry.removed else ""
    return "nodes " + " ".join(each.node_id + _joined(each) for each in registry.nodes) + removed


def _joined(member: Member) -> str:
    return "" if member.storage_id else " (not joined yet)"


def record_words(record: Record) -> str:
    examined = " (to be examined)" if record.kind == KIND_EXAMINED else ""
    return f"{place_words((record.index, record.term))} {payload_words(record.held_entry.payload)}{examined}"


# --- messages ---------------------------------------------------------------------------------------------------------


def message_words(message: pb.RaftMessage) -> str:
    kind = message.WhichOneof("kind")
    if kind in ("vote_request", "vote_response"):
        return _vote_words(message)
    if kind == "acknowledgement":
        return _answer_words(message.acknowledgement, message.term)
    said = getattr(message, kind or "")
    if kind == "append":
        first = said.prev_index + 1
        records = [record_words(decode_record(GROUP, first + i, each)) for i, each in enumerate(said.records)]
        behind = place_words((said.prev_index, said.prev_term))
        return f"append in term {message.term}, behind {behind}: {', '.join(records)}; committed to {said.commit_index}"
    if kind == "heartbeat":
        wants = f"round {said.round}" if said.round else "no answer wanted"
        return f"heartbeat in term {message.term}, committed to {said.commit_index}, {wants}"
    if kind == "snapshot":
        at = place_words((said.index, said.term))
        return f"your next entry is gone: fetch snapshot {said.snapshot_id} of {at}, term {message.term}"
    return f"campaign at once, says the leader of term {message.term}"


def _vote_words(message: pb.RaftMessage) -> str:
    if message.WhichOneof("kind") == "vote_response":
        answer = message.vote_response
        what = "pre-vote" if answer.is_pre_vote else "vote"
        return f"{what} for term {answer.term}: {'yes' if answer.is_granted else 'no'}"
    asked = message.vote_request
    what = "pre-vote" if asked.is_pre_vote else "vote"
    why = ", since the leader asked for it" if asked.is_transfer else ""
    return f"{what} for term {asked.term}? my log ends at {place_words((asked.last_index, asked.last_term))}{why}"


def _answer_words(answer: pb.Acknowledgement, term: int) -> str:
    outcome = answer.WhichOneof("outcome")
    if outcome == "heard":
        return f"heard in term {term}, round {answer.round}" if answer.round else f"no: this is term {term}"
    if outcome == "wanted_index":
        return f"does not fit behind {answer.rejected_prev_index}: begin at {answer.wanted_index}"
    doubt = ""
    if answer.doubted_index:
        doubt = f"; doubts {answer.doubted_index}: you must have lost {answer.doubted_key.decode()!r}"
    return f"have you up to {answer.matched_index}{doubt}"


# --- the disk ---------------------------------------------------------------------------------------------------------


def writes_words(writes: Writes) -> str:
    """Return a batch of records of the log files, in words."""
    state, cut, put = "", "", []
    for record in writes:
        if record.kind is RecordKind.HARD_STATE:
            stored = decode_hard_state(GROUP, record.payload)
            behind = f", log behind {place_words((record.index, record.term))}" if record.index > FIRST_INDEX else ""
            state = f"term {stored.term}, {_vote_given(stored.voted_for)}{behind}"
        elif record.kind is RecordKind.TRUNCATE:
            cut = f"deletes all from {record.index} on; "
        else:
            put.append(record_words(decode_record(GROUP, record.index, record.payload)))
    stored = "; ".join(each for each in (state, ", ".join(put)) if each)
    return cut + f"stores {stored}" if stored else cut.removesuffix("; ")


def _vote_given(voted_for: str) -> str:
    return f"voted for {voted_for or 'nobody'}"


# --- replicas ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """``entries`` are the entries that memory holds behind ``base``: each entry's place, and it in words."""

    node_id: str
    role: int
    term: int
    voted_for: str
    leader: str
    takes_proposals: bool
    base: Place
    entries: tuple[tuple[Place, str], ...]
    durable: int
    committed: int
    applied: Place
    configuration: Configuration
    needs: tuple[str, ...]
    offer: SnapshotOffer | None

    @classmethod
    def of(cls, node_id: str, log: RaftLog) -> View:
        core = log._core
        journal = core.journal
        records = journal.records(journal.base[0] + 1, journal.last_index)
        return cls(
            node_id,
            role=core.engine.role,
            term=log.term,
            voted_for=journal.voted_for,
            leader=log.leader,
            takes_proposals=log.is_leader,
            base=log.window.base,
            entries=tuple(((each.index, each.term), record_words(each)) for each in records),
            durable=journal.durable_index,
            committed=log.durable_commit_index,
            applied=log.applied,
            configuration=log.configuration,
            needs=tuple(log.window.snapshot_needs),
            offer=log.window.snapshot_offer,
        )

    def standing(self) -> str:
        if self.role == LEADER:
            return f"leads term {self.term}"
        if self.role == CANDIDATE:
            return f"is a candidate in term {self.term}, {_vote_given(self.voted_for)}"
        if self.leader:
            return f"follows {self.leader} in term {self.term}"
        return f"knows no leader in term {self.term}, {_vote_given(self.voted_for)}"

    def summary(self) -> str:
        """Return all of it, in a line."""
        entries = ", ".join(words for _, words in self.entries) or "no entries"
        return (
            f"{self.standing()}; behind {place_words(self.base)}: {entries}; "
            f"durable to {self.durable}, committed to {self.committed}, applied to {self.applied[0]}"
        )

    def brief(self) -> str:
        """Return its role and its log, in brief."""
        last = self.entries[-1][0] if self.entries else self.base
        return f"{self.standing()}; its log ends at {place_words(last)}, committed to {self.committed}"

    def changes_to(self, now: View) -> Iterator[str]:
        """Yield a phrase for each thing that is different in ``now``."""
        if (self.role, self.term, self.voted_for, self.leader) != (now.role, now.term, now.voted_for, now.leader):
            yield now.standing()
        yield from self._entries_changed(now)
        if self.committed != now.committed:
            yield f"knows that all up to {now.committed} is committed"
        if self.applied != now.applied:
            yield f"has applied all up to {now.applied[0]}"
        if self.takes_proposals != now.takes_proposals:
            yield "takes proposals" if now.takes_proposals else "takes no proposals any more"
        yield from self.snapshots_changed(now)

    def snapshots_changed(self, now: View) -> Iterator[str]:
        for gone in sorted(set(now.needs) - set(self.needs)):
            yield f"sees that {gone} needs a snapshot"
        if now.offer is not None and self.offer != now.offer:
            meta = now.offer.meta
            yield f"may fetch a snapshot of {place_words((meta.index, meta.term))} from {now.offer.sender}"

    def _entries_changed(self, now: View) -> Iterator[str]:
        held, holds = dict(self.entries), dict(now.entries)
        forgotten = [place_words(each) for each in held if each not in holds and each[0] > now.base[0]]
        if forgotten:
            yield f"forgets {', '.join(forgotten)}"
        if self.base != now.base:
            yield f"begins its log behind {place_words(now.base)}"
        appended = [words for place, words in now.entries if place not in held]
        if appended:
            yield f"appends {', '.join(appended)}"
        if forgotten and self.configuration != now.configuration:
            yield f"goes by the members that were before: {members_words(now.configuration)}"
