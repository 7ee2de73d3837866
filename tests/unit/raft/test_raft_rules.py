"""Each rule that keeps PySyncObj safe: a scenario in which it matters, and the same with the rule switched off.

A scenario that passes without its rule proves nothing, so each runs twice: it must hold, and it must fail once the code
that keeps the rule is replaced by code without it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import pytest

from cortado.errors import CortadoError, InvalidArgument, NotLeader, TooLarge, Unavailable
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft import engine, following
from cortado.raft.applying import Applying
from cortado.raft.core import Core
from cortado.raft.disputes import Disputes
from cortado.raft.elections import Elections
from cortado.raft.engine import Engine
from cortado.raft.following import Following
from cortado.raft.group import RaftLog
from cortado.raft.journal import Journal
from cortado.raft.log import Encoded, RecordKind, SnapshotMeta
from cortado.raft.membership import Membership
from cortado.raft.outbox import Outbox
from cortado.raft.progress import Progress
from cortado.raft.registry import Member, Roster
from cortado.raft.replication import Replication
from cortado.raft.settings import RaftSettings
from cortado.raft.storing import Storing
from support.raft_hand import GROUP, Hand

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass
class Rule:
    scenario: Callable[[], None]
    without: Patch


RULES: dict[str, Rule] = {}


def rule(name: str, without: Patch) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(scenario: Callable[[], None]) -> Callable[[], None]:
        RULES[name] = Rule(scenario, without)
        return scenario

    return register


def replaced(owner: object, name: str, with_: object, *, raising: bool = True) -> Patch:
    return lambda patch: patch.setattr(owner, name, with_, raising=raising)


# --- 1. the log is truncated at a true conflict alone --------------------------------------------------------------


def _deliver_untrimmed(self, sender, prev, records, commit_index) -> None:
    self._core.engine.receive_entries(sender, prev, records, commit_index)


@rule("trim: a late message takes nothing back", replaced(Following, "_take", _deliver_untrimmed))
def _late_message() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    first = group.send("n1")
    group.append("n1", b"b")
    group.settle()
    before = group.logs["n2"].last
    for letter in first:
        group.step(letter)
    assert group.logs["n2"].last == before


def _acknowledge_everything(self, sender, message, matched_index, _doubt=None, original=Following._accept) -> None:
    original(self, sender, message, self._core.journal.last_index)


def _with_a_stray_tail() -> Hand:
    """Return a group: n1 wrote entries 4 and 5 of term 2, which reached no other member; n2 leads a later term."""
    group = Hand(3, settings=RaftSettings(message_bytes_max=100))
    group.elect("n1")
    group.append("n1", b"stray")
    group.append("n1", b"stray, too")
    group.store("n1")
    group.mail.clear()
    group.send_all()
    group.mail.clear()
    group.elect("n2", without=("n1",))
    return group


@rule("trim: an answer says what the message proved", replaced(Following, "_accept", _acknowledge_everything))
def _proved_only() -> None:
    group = _with_a_stray_tail()
    leader = group.logs["n2"]
    append = pb.AppendEntries(prev_index=3, prev_term=2)
    group.logs["n1"].step("n2", pb.RaftMessage(term=leader.term, append=append).SerializeToString())
    group.store("n1")
    (answer,) = [each for each in group.send("n1") if each.kind == "acknowledgement"]
    assert answer.message.acknowledgement.matched_index == 3


@rule("trim: the commit index is believed up to the message's end", replaced(following, "min", max, raising=False))
def _commit_clamped() -> None:
    group = _with_a_stray_tail()
    append = pb.AppendEntries(prev_index=3, prev_term=2, commit_index=5)
    term = group.logs["n2"].term
    group.logs["n1"].step("n2", pb.RaftMessage(term=term, append=append).SerializeToString())
    assert group.logs["n1"].durable_commit_index == 3


@rule("trim: what was committed is never truncated", replaced(Disputes, "_other", lambda *_: None))
def _decided_stands() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"committed")
    group.settle()
    group.pass_ms(100)
    group.settle()
    record = group.logs["n2"]._core.journal.record_at(4)
    foreign = type(record)(record.kind, Encoded(b"other"), 4, 9).stored(GROUP)
    append = pb.AppendEntries(prev_index=3, prev_term=2, records=[foreign])
    group.logs["n2"].step("n3", pb.RaftMessage(term=9, append=append).SerializeToString())
    assert group.logs["n2"].term == 2


# --- 2. terms -------------------------------------------------------------------------------------------------------


def _believe_old_terms(self, sender, message, kind) -> bool:
    if message.term > self._core.journal.term:
        self._core.engine.step_down(message.term)
    return True


@rule(
    "terms: an acknowledgement of an old term counts for nothing",
    replaced(RaftLog, "_is_of_our_term", _believe_old_terms),
)
def _old_acknowledgement() -> None:
    group = Hand(3)
    group.elect("n1")
    for body in (b"a", b"b", b"c"):
        group.append("n1", body)
    group.send("n1")
    group.deliver(to="n2")
    group.store("n2")
    group.send("n2")
    late = group.keep(sender="n2", kind="acknowledgement")
    group.mail.clear()
    # n1 loses its unstored entries, and leads again without n2, which would not vote for it.
    group.start("n1")
    group.elect("n1", without=("n2",))
    for body in (b"d", b"e", b"f"):
        group.append("n1", body)
    group.store("n1")
    committed = group.logs["n1"].durable_commit_index
    for letter in late:
        # Its host's clock had begun again, so that by their times alone they seem to be new.
        letter.message.echo_ms = group.now_ms
        group.logs["n1"].step("n2", letter.message.SerializeToString())
    group.pass_ms(1, "n1")
    assert group.logs["n1"].durable_commit_index == committed


def _ignore_new_terms(self, sender, message, kind) -> bool:
    return message.term >= self._core.journal.term


@rule("terms: a leader that hears of a higher one steps down", replaced(RaftLog, "_is_of_our_term", _ignore_new_terms))
def _higher_term() -> None:
    group = Hand(3)
    group.elect("n1")
    group.elect("n2", without=("n1",))
    group.logs["n1"].tick(group.now_ms - 2500)
    answer = pb.RaftMessage(term=group.logs["n2"].term, acknowledgement=pb.Acknowledgement(heard=True))
    group.logs["n1"].step("n3", answer.SerializeToString())
    assert not group.logs["n1"].is_leader
    assert group.logs["n1"].term == group.logs["n2"].term


# --- 3. votes -------------------------------------------------------------------------------------------------------


def _count_messages(self, sender, response, original=Elections.on_response) -> None:
    self._votes.discard(sender)
    original(self, sender, response)


def _campaigning(voters: int, learners: int = 0) -> Hand:
    """Return a group in which n1 has asked for votes, which are in the mail."""
    group = Hand(voters, learners=learners)
    for other in set(group.logs) - {"n1"}:
        group.logs[other].may_lead = False
    group.pass_ms(1400)
    group.send("n1")
    group.deliver()
    group.send_all()
    group.deliver(to="n1")
    group.store("n1")
    group.send("n1")
    return group


@rule("votes: one counts once", replaced(Elections, "on_response", _count_messages))
def _one_vote_twice() -> None:
    group = _campaigning(5)
    group.deliver(to="n2", kind="vote_request")
    group.store("n2")
    group.send("n2")
    votes = group.keep(sender="n2", kind="vote_response")
    for letter in votes + votes:
        group.step(letter)
    assert group.logs["n1"].leader == ""


def _count_anyone(self, sender, response, original=Elections.on_response) -> None:
    if response.is_pre_vote:
        original(self, sender, response)
    else:
        self._core.engine.grant_vote(sender)


@rule("votes: those of our configuration's voters count", replaced(Elections, "on_response", _count_anyone))
def _vote_of_a_learner() -> None:
    group = _campaigning(3, learners=1)
    term = group.logs["n1"].term
    vote = pb.RaftMessage(term=term, vote_response=pb.VoteResponse(term=term, is_granted=True))
    group.logs["n1"].step("n4", vote.SerializeToString())
    group.logs["n1"].step("n9", vote.SerializeToString())
    assert group.logs["n1"].leader == ""


def _campaign_although_leading(self, *, is_transfer: bool = False) -> None:
    self._votes = {self._core.node_id}
    self._core.engine.campaign()


@rule("votes: a leader that had asked once more goes on", replaced(Elections, "campaign", _campaign_although_leading))
def _late_pre_votes() -> None:
    group = Hand(3)
    log = group.elect("n1")
    log._elections._pre_vote_term = log.term + 1
    vote = pb.VoteResponse(term=log.term + 1, is_pre_vote=True, is_granted=True)
    for voter in ("n2", "n3"):
        log.step(voter, pb.RaftMessage(term=log.term, vote_response=vote).SerializeToString())
    group.append("n1", b"a")
    assert {each.to for each in group.send("n1") if each.kind == "append"} == {"n2", "n3"}


# --- 4. durability --------------------------------------------------------------------------------------------------


def _put_at_once(self, to, message, sent_ms, needs=0, original=Outbox.put) -> None:
    original(self, to, message, sent_ms)


@rule("durability: a vote leaves when it is on the disk", replaced(Outbox, "put", _put_at_once))
def _vote_held() -> None:
    group = _campaigning(3)
    group.deliver(to="n2", kind="vote_request")
    assert not [each for each in group.send("n2") if each.kind == "vote_response"]
    group.store("n2")
    assert [each for each in group.send("n2") if each.kind == "vote_response"]


@rule("durability: an acknowledgement leaves when its entries are on the disk", replaced(Outbox, "put", _put_at_once))
def _acknowledgement_held() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send("n1")
    group.deliver(to="n2")
    assert not group.send("n2")
    group.store("n2")
    assert [each.message.acknowledgement.matched_index for each in group.send("n2")] == [4]


def _release_old_terms(self) -> None:
    self._free += [each[2] for each in self._held if each[0] <= self._journal.synced_sequence]
    self._held = [each for each in self._held if each[0] > self._journal.synced_sequence]


@rule(
    "durability: what was truncated before it was stored is not acknowledged",
    replaced(Outbox, "_release", _release_old_terms),
)
def _truncated_before_stored() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send("n1")
    group.deliver(to="n3", kind="append")
    group.mail.clear()
    new_leader = pb.RaftMessage(term=9, append=pb.AppendEntries(prev_index=3, prev_term=2))
    record = group.logs["n3"]._core.journal.record_at(4)
    new_leader.append.records.append(type(record)(record.kind, Encoded(b"other"), 4, 9).stored(GROUP))
    group.logs["n3"].step("n2", new_leader.SerializeToString())
    group.store("n3")
    assert {each.message.term for each in group.send("n3")} == {9}


def _count_at_once(patch: pytest.MonkeyPatch) -> None:
    def count(self, progress: Progress) -> None:
        progress.counted_index = progress.match_index
        self._core.engine.acknowledge(progress.node_id, progress.counted_index)

    patch.setattr(Replication, "_count", count)
    patch.setattr(Core, "durable_commit_index", property(lambda self: self.journal.commit_index))


@rule("durability: a leader counts itself when its own disk has the entry", _count_at_once)
def _leaders_own_disk() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send("n1")
    group.deliver(to="n2")
    group.store("n2")
    group.send("n2")
    group.deliver(to="n1")
    group.pass_ms(1, "n1")
    assert group.logs["n1"].durable_commit_index == 3
    group.store("n1")
    assert group.logs["n1"].durable_commit_index == 4


@rule("durability: a leader whose disk hangs gives way", replaced(Storing, "is_disk_hung", lambda self: False))
def _hung_disk() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.take("n1")
    for _ in range(14):
        group.pass_ms(100, "n1", "n2", "n3")
        group.send("n1")
        for other in ("n2", "n3"):
            group.deliver(to=other)
            group.store(other)
            group.send(other)
        group.deliver(to="n1")
    assert not group.logs["n1"].is_leader


def _send_before_the_term_is_stored(self, progress, message) -> None:
    self._core.send(progress.node_id, message)


@rule(
    "durability: nothing of a term leaves before the term is stored",
    replaced(Replication, "_send", _send_before_the_term_is_stored),
)
def _term_of_an_only_voter() -> None:
    group = Hand(1, learners=1)
    group.pass_ms(1, "n1")
    assert group.logs["n1"].leader == "n1"
    assert not group.send("n1")
    group.store("n1")
    assert {each.kind for each in group.send("n1")} == {"append", "heartbeat"}


# --- 5. progress ----------------------------------------------------------------------------------------------------


def _let_next_fall(self, node_id, matched_index) -> None:
    message = {"type": "next_node_idx", "reset": False, "success": True, "next_node_idx": matched_index + 1}
    self._receive(self._nodes[node_id], message)


@rule("progress: an acknowledgement sends nothing again", replaced(Engine, "acknowledge", _let_next_fall))
def _next_never_falls() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send("n1")
    group.append("n1", b"b")
    group.append("n1", b"c")
    group.send("n1")
    letters = group.keep(to="n2", kind="append")
    group.step(letters[0])
    group.store("n2")
    group.send("n2")
    group.deliver(to="n1")
    group.store("n1")
    group.pass_ms(1, "n1")
    group.append("n1", b"d")
    sent = [each for each in group.send("n1") if each.to == "n2" and each.kind == "append"]
    assert [each.message.append.prev_index for each in sent] == [6]


def _probe_anywhere(self, progress, index) -> None:
    progress.probe()
    self._core.engine.set_next_index(progress.node_id, index)
    self._settle(progress)


@rule(
    "progress: a reset stays between what is proved and the end", replaced(Replication, "_probe_from", _probe_anywhere)
)
def _reset_clamped() -> None:
    group = Hand(3)
    group.elect("n1")
    for body in (b"a", b"b", b"c"):
        group.append("n1", body)
    group.settle()
    log = group.logs["n1"]
    log.append(Encoded(b"d"))
    for wanted, rejected in ((1, 90), (95, 96)):
        answer = pb.Acknowledgement(wanted_index=wanted, rejected_prev_index=rejected)
        reply = pb.RaftMessage(term=log.term, acknowledgement=answer, echo_ms=group.now_ms)
        log.step("n2", reply.SerializeToString())
        assert 7 <= log._core.engine.next_index("n2") <= 8


@rule("progress: what is under way is bounded", replaced(Progress, "has_window", lambda self, settings: True))
def _window() -> None:
    group = Hand(3, settings=RaftSettings(window_messages_max=4, message_bytes_max=1))
    group.elect("n1")
    for place in range(50):
        group.append("n1", b"%d" % place)
    assert len([each for each in group.send("n1") if each.to == "n2"]) == 4
    group.settle()
    assert group.logs["n2"].last == group.logs["n1"].last


@rule("progress: what was lost is sent again", replaced(Replication, "_resend", lambda self: None))
def _lost_entry() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send("n1")
    group.mail.clear()
    group.run(1000)
    assert group.logs["n2"].last == group.logs["n1"].last


# --- 6. elections ---------------------------------------------------------------------------------------------------


@rule(
    "elections: a node that was cut off deposes nobody", replaced(Elections, "_ask_for_pre_votes", Elections.campaign)
)
def _pre_vote() -> None:
    group = Hand(3)
    group.elect("n1")
    term = group.logs["n1"].term
    for _ in range(100):
        group.now_ms += 100
        group.logs["n3"].tick(group.now_ms)
        group.store("n3")
        group.send("n3")
        group.mail.clear()
        group.settle(without=("n3",))
    group.run(2000)
    assert group.logs["n1"].is_leader
    assert group.logs["n1"].term == term


def _request(group: Hand, to: str, *, is_transfer: bool = False, is_pre_vote: bool = False) -> list[str]:
    """Send a request for a vote in the next term, with a log that no member can refuse. Returns the answers."""
    log = group.logs[to]
    request = pb.VoteRequest(
        term=log.term + 1, last_index=99, last_term=log.term, is_transfer=is_transfer, is_pre_vote=is_pre_vote
    )
    stamped = log.term if is_pre_vote else log.term + 1
    log.step("n3", pb.RaftMessage(term=stamped, vote_request=request).SerializeToString())
    group.store(to)
    answers = [each.message.vote_response for each in group.send(to) if each.kind == "vote_response"]
    return ["granted" if each.is_granted else "refused" for each in answers]


@rule(
    "elections: a voter that hears a leader votes for nobody else",
    replaced(Elections, "_follows_a_leader", lambda self: False),
)
def _sticky() -> None:
    group = Hand(3)
    group.elect("n1")
    term = group.logs["n2"].term
    assert _request(group, "n2") == []
    assert group.logs["n2"].term == term
    assert _request(group, "n2", is_pre_vote=True) == ["refused"]
    assert _request(group, "n1") == []


def _no_quiet_start(self, core, *, is_first_incarnation, original=Elections.__init__) -> None:
    original(self, core, is_first_incarnation=True)


@rule("elections: no vote for a while after a start", replaced(Elections, "__init__", _no_quiet_start))
def _quiet_start() -> None:
    group = Hand(3)
    assert _request(group, "n2") == []
    group.pass_ms(700, "n2")
    assert _request(group, "n2") == ["granted"]


@rule(
    "elections: a hand-over is no reason to wait",
    replaced(
        Elections,
        "_request",
        lambda self, term, is_pre_vote: pb.VoteRequest(
            term=term,
            is_pre_vote=is_pre_vote,
            last_index=self._core.journal.last[0],
            last_term=self._core.journal.last[1],
        ),
    ),
)
def _transfer() -> None:
    group = Hand(3)
    group.elect("n1")
    assert group.logs["n1"].transfer.begin("n2") == "n2"
    with pytest.raises(NotLeader):
        group.append("n1", b"too late")
    group.settle()
    assert group.logs["n2"].is_leader
    assert group.logs["n1"].leader == "n2"


# --- 7. reads -------------------------------------------------------------------------------------------------------


def _confirm_unasked(self) -> int:
    self._replication.rounds.confirm_now()
    return self._replication.rounds.confirmed


@rule("reads: a leader that is cut off confirms nothing", replaced(RaftLog, "read_round", _confirm_unasked))
def _cut_off_leader() -> None:
    group = Hand(3)
    group.elect("n1")
    number = group.logs["n1"].read_round()
    group.settle(without=("n2", "n3"))
    assert group.logs["n1"].confirmed_round < number
    group.pass_ms(100)
    group.settle()
    assert group.logs["n1"].confirmed_round >= number


@rule(
    "reads: none before an entry of the leader's own term is applied",
    replaced(Core, "has_applied_own_term", property(lambda self: True)),
)
def _own_term() -> None:
    group = _campaigning(3)
    group.deliver(to="n2", kind="vote_request")
    group.store("n2")
    group.send("n2")
    group.deliver(to="n1", kind="vote_response")
    assert group.logs["n1"].leader == "n1"
    assert not group.logs["n1"].is_leader
    with pytest.raises(NotLeader):
        group.logs["n1"].read_round()


def _with_lease() -> Hand:
    group = Hand(3, settings=RaftSettings(lease=True))
    group.elect("n1")
    group.run(300)
    return group


def _reads_at_once(group: Hand) -> bool:
    """Return whether n1 confirms a read now, without a word of any other."""
    log = group.logs["n1"]
    number = log.read_round()
    log.tick(group.now_ms)
    return log.confirmed_round >= number


def _count_from_receipt(self, sender, message, original=Replication.on_acknowledgement) -> None:
    message.echo_ms = self._core.now_ms
    original(self, sender, message)


@rule(
    "reads: a lease counts from when the leader sent", replaced(Replication, "on_acknowledgement", _count_from_receipt)
)
def _lease_from_send() -> None:
    group = _with_lease()
    assert _reads_at_once(group)
    # The answers to this heartbeat come 600 ms late: that is how old the word of the others is then.
    group.settle()
    group.pass_ms(100, "n1")
    group.send("n1")
    for other in ("n2", "n3"):
        group.deliver(to=other)
        group.store(other)
        group.send(other)
    group.pass_ms(600, "n1")
    group.deliver(to="n1", kind="acknowledgement")
    group.pass_ms(200, "n1")
    assert not _reads_at_once(group)


class _NeverVoid:
    def __get__(self, instance, owner) -> bool:
        return False

    def __set__(self, instance, value) -> None:
        pass


@rule("reads: a hand-over ends the lease", replaced(Replication, "is_lease_void", _NeverVoid(), raising=False))
def _lease_after_transfer() -> None:
    group = _with_lease()
    group.logs["n1"].transfer.begin("n2")
    assert not _reads_at_once(group)


# --- 8. proposals ---------------------------------------------------------------------------------------------------


@rule("proposals: only a leader appends", replaced(Core, "check_may_append", lambda self: None))
def _only_leaders_append() -> None:
    group = Hand(3)
    group.elect("n1")
    before = group.logs["n2"].last
    with pytest.raises(NotLeader) as refusal:
        group.append("n2", b"a")
    assert refusal.value.leader == "c:1"
    assert group.logs["n2"].last == before


# --- 9, 10. bytes that PySyncObj would interpret -------------------------------------------------------------------


@rule(
    "commands: PySyncObj looks into none",
    replaced(engine.Record, "__getitem__", lambda self, item: self.entry.payload.encode()[item] or b"\1"),
)
def _opaque_commands() -> None:
    group = Hand(3)
    group.elect("n1")
    for first in range(5):
        group.append("n1", bytes([first]) + b"\x80\x04no pickle")
    group.run(300)
    assert len(group.applied["n2"]) == 6


@rule(
    "commands: none reaches the size that PySyncObj pickles",
    lambda patch: patch.setattr(RaftLog, "_append", _append_any_size),
)
def _oversize() -> None:
    group = Hand(3, settings=RaftSettings(entry_bytes_max=10_000, message_bytes_max=1_000))
    group.elect("n1")
    group.append("n1", b"x" * 9_900)
    with pytest.raises(TooLarge):
        group.append("n1", b"x" * 50_000)
    group.run(300)
    assert group.logs["n2"].last == group.logs["n1"].last == (4, 2)


def _append_any_size(self, kind, payload):
    record = engine.Record(kind, payload, self.last[0] + 1, self.term)
    record.stored(GROUP)
    self._core.engine.append(record)
    return record.entry


# --- 11. membership -------------------------------------------------------------------------------------------------


@rule("membership: one change at a time", replaced(Membership, "_check_last_change_is_committed", lambda self: None))
def _one_change() -> None:
    group = Hand(3)
    group.elect("n1")
    group.logs["n1"].members.add_learner(Member("n4", "host:4"))
    with pytest.raises(Unavailable):
        group.logs["n1"].members.add_learner(Member("n5", "host:5"))
    group.settle()
    group.logs["n1"].members.add_learner(Member("n5", "host:5"))


def _forget_rollback(self, index, original=Journal.truncate) -> None:
    kept = deepcopy((self._configurations, self._registries))
    in_force = self.configuration, self.roster
    original(self, index)
    self._configurations, self._registries = kept
    self.configuration, self.roster = in_force


@rule("membership: a truncated change is rolled back", replaced(Journal, "truncate", _forget_rollback))
def _rollback() -> None:
    group = Hand(3)
    group.elect("n1")
    group.logs["n1"].members.remove("n3")
    group.store("n1")
    group.send_all()
    group.mail.clear()
    assert not group.logs["n1"].roster.is_voter("n3")
    group.elect("n2", without=("n1",))
    group.run(1000)
    assert group.logs["n1"].roster.is_voter("n3")
    assert group.logs["n1"].roster == group.logs["n2"].roster


# --- 12. snapshots --------------------------------------------------------------------------------------------------


def _drop_suffix(self, index, term, configuration, *, was_kept, original=Journal.reset) -> None:
    self.truncate(self.base[0] + 1)
    original(self, index, term, configuration, was_kept=False)


def _behind_the_snapshot() -> tuple[Hand, SnapshotMeta]:
    """Return a group: n2 has entries up to 6, knows only the first to be committed; a snapshot of entry 5 comes."""
    group = Hand(3)
    group.elect("n1")
    for body in (b"a", b"b", b"c"):
        group.append("n1", body)
    group.send("n1")
    group.deliver(to="n2", kind="append")
    group.store("n2")
    assert group.logs["n2"].last == (6, 2)
    return group, SnapshotMeta("s1", 5, 2, group.logs["n1"].roster, 10)


@rule("snapshots: a suffix that agrees stays", replaced(Journal, "reset", _drop_suffix))
def _suffix_kept() -> None:
    group, meta = _behind_the_snapshot()
    log = group.logs["n2"]
    group.install("n2", meta, [group.logs["n1"]._core.journal.record_at(5).taken_entry()])
    assert log.last == (6, 2)
    group.store("n2")
    assert group.start("n2").last == (6, 2)


def _offer_always(self, sender, message) -> None:
    notice = message.snapshot
    meta = SnapshotMeta(notice.snapshot_id, notice.index, notice.term, Roster(), notice.size_bytes)
    self.offer = following.SnapshotOffer(sender, meta)


@rule("snapshots: what is held is not fetched", replaced(Following, "on_snapshot", _offer_always))
def _old_snapshot() -> None:
    group, meta = _behind_the_snapshot()
    group.send("n2")
    group.offer("n2", meta, "n1", group.logs["n1"].term)
    assert group.logs["n2"].window.snapshot_offer is None
    assert group.logs["n2"].durable_commit_index == 5
    group.store("n2")
    assert [each.message.acknowledgement.matched_index for each in group.send("n2")] == [5]


# --- 13. amnesia ----------------------------------------------------------------------------------------------------


def _with_a_lost_end() -> Hand:
    """Return a group in which n1 and n2 have committed entry 5, n2's disk has lost it, and n1 has said so."""
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"everywhere")
    group.settle()
    lost = group.append("n1", b"at two")
    group.settle(without=("n3",))
    del group.disks["n2"].entries[lost.index]
    group.applied["n2"] = [each for each in group.applied["n2"] if each.index < lost.index]
    group.start("n2")
    group.run(300, without=("n3",))
    return group


def _nobody_leads_without_entry_5() -> None:
    group = _with_a_lost_end()
    group.run(20_000, without=("n1",))
    assert not group.logs["n2"].is_leader and not group.logs["n3"].is_leader


@rule("a lost end: we vote for whom counted our word", replaced(Core, "may_vote_for", lambda *_: True))
def _lost_end_votes() -> None:
    _nobody_leads_without_entry_5()


@rule(
    "a lost end: we do not campaign",
    replaced(Elections, "may_campaign", property(lambda self: self._core.may_lead)),
)
def _lost_end_campaigns() -> None:
    _nobody_leads_without_entry_5()


def _vote_without_configuration(self, sender, message) -> None:
    request = message.vote_request
    self._core.engine.request_vote(sender, request.term, request.last_index, request.last_term)


@rule(
    "amnesia: a replica that holds nothing does not vote",
    replaced(Elections, "on_request", _vote_without_configuration),
)
def _empty_voter() -> None:
    group = Hand(3)
    group.add_empty("n2")
    group.pass_ms(5000, "n2")
    assert _request(group, "n2") == []
    assert group.logs["n2"].leader == ""


@rule("amnesia: a replica that holds nothing matches nothing", replaced(Journal, "term_at", lambda self, index: 2))
def _empty_follower() -> None:
    group = Hand(3)
    empty = group.add_empty("n3")
    for index in (0, 1, 2, 3):
        append = pb.AppendEntries(prev_index=index, prev_term=2)
        empty.step("n1", pb.RaftMessage(term=2, append=append).SerializeToString())
    group.store("n3")
    answers = [each.message.acknowledgement for each in group.send("n3")]
    assert [each.WhichOneof("outcome") for each in answers] == ["wanted_index"] * 4


def _apply_from_the_beginning(self, core, original=Applying.__init__) -> None:
    original(self, core)
    core.applied, self.handed_index = core.journal.base, core.journal.base[0]


@rule("amnesia: a restart applies nothing twice", replaced(Applying, "__init__", _apply_from_the_beginning))
def _restart() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.run(300)
    log = group.start("n2")
    group.run(3000)
    indexes = [entry.index for entry in group.applied["n2"]]
    assert indexes == list(range(3, log.last[0] + 1))


def test_a_group_begins_above_what_an_empty_replica_seems_to_hold() -> None:
    from cortado.raft.bootstrap import bootstrap_writes

    with pytest.raises(InvalidArgument):
        bootstrap_writes(GROUP, Member("n1", "host:1"), index=1)
    (record,) = bootstrap_writes(GROUP, Member("n1", "host:1"))
    assert (record.kind, record.index, record.term) == (RecordKind.HARD_STATE, 2, 1)


@pytest.mark.parametrize("name", RULES)
def test_the_rule_holds(name: str) -> None:
    RULES[name].scenario()


@pytest.mark.parametrize("name", RULES)
def test_its_absence_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    RULES[name].without(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, CortadoError)):
        RULES[name].scenario()
