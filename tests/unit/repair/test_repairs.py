"""Whole nodes with damage in their data: it is repaired in place, from a member that has it whole. Nothing is given
up."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss, Unavailable
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.repair import ranges, repairs
from cortado.store.replica.repair.by_operator import accept_loss, rebuild
from support.damaged_nodes import (
    NAMES,
    equal,
    fill,
    meet,
    patrol,
    rot,
    stored_key,
    until_whole,
    value_of,
)
from support.node_world import World
from support.nodes import key, put


@pytest.mark.parametrize("victim", NAMES)
def test_a_read_that_meets_damage_has_it_repaired_at_a_leader_too(victim: str) -> None:
    world = World()

    async def scenario() -> None:
        await world.grow(*NAMES)
        await fill(world)
        place = world.places[victim]
        leader = world.leader()
        rot(place, stored_key(place, "k2"))
        meet(place.node, "k2")
        assert value_of(place.node, "k1") == b"value 1"
        await until_whole(world, place.node)
        assert value_of(place.node, "k2") == b"value 2"
        assert equal(world)
        assert world.leader() is leader, "nobody had to hand over"
        assert not place.node.meta.is_installing
        assert place.node.meta.integrity.repairs.counts.repaired == 1

    world.run(scenario)


@pytest.mark.parametrize(
    ("items_max", "count", "with_key"), [(10, 45, False), (10, 45, True), (ranges.ITEMS_MAX, 1_100, True)]
)
def test_more_damaged_items_in_a_row_than_an_answer_holds_are_repaired(
    monkeypatch: pytest.MonkeyPatch, items_max: int, count: int, with_key: bool
) -> None:
    monkeypatch.setattr(ranges, "ITEMS_MAX", items_max)
    world = World()

    async def scenario() -> None:
        await world.grow("n1", "n2")
        await fill(world, count=count)
        place = world.places["n1"]
        for number in range(count):
            rot(place, stored_key(place, f"k{number}"), with_key=with_key)
        meet(place.node, "k2")
        await until_whole(world, place.node)
        assert equal(world)
        assert place.node.meta.integrity.repairs.counts.repaired == 1

    world.run(scenario)


def test_more_damage_in_a_row_than_is_mended_at_once_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "ITEMS_MAX", 10)
    monkeypatch.setattr(repairs, "RANGE_BYTES_MAX", 500)
    world = World()

    async def scenario() -> None:
        await world.grow("n1", "n2")
        await fill(world, count=45)
        place = world.places["n1"]
        for number in range(45):
            rot(place, stored_key(place, f"k{number}"), with_key=True)
        meet(place.node, "k2")
        found = place.node.meta.integrity.repairs
        await world.until(lambda: any(each.problem for each in found.cases), "it was tried")
        assert "more than 500 B are damaged in a row: replace this node" in found.cases[0].problem
        assert not found.cases[0].is_lost
        with place.engine.read() as txn:
            assert txn.get(Space.DATA, stored_key(place, "k40")) is not None, "nothing goes before all is there"

    world.run(scenario)


def test_damage_in_each_replica_at_different_keys_is_repaired() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        for number, name in enumerate(NAMES):
            rot(world.places[name], stored_key(world.places[name], f"k{number}"))
        for number, node in enumerate(nodes):
            meet(node, f"k{number}")
        await until_whole(world, *nodes)
        assert equal(world)
        await world.leader().meta.write(put("later", b"v"), size_bytes=1)

    world.run(scenario)


@pytest.mark.parametrize("whole", NAMES)
def test_the_same_key_on_two_of_three_is_repaired_from_the_third(whole: str) -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        for name in set(NAMES) - {whole}:
            rot(world.places[name], stored_key(world.places[name], "k3"))
            meet(world.places[name].node, "k3")
        await until_whole(world, *nodes)
        assert equal(world)

    world.run(scenario)


def test_a_member_that_is_asked_and_finds_its_own_copy_damaged_repairs_that() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        for name in ("n1", "n2"):
            rot(world.places[name], stored_key(world.places[name], "k3"))
        meet(nodes[0], "k3")
        await until_whole(world, *nodes)
        assert value_of(nodes[1], "k3") == b"value 3", "nobody read it there"
        assert equal(world)

    world.run(scenario)


def test_a_remembered_request_is_repaired_as_well() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        request_id = bytes(nodes[0].meta.read_ts()) + bytes(8)
        first = await nodes[0].meta.write(put("a", b"1"), size_bytes=1, request_id=request_id)
        await world.settled()
        place = world.places["n1"]
        stored = (1).to_bytes(4) + request_id
        rot(place, stored, Space.REQUESTS)
        nodes[0].meta.integrity.repairs.report(Damage.at(Space.REQUESTS, stored))
        await until_whole(world, nodes[0])
        again = await nodes[0].meta.write(put("a", b"2"), size_bytes=1, request_id=request_id)
        assert again.repeated
        assert again.ts == first.ts

    world.run(scenario)


# --- findings of the node's own patrol -----------------------------------------------------------------------------


def test_a_row_whose_timestamp_has_turned_is_found_by_the_patrol_and_repaired() -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        place = world.places["n2"]
        true = stored_key(place, "k2")
        turned = true[:-9] + bytes([true[-9] & 0xBF]) + true[-8:]
        with place.engine.write() as txn:
            value = txn.get(Space.DATA, true)
            assert value is not None
            txn.delete(Space.DATA, true)
            txn.put(Space.DATA, turned, value)
        await patrol(world, nodes[1])
        await until_whole(world, nodes[1])
        assert value_of(nodes[1], "k2") == b"value 2"
        assert not nodes[1].meta.store.suspect, "it is trusted again"
        assert equal(world)

    world.run(scenario)


def test_beside_a_lost_key_that_one_replica_knows_to_be_right_everything_is_read_and_written() -> None:
    """A patrol's range goes from neighbour to neighbour, and nothing of it is answered while its keys are in doubt."""
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        stored = stored_key(world.places["n1"], "k4")
        for name, place in world.places.items():
            rot(place, stored, with_key=name != "n2")
        for node in nodes:
            await patrol(world, node)
        await world.until(
            lambda: all((Space.DATA, stored) in node.meta.integrity.repairs.lost() for node in nodes), "it is lost"
        )
        for node in nodes:
            meet(node, "k4")
            assert value_of(node, "k40") is None
        await world.leader().meta.write(put("k40", b"beside it"), size_bytes=1)
        await world.settled()
        for node in nodes:
            assert value_of(node, "k40") == b"beside it"

    world.run(scenario)


def test_a_key_that_all_name_alike_and_none_knows_to_be_right_leaves_its_neighbours_in_doubt() -> None:
    """The same bit may have turned everywhere: then it is another one's key."""
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        stored = stored_key(world.places["n1"], "k4")
        for place in world.places.values():
            rot(place, stored, with_key=True)
        for node in nodes:
            await patrol(world, node)
        await world.until(
            lambda: all((Space.DATA, stored) in node.meta.integrity.repairs.lost() for node in nodes), "it is lost"
        )
        for node in nodes:
            meet(node, "k40")
        await accept_loss(world.leader().meta, stored)
        await until_whole(world, *nodes)
        for node in nodes:
            assert value_of(node, "k4") is None
            assert value_of(node, "k40") is None

    world.run(scenario)


def test_alone_everything_beside_a_damaged_version_is_read_and_written_and_so_is_its_key_again() -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        before = n1.meta.read_ts()
        rot(world.places["n1"], stored_key(world.places["n1"], "k2"))
        await patrol(world, n1)
        meet(n1, "k2")
        for name, value in (("k1", b"value 1"), ("k20", None), ("k3", b"value 3")):
            assert value_of(n1, name) == value
        await n1.meta.write(put("k20", b"beside it"), size_bytes=1)
        await n1.meta.write(put("k2", b"written again"), size_bytes=1)
        assert value_of(n1, "k2") == b"written again"
        await n1.meta.reads.caught_up()
        pairs = dict(n1.meta.reader(n1.meta.read_ts()).scan(key("k"), key("l")))
        assert pairs[key("k2")].payload == b"written again"
        assert len(pairs) == 6
        with pytest.raises(DataLoss):
            list(n1.meta.reader(before).scan(key("k"), key("l")))
        assert [each.is_lost for each in n1.meta.integrity.repairs.items()] == [True], (
            "an operator hears of it all the same"
        )

    world.run(scenario)


def test_alone_the_neighbours_of_what_may_be_another_key_are_in_doubt_until_the_loss_is_accepted() -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        stored = stored_key(world.places["n1"], "k4")
        rot(world.places["n1"], stored, with_key=True)
        await patrol(world, n1)
        meet(n1, "k40")
        await accept_loss(n1.meta, stored)
        await until_whole(world, n1)
        assert value_of(n1, "k40") is None
        assert value_of(n1, "k4") is None

    world.run(scenario)


# --- everything ----------------------------------------------------------------------------------------------------


def test_an_operator_has_everything_compared_and_made_the_same_while_the_node_serves() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world, count=30)
        place = world.places["n3"]
        with place.engine.write() as txn:
            txn.delete(Space.DATA, stored_key(place, "k7"))
            txn.put(Space.DATA, stored_key(place, "k8"), b"Pinvented")
        assert value_of(nodes[2], "k7") is None
        await rebuild(nodes[2].meta)
        assert not nodes[2].meta.is_installing
        assert equal(world)
        assert nodes[2].meta.integrity.repairs.counts.items_put == 2

    world.run(scenario)


def test_a_comparison_with_nobody_who_answers_ends_and_changes_nothing() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        world.silent.update(("n1", "n2"))
        with pytest.raises(Unavailable, match="no other member's copy can be had"):
            await rebuild(nodes[2].meta)
        assert value_of(nodes[2], "k1") == b"value 1"
        assert equal(world)

    world.run(scenario)
