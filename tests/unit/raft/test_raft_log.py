"""A replicated log through its seam: what a node sees of it, with and without other members."""

from __future__ import annotations

import pysyncobj.pickle
import pysyncobj.syncobj
import pytest

from cortado.errors import NotLeader
from cortado.raft.configuration import Configuration
from cortado.raft.engine import _SYNCOBJ
from cortado.raft.log import Encoded, Nothing, SnapshotMeta
from cortado.raft.settings import RaftSettings
from support.raft_hand import Hand, members


def test_a_group_of_one_leads_at_its_first_tick_and_decides_with_its_sync() -> None:
    group = Hand(1)
    log = group.logs["n1"]
    assert not log.is_leader
    with pytest.raises(NotLeader):
        group.append("n1", b"too early")
    group.pass_ms(1)
    ready = group.take("n1")
    assert [type(entry.payload) for entry in ready.committed] == [Nothing]
    assert not log.is_leader
    group.store("n1")
    assert log.is_leader
    assert (log.term, log.leader, log.durable_commit_index, log.last) == (2, "n1", 3, (3, 2))
    payload = Encoded(b"a")
    entry = log.append(payload)
    group.pass_ms(1)
    ready = group.take("n1")
    assert ready.committed == [entry]
    assert ready.committed[0].payload is payload
    assert not ready.writes
    assert log.durable_commit_index == 3
    group.store("n1")
    assert log.durable_commit_index == 4


def test_one_ready_at_a_time_and_each_entry_once() -> None:
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    first = group.append("n1", b"a")
    group.pass_ms(1)
    ready = group.take("n1")
    second = group.append("n1", b"b")
    group.pass_ms(1)
    assert not group.logs["n1"].ready()
    group.store("n1")
    assert [each.index for each in group.applied["n1"]] == [3, first.index, second.index]
    assert ready.committed == [first]


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
    assert len(group.disks["n1"]) == 1 + log.last[0] - log.window.base[0]
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


def test_a_configuration_is_known_at_each_place() -> None:
    group = Hand(3)
    log = group.elect("n1")
    log.members.remove("n3")
    assert log.window.configuration_at(3) == Configuration(members(3))
    assert log.window.configuration_at(4) == log.configuration == Configuration(members(2))


def test_a_configuration_is_not_made_up_for_a_place_that_the_log_has_left_behind() -> None:
    from cortado.errors import Internal

    group = Hand(3, settings=RaftSettings(retain_entries=0))
    log = group.elect("n1")
    log.members.remove("n3")
    for _ in range(3):
        group.append("n1", b"a")
        group.settle()
    log.window.compact(log.applied[0])
    assert log.window.base[0] > 4
    with pytest.raises(Internal, match="a configuration that is asked for is not gone: 3"):
        log.window.configuration_at(3)


def test_a_snapshot_older_than_what_is_applied_is_not_installed() -> None:
    from cortado.errors import Internal

    group = Hand(3)
    log = group.elect("n1")
    with pytest.raises(Internal):
        log.window.install(SnapshotMeta("s1", 2, 1, log.configuration, 1))


def test_the_public_module_of_pysyncobj_is_left_alone() -> None:
    assert _SYNCOBJ is not pysyncobj.syncobj
    assert pysyncobj.syncobj.pickle is pysyncobj.pickle
    with pytest.raises(AssertionError, match="nothing is ever pickled"):
        _SYNCOBJ.pickle.loads(b"")
