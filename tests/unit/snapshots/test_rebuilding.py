"""A replica whose data is damaged gives it up, and gets another member's state: it is never answered from."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import DataLoss, ResourceExhausted
from cortado.raft.configuration import Configuration
from support.nodes import run
from support.spools import CountingEngine, Network, Replica, contents, fill, offer, stop_all, stored_state, until

DAMAGE = DataLoss("k000007", "a stored version has a wrong checksum")


def trio(network: Network, *, own: int = 80, others: tuple[int, int] = (80, 85)) -> tuple[Replica, Replica, Replica]:
    """A damaged replica n1 and two whole ones; n3 leads."""
    replicas = tuple(Replica(network, name) for name in ("n1", "n2", "n3"))
    for replica, index in zip(replicas, (own, *others), strict=True):
        fill(replica.engine, index=index, rows=100 + index)
        replica.begin_life()
        replica.log.leader = "n3"
    return replicas[0], replicas[1], replicas[2]


def test_it_takes_the_leaders_state_and_goes_on_from_there() -> None:
    async def scenario() -> None:
        damaged, second, leader = trio(Network())
        await damaged.snapshots.rebuild()
        assert contents(damaged.engine) == contents(leader.engine)
        assert damaged.turns.resumed == [stored_state(leader.engine)]
        assert damaged.is_readable()
        assert damaged.snapshots.may_lead
        assert damaged.log.installs[0].index == 85
        await stop_all(damaged, second, leader)

    run(scenario)


def test_nothing_is_read_from_it_in_the_meantime() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network)
        network.hold = asyncio.Event()
        rebuilding = asyncio.ensure_future(damaged.snapshots.rebuild())
        await until(lambda: network.fetches, damaged)
        assert not damaged.is_readable()
        assert not damaged.snapshots.may_lead
        assert damaged.turns.is_paused
        network.hold.set()
        await rebuilding
        assert damaged.is_readable()
        await stop_all(damaged, second, leader)

    run(scenario)


def test_a_restart_in_between_does_not_take_the_damage_for_a_state() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network)
        network.hold = asyncio.Event()
        damaged.snapshots.report_damage(DAMAGE)
        damaged.snapshots.report_damage(DAMAGE)
        await until(lambda: network.fetches, damaged)
        await damaged.restart()
        assert not damaged.is_readable()
        assert damaged.turns.is_paused
        network.hold.set()
        damaged.log.leader = "n3"
        await until(damaged.is_readable, damaged)
        assert contents(damaged.engine) == contents(leader.engine)
        await stop_all(damaged, second, leader)

    run(scenario)


def test_a_member_that_is_behind_is_no_source() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network, own=90, others=(80, 85))
        rebuilding = asyncio.ensure_future(damaged.snapshots.rebuild())
        await until(lambda: len(network.fetches) > 6, damaged)
        assert {peer for peer, _, _ in network.fetches} == {"n2", "n3"}
        assert network.sent_bytes == 0
        fill(second.engine, index=90, rows=33)
        await rebuilding
        assert contents(damaged.engine) == contents(second.engine)
        await stop_all(damaged, second, leader)

    run(scenario)


def test_another_member_helps_where_the_leader_cannot() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network)
        del network.members["n3"]
        await damaged.snapshots.rebuild()
        assert contents(damaged.engine) == contents(second.engine)
        await stop_all(damaged, second, leader)

    run(scenario)


def test_two_damaged_ones_do_not_take_each_others_state() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network)
        del network.members["n3"]
        both = [asyncio.ensure_future(each.snapshots.rebuild()) for each in (damaged, second)]
        await until(lambda: len(network.fetches) > 20, damaged, second)
        assert network.sent_bytes == 0
        network.members["n3"] = leader
        await asyncio.gather(*both)
        assert contents(damaged.engine) == contents(second.engine) == contents(leader.engine)
        await stop_all(damaged, second, leader)

    run(scenario)


def test_a_leader_hands_over_before_it_gives_its_state_up() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network)
        damaged.log.leader = "n1"
        rebuilding = asyncio.ensure_future(damaged.snapshots.rebuild())
        await until(lambda: not damaged.snapshots.may_lead, damaged)
        assert damaged.changes == [("", False)]
        assert damaged.is_readable(), "others depend on it until somebody else leads"
        assert not damaged.turns.is_paused
        damaged.log.leader = ""
        await until(lambda: damaged.turns.is_paused, damaged)
        damaged.log.leader = "n3"
        await rebuilding
        assert damaged.snapshots.may_lead
        assert contents(damaged.engine) in (contents(second.engine), contents(leader.engine))
        await stop_all(damaged, second, leader)

    run(scenario)


def test_the_only_copy_is_kept_however_damaged() -> None:
    async def scenario() -> None:
        damaged = Replica(Network(), "n1")
        fill(damaged.engine, index=80)
        damaged.log.configuration = Configuration(voters=damaged.log.configuration.voters[:1])
        before = contents(damaged.engine)
        with pytest.raises(DataLoss, match="no other member has a copy"):
            await damaged.snapshots.rebuild()
        damaged.snapshots.report_damage(DAMAGE)
        await asyncio.sleep(0.01)
        assert damaged.is_readable()
        assert contents(damaged.engine) == before
        await stop_all(damaged)

    run(scenario)


def test_a_full_disk_keeps_the_damage_marked_as_soon_as_there_is_room() -> None:
    async def scenario() -> None:
        damaged, second, leader = trio(Network())
        assert isinstance(damaged.engine, CountingEngine)
        damaged.engine.failures = [ResourceExhausted("the disk is full", 1_000, "disk")] * 3
        await damaged.snapshots.rebuild()
        assert contents(damaged.engine) == contents(leader.engine)
        await stop_all(damaged, second, leader)

    run(scenario)


def test_damage_that_is_met_while_a_snapshot_comes_is_mended_by_it_or_another() -> None:
    async def scenario() -> None:
        network = Network()
        damaged, second, leader = trio(network)
        network.hold = asyncio.Event()
        await offer(leader, damaged)
        await until(lambda: network.fetches, damaged)
        rebuilding = asyncio.ensure_future(damaged.snapshots.rebuild())
        await until(lambda: not damaged.is_readable(), damaged)
        network.hold.set()
        await rebuilding
        assert contents(damaged.engine) == contents(leader.engine)
        await stop_all(damaged, second, leader)

    run(scenario)
