"""The permitted senders of a replica, and the permitted numbers: all else changes nothing, in memory or on the disk."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss, InvalidArgument
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.bootstrap import force_single_writes, reset_term_writes
from cortado.raft.bounds import TERM_AHEAD_MAX, TERM_MAX
from cortado.raft.log import Encoded
from cortado.raft.records import KIND_DATA, HardState, Record
from cortado.raft.registry import Member, Roster
from cortado.raft.standing import Word, vouched_position
from support.raft_hand import GROUP, Hand, members

UINT64_MAX = (1 << 64) - 1


def led() -> Hand:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    return group


def record(index: int, term: int, body: bytes = b"forged") -> bytes:
    return Record(KIND_DATA, Encoded(body), index, term).stored(GROUP)


def what_is_known(group: Hand, node_id: str) -> object:
    log = group.logs[node_id]
    offer, disk = log.window.snapshot_offer, group.disks[node_id].copy()
    return log.term, log.last, log.durable_commit_index, log.leader, offer, disk


def assert_untouched(group: Hand, sender: str, to: str = "n2", **message: object) -> None:
    """Check that a message of ``sender`` changes nothing at ``to``, and is not answered."""
    before = what_is_known(group, to)
    group.forge(sender, to, **message)
    assert group.send(to) == []
    group.store(to)
    assert what_is_known(group, to) == before


def messages(term: int, last: tuple[int, int]) -> list[dict[str, object]]:
    """Return one message of each kind, such as a leader or a candidate of ``term`` would send behind ``last``."""
    index, last_term = last
    append = pb.AppendEntries(prev_index=index, prev_term=last_term, records=[record(index + 1, term)])
    asks = {"last_index": index + 100, "last_term": term}
    return [
        {"term": term, "append": append},
        {"term": term, "heartbeat": pb.Heartbeat(round=1, commit_index=index)},
        {"term": term, "vote_request": pb.VoteRequest(term=term, is_transfer=True, **asks)},
        {"term": term, "vote_request": pb.VoteRequest(term=term + 1, is_pre_vote=True, is_transfer=True, **asks)},
        {"term": term, "vote_response": pb.VoteResponse(term=term, is_granted=True)},
        {"term": term, "timeout_now": pb.TimeoutNow()},
        {"term": term, "acknowledgement": pb.Acknowledgement(matched_index=index)},
        {"term": term, "snapshot": pb.SnapshotNotice(snapshot_id="s", index=index + 50, term=term, size_bytes=1)},
    ]


@pytest.mark.parametrize("kind", range(8))
@pytest.mark.parametrize("ahead", [0, 1, 1000])
def test_a_stranger_changes_nothing_whatever_it_sends(kind: int, ahead: int) -> None:
    group = led()
    group.run(2_000, without=("n2",))
    term, last = group.logs["n2"].term, group.logs["n2"].last
    assert_untouched(group, "n9", **messages(term + ahead, last)[kind])


def test_a_removed_member_changes_nothing_whatever_it_sends() -> None:
    group = led()
    group.logs["n1"].members.remove("n3")
    group.settle()
    group.run(200)
    for message in messages(group.logs["n2"].term + 1000, group.logs["n2"].last):
        assert_untouched(group, "n3", **message)


def test_a_member_whose_removal_was_never_decided_is_heard_and_the_removal_is_taken_back() -> None:
    group = led()
    group.logs["n1"].members.remove("n3")
    group.store("n1")  # On the disk of n1 alone; neither n2 nor n3 ever hears of it.
    group.outstanding.clear()
    group.mail.clear()
    del group.logs["n1"]
    group.elect("n3")
    log = group.start("n1")
    assert log.roster.member("n3") is None
    # Two of three live, n1 and n3: they must be able to go on.
    group.run(2_000, without=("n2",))
    assert log.roster.is_voter("n3")
    assert log.leader == "n3"
    entry = group.append("n3", b"goes on")
    group.settle(without=("n2",))
    assert group.logs["n3"].durable_commit_index == entry.index


def test_a_leader_that_was_added_meanwhile_is_heard_once_members_vouched_for_it() -> None:
    group = Hand(3)
    log = group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    log.members.add_learner(Member("n4", "host:4"))
    group.settle(without=("n3",))
    log.members.bind(Member("n4", "host:4", "s4", "for-clients:4"))
    group.settle(without=("n3",))
    group.joined["n4"] = log.roster
    group.disks["n4"] = group.disks["n2"].copy()
    group.applied["n4"] = list(group.applied["n2"])
    group.start("n4")
    group.run(500, without=("n3",))
    log.members.promote("n4")
    group.run(500, without=("n3",))
    group.mail.clear()
    group.elect("n4", without=("n3",))
    late = group.logs["n3"]
    before = late.last
    group.run(1_000)
    assert late.last == before, "n4 is a stranger to n3"
    # n2's knowledge of it.
    words = [Word(group.logs["n2"].standing.member("n4") is not None, group.logs["n2"].last[::-1])]
    position = vouched_position(words, late.last[::-1])
    assert position is not None
    late.standing.believe("n4", position)
    group.run(1_000)
    assert late.roster.is_voter("n4")
    assert late.last == group.logs["n4"].last
    assert not late.standing.is_believed("n4"), "its own configuration answers now"


def test_a_belief_ends_where_our_log_is_as_long_as_the_vouchers_was() -> None:
    group = led()
    log = group.logs["n2"]
    index, term = log.last
    log.standing.believe("n9", (term, index + 2))
    group.append("n1", b"b")
    group.settle()
    assert log.standing.is_believed("n9")
    group.append("n1", b"c")
    group.settle()
    assert not log.standing.is_believed("n9")
    assert_untouched(group, "n9", term=log.term + 1, heartbeat=pb.Heartbeat(round=1))


@pytest.mark.parametrize(
    ("words", "believed"),
    [
        ([], None),
        ([Word(True, (3, 11))], (3, 11)),
        ([Word(True, (4, 2)), Word(False, (3, 99))], (4, 2)),
        # A member that is further knows of the removal.
        ([Word(True, (3, 11)), Word(False, (3, 12))], None),
        ([Word(True, (3, 12)), Word(False, (3, 12))], None),
        # A member that is no further than we are knows no more than our own configuration.
        ([Word(True, (3, 10))], None),
        ([Word(True, (2, 500))], None),
    ],
)
def test_the_word_of_the_member_that_is_furthest_counts(words: list[Word], believed: tuple[int, int] | None) -> None:
    assert vouched_position(words, (3, 10)) == believed


def test_an_empty_replica_hears_who_let_it_in_and_nobody_else() -> None:
    group = led()
    group.logs["n1"].members.add_learner(Member("n4", "host:4"))
    group.settle()
    log = group.add_empty("n4")
    for message in messages(TERM_AHEAD_MAX, (0, 0)):
        assert_untouched(group, "n9", "n4", **message)
    group.run(1_000)
    assert (log.leader, log.term) == ("n1", group.logs["n1"].term)


@pytest.mark.parametrize("kind", range(8))
@pytest.mark.parametrize("term", [UINT64_MAX, TERM_MAX + 1, "ahead"])
def test_a_term_that_no_elections_reach_is_not_taken_from_a_member_either(kind: int, term: int | str) -> None:
    group = led()
    group.run(2_000, without=("n2",))
    ours = group.logs["n2"].term
    forged = ours + TERM_AHEAD_MAX + 1 if isinstance(term, str) else term
    message = messages(min(forged, UINT64_MAX - 1), group.logs["n2"].last)[kind]
    assert_untouched(group, "n3", **{**message, "term": forged})
    assert group.start("n2").term == ours


def test_a_member_that_was_away_for_very_many_elections_comes_back() -> None:
    group = led()
    log = group.logs["n2"]
    group.forge("n3", "n2", term=log.term + TERM_AHEAD_MAX, heartbeat=pb.Heartbeat(round=1))
    assert (log.term, log.leader) == (2 + TERM_AHEAD_MAX, "n3")


APPEND = {"prev_index": 4, "prev_term": 2}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"append": pb.AppendEntries(prev_index=UINT64_MAX, records=[b"xxxxx"])}, id="prev_index"),
        pytest.param({"append": pb.AppendEntries(prev_index=4, prev_term=UINT64_MAX)}, id="prev_term"),
        pytest.param({"append": pb.AppendEntries(**APPEND, records=[record(5, TERM_MAX)])}, id="an entry's term"),
        pytest.param({"append": pb.AppendEntries(**APPEND, records=[record(5, 1)])}, id="a term that falls"),
        pytest.param({"heartbeat": pb.Heartbeat(round=1), "sent_ms": float("nan")}, id="sent_ms"),
        pytest.param({"heartbeat": pb.Heartbeat(round=1), "echo_ms": float("inf")}, id="echo_ms"),
        pytest.param({"snapshot": pb.SnapshotNotice(index=UINT64_MAX, term=2)}, id="a snapshot's index"),
        pytest.param({"snapshot": pb.SnapshotNotice(index=9, term=UINT64_MAX)}, id="a snapshot's term"),
        pytest.param({"snapshot": pb.SnapshotNotice(index=9, term=2, snapshot_id="x" * 200)}, id="a snapshot's name"),
        pytest.param({"snapshot": pb.SnapshotNotice(index=9, term=2, size_bytes=1 << 60)}, id="a snapshot's size"),
        pytest.param({"vote_request": pb.VoteRequest(term=UINT64_MAX, is_transfer=True)}, id="a vote's term"),
        pytest.param({"vote_request": pb.VoteRequest(term=2, last_index=UINT64_MAX)}, id="a vote's last index"),
        pytest.param({"vote_request": pb.VoteRequest(term=2, last_term=UINT64_MAX)}, id="a vote's last term"),
    ],
)
def test_a_number_out_of_bounds_is_refused_before_anything_is_changed(message: dict[str, object]) -> None:
    group = led()
    assert_untouched(group, "n1", **{"term": 2, **message})


def test_a_time_that_has_not_come_says_nothing_of_how_fresh_a_replica_is() -> None:
    group = led()
    group.run(500)
    log = group.logs["n2"]
    before = log.fresh_as_of_ms
    assert before is not None
    incarnation = log._core.incarnation
    group.forge(
        "n1",
        "n2",
        term=2,
        heartbeat=pb.Heartbeat(),
        echo_ms=group.now_ms + 60_000,
        fresh_index=1,
        incarnation=incarnation,
    )
    assert log.fresh_as_of_ms == before


# --- directories that hold such a term -----------------------------------------------------------------------------


def hard_state(group: Hand, node_id: str, term: int) -> None:
    """Store a hard state as a build without bounds would have."""
    configuration = Roster.of(members(3))
    group.disks[node_id].write([HardState(term, "n3", 2, 1, configuration).log_record(GROUP)])


def test_a_directory_with_a_term_out_of_bounds_is_refused_with_the_command_that_mends_it() -> None:
    group = led()
    hard_state(group, "n2", UINT64_MAX)
    said = f"term {UINT64_MAX} is above {TERM_MAX}, which no elections reach: cortado recover --reset-term"
    with pytest.raises(DataLoss, match=said):
        group.start("n2")
    with pytest.raises(DataLoss, match=said):
        force_single_writes(GROUP, group.disks["n2"].stored(), members(1)[0])


def test_a_group_whose_terms_were_all_taken_out_of_bounds_goes_on_after_a_reset_and_keeps_everything() -> None:
    group = led()
    kept = group.append("n1", b"acknowledged")
    group.settle()
    for node_id in ("n1", "n2"):
        hard_state(group, node_id, UINT64_MAX)
    # One replica took an entry, too, that is not known to be committed.
    out_of_bounds = Record(KIND_DATA, Encoded(b"forged"), kept.index + 1, UINT64_MAX)
    group.disks["n1"].write([out_of_bounds.log_record(GROUP)])
    for node_id, dropped in (("n1", 1), ("n2", 0)):
        stored = group.disks[node_id].stored()
        writes, report = reset_term_writes(GROUP, stored, group.place(node_id))
        assert (report.old_term, report.new_term, report.dropped) == (UINT64_MAX, 2 + TERM_AHEAD_MAX // 2, dropped)
        group.write(node_id, writes)
        group.start(node_id)
    # n3 was never reached by the forged term, and takes the others'.
    group.run(5_000)
    leader = next(log for log in group.logs.values() if log.is_leader)
    assert leader.durable_commit_index >= kept.index
    assert all(b"acknowledged" in [entry.payload.encode() for entry in applied] for applied in group.applied.values())
    assert {log.last for log in group.logs.values()} == {leader.last}


def test_a_reset_refuses_a_term_in_bounds_and_what_was_applied_out_of_bounds() -> None:
    group = led()
    stored = group.disks["n1"].stored()
    with pytest.raises(InvalidArgument, match="its term, 2, is in bounds"):
        reset_term_writes(GROUP, stored, group.place("n1"))
    hard_state(group, "n1", UINT64_MAX)
    group.disks["n1"].write([Record(KIND_DATA, Encoded(b"forged"), 5, UINT64_MAX).log_record(GROUP)])
    with pytest.raises(InvalidArgument, match="out of bounds: take another node's"):
        reset_term_writes(GROUP, group.disks["n1"].stored(), (5, UINT64_MAX))


@pytest.mark.parametrize("position", [(UINT64_MAX, 5), (2, UINT64_MAX), (2 + TERM_AHEAD_MAX + 1, 5)])
def test_a_member_that_vouches_up_to_a_place_that_no_log_reaches_is_not_believed(position: tuple[int, int]) -> None:
    assert vouched_position([Word(True, position)], (2, 5)) is None
    assert vouched_position([Word(True, position), Word(True, (2, 6))], (2, 5)) == (2, 6)


def test_a_time_with_an_index_that_is_never_reached_does_not_keep_a_follower_stale_for_ever() -> None:
    group = led()
    log = group.logs["n2"]
    forged = {"incarnation": log._core.incarnation, "echo_ms": 0.0, "fresh_index": 1 << 62}
    group.forge("n1", "n2", term=log.term, heartbeat=pb.Heartbeat(round=0), **forged)
    before = log.fresh_as_of_ms
    group.run(2_000)
    after = log.fresh_as_of_ms
    assert after is not None
    assert before is None or after > before
