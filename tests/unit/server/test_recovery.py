"""Recovery by force: from a voter's whole state alone, and in an order that a crash does not turn into two clusters."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cortado.errors import DataDirectoryError, DataLoss, InvalidArgument, Unsupported
from cortado.raft.bootstrap import bootstrap_writes
from cortado.raft.records import HardState, StoredLog, Writes, nothing
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Space
from cortado.store.host.opening import stored_log
from cortado.store.log_files.log_files import LogFiles
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import Marker, applied_key, marker_key, reset_key
from cortado.store.server.recovery import force_new_cluster, reset_term, survey
from cortado.store.server.stores import read_log_groups
from support.engines import open_stores

N1, N2, N3 = (Member(f"n{i}", f"127.0.0.1:{i}", f"disk-{i}") for i in (1, 2, 3))
THREE = Roster.of(voters=(N1, N2, N3))
N1_OLD = Identity("old", "n1", "disk-1")
APPLIED = AppliedState(index=9, term=2)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the directory of n1 of three: entry 9 is applied, 10 and 11 are in the log."""
    return make(tmp_path / "data", THREE)


def make(
    path: Path,
    configuration: Roster = THREE,
    *,
    identity: Identity = N1_OLD,
    log: Writes | None = None,
    applied: AppliedState | None = APPLIED,
) -> Path:
    stores = open_stores(path, identity)
    if log is None:
        state = HardState(3, "n2", 9, 2, configuration).log_record(META_GROUP.group_id)
        log = [state, *(nothing(index, 3).log_record(META_GROUP.group_id) for index in (10, 11))]
    stores.log_files.append(log)
    if applied is not None:
        with stores.engine.write() as txn:
            txn.put(Space.META, applied_key(META_GROUP.group_id), applied.encode())
    stores.close()
    return path


def in_meta(path: Path, key: bytes, value: bytes) -> None:
    stores = open_stores(path)
    with stores.engine.write() as txn:
        txn.put(Space.META, key, value)
    stores.close()


def identity_of(path: Path) -> Identity:
    stores = open_stores(path)
    stores.close()
    return stores.engine.identity


def log_of(path: Path) -> StoredLog:
    return stored_log(read_log_groups(path), META_GROUP.group_id, owner=identity_of(path).storage_id)


def contents(path: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}


def test_it_says_what_there_is_and_whom_it_leaves_behind(stopped: Path) -> None:
    found = survey(stopped)
    assert (found.cluster_id, found.member, found.removed) == ("old", N1, (N2, N3))
    assert (found.applied_index, found.last_index, found.unapplied) == (9, 11, 2)


def test_afterwards_it_is_alone_under_a_new_cluster_id_with_all_of_its_log(stopped: Path) -> None:
    cluster_id = force_new_cluster(stopped, dry_run=False)
    assert identity_of(stopped) == Identity(cluster_id, "n1", "disk-1")
    assert cluster_id != "old"
    assert survey(stopped).removed == ()
    log = log_of(stopped)
    assert [(each.index, each.term) for each in log.records] == [(10, 3), (11, 3), (12, 4), (13, 4)]
    assert (log.hard_state.term, log.hard_state.voted_for, log.roster) == (4, "", Roster.of(voters=(N1,)))


@pytest.mark.parametrize("ask", [survey, lambda path: force_new_cluster(path, dry_run=True)])
def test_who_only_asks_changes_not_a_byte(stopped: Path, ask: Callable[[Path], object]) -> None:
    before = contents(stopped)
    ask(stopped)
    assert contents(stopped) == before


def test_a_crash_between_the_two_stores_leaves_a_node_that_only_waits_and_can_be_recovered_again(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one voter and the old cluster's id, it could decide things in the old cluster's name."""

    def crash(_: LogFiles, _records: Writes) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as crashing:
        crashing.setattr(LogFiles, "append", crash)
        with pytest.raises(OSError, match="the power went"):
            force_new_cluster(stopped, dry_run=False)
    assert identity_of(stopped).cluster_id != "old"
    assert survey(stopped).removed == (N2, N3)
    force_new_cluster(stopped, dry_run=False)
    assert survey(stopped).removed == ()


def test_a_snapshot_that_was_installed_and_not_yet_in_the_log_is_where_the_log_begins(stopped: Path) -> None:
    """The data is the snapshot's at entry 40; the log still says 9 to 11. A start would reset it first."""
    in_meta(stopped, applied_key(META_GROUP.group_id), AppliedState(index=40, term=5).encode())
    in_meta(
        stopped, reset_key(META_GROUP.group_id), HardState(5, "", 40, 5, THREE).log_record(META_GROUP.group_id).payload
    )
    assert survey(stopped).last_index == 40
    force_new_cluster(stopped, dry_run=False)
    log = log_of(stopped)
    assert (log.hard_state.base_index, [each.index for each in log.records]) == (40, [41, 42])


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        (Roster.of(voters=(N2, N3), learners=(N1,)), "is that of a learner, n1"),
        (Roster.of(voters=(N2, N3)), "is that of n1, which was removed from its cluster"),
    ],
    ids=["learner", "removed"],
)
def test_who_has_no_vote_is_no_survivor(tmp_path: Path, configuration: Roster, problem: str) -> None:
    with pytest.raises(Unsupported, match=problem):
        survey(make(tmp_path / "data", configuration))


def test_half_a_snapshot_is_no_state(stopped: Path) -> None:
    in_meta(stopped, marker_key(META_GROUP.group_id), Marker("snapshot", 20, 3).encode())
    with pytest.raises(Unsupported, match="was receiving a snapshot when it stopped"):
        survey(stopped)


def test_a_log_that_does_not_reach_to_what_is_applied_is_no_survivors(stopped: Path) -> None:
    in_meta(stopped, applied_key(META_GROUP.group_id), AppliedState(index=12, term=3).encode())
    with pytest.raises(DataLoss, match="it ends at entry 11, but entry 12 is applied"):
        survey(stopped)


def test_a_damaged_log_is_no_survivors(stopped: Path) -> None:
    [file] = (stopped / "log").iterdir()
    content = bytearray(file.read_bytes())
    content[content.index(b"disk-2")] ^= 1
    file.write_bytes(content)
    before = contents(stopped)
    for ask in (survey, lambda path: force_new_cluster(path, dry_run=False)):
        with pytest.raises(DataLoss, match=r"the log file 0000000000000001 \(byte"):
            ask(stopped)
    assert contents(stopped).keys() == before.keys()
    assert contents(stopped)[file] == before[file]


def test_what_never_held_the_data_is_refused(tmp_path: Path) -> None:
    for ask in (survey, lambda path: force_new_cluster(path, dry_run=False)):
        with pytest.raises(DataDirectoryError, match="holds no node's data"):
            ask(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    for name, cluster_id, problem in (("a", "", "never joined a cluster"), ("b", "c", "never received")):
        path = make(tmp_path / name, identity=Identity(cluster_id, "n4", "d"), log=[], applied=None)
        with pytest.raises(Unsupported, match=problem):
            survey(path)


def test_a_node_that_runs_is_refused(stopped: Path) -> None:
    stores = open_stores(stopped)
    for ask in (
        survey,
        lambda path: force_new_cluster(path, dry_run=False),
        lambda path: reset_term(path, dry_run=False),
    ):
        with pytest.raises(DataDirectoryError, match=f"in use by process {os.getpid()}"):
            ask(stopped)
    stores.close()


def test_a_group_of_one_has_nobody_to_leave_behind(tmp_path: Path) -> None:
    state = AppliedState(index=2, term=1)
    path = make(tmp_path / "one", log=bootstrap_writes(META_GROUP.group_id, N1), applied=state)
    assert survey(path).removed == ()
    with pytest.raises(InvalidArgument, match="a cluster of one already"):
        force_new_cluster(path, dry_run=False)


def test_a_term_that_no_elections_reach_is_taken_back_and_nothing_else_is_changed(tmp_path: Path) -> None:
    log = [HardState((1 << 64) - 1, "n3", 9, 2, THREE).log_record(META_GROUP.group_id)]
    path = make(tmp_path / "data", log=log)
    with pytest.raises(DataLoss, match="cortado recover --reset-term"):
        force_new_cluster(path, dry_run=False)
    before = contents(path)
    report = reset_term(path, dry_run=True)
    assert contents(path) == before
    assert log_of(path).hard_state.term == report.old_term == (1 << 64) - 1
    assert reset_term(path, dry_run=False) == report
    assert log_of(path).hard_state.term == report.new_term == 2 + (1 << 23)
    assert survey(path).removed == (N2, N3)
    with pytest.raises(InvalidArgument, match="is in bounds"):
        reset_term(path, dry_run=False)


def test_a_term_is_taken_back_also_where_the_log_still_has_what_a_snapshot_replaced(stopped: Path) -> None:
    """Its entry 10 is of another term than the snapshot's: neither that nor any entry behind it may stay."""
    in_meta(stopped, applied_key(META_GROUP.group_id), AppliedState(index=10, term=5).encode())
    state = HardState((1 << 64) - 1, "", 10, 5, THREE)
    in_meta(stopped, reset_key(META_GROUP.group_id), state.log_record(META_GROUP.group_id).payload)
    report = reset_term(stopped, dry_run=False)
    log = log_of(stopped)
    assert (log.hard_state.base_index, log.hard_state.base_term, list(log.records)) == (10, 5, [])
    assert log.hard_state.term == report.new_term
