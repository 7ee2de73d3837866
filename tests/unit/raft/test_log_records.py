"""The log files after a log's records: truncations, and the reset to a snapshot's place."""

from __future__ import annotations

import pytest

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.log import Encoded, Entry, Nothing, RecordKind, SnapshotMeta
from cortado.raft.records import KIND_DATA, HardState, Record, Writes, reset_to
from support.raft_disks import Data, Disk
from support.raft_hand import GROUP, Hand


def kinds(writes: Writes) -> list[tuple[RecordKind, int, int]]:
    return [(each.kind, each.index, each.term) for each in writes]


def with_a_tail() -> Hand:
    """Return a group in which n2's log files have 3 to 6 of term 2; all but 3, which it has applied, reached no other
    member."""
    group = Hand(3)
    group.elect("n1")
    for body in (b"a", b"b", b"c"):
        group.append("n1", body)
    group.send("n1")
    group.deliver(to="n2", kind="append")
    group.store("n2")
    group.mail.clear()
    assert (group.disks["n2"].last, group.logs["n2"].applied) == ((6, 2), (3, 2))
    return group


def lead_by_n3(group: Hand, *terms: int, behind: tuple[int, int] = (3, 2)) -> None:
    """Let n3 lead term 3, and have n2 put entries of ``terms`` behind 3."""
    index = behind[0] + 1
    records = [Record(KIND_DATA, Encoded(b"n3"), index + i, term).stored(GROUP) for i, term in enumerate(terms)]
    append = pb.AppendEntries(prev_index=behind[0], prev_term=behind[1], records=records)
    group.forge("n3", "n2", term=3, append=append)


def snapshot(group: Hand, index: int, term: int) -> tuple[SnapshotMeta, list[Entry]]:
    return SnapshotMeta("s", index, term, group.logs["n2"].roster, 1), [Entry(index, term, Nothing())]


def assert_comes_back(group: Hand, node_id: str = "n2") -> None:
    """Check that the log is the sum of the records, after a crash now, and after one when all is stored."""
    durable = group.logs[node_id]._core.journal.durable_index
    disk = group.disks[node_id].copy()
    assert disk.last[0] >= durable
    group.sync(node_id)
    log = group.logs[node_id]
    last, base, term = log.last, log.window.base, log.term
    again = group.start(node_id)
    assert (again.last, again.window.base, again.term) == (last, base, term)
    group.disks[node_id] = disk
    assert group.start(node_id).last == disk.last


# --- truncations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [(3,), (3, 3, 3), (2, 3), (3, 3, 3, 3, 3)])
def test_an_entry_replaces_what_conflicts_and_all_behind_it(terms: tuple[int, ...]) -> None:
    group = with_a_tail()
    lead_by_n3(group, *terms)
    writes = group.take("n2")
    first_new = 4 + terms.count(2)
    assert kinds(writes)[0][0] is RecordKind.HARD_STATE
    assert [each[1] for each in kinds(writes)[1:]] == list(range(first_new, 4 + len(terms)))
    group.sync("n2")
    assert [group.disks["n2"].term_at(4 + place) for place in range(len(terms))] == list(terms)
    assert group.disks["n2"].last == group.logs["n2"].last == (3 + len(terms), 3)
    assert_comes_back(group)


def test_a_tail_that_was_on_its_way_when_it_was_replaced_goes_with_the_next_writes() -> None:
    group = with_a_tail()
    lead_by_n3(group, 2, 2, 2, 3, 3, 3)
    group.take("n2")
    later = Record(KIND_DATA, Encoded(b"n3"), 7, 4).stored(GROUP)
    group.forge("n3", "n2", term=4, append=pb.AppendEntries(prev_index=6, prev_term=2, records=[later]))
    assert group.logs["n2"].last == (7, 4)
    writes = group.outstanding.pop("n2")
    group.write("n2", writes)
    group.logs["n2"].synced(writes)
    assert group.disks["n2"].last == (9, 3)
    assert group.logs["n2"]._core.journal.durable_index == 6
    assert kinds(group.take("n2")) == [(RecordKind.HARD_STATE, 2, 1), (RecordKind.ENTRY, 7, 4)]
    group.sync("n2")
    assert group.disks["n2"].last == (7, 4)
    assert_comes_back(group)


def test_what_a_leader_disowns_is_truncated_with_the_term_that_it_left() -> None:
    group = Hand(3)
    log = group.elect("n1")
    for body in (b"a", b"b"):
        group.append("n1", body)
    group.sync("n1")
    assert group.disks["n1"].last == (5, 2)
    assert log.disown(5)
    assert kinds(group.take("n1")) == [(RecordKind.HARD_STATE, 2, 1), (RecordKind.TRUNCATE, 5, 0)]
    group.sync("n1")
    assert group.disks["n1"].last == log.last == (4, 2)
    assert group.disks["n1"].state.term == 3
    assert not log._core.journal.is_dirty
    assert group.start("n1").last == (4, 2)


# --- a snapshot's place -----------------------------------------------------------------------------------------------


def test_a_suffix_that_agrees_with_a_snapshot_stays() -> None:
    group = with_a_tail()
    meta, applied = snapshot(group, 5, 2)
    group.install("n2", meta, applied)
    assert (group.disks["n2"].base, group.disks["n2"].last) == ((5, 2), (6, 2))
    assert_comes_back(group)


def test_a_suffix_that_does_not_agree_goes() -> None:
    group = with_a_tail()
    meta, applied = snapshot(group, 5, 3)
    writes = group.logs["n2"].window.install(meta)
    assert kinds(writes) == [(RecordKind.TRUNCATE, 3, 0), (RecordKind.HARD_STATE, 5, 3)]
    group.install("n2", meta, applied)
    assert (group.disks["n2"].base, group.disks["n2"].last) == ((5, 3), (5, 3))
    assert_comes_back(group)


def test_a_snapshot_that_the_log_is_ahead_of_brings_the_data_forward_and_takes_nothing_that_is_committed() -> None:
    group = with_a_tail()
    group.forge("n1", "n2", term=2, heartbeat=pb.Heartbeat(commit_index=6))
    log = group.logs["n2"]
    assert (log.durable_commit_index, log.applied, log.applying.backlog) == (6, (3, 2), 3)
    meta, applied = snapshot(group, 5, 2)
    log.window.install(meta)
    assert log.applying.take() == (), "the data is being replaced"
    group.install("n2", meta, applied)
    assert (log.durable_commit_index, log.applied, log.applying.backlog, log.last) == (6, (5, 2), 1, (6, 2))
    assert [each.index for each in group.take_committed("n2")] == [6]
    group.apply("n2")
    assert_comes_back(group)


def test_what_a_later_leader_replaced_does_not_stand_behind_a_snapshot_that_agrees_with_it() -> None:
    """Memory has the new leader's 4 and 5, and the log files still the old one's 4 to 6."""
    group = with_a_tail()
    lead_by_n3(group, 3, 3)
    assert (group.logs["n2"].last, group.disks["n2"].last) == ((5, 3), (6, 2))
    meta, applied = snapshot(group, 5, 3)
    writes = group.logs["n2"].window.install(meta)
    assert kinds(writes) == [(RecordKind.TRUNCATE, 4, 0), (RecordKind.HARD_STATE, 5, 3)]
    group.install("n2", meta, applied)
    assert (group.disks["n2"].base, group.disks["n2"].entries) == ((5, 3), {})
    lead_by_n3(group, 3, behind=(5, 3))
    assert_comes_back(group)


@pytest.mark.parametrize("term", [2, 3])
def test_a_start_makes_good_what_a_crash_between_data_and_log_files_left(term: int) -> None:
    group = with_a_tail()
    meta, _ = snapshot(group, 5, term)
    writes = group.logs["n2"].window.install(meta)
    disk = Disk(group.disks["n2"], Data((3, 2)))
    disk.data.install(meta, {}, writes)
    stored = disk.opened()
    assert (disk.log.base, disk.log.last) == ((5, term), (6, 2) if term == 2 else (5, 3))
    assert disk.log.stored() == stored or stored.last == disk.log.last
    whole = group.disks["n2"].copy()
    # Once more changes nothing: nothing remembers it.
    disk.opened()
    assert disk.log == whole


def test_a_log_that_is_reset_at_a_start_keeps_what_agrees() -> None:
    group = with_a_tail()
    stored = group.disks["n2"].stored()
    state = HardState(7, "n1", 4, 2, stored.roster)
    again, writes = reset_to(GROUP, stored, state)
    assert (again.last, [each.index for each in again.records]) == ((6, 2), [5, 6])
    assert kinds(writes) == [(RecordKind.HARD_STATE, 4, 2)]
