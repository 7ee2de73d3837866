"""A member that fell behind gets the leader's state, whole or not at all, and answers nothing from half of one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cortado.errors import ResourceExhausted
from cortado.raft.log import SnapshotOffer
from cortado.store.process.snapshot_files import DiskSnapshotFiles
from cortado.store.process.snapshot_settings import SnapshotSettings
from support.engines import open_lmdb
from support.memory_snapshot_files import MemorySnapshotFiles
from support.nodes import run
from support.snapshots import (
    SMALL,
    CountingEngine,
    Network,
    Replica,
    contents,
    fill,
    offer,
    stop_all,
    stored_state,
    until,
)

OLD, NEW = 40, 900


def pair(network: Network, settings: SnapshotSettings = SMALL) -> tuple[Replica, Replica]:
    """Return a leader that stands at NEW, and a follower with another, older state."""
    leader = Replica(network, "n1")
    fill(leader.engine, index=NEW, rows=300)
    follower_engine = CountingEngine()
    fill(follower_engine, index=OLD, rows=130)
    follower_engine.commits = 0
    leader.begin_life()
    return leader, Replica(network, "n2", engine=follower_engine, settings=settings)


def has_installed(replica: Replica) -> bool:
    return bool(replica.driver.resumed) and not replica.receiver.is_installing and replica.is_readable()


def test_a_follower_gets_the_leaders_state_and_its_log_goes_on_behind_it() -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        meta = await offer(leader, follower)
        await until(lambda: has_installed(follower), follower)
        assert contents(follower.engine) == contents(leader.engine)
        assert (meta.index, meta.term) == (NEW, 3)
        assert follower.base_index == NEW
        assert follower.log.installs == [meta]
        assert follower.driver.resumed == [stored_state(leader.engine)]
        await until(lambda: follower.files.names() == [], follower)
        await stop_all(leader, follower)

    run(scenario)


def test_it_works_on_real_files_and_lmdb_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = Network()
        members = []
        for name, index, rows in (("n1", NEW, 3_000), ("n2", OLD, 2_000)):
            engine = open_lmdb(tmp_path / name)
            fill(engine, index=index, rows=rows)
            files = DiskSnapshotFiles(tmp_path / name / "snapshots")
            members.append(Replica(network, name, engine=engine, files=files, settings=SnapshotSettings()))
        leader, follower = members
        network.break_after = [300_000]
        await offer(leader, follower)
        await until(lambda: has_installed(follower), follower)
        assert len(network.fetches) == 2
        assert contents(follower.engine) == contents(leader.engine)
        await until(lambda: follower.files.names() == [], follower)
        for each in members:
            await stop_all(each)
            each.engine.close()

    run(scenario)


def test_the_old_state_serves_until_all_of_the_new_one_is_here() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        before = contents(follower.engine)
        network.hold = asyncio.Event()
        meta = await offer(leader, follower)
        await until(lambda: network.fetches, follower)
        assert follower.is_readable()
        assert not follower.driver.is_paused
        assert contents(follower.engine) == before
        network.break_after = [meta.size_bytes - 1]
        network.hold.set()
        await until(lambda: has_installed(follower), follower)
        await stop_all(leader, follower)

    run(scenario)


def test_from_the_first_transaction_to_the_last_nothing_can_be_read() -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        before, after = contents(follower.engine), contents(leader.engine)
        await offer(leader, follower)
        seen = set()
        while not has_installed(follower):
            follower.poll()
            now = contents(follower.engine)
            is_state = now in (before, after)
            assert is_state or not follower.is_readable()
            assert is_state or follower.driver.is_paused
            seen.add(is_state)
            await asyncio.sleep(0)
        assert seen == {True, False}, "the installation was not seen in the middle"
        assert [bool(unreadable) for unreadable in follower.changes] == [True, False]
        await stop_all(leader, follower)

    run(scenario)


def test_a_broken_stream_goes_on_where_it_stopped() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        network.break_after = [9_001, 0, 10_000]
        meta = await offer(leader, follower)
        await until(lambda: has_installed(follower), follower)
        offsets = [offset for _, _, offset in network.fetches]
        assert offsets[0] == 0
        assert offsets[1] > 8_000
        assert offsets == sorted(offsets)
        assert network.sent_bytes < meta.size_bytes + 10_000
        assert contents(follower.engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


@pytest.mark.parametrize("place", [3, 60, 5_000, -60, -1])
def test_what_was_corrupted_on_the_way_is_fetched_again(place: int) -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        network.hold = asyncio.Event()
        meta = await offer(leader, follower)
        network.flip_at = {place % meta.size_bytes}
        network.hold.set()
        await until(lambda: has_installed(follower), follower)
        assert not network.flip_at
        assert contents(follower.engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


def test_a_snapshot_that_is_damaged_at_its_sender_is_given_up_and_another_one_taken() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        first = await offer(leader, follower)
        assert isinstance(leader.files, MemorySnapshotFiles)
        leader.files.damage(f"out-1-{first.snapshot_id}", 7_000)
        await until(lambda: len(network.fetches) == 2, follower)
        await until(lambda: follower.receiver.progress is None, follower)
        for _ in range(50):
            follower.poll()
            await asyncio.sleep(0)
        assert len(network.fetches) == 2, "the same snapshot is asked for no more"
        assert has_installed(follower) is False
        assert follower.is_readable()
        leader.now_ms += 61_000
        await offer(leader, follower)
        await until(lambda: has_installed(follower), follower)
        assert contents(follower.engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


def test_a_newer_offer_takes_the_place_of_the_one_that_is_being_fetched() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        other = Replica(network, "n3")
        fill(other.engine, index=NEW + 5, rows=310)
        network.hold = asyncio.Event()
        await offer(leader, follower)
        await until(lambda: network.fetches, follower)
        newer = await offer(other, follower)
        network.hold.set()
        await until(lambda: has_installed(follower), follower)
        assert follower.log.installs == [newer]
        assert contents(follower.engine) == contents(other.engine)
        await stop_all(leader, follower, other)

    run(scenario)


@pytest.mark.parametrize("jobs", [None, 1, 4, 9])
def test_an_offer_that_comes_during_an_installation_waits_for_its_end(jobs: int | None) -> None:
    """``jobs``: transactions that are done when it comes; None: it comes while the driver is being paused."""

    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        other = Replica(network, "n3")
        fill(other.engine, index=NEW + 5, rows=310)
        first = await offer(leader, follower)
        newer = await offer(other, follower)
        follower.log.snapshot_offer = SnapshotOffer("n1", first)

        def arrives() -> None:
            follower.log.snapshot_offer = SnapshotOffer("n3", newer)
            follower.poll()

        if jobs is None:
            follower.driver.on_pause = arrives
        else:
            follower.storage.jobs_max = jobs
            await until(lambda: follower.storage.jobs == jobs, follower)
            arrives()
            follower.storage.go_on()
        await until(lambda: len(follower.log.installs) == 2, follower)
        assert [each.index for each in follower.log.installs] == [NEW, NEW + 5]
        await until(lambda: has_installed(follower), follower)
        assert contents(follower.engine) == contents(other.engine)
        await stop_all(leader, follower, other)

    run(scenario)


def test_a_leader_that_dies_in_the_middle_is_replaced_by_the_next_one() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        network.break_after = [10_000] + [0] * 1_000
        await offer(leader, follower)
        await until(lambda: network.fetches, follower)
        del network.members["n1"]
        network.break_after.clear()
        other = Replica(network, "n3")
        fill(other.engine, index=NEW + 1, rows=310)
        await until(lambda: len(network.fetches) > 4, follower)
        await offer(other, follower)
        await until(lambda: has_installed(follower), follower)
        assert contents(follower.engine) == contents(other.engine)
        await stop_all(leader, follower, other)

    run(scenario)


def test_a_follower_that_caught_up_by_its_log_installs_nothing() -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        before = contents(follower.engine)
        meta = await offer(leader, follower)

        def caught_up() -> None:
            follower.log.durable_commit_index = meta.index

        follower.driver.on_pause = caught_up
        await until(lambda: follower.driver.resumed, follower)
        assert contents(follower.engine) == before
        assert follower.driver.resumed == [stored_state(follower.engine)]
        assert follower.log.installs == []
        assert has_installed(follower)
        await stop_all(leader, follower)

    run(scenario)


def test_a_fetch_ends_where_the_log_caught_up() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        network.hold = asyncio.Event()
        meta = await offer(leader, follower)
        await until(lambda: network.fetches, follower)
        follower.log.durable_commit_index = meta.index
        await until(lambda: follower.receiver.progress is None, follower)
        assert follower.driver.resumed == []
        await stop_all(leader, follower)

    run(scenario)


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("commit", range(1, 24))
def test_killed_at_any_transaction_it_has_the_old_state_or_gets_the_new_one(commit: int, is_durable: bool) -> None:
    """The last numbers are behind the end, which the test checks: every transaction was hit."""

    async def scenario() -> None:
        network = Network()
        # Only the sync at the end makes the file durable.
        leader, follower = pair(network, replace(SMALL, sync_bytes=1 << 20))
        engine = follower.engine
        assert isinstance(engine, CountingEngine)
        before, after = contents(engine), contents(leader.engine)
        engine.crash_at, engine.is_durable = commit, is_durable
        await offer(leader, follower)
        await until(lambda: follower.storage.crashed.is_set() or has_installed(follower), follower)
        if not follower.storage.crashed.is_set():
            assert commit >= 20, "an installation of fewer transactions than this test means to hit"
            await stop_all(leader, follower)
            return
        del network.members["n1"]
        await follower.restart()
        if contents(engine) == before:
            assert follower.is_readable()
            assert (commit, is_durable) == (1, False)
        else:
            # No other member is there: the file that was synced before is enough.
            assert follower.is_readable() == (contents(engine) == after)
            assert follower.driver.is_paused == (contents(engine) != after)
            await until(lambda: follower.is_readable() and not follower.driver.is_paused, follower)
            assert contents(engine) == after
            assert follower.base_index == NEW
        await until(lambda: follower.files.names() == [], follower)
        await stop_all(follower)

    run(scenario)


@pytest.mark.parametrize("is_durable", [False, True])
def test_killed_while_the_log_is_reset_the_next_start_resets_it(is_durable: bool) -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        follower.log_files.crash_at_append, follower.log_files.is_durable = True, is_durable
        await offer(leader, follower)
        await until(lambda: follower.storage.crashed.is_set(), follower)
        assert contents(follower.engine) == contents(leader.engine), "the data comes first"
        assert follower.base_index == (NEW if is_durable else 0)
        del network.members["n1"]
        await follower.restart()
        assert follower.is_readable()
        assert follower.base_index == NEW
        await until(lambda: follower.files.names() == [], follower)
        await stop_all(follower)

    run(scenario)


def test_a_marker_without_its_file_keeps_the_replica_out_until_another_state_is_here() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        engine = follower.engine
        assert isinstance(engine, CountingEngine)
        engine.crash_at = 7
        await offer(leader, follower)
        await until(lambda: follower.storage.crashed.is_set(), follower)
        for name in follower.files.names():
            follower.files.remove(name)
        del network.members["n1"]
        await follower.restart()
        await until(lambda: len(network.fetches) > 8, follower)
        assert not follower.is_readable()
        assert follower.receiver.unreadable
        assert follower.driver.is_paused
        assert "is fetched again" in follower.receiver.unreadable
        network.members["n1"] = leader
        await until(follower.is_readable, follower)
        assert contents(engine) == contents(leader.engine)
        assert follower.driver.resumed == [stored_state(leader.engine)]
        await stop_all(leader, follower)

    run(scenario)


def test_a_marker_whose_file_is_damaged_gets_another_one() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        engine = follower.engine
        assert isinstance(engine, CountingEngine)
        engine.crash_at = 9
        meta = await offer(leader, follower)
        await until(lambda: follower.storage.crashed.is_set(), follower)
        assert isinstance(follower.files, MemorySnapshotFiles)
        follower.files.damage(f"in-1-{meta.snapshot_id}", 4_000)
        await follower.restart()
        await until(follower.is_readable, follower)
        assert contents(engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


def test_a_file_that_is_damaged_while_it_is_installed_is_replaced() -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        meta = await offer(leader, follower)

        def damage() -> None:
            assert isinstance(follower.files, MemorySnapshotFiles)
            follower.files.damage(f"in-1-{meta.snapshot_id}", meta.size_bytes - 500)

        follower.driver.on_pause = damage
        await until(lambda: has_installed(follower), follower)
        assert contents(follower.engine) == contents(leader.engine)
        assert [each.snapshot_id == meta.snapshot_id for each in follower.log.installs] == [True]
        await stop_all(leader, follower)

    run(scenario)


@pytest.mark.parametrize("before", [0, 1, 5, 17])
def test_a_full_disk_in_the_middle_is_waited_for(before: int) -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        engine = follower.engine
        assert isinstance(engine, CountingEngine)
        full = ResourceExhausted("the disk is full", 1_000, "disk")
        engine.fail_after, engine.failures = before, [full] * 5
        await offer(leader, follower)
        await until(lambda: not engine.failures, follower)
        await until(lambda: follower.log.installs and has_installed(follower), follower)
        assert contents(engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


def test_a_state_that_can_never_fit_leaves_the_old_one_serving() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        engine = follower.engine
        assert isinstance(engine, CountingEngine)
        before = contents(engine)
        engine.limit_bytes = 20_000
        await offer(leader, follower)
        await until(lambda: len(follower.driver.resumed) > 2, follower)
        assert contents(engine) == before
        # Not readable while it looks for room, and readable again behind each attempt.
        looks, readable = follower.changes[0:6:2], follower.changes[1:6:2]
        assert all(looks)
        assert readable == ["", "", ""]
        progress = follower.receiver.progress
        assert progress is not None
        assert "does not fit" in progress.problem
        engine.limit_bytes = 1 << 30
        await until(lambda: follower.log.installs, follower)
        assert contents(engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


def test_without_room_for_the_snapshot_nothing_is_fetched_until_there_is() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        assert isinstance(follower.files, MemorySnapshotFiles)
        follower.files.limit_bytes = 20_000
        await offer(leader, follower)
        await until(lambda: follower.receiver.progress and follower.receiver.progress.problem, follower)
        assert network.fetches == []
        assert follower.is_readable()
        follower.files.limit_bytes = 1 << 30
        await until(lambda: has_installed(follower), follower)
        await stop_all(leader, follower)

    run(scenario)


def test_a_snapshot_of_another_cluster_is_refused_before_its_state() -> None:
    async def scenario() -> None:
        network = Network()
        leader, follower = pair(network)
        leader.cluster_id = "cluster-b"
        leader.begin_life()
        meta = await offer(leader, follower)
        await until(lambda: len(network.fetches) == 2, follower)
        await until(lambda: follower.receiver.progress is None, follower)
        assert network.sent_bytes < meta.size_bytes
        assert follower.driver.resumed == []
        await stop_all(leader, follower)

    run(scenario)


def test_an_offer_whose_id_is_no_name_writes_no_file() -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        meta = await offer(leader, follower)
        evil = type(meta)("../../engine/data", meta.index, meta.term, meta.roster, meta.size_bytes)
        follower.log.snapshot_offer = SnapshotOffer("n1", evil)
        follower.poll()
        await until(lambda: follower.receiver.progress and follower.receiver.progress.problem, follower)
        assert follower.files.names() == []
        await stop_all(leader, follower)

    run(scenario)


def test_a_stop_in_the_middle_of_an_installation_is_taken_up_by_the_next_start() -> None:
    async def scenario() -> None:
        leader, follower = pair(Network())
        engine = follower.engine
        assert isinstance(engine, CountingEngine)
        follower.storage.jobs_max = 6
        await offer(leader, follower)
        await until(lambda: engine.commits == 6, follower)
        await follower.restart()
        await until(lambda: follower.is_readable() and follower.driver.resumed, follower)
        assert contents(engine) == contents(leader.engine)
        await stop_all(leader, follower)

    run(scenario)


def test_small_bounds_are_what_these_tests_rest_on() -> None:
    assert SMALL.transaction_items < 130
