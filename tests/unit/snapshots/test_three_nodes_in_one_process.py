"""Whole nodes: a member that was cut off is brought up by a snapshot while the others serve, under any events
meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import CortadoError, DataLoss, Unavailable
from cortado.store.engine.interface import Space
from support.nodes import key
from support.snapshot_cluster import Member, SnapshotCluster, bound, run, three_nodes, until

pytestmark = pytest.mark.slow

LARGE = 150_000


async def fall_behind(cluster: SnapshotCluster, size_bytes: int = LARGE) -> tuple[Member, Member]:
    """Cut a follower off until the leader's log no longer reaches back to it: (leader, follower)."""
    await cluster.write_many(5)
    leader = cluster.leader
    assert leader is not None
    follower = next(each for each in cluster.members.values() if each is not leader)
    await cluster.converged()
    behind = follower.applied_index
    # A new member may have begun with one.
    follower.engine.installing = 0
    cluster.cut.add(follower.node_id)
    await cluster.write_many(60, size_bytes)
    await until(lambda: leader.node.meta.log.window.base[0] > behind)
    return leader, follower


def is_brought_up(follower: Member) -> bool:
    """Return whether it has installed a snapshot since it fell behind, and serves."""
    return follower.engine.installing >= 5 and follower.node.meta.ready


def test_a_follower_that_was_cut_off_comes_back_while_writes_go_on() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            _, follower = await fall_behind(cluster)
            cluster.fetches.clear()
            async with cluster.being_written():
                cluster.cut.clear()
                await until(lambda: is_brought_up(follower))
            assert cluster.fetches
            await cluster.converged()
            await cluster.write_many(3)
            await cluster.converged()
            await until(lambda: follower.files.names() == [])

    run(scenario)


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("transaction", range(1, 8))
def test_killed_at_a_transaction_of_its_installation_it_comes_back(transaction: int, is_durable: bool) -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            _, follower = await fall_behind(cluster)
            follower.engine.crash_at, follower.engine.is_durable = transaction, is_durable
            async with cluster.being_written():
                cluster.cut.clear()
                # The last number is behind the end if the first snapshot that was made was a small one.
                await until(lambda: follower.storage.crashed.is_set() or is_brought_up(follower))
                assert transaction > 4 or follower.storage.crashed.is_set()
                if follower.storage.crashed.is_set():
                    await follower.crash()
                    await follower.start()
                await until(lambda: follower.node.meta.ready)
            await cluster.converged()

    run(scenario)


def test_a_leader_that_is_killed_in_mid_transfer_is_replaced() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            leader, follower = await fall_behind(cluster)
            cluster.hold.clear()
            cluster.fetches.clear()
            cluster.cut.clear()
            await until(lambda: cluster.fetches)
            await leader.crash()
            cluster.hold.set()
            # Two of three are a majority only with the one that is behind.
            await cluster.write_many(3)
            await leader.start()
            await cluster.converged()
            assert follower.engine.installing >= 5

    run(scenario)


def test_a_member_that_is_slower_than_the_log_forgets_is_brought_up_all_the_same() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            leader, follower = await fall_behind(cluster)
            cluster.hold.clear()
            cluster.fetches.clear()
            cluster.cut.clear()
            await until(lambda: cluster.fetches)
            base = leader.node.meta.log.window.base
            # Five times the entries that the log keeps, while the first chunk is on its way.
            await cluster.write_many(100)
            assert leader.node.meta.log.window.base == base, "what follows the snapshot is kept"
            cluster.hold.set()
            await cluster.converged()
            assert len({snapshot_id for _, snapshot_id, _ in cluster.fetches}) == 1
            assert follower.engine.installing >= 5
            await cluster.write_many(60)
            await cluster.converged()
            assert leader.node.meta.log.window.base > base, "and goes when it is needed no longer"

    run(scenario)


def test_leadership_that_moves_in_mid_transfer_costs_nothing() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            leader, follower = await fall_behind(cluster)
            third = next(each for each in cluster.members.values() if each not in (leader, follower))
            cluster.hold.clear()
            cluster.fetches.clear()
            cluster.cut.clear()
            await until(lambda: cluster.fetches)
            assert await leader.node.meta.members.transfer(third.node_id) == third.node_id
            cluster.hold.set()
            await cluster.write_many(3)
            await cluster.converged()
            assert follower.engine.installing >= 5

    run(scenario)


def test_a_snapshot_that_is_corrupted_on_its_way_is_never_installed() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            _, follower = await fall_behind(cluster)
            cluster.flip_at = {1_000_000}
            cluster.fetches.clear()
            cluster.cut.clear()
            await until(lambda: is_brought_up(follower))
            assert not cluster.flip_at
            assert [offset for _, _, offset in cluster.fetches] == [0, 0]
            await cluster.converged()

    run(scenario)


def damage(member: Member, name: str) -> None:
    """Flip a bit of a stored value, as a bad disk does."""
    with member.engine.write() as txn:
        found = txn.seek(Space.DATA, key(name))
        assert found is not None
        engine_key, value = found
        txn.put(Space.DATA, engine_key, value[:7] + bytes([value[7] ^ 8]) + value[8:])


@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
def test_a_damaged_value_is_repaired_from_the_others_under_load(leads: bool) -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            await cluster.write_many(10)
            await cluster.converged()
            leader = cluster.leader
            damaged = next(each for each in cluster.members.values() if (each is leader) is leads)
            damage(damaged, "row 00003")
            damaged.engine.installing = 0
            async with cluster.being_written():
                with pytest.raises(DataLoss):
                    damaged.value("row 00003")
                await until(lambda: damaged.node.meta.integrity.repairs.counts.repaired)
            assert cluster.leader is leader
            assert not damaged.engine.installing
            await cluster.converged()

    run(scenario)


def test_reads_are_refused_and_never_wrong_while_a_state_is_replaced() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            _, follower = await fall_behind(cluster)
            before = dict(cluster.written)
            answers: list[str] = []
            cluster.cut.clear()
            while not is_brought_up(follower):
                try:
                    got = follower.value("row 00002")
                    assert got == before["row 00002"]
                    answers.append("right")
                except Unavailable as refused:
                    assert "can't be read now" in refused.message()
                    answers.append("refused")
                await asyncio.sleep(0.001)
            assert {"right", "refused"} <= set(answers)
            await cluster.converged()

    run(scenario)


def test_a_new_member_of_a_long_history_begins_with_a_snapshot() -> None:
    async def scenario() -> None:
        async with three_nodes() as cluster:
            await fall_behind(cluster)
            cluster.cut.clear()
            await cluster.converged()
            newcomer = cluster.members["n4"] = Member(cluster, "n4")
            before = len(cluster.fetches)
            leader = cluster.leader
            assert leader is not None
            newcomer.joined = await leader.node.meta.members.add("n4", "n4:7622")
            await newcomer.start()
            await leader.node.meta.bind_member(bound("n4"))
            await until(lambda: newcomer.engine.installing)
            await cluster.converged()
            assert len(cluster.fetches) > before

    run(scenario)


def test_the_damage_of_a_group_of_one_stays_where_it_is() -> None:
    async def scenario() -> None:
        cluster = SnapshotCluster()
        only = cluster.members["n1"]
        await only.start()
        await cluster.write_many(5)
        await only.node.meta.reads.caught_up()
        damage(only, "row 00003")
        with pytest.raises(CortadoError):
            only.value("row 00003")
        await cluster.write_many(2)
        assert only.value("row 00007") is not None
        await only.node.stop()

    run(scenario)
