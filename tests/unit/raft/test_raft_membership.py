"""Members come as learners, become voters when they are ready, and leave without taking the majority along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cortado.errors import DataLoss, InvalidArgument, NotLeader, Unavailable
from cortado.raft.bootstrap import bootstrap_writes, force_single_writes
from cortado.raft.log import RecordKind, SnapshotMeta
from cortado.raft.records import StoredLog
from cortado.raft.registry import Member, Roster
from cortado.raft.settings import RaftSettings
from support.raft_disks import LogDisk
from support.raft_hand import GROUP, Hand, members

N4 = Member("n4", "host:4")


def led() -> Hand:
    group = Hand(3)
    group.elect("n1")
    return group


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (lambda log: log.members.add_learner(Member("n2", "host:9")), "node_id: is a member already"),
        (lambda log: log.members.add_learner(Member("n4", "host:2")), "peer_address: belongs to member n2"),
        (lambda log: log.members.add_learner(Member("", "host:4")), "node_id: must be 1 to 64 letters"),
        (lambda log: log.members.add_learner(Member("n 4", "host:4")), "node_id: must be 1 to 64 letters"),
        (lambda log: log.members.add_learner(Member("n4", "host")), "peer_address: must be host:port"),
        (lambda log: log.members.add_learner(Member("n4", "host:99999")), "peer_address: must be host:port"),
        (lambda log: log.members.bind(Member("n9", "host:9", "s", "for-clients:9")), "node_id: is not a member"),
        (lambda log: log.members.bind(Member("n2", "host:2", "", "for-clients:2")), "storage_id: must have 1 to 128"),
        (
            lambda log: log.members.bind(Member("n2", "host:2", "other", "for-clients:2")),
            "a lost one comes back under a new node id",
        ),
        (
            lambda log: log.members.bind(Member("n2", "host:3", "s2", "for-clients:2")),
            "peer_address: belongs to member n3",
        ),
        (lambda log: log.members.bind(Member("n2", "host:2", "s2", "host:3")), "^address: belongs to member n3"),
        (lambda log: log.members.bind(Member("n2", "host:2", "s2", "host:2")), "another one than the peers'"),
        (lambda log: log.members.bind(Member("n2", "host:2", "s2")), "^address: must be host:port"),
        (lambda log: log.members.promote("n2"), "node_id: is a voter already"),
        (lambda log: log.members.promote("n9"), "node_id: is not a member"),
        (lambda log: log.members.remove("n9"), "node_id: is not a member"),
        (lambda log: log.members.remove("n1"), "hand leadership over first"),
        (lambda log: log.transfer.begin("n1"), "already leads"),
        (lambda log: log.transfer.begin("n9"), "must name a voter"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_name(request_: Callable, says: str) -> None:
    group = led()
    before = group.logs["n1"].last
    with pytest.raises(InvalidArgument, match=says.replace("(", r"\(")):
        request_(group.logs["n1"])
    assert group.logs["n1"].last == before


def test_only_the_leader_changes_members() -> None:
    group = led()
    for request in (
        lambda log: log.members.add_learner(N4),
        lambda log: log.members.bind(Member("n2", "host:2", "s2", "for-clients:2")),
        lambda log: log.members.promote("n3"),
        lambda log: log.members.remove("n3"),
        lambda log: log.transfer.begin("n3"),
    ):
        with pytest.raises(NotLeader) as refusal:
            request(group.logs["n2"])
        assert refusal.value.leader == "c:1"


def test_who_announces_a_member_again_changes_nothing_until_it_has_joined() -> None:
    group = led()
    log = group.logs["n1"]
    log.members.add_learner(N4)
    announced = log.last
    assert log.members.add_learner(N4) is None
    assert log.last == announced
    group.settle()
    assert log.members.add_learner(N4) is None
    with pytest.raises(InvalidArgument, match="is a member already"):
        log.members.add_learner(Member("n4", "host:44"))
    log.members.bind(Member("n4", "host:4", "s4", "for-clients:4"))
    group.settle()
    with pytest.raises(InvalidArgument, match="is a member already"):
        log.members.add_learner(N4)


def test_a_learner_becomes_a_voter_when_it_joined_answers_and_has_caught_up() -> None:
    group = Hand(3, settings=RaftSettings(caught_up_entries=5, retain_entries=1, retain_bytes=1))
    log = group.elect("n1")
    log.members.add_learner(N4)
    group.settle()
    with pytest.raises(Unavailable, match="has not joined yet"):
        log.members.promote("n4")
    log.members.bind(Member("n4", "host:4", "s4", "for-clients:4"))
    group.settle()
    assert log.members.bind(Member("n4", "host:4", "s4", "for-clients:4")) is None
    with pytest.raises(Unavailable, match="has not answered"):
        log.members.promote("n4")
    for place in range(20):
        group.append("n1", b"%d" % place)
        group.settle()
    log.window.compact(log.durable_commit_index)
    group.add_empty("n4")
    group.run(300)
    assert log.window.snapshot_needs == ["n4"]
    with pytest.raises(Unavailable, match="waits for a snapshot"):
        log.members.promote("n4")
    index, term = log.applied
    meta = SnapshotMeta("s1", index, term, log.window.roster_at(index), 1)
    log.window.offer_snapshot("n4", meta)
    group.settle()
    offer = group.logs["n4"].window.snapshot_offer
    assert offer is not None
    assert (offer.sender, offer.meta.index) == ("n1", index)
    group.install("n4", offer.meta, group.applied["n1"])
    group.run(300)
    log.members.promote("n4")
    group.run(300)
    assert all(each.roster.is_voter("n4") for each in group.logs.values())


def test_a_learner_is_not_counted() -> None:
    group = Hand(3, learners=2)
    log = group.elect("n1")
    group.append("n1", b"a")
    group.settle(without=("n2", "n3"))
    assert log.durable_commit_index == 3
    group.run(400)
    assert log.durable_commit_index == 4


def test_removing_a_voter_must_leave_a_majority_that_can_be_reached() -> None:
    group = led()
    group.run(800, without=("n3",))
    with pytest.raises(Unavailable, match="1 of the 2 voters left can be reached, and 2 are needed"):
        group.logs["n1"].members.remove("n2")
    with pytest.raises(Unavailable, match="without n1, 1 of the 2 voters left can be reached"):
        group.logs["n1"].members.remove("n1")  # Before it is told to hand over first.
    group.logs["n1"].members.remove("n3")
    group.run(200, without=("n3",))
    assert [each.node_id for each in group.logs["n1"].roster.voters] == ["n1", "n2"]


def test_a_removed_member_is_heard_by_nobody_and_begins_no_term() -> None:
    group = led()
    group.logs["n1"].members.remove("n3")
    group.settle()
    term = group.logs["n3"].term
    group.run(10_000)
    assert {log.term for log in group.logs.values()} == {term}
    assert group.logs["n1"].is_leader
    assert group.logs["n3"].election_counts.pre_vote_rounds > 10, "it still believes to be a voter"


def test_a_group_grows_from_one_and_shrinks_to_one() -> None:
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    log = group.logs["n1"]
    for place in range(3):
        group.append("n1", b"%d" % place)
        group.settle()
    log.members.add_learner(Member("n2", "host:2"))
    group.settle()
    assert set(group.disks["n1"].entries) == set(range(3, 9)), "what it kept alone is there for who comes"
    group.append("n1", b"kept")
    group.settle()
    restarted = group.start("n1")
    group.run(100)
    assert restarted.last == (10, 3)
    assert restarted.roster.member("n2") is not None
    restarted.members.remove("n2")
    group.settle()
    group.append("n1", b"alone")
    group.settle()
    again = group.start("n1")
    group.run(100)
    assert again.is_leader
    assert again.roster == Roster.of(members(1)), "n2 had not joined, and left nothing behind"
    assert [entry.index for entry in group.applied["n1"]] == list(range(3, again.last[0] + 1))


def test_who_joins_a_group_of_one_is_brought_to_all_of_it_and_counts_from_then_on() -> None:
    group = alone()
    log = group.logs["n1"]
    for place in range(3):
        group.append("n1", b"%d" % place)
    # Counted alone, and on no disk yet, when others come.
    group.pass_ms(1)
    log.members.add_learner(Member("n2", "host:2"))
    group.send("n1")
    assert log.durable_commit_index == 3
    group.settle()
    log.members.bind(Member("n2", "host:2", "s2", "for-clients:2"))
    group.settle()
    group.add_empty("n2")
    group.run(300)
    assert log.window.snapshot_needs == ["n2"]
    index, term = log.applied
    meta = SnapshotMeta("s1", index, term, log.window.roster_at(index), 1)
    log.window.offer_snapshot("n2", meta)
    group.settle()
    group.install("n2", meta, group.applied["n1"])
    group.run(300)
    log.members.promote("n2")
    group.run(300)
    entry = group.append("n1", b"both")
    group.settle(without=("n2",))
    assert log.durable_commit_index < entry.index, "n1 is not alone any more"
    group.run(500)
    assert log.durable_commit_index == entry.index
    restarted = group.start("n1")
    assert restarted.durable_commit_index == restarted.applied[0]
    group.run(3_000)
    assert [each.payload.encode() for each in group.applied["n2"]][-1] in (b"both", b"")
    assert group.logs["n2"].last == group.logs["n1"].last


# --- changes without room -----------------------------------------------------------------------------------------


def alone() -> Hand:
    group = Hand(1)
    group.pass_ms(1)
    group.store("n1")
    return group


def test_what_had_no_room_is_taken_back_in_a_group_of_one_alone() -> None:
    group = alone()
    log = group.logs["n1"]
    before = log.last
    group.append("n1", b"a")
    group.pass_ms(1)
    writes = group.take("n1")
    group.append("n1", b"b")
    assert log.withdraw(writes)
    assert log.last == log.applied == before
    assert log._core.journal.commit_index == before[0], "nothing else in its place is committed by that"
    group.outstanding.clear()
    entry = group.append("n1", b"c")
    group.settle()
    assert [each.payload.encode() for each in group.applied["n1"]] == [b"", b"c"]
    assert group.disks["n1"].last == (entry.index, entry.term)
    several = led()
    several.append("n1", b"a")
    assert not several.logs["n1"].withdraw(several.take("n1"))


def test_what_is_durable_and_not_applied_is_not_taken_back() -> None:
    group = alone()
    log, kept = group.logs["n1"], group.append("n1", b"kept")
    group.pass_ms(1)
    group.sync("n1")
    on_its_way = group.append("n1", b"on its way to the data")
    group.pass_ms(1)
    group.sync("n1")
    group.take_committed("n1")
    group.append("n1", b"no room")
    group.pass_ms(1)
    assert log.withdraw(group.take("n1"))
    group.outstanding.clear()
    assert log.last == (on_its_way.index, 2)
    assert log.durable_commit_index == on_its_way.index
    after = group.append("n1", b"after")
    assert after.index == on_its_way.index + 1
    group.settle()
    bodies = [each.payload.encode() for each in group.applied["n1"]]
    assert bodies == [b"", b"kept", b"on its way to the data", b"after"]
    assert kept.index in group.disks["n1"].entries
    assert group.start("n1").last == log.last


def test_a_base_that_moved_with_what_was_taken_back_is_written_again() -> None:
    group = alone()
    log = group.logs["n1"]
    group.append("n1", b"a")
    group.settle()
    log.window.compact(log.applied[0])
    group.append("n1", b"no room")
    group.pass_ms(1)
    writes = group.take("n1")
    assert [each.kind for each in writes] == [RecordKind.HARD_STATE, RecordKind.ENTRY]
    assert log.withdraw(writes)
    group.outstanding.clear()
    assert group.disks["n1"].base == (2, 1)
    assert log._core.journal.is_dirty
    group.store("n1")
    assert group.disks["n1"].base == log.window.base == (4, 2)
    assert group.start("n1").last == (4, 2)


def test_a_term_a_vote_and_a_leaders_first_entry_are_never_taken_back() -> None:
    group = Hand(1)
    group.pass_ms(1)
    log = group.logs["n1"]
    writes = group.take("n1")
    assert [each.kind for each in writes] == [RecordKind.HARD_STATE, RecordKind.ENTRY]
    assert not log.withdraw(writes)
    group.store("n1")
    assert log.is_leader
    # Nor before its first entry is applied, whatever its writes.
    group.start("n1")
    group.pass_ms(1)
    group.sync("n1")
    log = group.logs["n1"]
    log.window.compact(log.applied[0])
    assert not log.withdraw(group.take("n1"))


def test_a_configuration_is_never_taken_back() -> None:
    """n2 was sent the entries before its removal; and the removal counts from when it is appended."""
    group = Hand(1, learners=1)
    group.elect("n1")
    log = group.logs["n1"]
    entry = group.append("n1", b"sent to n2")
    group.send("n1")
    log.members.remove("n2")
    group.pass_ms(1, "n1")
    writes = group.take("n1")
    assert log.configuration.is_alone("n1")
    assert [each.index for each in writes] == [entry.index, entry.index + 1, entry.index + 2]
    assert not log.withdraw(writes)
    # Nor messages on their way when the change was appended behind them.
    group = Hand(1, learners=1)
    group.elect("n1")
    log = group.logs["n1"]
    group.append("n1", b"sent to n2")
    group.send("n1")
    writes = group.take("n1")
    log.members.remove("n2")
    assert not log.withdraw(writes)
    group.store("n1")
    group.append("n1", b"alone")
    group.pass_ms(1, "n1")
    assert log.withdraw(group.take("n1"))


def test_a_node_that_should_not_lead_hands_over_or_leads_on_where_nobody_takes_it() -> None:
    group = led()
    group.logs["n1"].may_lead = False
    group.run(300)
    assert not group.logs["n1"].is_leader
    leader = next(name for name, log in group.logs.items() if log.is_leader)
    for log in group.logs.values():
        log.may_lead = False
    group.run(6000)
    led_for = 0
    for _ in range(100):
        group.run(50)
        led_for += any(log.is_leader for log in group.logs.values())
    assert led_for > 50, f"{leader} must serve most of the time"


def test_a_group_without_its_majority_begins_again_with_one() -> None:
    group = led()
    group.append("n1", b"committed")
    group.settle()
    group.append("n1", b"not committed")
    group.store("n1")
    writes, report = force_single_writes(GROUP, group.disks["n1"].stored(), members(1)[0])
    assert (report.last_index, report.last_term) == (5, 2)
    assert [each.node_id for each in report.removed] == ["n2", "n3"]
    group.write("n1", writes)
    del group.logs["n2"], group.logs["n3"]
    log = group.start("n1")
    group.run(100)
    assert log.is_leader
    assert [entry.payload.encode() for entry in group.applied["n1"]][1:3] == [b"committed", b"not committed"]
    assert log.roster == Roster.of(members(1))
    again, nothing_lost = force_single_writes(GROUP, group.disks["n1"].stored(), members(1)[0])
    assert ([each.kind for each in again], nothing_lost.removed) == (
        [RecordKind.HARD_STATE, RecordKind.ENTRY, RecordKind.ENTRY],
        (),
    )
    with pytest.raises(InvalidArgument):
        force_single_writes(GROUP, LogDisk().stored(), members(1)[0])


def test_a_disk_that_contradicts_itself_is_data_loss() -> None:
    group = led()
    for place in range(3):
        group.append("n1", b"%d" % place)
        group.settle()
    whole = group.disks["n1"].copy()

    def refused(says: str, *, applied: tuple[int, int] = (6, 2)) -> None:
        group.place = lambda _: applied  # type: ignore[method-assign]
        with pytest.raises(DataLoss, match=says):
            group.start("n1")
        group.disks["n1"] = whole.copy()

    del group.disks["n1"].entries[4]
    refused("entry 4 is missing: 5 follows 3")
    group.disks["n1"].hard_state = None
    refused("it has entries, but no hard state")
    group.disks["n1"].entries[5] = replace(whole.entries[4], index=5)
    refused("entry 5 of group 1 .its checksum does not match")
    refused("it ends at entry 6, but entry 9 is applied", applied=(9, 2))
    refused("entry 5 is of term 2, but was applied as one of 1", applied=(5, 1))
    refused("it begins after entry 2, but only 1 is applied", applied=(1, 1))
    group.disks["n1"] = LogDisk()
    refused("it is empty, but entry 6 is applied")


def test_settings_are_refused_by_name() -> None:
    for wrong in (
        {"heartbeat_ms": 0},
        {"election_ms_min": 200},
        {"election_ms_max": 700},
        {"entry_bytes_max": 8 << 20},
        {"window_messages_max": 0},
        {"max_drift_ppm": float("nan")},
    ):
        (name,) = wrong
        with pytest.raises(InvalidArgument, match=f"raft.{name}"):
            RaftSettings(**wrong).check()
    RaftSettings().check()


def test_a_founded_group_is_stored_as_one_hard_state() -> None:
    stored: StoredLog = LogDisk(*bootstrap_writes(GROUP, members(1)[0])).stored()
    assert (stored.last, stored.is_empty) == ((2, 1), False)
    assert stored.roster == Roster.of(members(1))
