"""One member's claim against committed entries, or against a disk's contents, ends no node; the claim of a majority of
others, on their disks, does."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Encoded, Entry, SnapshotMeta
from cortado.raft.records import KIND_DATA, Record
from cortado.raft.registry import Member
from support.raft_hand import GROUP, Hand


def led(voters: int = 3, *, learners: int = 0) -> Hand:
    """Return a group led by n1, with entry 4 committed everywhere."""
    group = Hand(voters, learners=learners)
    group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    group.run(200)
    return group


def record(index: int, term: int) -> bytes:
    return Record(KIND_DATA, Encoded(b"forged"), index, term).stored(GROUP)


def contradictions(term: int) -> dict[str, dict[str, object]]:
    """Return messages of ``term`` that say that entry 4, of term 2, is another one."""
    behind = pb.AppendEntries(prev_index=3, prev_term=2, records=[record(4, term)])
    long = pb.AppendEntries(prev_index=2, prev_term=1, records=[record(3, 2), record(4, term), record(5, term)])
    place = pb.AppendEntries(prev_index=4, prev_term=1, records=[record(5, term)])
    snapshot = pb.SnapshotNotice(snapshot_id="s", index=4, term=term, size_bytes=1)
    return {
        "an entry": {"append": behind},
        "among others": {"append": long},
        "what it follows": {"append": place},
        "a snapshot": {"snapshot": snapshot},
    }


def known(group: Hand, node_id: str) -> object:
    log = group.logs[node_id]
    offer, disk = log.window.snapshot_offer, group.disks[node_id].copy()
    return log.term, log.last, log.durable_commit_index, log.leader, log.fresh_as_of_ms, offer, disk


def commits(group: Hand, *, without: tuple[str, ...] = ()) -> Entry:
    """Elect a leader, and commit an entry at all others."""
    group.run(5_000, without=without)
    there = {each: log for each, log in group.logs.items() if each not in without}
    (leader,) = [each for each, log in there.items() if log.is_leader]
    entry = group.append(leader, b"goes on")
    group.run(500, without=without)
    assert all(log.durable_commit_index >= entry.index for log in there.values())
    return entry


def find(group: Hand, sender: str, to: str, term: int, **finding: object) -> None:
    group.forge(sender, to, term=term, finding=pb.Finding(**finding))  # type: ignore[arg-type]


# --- another entry where one was committed ---------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [1, 2, 1_000])
@pytest.mark.parametrize("what", contradictions(9))
def test_one_message_that_contradicts_what_was_committed_changes_nothing_and_ends_nobody(what: str, ahead: int) -> None:
    group = led()
    for to in ("n1", "n2"):
        before = known(group, to)
        group.forge("n3", to, term=2 + ahead, **contradictions(2 + ahead)[what])
        assert {(each.to, each.kind) for each in group.send(to)} == {
            (each, "inquiry") for each in group.logs if each != to
        }
        group.store(to)
        assert known(group, to) == before
        assert group.logs[to].refusals.total == 1
        assert "but one of term 2 was committed" in group.logs[to].disputes.open[0]
    commits(group)
    assert group.logs["n1"].term == 2
    assert not any(log.disputes.open for log in group.logs.values()), "n1 and n2 agree"


def test_it_may_come_again_and_again_and_the_others_are_asked_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    group = led()
    asked = 0
    for number in range(1_000):
        group.forge("n3", "n2", term=3 + number, **contradictions(3 + number)["an entry"])
        asked += sum(each.kind == "inquiry" for each in group.send("n2"))
    assert asked == 2
    assert group.logs["n2"].refusals.total == 1_000
    assert len(caplog.records) <= 10
    commits(group)


def test_whoever_contradicted_what_was_committed_does_not_lead_in_that_term_and_may_in_the_next() -> None:
    group = led()
    group.forge("n3", "n2", term=3, **contradictions(3)["an entry"])
    group.forge("n3", "n2", term=3, heartbeat=pb.Heartbeat(round=1))
    group.forge("n3", "n2", term=3, append=pb.AppendEntries(prev_index=4, prev_term=2, records=[record(5, 3)]))
    assert (group.logs["n2"].term, group.logs["n2"].last, group.logs["n2"].leader) == (2, (4, 2), "n1")
    group.forge("n3", "n2", term=4, heartbeat=pb.Heartbeat(round=1))
    assert (group.logs["n2"].term, group.logs["n2"].leader) == (4, "n3")


@pytest.mark.parametrize("voters", [3, 5])
def test_a_replica_ends_where_a_majority_of_others_has_committed_something_else(voters: int) -> None:
    group = led(voters)
    group.forge("n3", "n2", term=3, **contradictions(3)["an entry"])
    other = {"index": 4, "is_committed": True, "entry_term": 3}
    find(group, "n3", "n2", 3, **other)
    find(group, "n3", "n2", 3, **other)
    if voters == 5:
        find(group, "n4", "n2", 3, **other)
    said = "entry 4 is one of term 3, but one of term 2 was committed, as .*n3.* confirm: replace this node"
    with pytest.raises(DataLoss, match=said):
        find(group, "n1", "n2", 3, **other)


def test_findings_of_learners_and_of_other_entries_do_not_count() -> None:
    group = led(3, learners=2)
    group.forge("n3", "n2", term=3, **contradictions(3)["an entry"])
    find(group, "n3", "n2", 3, index=4, is_committed=True, entry_term=3)
    for sender in ("n4", "n5"):
        find(group, sender, "n2", 3, index=4, is_committed=True, entry_term=3)
    find(group, "n1", "n2", 3, index=3, is_committed=True, entry_term=3)
    find(group, "n1", "n2", 3, index=4, is_committed=True, entry_term=7)
    assert group.logs["n2"].disputes.open


def test_an_inquiry_is_answered_from_what_is_committed_and_changes_no_term() -> None:
    group = led()
    group.append("n1", b"b")
    group.send_all()
    group.deliver(to="n2", kind="append")
    group.store("n2")
    group.mail.clear()
    group.outstanding.clear()
    for index, is_committed, entry_term in ((4, True, 2), (5, False, 0), (1, True, 0)):
        group.forge("n3", "n2", term=90, inquiry=pb.Inquiry(index=index))
        (letter,) = [each for each in group.send("n2") if each.kind == "finding"]
        finding = letter.message.finding
        assert (finding.is_committed, finding.entry_term) == (is_committed, entry_term)
        assert (letter.to, letter.message.term, finding.leader, finding.voted_for) == ("n3", 2, "n1", "n1")
    for index in (0, (1 << 62) + 1):
        group.forge("n3", "n2", term=2, inquiry=pb.Inquiry(index=index))
        assert group.send("n2") == []


def test_a_term_that_this_replica_led_has_no_other_leader() -> None:
    """Also once it leads no more, and so knows of no leader in that term."""
    group = led()
    entry = group.append("n1", b"on one disk")
    group.store("n1")
    group.run(5_000, without=("n2", "n3"))
    log = group.logs["n1"]
    assert (log.term, log.is_leader, log.leader, log.last[0]) == (2, False, "", entry.index)
    group.forge("n3", "n1", term=2, heartbeat=pb.Heartbeat(commit_index=entry.index, round=1))
    group.store("n1")
    assert (log.durable_commit_index, log.leader) == (entry.index - 1, "")
    assert log.refusals.total == 1
    commits(group)


# --- the end of a log that an earlier life acknowledged ---------------------------------------------------------------


def lost_end(*, third_has_it: bool) -> Hand:
    """Return a group in which n1 and n2 committed entry 5, and n2's disk has lost it; n3 has it, or not. n2 began
    anew."""
    group = led()
    entry = group.append("n1", b"lost")
    group.settle(without=() if third_has_it else ("n3",))
    assert group.logs["n1"].durable_commit_index == entry.index == 5
    del group.disks["n2"].entries[entry.index]
    group.applied["n2"] = [each for each in group.applied["n2"] if each.index < entry.index]
    group.start("n2")
    return group


@pytest.mark.parametrize("ahead", [1, 10**6])
@pytest.mark.parametrize("led_first", [True, False])
def test_a_member_that_does_not_lead_cannot_say_that_something_was_acknowledged_to_it(
    ahead: int, led_first: bool
) -> None:
    group = led()
    log = group.start("n2")
    if led_first:
        group.run(200)
    group.forge("n3", "n2", term=2, heartbeat=pb.Heartbeat(commit_index=4 + ahead, round=1))
    assert (log.term, log.last, log.durable_commit_index) == (2, (4, 2), 4)
    assert bool(log.disputes.open) is not led_first
    group.run(100)
    assert not log.disputes.open
    commits(group)
    assert log.term == 2
    commits(group, without=("n3",))
    group.elect("n2", without=("n1",))


def test_that_an_entry_is_committed_does_not_show_that_we_acknowledged_it_to_whom_says_so() -> None:
    group = led()
    entry = group.append("n1", b"not at n2")
    group.settle(without=("n2",))
    log = group.start("n2")
    group.forge("n3", "n2", term=2, heartbeat=pb.Heartbeat(commit_index=entry.index, round=1))
    held = {"index": entry.index, "last_index": entry.index}
    find(group, "n3", "n2", 2, **held, is_committed=True, leader="n3", voted_for="n3")
    assert log.disputes.open
    group.send("n2")
    group.deliver(to="n1", kind="inquiry")
    group.send("n1")
    assert group.deliver(kind="finding") == 1
    assert not log.disputes.open, "n1 has committed it, and leads itself"
    commits(group)


def test_one_message_to_each_of_those_that_restarted_in_a_term_does_not_keep_them_from_electing() -> None:
    group = led()
    for each in ("n1", "n2"):
        group.start(each)
        group.forge("n3", each, term=2, heartbeat=pb.Heartbeat(commit_index=10**6, round=1))
        assert group.logs[each].disputes.open
    group.run(300)
    assert not any(log.disputes.open for log in group.logs.values()), "n3 did not vote for itself in term 2"
    commits(group, without=("n3",))


@pytest.mark.parametrize("index", [6, 10**6])
def test_what_a_leader_called_committed_and_does_not_hold_after_its_own_restart_was_wrong(index: int) -> None:
    group = led()
    entry = group.append("n1", b"on two disks")
    group.settle()
    for each in ("n2", "n3"):
        group.start(each)
        group.forge("n1", each, term=2, heartbeat=pb.Heartbeat(commit_index=index, round=1))
    # Its log is shorter than theirs, so that it is not elected either.
    del group.disks["n1"].entries[entry.index]
    group.applied["n1"] = [each for each in group.applied["n1"] if each.index < entry.index]
    group.start("n1")
    assert all(group.logs[each].disputes.open for each in ("n2", "n3"))
    commits(group)
    assert not any(log.disputes.open for log in group.logs.values())


def test_a_leader_that_restarted_and_holds_what_it_called_committed_is_waited_for() -> None:
    group = lost_end(third_has_it=False)
    log = group.logs["n2"]
    group.run(300, without=("n3",))
    find(group, "n1", "n2", 2, index=5, is_committed=False, voted_for="n1", last_index=5)
    find(group, "n3", "n2", 2, index=5, is_committed=False, voted_for="n1", last_index=4)
    assert log.disputes.open, "others may lack it"
    find(group, "n1", "n2", 2, index=5, is_committed=False, voted_for="n1", last_index=4)
    assert not log.disputes.open


def test_a_lost_end_is_confirmed_by_those_that_hold_it_and_follow_the_leader() -> None:
    group = lost_end(third_has_it=True)
    said = "ends at entry 4, but entry 5 was acknowledged, as n1 and n3 confirm: replace this node"
    with pytest.raises(DataLoss, match=said):
        group.run(1_000)


def test_a_lost_end_that_a_snapshot_brings_again_ends_nobody() -> None:
    group = lost_end(third_has_it=True)
    log, roster = group.logs["n2"], group.logs["n1"].roster
    group.forge("n1", "n2", term=2, heartbeat=pb.Heartbeat(commit_index=5, round=1))
    assert log.disputes.open
    # Its bytes were under way before.
    group.install("n2", SnapshotMeta("s", 5, 2, roster, 1), group.applied["n1"][:5])
    assert log.last == (5, 2)
    group.run(1_000)
    assert not log.disputes.open
    entry = commits(group)
    assert (log.term, log.last[0]) == (2, entry.index), "its leader is heard again, in the same term"


def test_voters_that_joined_in_a_term_do_not_say_that_nobody_leads_it() -> None:
    group = led(4)
    entry = group.append("n1", b"lost")
    group.settle()
    del group.disks["n2"].entries[entry.index]
    group.applied["n2"] = [each for each in group.applied["n2"] if each.index < entry.index]
    log = group.start("n2")
    group.forge("n1", "n2", term=2, heartbeat=pb.Heartbeat(commit_index=5, round=1))
    for each in ("n3", "n4"):
        # They follow its leader, and came too late to vote for it.
        find(group, each, "n2", 2, index=5, is_committed=True, entry_term=2, leader="n1", last_index=5)
    assert log.disputes.open
    with pytest.raises(DataLoss, match="as n1 and n3 and n4 confirm"):
        find(group, "n1", "n2", 2, index=5, is_committed=True, entry_term=2, leader="n1", voted_for="n1", last_index=5)


def test_a_lost_end_that_nobody_else_has_is_not_voted_away() -> None:
    group = lost_end(third_has_it=False)
    log = group.logs["n2"]
    group.run(300, without=("n3",))
    assert "n1: the log ends at entry 4, but entry 5 was acknowledged; 1 of 2 others confirm it" in log.disputes.open[0]
    # n1 is gone. Entry 5 was answered, and n3 does not have it.
    group.run(20_000, without=("n1",))
    assert not any(group.logs[each].is_leader for each in ("n2", "n3"))
    assert log.election_counts.campaigns == log.election_counts.votes_given == 0
    # n1 comes back, and leads a later term.
    entry = commits(group)
    assert not log.disputes.open
    assert group.disks["n3"].entries[5] == group.disks["n1"].entries[5]
    assert log.last[0] >= entry.index


def test_a_lost_end_does_not_keep_its_leader_from_being_elected_again() -> None:
    group = lost_end(third_has_it=False)
    group.run(300, without=("n3",))
    assert group.logs["n2"].disputes.open
    commits(group, without=("n3",))
    assert not group.logs["n2"].disputes.open
    assert group.logs["n2"].window.term_at(5) == 2


@pytest.mark.parametrize(
    ("candidate", "last_term", "is_granted"), [("n1", 2, True), ("n3", 2, False), ("n3", 3, True), ("n3", 1, False)]
)
@pytest.mark.parametrize("is_pre_vote", [True, False])
def test_in_doubt_a_vote_goes_to_the_leader_that_counted_us_or_to_a_later_log(
    candidate: str, last_term: int, is_pre_vote: bool, is_granted: bool
) -> None:
    group = lost_end(third_has_it=False)
    log = group.logs["n2"]
    group.run(300, without=("n3",))
    group.pass_ms(5_000, "n2")
    group.store("n2")
    group.send("n2")
    term = 8
    asks = {"last_index": 9, "last_term": last_term, "is_pre_vote": is_pre_vote, "term": term + is_pre_vote}
    group.forge(candidate, "n2", term=term, vote_request=pb.VoteRequest(**asks))
    group.store("n2")
    answers = [each.message.vote_response for each in group.send("n2") if each.kind == "vote_response"]
    assert any(each.is_granted for each in answers) is is_granted
    assert log.term == term
    group.forge(candidate, "n2", term=term, timeout_now=pb.TimeoutNow())
    assert log.election_counts.campaigns == 0


@pytest.mark.parametrize("ahead", [1, 10**6])
def test_a_leader_that_was_wrong_once_is_followed_again_in_its_term(ahead: int) -> None:
    group = led()
    log = group.start("n2")
    group.forge("n1", "n2", term=2, heartbeat=pb.Heartbeat(commit_index=4 + ahead, round=1))
    assert log.disputes.open
    group.run(300)
    assert not log.disputes.open, "n1 leads, and has not committed it"
    commits(group)
    assert (log.term, log.leader) == (2, "n1")
    group.forge("n1", "n2", term=2, **contradictions(3)["what it follows"])
    assert log.refusals.total > 1
    commits(group)
    assert (log.term, log.leader) == (2, "n1")


def test_a_leader_that_contradicts_what_was_committed_again_and_again_is_replaced() -> None:
    group = led()
    for _ in range(100):
        for to in ("n2", "n3"):
            append = pb.AppendEntries(prev_index=4, prev_term=1)
            group.forge("n1", to, term=group.logs["n1"].term, append=append)
        group.run(50)
        if not group.logs["n1"].is_leader:
            break
    else:
        raise AssertionError("n1 leads on")
    commits(group)


def test_a_voter_alone_with_learners_takes_no_word_of_theirs() -> None:
    group = Hand(1, learners=1)
    group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    log = group.start("n1")
    group.forge("n2", "n1", term=2, heartbeat=pb.Heartbeat(commit_index=10**6, round=1))
    assert (log.refusals.total, list(log.disputes.open)) == (1, [])
    group.run(1_000)
    assert log.is_leader


def test_a_replica_without_a_log_goes_on_after_a_wrong_word() -> None:
    group = led()
    group.logs["n1"].members.add_learner(Member("n4", "host:4"))
    group.settle()
    log = group.add_empty("n4")
    group.run(200)
    # As after a restart: it holds a term, and nothing else.
    log._core.term_at_start = log.term
    group.forge("n3", "n4", term=2, heartbeat=pb.Heartbeat(commit_index=10**6, round=1))
    assert (log.refusals.total, list(log.disputes.open)) == (1, [])
    group.run(200)
    assert (log.term, log.leader) == (2, "n1")


def test_a_dispute_that_cannot_be_settled_is_forgotten_once_its_member_is_quiet() -> None:
    group = led()
    group.forge("n3", "n2", term=3, **contradictions(3)["an entry"])
    log = group.logs["n2"]
    # No other member answers.
    group.run(2_000, without=("n2",))
    group.pass_ms(1_000, "n2")
    assert log.disputes.open
    group.pass_ms(10 * group.settings.election_ms_max, "n2")
    assert not log.disputes.open
    assert log._core.now_ms < log.disputes.due_ms


def test_a_learner_asks_too_and_is_ended_by_voters_alone() -> None:
    group = led(3, learners=1)
    group.forge("n3", "n4", term=3, **contradictions(3)["an entry"])
    assert {each.to for each in group.send("n4") if each.kind == "inquiry"} == {"n1", "n2", "n3"}
    find(group, "n3", "n4", 3, index=4, is_committed=True, entry_term=3)
    with pytest.raises(DataLoss, match="as n2 and n3 confirm"):
        find(group, "n2", "n4", 3, index=4, is_committed=True, entry_term=3)


def test_an_entry_of_no_term_is_refused_and_nobody_is_asked() -> None:
    group = led()
    log = group.logs["n2"]
    group.forge("n3", "n2", term=2, append=pb.AppendEntries(prev_index=4, prev_term=0, records=[record(5, 2)]))
    assert (log.refusals.total, list(log.disputes.open)) == (1, [])
    commits(group)
