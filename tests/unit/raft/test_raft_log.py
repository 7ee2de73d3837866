"""A replicated log through its seam: a node's view of it, with and without other members."""

from __future__ import annotations

import pysyncobj.pickle
import pysyncobj.syncobj
import pytest

from cortado.errors import NotLeader
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft import applying
from cortado.raft.configuration import Configuration
from cortado.raft.engine import _SYNCOBJ
from cortado.raft.log import Encoded, Entry, Nothing, RecordKind, SnapshotMeta
from cortado.raft.registry import Registry, Roster
from cortado.raft.settings import RaftSettings
from support.raft_hand import Hand, members


def test_a_group_of_one_leads_at_its_first_tick_and_decides_with_its_sync() -> None:
    group = Hand(1)
    log = group.logs["n1"]
    assert not log.is_leader
    with pytest.raises(NotLeader):
        group.append("n1", b"too early")
    group.pass_ms(1)
    assert not group.take_committed("n1"), "its own log files come first"
    group.sync("n1")
    assert [type(entry.payload) for entry in group.take_committed("n1")] == [Nothing]
    assert not log.is_leader
    group.apply("n1")
    assert log.is_leader
    assert (log.term, log.leader, log.durable_commit_index, log.last) == (2, "n1", 3, (3, 2))
    payload = Encoded(b"a")
    entry = log.append(payload)
    group.pass_ms(1)
    writes = group.take("n1")
    assert [(each.kind, each.index, each.term) for each in writes] == [(RecordKind.ENTRY, 4, 2)]
    assert log.durable_commit_index == 3
    assert (log.applying.backlog, group.take_committed("n1")) == (0, ())
    group.sync("n1")
    assert log.durable_commit_index == 4
    assert log.applying.backlog == 1
    assert group.take_committed("n1") == [entry]
    assert group.applying["n1"][0].payload is payload
    assert log.applied == (3, 2)
    group.apply("n1")
    assert log.applied == (4, 2)


def test_writes_are_taken_once_and_beside_them_entries_to_apply_each_once() -> None:
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    log, first = group.logs["n1"], group.append("n1", b"a")
    group.pass_ms(1)
    group.sync("n1")
    applying = group.take_committed("n1")
    second = group.append("n1", b"b")
    group.pass_ms(1)
    assert group.take("n1")
    assert not log.storing.ready()
    assert not log.applying.take()
    third = group.append("n1", b"c")
    group.pass_ms(1)
    # Each goes on while the other is outstanding.
    group.sync("n1")
    assert log.durable_commit_index == third.index
    assert (log.applied[0], log.applying.backlog, log.applying.take()) == (3, 2, ())
    group.apply("n1")
    assert [each.index for each in group.applied["n1"]] == [3, first.index, second.index, third.index]
    assert applying == [first]
    assert log.applying.backlog == 0


def test_a_follower_applies_what_is_committed_when_its_own_log_files_have_it() -> None:
    group = Hand(3)
    leader = group.elect("n1")
    entry = group.append("n1", b"a")
    group.send("n1")
    late = group.keep(to="n3", kind="append")
    group.settle(without=("n3",))
    assert leader.durable_commit_index == entry.index
    log = group.logs["n3"]
    for letter in late:
        letter.message.append.commit_index = entry.index
        log.step("n1", letter.message.SerializeToString())
    assert log.durable_commit_index == entry.index
    assert [each.index for each in group.take_committed("n3")] == [entry.index - 1]
    group.apply("n3")
    group.take("n3")
    assert not group.take_committed("n3")
    group.sync("n3")
    assert [each.index for each in group.take_committed("n3")] == [entry.index]


def test_entries_that_wait_to_be_applied_are_handed_over_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_ENTRIES_MAX", 3)
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    for place in range(7):
        group.append("n1", b"%d" % place)
    group.pass_ms(1)
    group.sync("n1")
    assert [each.index for each in group.take_committed("n1")] == [4, 5, 6]
    monkeypatch.setattr(applying, "_ENTRIES_MAX", 99)
    monkeypatch.setattr(applying, "_BYTES_MAX", 1)
    group.apply("n1")
    assert [each.index for each in group.applied["n1"]] == list(range(3, 11))
    assert group.logs["n1"].applying.take() == ()


def test_a_group_of_one_that_restarts_with_its_log_ahead_of_its_data_applies_all_of_it() -> None:
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    for body in (b"a", b"b", b"c"):
        group.append("n1", body)
    group.pass_ms(1)
    group.sync("n1")
    assert group.logs["n1"].durable_commit_index == 6, "callers were answered"
    group.append("n1", b"not stored")
    log = group.start("n1")
    assert (log.applied, log.durable_commit_index, log.applying.backlog) == ((3, 2), 6, 3)
    group.apply("n1")
    assert [each.payload.encode() for each in group.applied["n1"]] == [b"", b"a", b"b", b"c"]
    group.pass_ms(1)
    group.store("n1")
    assert (log.is_leader, log.last, log.applied) == (True, (7, 3), (7, 3))


@pytest.mark.parametrize("applied", [3, 4, 5, 6])
def test_a_crash_loses_what_was_on_its_way_to_the_data_and_it_is_applied_again(applied: int) -> None:
    group = Hand(3)
    group.elect("n1")
    for body in (b"a", b"b", b"c"):
        group.append("n1", body)
    group.settle()
    group.run(300)
    group.applied["n2"] = [each for each in group.applied["n2"] if each.index <= applied]
    log = group.start("n2")
    assert (log.applied[0], log.applying.backlog) == (applied, 0), "who is not alone must be told what is committed"
    group.run(300)
    assert [each.index for each in group.applied["n2"]] == [3, 4, 5, 6]


def test_compaction_stops_at_what_is_applied() -> None:
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    log = group.logs["n1"]
    for place in range(10):
        group.append("n1", b"%d" % place)
        group.pass_ms(1)
        group.sync("n1")
    assert (log.durable_commit_index, log.applied[0]) == (13, 3)
    log.window.compact(13)
    assert log.window.base == log.applied == (3, 2)
    taken = group.take_committed("n1")
    log.window.compact(13)
    assert log.window.base[0] == 3, "what is on its way to the data is not there yet"
    assert len(taken) == 10
    group.store("n1")
    log.window.compact(13)
    group.store("n1")
    assert (group.disks["n1"].base, group.disks["n1"].entries) == ((13, 2), {})
    assert group.start("n1").last == (13, 2)


def test_nothing_is_handed_over_while_the_log_is_reset_to_a_snapshot() -> None:
    """The writes of the reset name the term and the vote: others, written between, would be lost."""
    group = Hand(3)
    log = group.logs["n2"]
    meta = SnapshotMeta("s", 50, 1, log.roster, 1)
    writes = log.window.install(meta)
    group.now_ms += 5_000
    log.tick(group.now_ms)
    request = pb.VoteRequest(term=4, last_index=99, last_term=3)
    group.forge("n3", "n2", term=4, vote_request=request)
    assert log.term == 4
    assert log.storing.ready() == []
    assert log.applying.take() == ()
    group.write("n2", writes)
    group.applied["n2"] = [Entry(50, 1, Nothing())]
    log.window.installed(meta)
    assert not [each for each in group.send("n2") if each.kind == "vote_response"], "the vote is not stored yet"
    group.store("n2")
    state = group.disks["n2"].state
    assert (state.term, state.voted_for, state.base_index) == (4, "n3", 50)
    assert [each.message.vote_response.is_granted for each in group.send("n2")] == [True]


def test_three_replicas_apply_the_same_entries_after_the_leader_decided_them() -> None:
    group = Hand(3)
    log = group.elect("n1")
    for place in range(20):
        group.append("n1", b"%d" % place)
    group.settle()
    assert log.durable_commit_index == log.last[0] == 23
    group.run(300)
    applied = [[(each.index, each.term, each.payload.encode()) for each in each_] for each_ in group.applied.values()]
    assert applied[0] == applied[1] == applied[2]
    assert len(applied[0]) == 21


def test_what_a_batch_appends_leaves_in_one_message_to_each_member() -> None:
    group = Hand(3)
    group.elect("n1")
    for place in range(10):
        group.append("n1", b"%d" % place)
    sent = [each for each in group.send("n1") if each.kind == "append"]
    assert sorted(each.to for each in sent) == ["n2", "n3"]
    assert {len(each.message.append.records) for each in sent} == {10}


def test_entries_leave_before_the_leaders_own_sync_also_where_the_log_was_compacted() -> None:
    group = Hand(3)
    log = group.elect("n1")
    for place in range(20):
        group.append("n1", b"%d" % place)
        group.settle()
    log.window.compact(log.applied[0])
    assert log.window.base[0] == log.applied[0]
    group.append("n1", b"now")
    assert [each.kind for each in group.send("n1")] == ["append", "append"]


def test_compaction_keeps_what_a_member_that_is_a_little_behind_needs() -> None:
    group = Hand(3, settings=RaftSettings(retain_entries=8))
    log = group.elect("n1")
    for place in range(6):
        group.append("n1", b"%d" % place)
        group.settle(without=("n3",))
    log.window.compact(log.applied[0])
    assert log.window.base[0] == 3
    group.run(1500)
    assert group.logs["n3"].last == log.last
    assert not log.window.snapshot_needs
    for place in range(12):
        group.append("n1", b"%d" % place)
        group.settle(without=("n3",))
    log.window.compact(log.applied[0])
    assert log.last[0] - log.window.base[0] == 8
    group.run(1500)
    assert log.window.snapshot_needs == ["n3"]


def test_what_is_compacted_is_deleted_and_a_restart_goes_on_from_there() -> None:
    group = Hand(3, settings=RaftSettings(retain_entries=4))
    log = group.elect("n1")
    for place in range(20):
        group.append("n1", b"%d" % place)
        group.settle()
    log.window.compact(log.applied[0])
    group.store("n1")
    assert len(group.disks["n1"].entries) == log.last[0] - log.window.base[0]
    again = group.start("n1")
    assert (again.window.base, again.last) == (log.window.base, log.last)


def test_a_removed_or_unreachable_majority_ends_a_leadership() -> None:
    group = Hand(3)
    log = group.elect("n1")
    group.run(2000, without=("n2", "n3"))
    assert not log.is_leader
    assert log.leader == ""
    with pytest.raises(NotLeader):
        log.read_round()


def test_a_reader_joins_a_round_that_has_not_begun() -> None:
    group = Hand(3)
    log = group.elect("n1")
    group.run(500)
    first = log.read_round()
    assert log.read_round() == first
    assert log.next_tick_ms <= group.now_ms
    group.settle()
    assert log.confirmed_round >= first
    assert log.read_round() > first


def test_followers_know_how_fresh_they_are() -> None:
    group = Hand(3)
    group.elect("n1")
    group.run(1000)
    for log in group.logs.values():
        assert log.fresh_as_of_ms is not None
        assert group.now_ms - 400 <= log.fresh_as_of_ms <= group.now_ms
    before = group.logs["n3"].fresh_as_of_ms
    group.run(1000, without=("n3",))
    assert group.logs["n3"].fresh_as_of_ms == before


def test_members_and_nodes_are_known_at_each_place() -> None:
    group = Hand(3)
    log = group.elect("n1")
    log.members.remove("n3")
    assert log.window.roster_at(3) == Roster.of(members(3))
    # It belongs to no configuration any more before it leaves the registry.
    assert log.window.roster_at(4) == Roster(Configuration(("n1", "n2")), Roster.of(members(3)).registry)
    assert log.window.roster_at(5) == log.roster == Roster(Configuration(("n1", "n2")), Registry(members(2), ("n3",)))
    assert log.roster is log.roster, "who compares it with the last one compares objects"


def test_a_roster_is_not_made_up_for_a_place_that_the_log_has_left_behind() -> None:
    from cortado.errors import Internal

    group = Hand(3, settings=RaftSettings(retain_entries=0))
    log = group.elect("n1")
    log.members.remove("n3")
    for _ in range(3):
        group.append("n1", b"a")
        group.settle()
    log.window.compact(log.applied[0])
    assert log.window.base[0] > 4
    with pytest.raises(Internal, match="a roster that is asked for is not gone: 3"):
        log.window.roster_at(3)


def test_a_snapshot_older_than_what_is_applied_is_not_installed() -> None:
    from cortado.errors import Internal

    group = Hand(3)
    log = group.elect("n1")
    with pytest.raises(Internal):
        log.window.install(SnapshotMeta("s1", 2, 1, log.roster, 1))


def test_the_public_module_of_pysyncobj_is_left_alone() -> None:
    assert _SYNCOBJ is not pysyncobj.syncobj
    assert pysyncobj.syncobj.pickle is pysyncobj.pickle
    with pytest.raises(AssertionError, match="nothing is ever pickled"):
        _SYNCOBJ.pickle.loads(b"")
