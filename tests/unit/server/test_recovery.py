"""Recovery by force: of a voter's whole state alone, and in an order that a crash does not turn into two clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import DataDirectoryError, DataLoss, InvalidArgument, Unsupported
from cortado.raft.bootstrap import bootstrap_writes
from cortado.raft.configuration import Configuration, Member
from cortado.raft.records import HardState, decode_stored
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.snapshots.marker import Marker, applied_key, marker_key
from cortado.store.server.recovery import GROUP_ID, force_new_cluster, open_stopped, reset_term, stored_log, survey

N1, N2, N3 = (Member(f"n{i}", f"127.0.0.1:{i}", f"disk-{i}") for i in (1, 2, 3))
THREE = Configuration(voters=(N1, N2, N3))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    """The stopped node n1 of three."""
    opened = LmdbEngine.open(
        tmp_path / "data", new_identity=lambda: Identity("old", "n1", "disk-1"), map_bytes=16 << 20
    )
    _write(opened, THREE)
    yield opened
    opened.close()


def _write(engine: LmdbEngine, configuration: Configuration) -> None:
    key, value = HardState(3, "n2", 9, 2, configuration, keeps_entries=True).write(GROUP_ID)
    with engine.write() as txn:
        txn.put(Space.LOG, key, value)
        txn.put(Space.META, applied_key(GROUP_ID), AppliedState(index=9, term=2).encode())


def test_it_says_what_there_is_and_whom_it_leaves_behind(engine: LmdbEngine) -> None:
    found = survey(engine, engine.path, engine.identity)
    assert (found.cluster_id, found.member, found.removed) == ("old", N1, (N2, N3))
    assert (found.applied_index, found.last_index, found.unapplied) == (9, 9, 0)


def test_afterwards_it_is_alone_under_a_new_cluster_id(engine: LmdbEngine) -> None:
    cluster_id = force_new_cluster(engine, survey(engine, engine.path, engine.identity), dry_run=False)
    assert engine.identity == Identity(cluster_id, "n1", "disk-1")
    assert cluster_id != "old"
    assert survey(engine, engine.path, engine.identity).removed == ()


def test_a_crash_half_way_leaves_a_node_that_only_waits_and_can_be_recovered_again(
    engine: LmdbEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one voter and the old cluster's id, it could decide things in the old cluster's name."""

    def crash(_: LmdbEngine) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as crashing:
        crashing.setattr(LmdbEngine, "write", crash)
        with pytest.raises(OSError, match="the power went"):
            force_new_cluster(engine, survey(engine, engine.path, engine.identity), dry_run=False)
    assert engine.identity.cluster_id != "old"
    again = survey(engine, engine.path, engine.identity)
    assert again.removed == (N2, N3)
    force_new_cluster(engine, again, dry_run=False)
    assert survey(engine, engine.path, engine.identity).removed == ()


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        (Configuration(voters=(N2, N3), learners=(N1,)), "is that of a learner, n1"),
        (Configuration(voters=(N2, N3)), "is that of n1, which was removed from its cluster"),
    ],
    ids=["learner", "removed"],
)
def test_who_has_no_vote_is_no_survivor(engine: LmdbEngine, configuration: Configuration, problem: str) -> None:
    _write(engine, configuration)
    with pytest.raises(Unsupported, match=problem):
        survey(engine, engine.path, engine.identity)


def test_half_a_snapshot_is_no_state(engine: LmdbEngine) -> None:
    with engine.write() as txn:
        txn.put(Space.META, marker_key(GROUP_ID), Marker("snapshot", 20, 3).encode())
    with pytest.raises(Unsupported, match="was receiving a snapshot when it stopped"):
        survey(engine, engine.path, engine.identity)


def test_what_never_held_the_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="holds no node's data"):
        open_stopped(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    for name, cluster_id, problem in (("a", "", "never joined a cluster"), ("b", "c", "never received")):
        engine = LmdbEngine.open(tmp_path / name, new_identity=lambda: Identity(cluster_id, "n4", "d"))  # noqa: B023
        with pytest.raises(Unsupported, match=problem):
            survey(engine, engine.path, engine.identity)
        engine.close()


def test_a_group_of_one_has_nobody_to_leave_behind(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path / "one", new_identity=lambda: Identity("c", "n1", "disk-1"))
    with engine.write() as txn:
        for key, value in bootstrap_writes(GROUP_ID, N1):
            assert value is not None
            txn.put(Space.LOG, key, value)
        txn.put(Space.META, applied_key(GROUP_ID), AppliedState(index=2, term=1).encode())
    assert survey(engine, engine.path, engine.identity).removed == ()
    engine.close()


def test_a_term_that_no_elections_reach_is_taken_back_and_nothing_else_is_changed(engine: LmdbEngine) -> None:
    key, value = HardState((1 << 64) - 1, "n3", 9, 2, THREE, keeps_entries=True).write(GROUP_ID)
    with engine.write() as txn:
        txn.put(Space.LOG, key, value)
    with pytest.raises(DataLoss, match="cortado recover --reset-term"):
        force_new_cluster(engine, survey(engine, engine.path, engine.identity), dry_run=False)
    report = reset_term(engine, dry_run=True)
    assert stored_term(engine) == report.old_term == (1 << 64) - 1
    assert reset_term(engine, dry_run=False) == report
    assert stored_term(engine) == report.new_term == 2 + (1 << 23)
    assert survey(engine, engine.path, engine.identity).removed == (N2, N3)
    with pytest.raises(InvalidArgument, match="is in bounds"):
        reset_term(engine, dry_run=False)


def stored_term(engine: LmdbEngine) -> int:
    return decode_stored(GROUP_ID, stored_log(engine)).hard_state.term
