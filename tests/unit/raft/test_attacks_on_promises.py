"""Executions constructed to break the promises of a group of replicas: each must fail to."""

from __future__ import annotations

import pytest

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Encoded, Entry, Nothing, SnapshotMeta
from cortado.raft.records import KIND_DATA, Record
from cortado.raft.registry import Member
from support.raft_hand import GROUP, Hand

# --- how fresh a replica is, over a restart of its host --------------------------------------------------------------


def _rebooted(group: Hand, node_id: str, now_ms: float) -> None:
    """Start the process again, on a host whose monotonic clock starts again, too."""
    before_ms, group.now_ms = group.now_ms, now_ms
    group.start(node_id)
    group.now_ms = before_ms


def test_a_time_of_an_earlier_boot_does_not_make_a_replica_fresh() -> None:
    group = Hand(3, now_ms=10_000_000.0)
    group.elect("n1")
    group.run(500)
    assert group.logs["n2"].fresh_as_of_ms is not None
    _rebooted(group, "n2", 5_000.0)
    # The leader gives back the numbers of the earlier incarnation.
    group.pass_ms(100, "n1", "n3")
    group.send("n1")
    (letter,) = [each for each in group.keep(to="n2") if each.message.fresh_index]
    assert letter.message.echo_ms > 9_000_000
    group.step(letter)
    fresh_ms = group.logs["n2"].fresh_as_of_ms
    assert fresh_ms is None or fresh_ms <= 5_000.0


# --- a snapshot of a term that was not entered yet -------------------------------------------------------------------


def test_a_term_never_falls_behind_that_of_an_installed_snapshot() -> None:
    group = Hand(3)
    log = group.logs["n2"]
    group.install("n2", SnapshotMeta("s", 50, 5, log.roster, 1), [Entry(50, 5, Nothing())])
    assert log.term == 5
    # A candidate of long ago comes late. Its term must not be stored over the log's.
    group.now_ms += 5_000
    log.tick(group.now_ms)
    late = pb.VoteRequest(term=4, last_index=2, last_term=1)
    log.step("n3", pb.RaftMessage(term=4, vote_request=late).SerializeToString())
    group.sync("n2")
    assert group.disks["n2"].state.term >= 5


# --- a group that shrinks --------------------------------------------------------------------------------------------


def test_a_leader_that_dies_while_it_removes_the_only_other_voter_comes_back() -> None:
    group = Hand(2)
    group.elect("n1")
    group.settle()
    group.logs["n1"].members.remove("n2")
    group.pass_ms(0, "n1")
    group.send("n1")
    group.deliver(to="n2")
    group.store("n2")
    group.mail.clear()
    # Its own disk never heard of the change.
    group.start("n1")
    group.run(20_000)
    assert any(log.is_leader for log in group.logs.values())


def test_a_voter_that_is_removed_holds_nobody_up_where_the_leader_dies_for_good() -> None:
    group = Hand(3)
    group.elect("n1")
    group.settle()
    group.logs["n1"].members.remove("n3")
    group.pass_ms(0, "n1")
    group.send("n1")
    group.store("n1")
    group.send("n1")
    group.deliver(to="n3")
    group.store("n3")
    # It reached the one that leaves at most, and not the one that stays.
    group.mail.clear()
    del group.logs["n1"]
    group.run(20_000)
    assert any(log.is_leader for log in group.logs.values())


# --- replicas that should not lead -----------------------------------------------------------------------------------


def test_a_candidate_that_may_lead_no_longer_does_not_win() -> None:
    """Its data turned out to be damaged after it had asked for votes: it cannot store that it leads."""
    group = Hand(3)
    group.run(200)
    group.now_ms += 2_000
    candidate = group.logs["n2"]
    for node_id in ("n1", "n3"):
        group.logs[node_id].may_lead = False
    for _ in range(100):
        group.pass_ms(50)
        group.send_all()
        group.deliver(kind="vote_request")
        for node_id in group.logs:
            group.store(node_id)
        group.send_all()
        votes = [each for each in group.keep(to="n2", kind="vote_response") if each.message.vote_response.is_granted]
        real = [each for each in votes if not each.message.vote_response.is_pre_vote]
        if real:
            break
        for letter in votes:
            group.step(letter)
    candidate.may_lead = False
    for letter in real:
        group.step(letter)
    assert candidate.leader != "n2"


def test_a_pre_vote_that_comes_after_its_promotion_was_taken_back_lets_no_learner_campaign() -> None:
    """It asked as a voter; then a new leader's log took the entry's place that had made it one."""
    group = Hand(3, learners=1)
    term = group.elect("n1").term
    learner = group.logs["n4"]
    learner._elections._ask_for_pre_votes()
    for voter in ("n2", "n3"):
        granted = pb.VoteResponse(term=term + 1, is_pre_vote=True, is_granted=True)
        group.forge(voter, "n4", term=term, vote_response=granted)
    assert learner.term == term


# --- held back messages ----------------------------------------------------------------------------------------------


def test_answers_that_wait_for_a_full_disk_are_bounded() -> None:
    """A leader asks again and again, for days."""
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.send("n1")
    (letter,) = [each for each in group.keep(to="n2", kind="append") if each.message.append.records]
    for _ in range(20_000):
        group.step(letter)
    group.store("n2")
    assert 0 < len(group.send("n2")) <= 5_000


# --- a node id that is used again ------------------------------------------------------------------------------------


def test_an_acknowledgement_of_who_was_removed_does_not_count_for_who_comes_after() -> None:
    """An id is used again only if no data directory was bound to it. Something may have answered under it anyway."""
    group = Hand(3)
    leader = group.elect("n1")
    group.settle()
    leader.members.add_learner(Member("n4", "host:4"))
    group.settle()
    group.add_empty("n4")
    meta = SnapshotMeta("s", *leader.applied, leader.roster, 1)
    group.install("n4", meta, [Entry(*leader.applied, Nothing())])
    group.run(500)
    group.append("n1", b"a")
    group.send("n1")
    group.deliver(to="n4")
    group.store("n4")
    group.send("n4")
    late = group.keep(sender="n4", kind="acknowledgement")
    assert any(each.message.acknowledgement.matched_index == leader.last[0] for each in late)
    group.settle(without=("n4",))
    leader.members.remove("n4")
    group.run(500, without=("n4",))
    leader.members.add_learner(Member("n4", "host:44"))
    group.run(500, without=("n4",))
    leader.members.bind(Member("n4", "host:44", "another-disk", "for-clients:44"))
    group.run(500, without=("n4",))
    for letter in late:
        group.step(letter)
    (progress,) = [each for each in leader.progress if each.node_id == "n4"]
    assert progress.match_index == 0


# --- changes without room --------------------------------------------------------------------------------------------


def test_what_was_decided_by_two_is_not_taken_back_by_the_one_that_is_left() -> None:
    """It is stored and answered, and not applied yet: the last one must not take it for its own."""
    group = Hand(2)
    leader = group.elect("n1")
    entry = group.append("n1", b"a")
    group.send("n1")
    group.sync("n1")
    group.deliver(to="n2")
    group.store("n2")
    group.send("n2")
    group.deliver(to="n1")
    leader.tick(group.now_ms)
    assert (leader.durable_commit_index, leader.applying.backlog) == (entry.index, 1)
    leader.members.remove("n2")
    leader.tick(group.now_ms)
    assert leader.withdraw(group.take("n1")) is False
    group.sync("n1")
    group.append("n1", b"alone")
    leader.tick(group.now_ms)
    assert leader.withdraw(group.take("n1")) is True
    group.outstanding.clear()
    # The two entries of the removal stand.
    assert leader.durable_commit_index == leader.last[0] == entry.index + 2
    group.store("n1")
    assert [each.payload.encode() for each in group.applied["n1"]][1] == b"a"


# --- leadership lost with entries counted alone ----------------------------------------------------------------------


def _alone_with_entries_that_it_counted(is_handed_to_the_disk: bool) -> tuple[Hand, int]:
    """Return a group in which n1 removed n2, and has stored that; it has not stored its later entries, appended
    alone."""
    group = Hand(2)
    group.elect("n1")
    log = group.logs["n1"]
    log.members.remove("n2")
    group.pass_ms(1, "n1")
    group.sync("n1")
    committed = log.durable_commit_index
    assert committed == log.last[0]
    group.append("n1", b"a")
    group.append("n1", b"b")
    group.pass_ms(1, "n1")
    assert log._core.journal.commit_index == committed + 2
    if is_handed_to_the_disk:
        group.take("n1")
    log._core.engine.step_down(log.term + 1)
    log._changed()
    return group, committed


@pytest.mark.parametrize("is_handed_to_the_disk", [False, True])
def test_what_was_counted_alone_and_is_not_stored_is_not_applied_once_leadership_is_lost(
    is_handed_to_the_disk: bool,
) -> None:
    group, committed = _alone_with_entries_that_it_counted(is_handed_to_the_disk)
    log = group.logs["n1"]
    assert not log.is_leader
    assert log.durable_commit_index == committed
    assert group.apply("n1")
    assert log.applied[0] == committed
    # Even its own disk does not make it so: only a leader of a later term does, itself again.
    group.sync("n1")
    assert log.durable_commit_index == committed
    assert not group.apply("n1")
    group.run(3_000, without=("n2",))
    assert [each.payload.encode() for each in group.applied["n1"]][-3:] == [b"a", b"b", b""]


def test_what_was_counted_alone_and_stored_is_committed_after_a_restart() -> None:
    group, committed = _alone_with_entries_that_it_counted(True)
    group.sync("n1")
    assert group.start("n1").durable_commit_index == committed + 2


def test_what_was_counted_alone_may_be_replaced_where_it_is_not_stored() -> None:
    group, committed = _alone_with_entries_that_it_counted(False)
    log = group.logs["n1"]
    other = Record(KIND_DATA, Encoded(b"other"), committed + 1, log.term).stored(GROUP)
    append = pb.AppendEntries(prev_index=committed, prev_term=2, commit_index=committed + 1, records=[other])
    log.standing.believe("n2", (log.term, committed + 9))
    group.forge("n2", "n1", term=log.term, append=append)
    assert log.last == (committed + 1, log.term)
    assert log.durable_commit_index == committed, "its own log files do not have it"
    group.store("n1")
    assert group.applied["n1"][-1].payload.encode() == b"other"
    assert group.disks["n1"].last == log.last
