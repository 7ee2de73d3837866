"""The addresses of nodes, and the ids that are used up: added before a configuration has a node, removed after it, used
once."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.raft.configuration import Configuration
from cortado.raft.group import RaftLog
from cortado.raft.log import Entry, Nothing, SnapshotMeta
from cortado.raft.registry import IDS_MAX, Member, Registry, Roster
from cortado.raft.settings import RaftSettings
from support.raft_hand import Hand, members

N5 = Member("n5", "host:5")
BOUND = Member("n5", "host:5", "s5", "c:5")


def led(**settings: object) -> tuple[Hand, RaftLog]:
    """Return a group of four, led by n1."""
    group = Hand(4, settings=RaftSettings(**settings))  # type: ignore[arg-type]
    log = group.elect("n1")
    group.settle()
    return group, log


def dies_between_the_two_entries(group: Hand) -> RaftLog:
    """Let n1 reach the others with the first entry of its change only, and end it. Returns the next leader's log."""
    group.pass_ms(0, "n1")
    group.send("n1")
    for node_id in ("n2", "n3"):
        group.step(group.keep(to=node_id, kind="append")[0])
        group.store(node_id)
    group.mail.clear()
    group.lose("n1")
    del group.logs["n1"]
    return group.elect("n2")


def test_a_member_is_in_the_registry_before_it_is_in_a_configuration_and_after() -> None:
    group, log = led()
    log.members.add_learner(N5)
    added = log.last[0]
    assert log.window.roster_at(added - 1).registry.node("n5") == N5
    assert log.window.roster_at(added - 1).configuration.members == ("n1", "n2", "n3", "n4")
    assert log.window.roster_at(added).configuration.learners == ("n5",)
    group.settle()
    log.members.remove("n4")
    removed = log.last[0]
    assert log.window.roster_at(removed - 1).registry.node("n4") is not None
    assert "n4" not in log.window.roster_at(removed - 1).configuration.members
    assert log.roster.registry == Registry((*members(3), N5), ("n4",))


def test_an_addition_that_was_cut_off_adds_nobody_and_is_cleared_away() -> None:
    group, log = led()
    log.members.add_learner(N5)
    next_log = dies_between_the_two_entries(group)
    assert next_log.roster.registry.node("n5") == N5
    assert next_log.roster.member("n5") is None
    assert not next_log.standing.may_speak("n5")
    assert next_log.members.tidy() is not None
    assert next_log.roster.registry == Registry(members(4))
    assert next_log.members.tidy() is None
    # In both cases it can be announced, at its present address.
    next_log.members.add_learner(Member("n5", "host:55"))
    assert next_log.roster.learners == (Member("n5", "host:55"),)


def test_an_addition_that_was_cut_off_can_be_repeated_as_it_is() -> None:
    group, log = led()
    log.members.add_learner(N5)
    next_log = dies_between_the_two_entries(group)
    before = next_log.last[0]
    next_log.members.add_learner(N5)
    assert (next_log.last[0], next_log.roster.learners) == (before + 1, (N5,)), "the registry has it already"


def test_a_removal_that_was_cut_off_is_completed_by_the_next_leader() -> None:
    group, log = led()
    log.members.remove("n4")
    next_log = dies_between_the_two_entries(group)
    assert next_log.configuration == Configuration(("n1", "n2", "n3"))
    assert next_log.roster.registry == Registry(members(4))
    # Also before that the id can't be taken.
    with pytest.raises(InvalidArgument, match=r"an id is never used again: take another one \(got n4\)"):
        next_log.members.add_learner(Member("n4", "host:44"))
    next_log.members.tidy()
    assert next_log.roster.registry == Registry(members(3), ("n4",))
    with pytest.raises(InvalidArgument, match=r"an id is never used again: take another one \(got n4\)"):
        next_log.members.add_learner(Member("n4", "host:44"))


def test_an_id_is_used_up_for_good_over_restarts_snapshots_and_a_log_that_begins_later() -> None:
    group, log = led(retain_entries=0)
    log.members.remove("n4")
    group.settle()
    for _ in range(3):
        group.append("n1", b"a")
        group.settle()
    log.window.compact(log.applied[0])
    group.append("n1", b"b")
    group.settle()
    assert log.window.base[0] > 5
    index, term = log.applied
    meta = SnapshotMeta("s", index, term, log.window.roster_at(index), 1)
    group.add_empty("n9")
    group.install("n9", meta, [Entry(index, term, Nothing())])
    for each in (group.start("n1"), group.logs["n2"], group.logs["n9"], group.start("n9")):
        assert each.roster.registry.removed == ("n4",)
        assert each.standing.is_removed("n4")


def test_a_removal_is_for_good_once_it_is_committed_and_not_before() -> None:
    group, log = led()
    log.members.remove("n4")
    assert log.roster.registry.removed == ("n4",)
    assert not log.standing.is_removed("n4"), "it may lead the others, and have the removal taken back"
    assert log.standing.may_speak("n4")
    group.settle(without=("n4",))
    assert log.standing.is_removed("n4")
    assert not log.standing.may_speak("n4")


def test_an_id_that_nothing_was_bound_to_may_be_announced_again() -> None:
    group, log = led()
    log.members.add_learner(N5)
    group.settle()
    log.members.remove("n5")
    group.settle()
    assert log.roster == Roster.of(members(4))
    log.members.add_learner(Member("n5", "another-host:5"))
    assert log.roster.member("n5") == Member("n5", "another-host:5")


def test_a_changed_address_changes_the_registry_alone() -> None:
    group, log = led()
    before = log.configuration
    moved = Member("n2", "elsewhere:2", "s2", "c:22")
    log.members.bind(moved)
    assert log.configuration is before
    assert log.roster.member("n2") == moved
    # So nothing waits for it: no majority is counted by addresses.
    log.members.add_learner(N5)
    group.settle()
    assert {each.roster.member("n2") for each in group.logs.values()} == {moved}


def test_a_data_directory_is_bound_to_an_id_once() -> None:
    group, log = led()
    log.members.add_learner(N5)
    group.settle()
    log.members.bind(BOUND)
    with pytest.raises(InvalidArgument, match="n5 is known by another data directory"):
        log.members.bind(Member("n5", "host:5", "another", "c:5"))
    group.settle()
    with pytest.raises(InvalidArgument, match="n5 is known by another data directory"):
        log.members.bind(Member("n5", "host:5", "another", "c:5"))


def test_who_is_in_the_log_is_known_before_that_is_applied() -> None:
    """Else three of four, one of them new, could not go on if the leader that added it dies."""
    group, log = led()
    log.members.add_learner(N5)
    group.settle()
    log.members.bind(BOUND)
    group.pass_ms(0, "n1")
    group.send("n1")
    group.deliver(to="n2", kind="append")
    follower = group.logs["n2"]
    assert follower.durable_commit_index < follower.last[0] == log.last[0]
    assert follower.standing.member("n5") == BOUND


def test_the_registry_takes_no_more_ids_than_its_messages_may_hold() -> None:
    group = Hand(1)
    used_up = Registry(members(1), tuple(f"gone-{number}" for number in range(IDS_MAX - 1)))
    group.pass_ms(1)
    group.store("n1")
    group.logs["n1"].members._register(used_up)
    group.settle()
    with pytest.raises(InvalidArgument, match="10000 ids in the registry of nodes already"):
        group.logs["n1"].members.add_learner(N5)
