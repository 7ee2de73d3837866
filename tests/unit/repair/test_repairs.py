"""Whole nodes with damage in their data: it is repaired in place, from whoever has it whole. Nothing is given up."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss, InvalidArgument, NotLeader, Unavailable
from cortado.raft.settings import RaftSettings
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from cortado.store.node.limits import NodeLimits
from cortado.store.node.node import Node
from support.node_world import Place, World
from support.nodes import key, put

NAMES = ("n1", "n2", "n3")


def stored_key(place: Place, name: str) -> bytes:
    """Of the newest version of a pair."""
    with place.engine.read() as txn:
        found = txn.seek(Space.DATA, key(name))
    assert found is not None
    return found[0]


def rot(place: Place, stored: bytes, space: Space = Space.DATA) -> None:
    """A bit of what is stored turns, behind the node's back."""
    with place.engine.write() as txn:
        value = txn.get(space, stored)
        assert value is not None
        txn.put(space, stored, value[:-5] + bytes([value[-5] ^ 1]) + value[-4:])


def value_of(node: Node, name: str) -> bytes | None:
    version = node.reader(node.read_ts()).get(key(name))
    return None if version is None else version.payload


def meet(node: Node, name: str) -> None:
    with pytest.raises(DataLoss):
        value_of(node, name)


async def fill(world: World, *, count: int = 5) -> None:
    for number in range(count):
        await world.leader().write(put(f"k{number}", b"value %d" % number), size_bytes=1)
    await world.sleep(100)
    await world.settled()


async def until_whole(world: World, *nodes: Node) -> None:
    await world.sleep(1)  # What a read met is told to the loop.
    await world.until(lambda: not any(node.repairs.cases for node in nodes), "everything is whole")


def equal(world: World) -> bool:
    def data(place: Place) -> list[tuple[bytes, bytes]]:
        with place.engine.read() as txn:
            return [(each, value()) for each, value in txn.walk(Space.DATA, b"\0")]

    first, *others = (data(place) for place in world.places.values())
    return all(other == first for other in others)


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
        assert not place.node.is_installing
        assert place.node.repairs.counts.repaired == 1

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
        await world.leader().write(put("later", b"v"), size_bytes=1)

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
        request_id = bytes(nodes[0].read_ts()) + bytes(8)
        first = await nodes[0].write(put("a", b"1"), size_bytes=1, request_id=request_id)
        await world.sleep(100)
        place = world.places["n1"]
        stored = (1).to_bytes(4) + request_id
        rot(place, stored, Space.REQUESTS)
        nodes[0].repairs.report(Damage.at(Space.REQUESTS, stored))
        await until_whole(world, nodes[0])
        again = await nodes[0].write(put("a", b"2"), size_bytes=1, request_id=request_id)
        assert again.repeated
        assert again.ts == first.ts

    world.run(scenario)


# --- what the node's own patrol finds ------------------------------------------------------------------------------


async def patrol(world: World, node: Node) -> None:
    """Let the node's pass over everything go by."""
    passes = node.patrol.progress.passes
    await world.until(lambda: node.patrol.progress.passes > passes + 1, "a whole pass", patience_ms=10_000_000)


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
        assert not nodes[1].store.suspect, "it is trusted again"
        assert equal(world)

    world.run(scenario)


def test_beside_a_lost_key_that_several_replicas_name_everything_is_read_and_written() -> None:
    """A patrol's range goes from neighbour to neighbour, and nothing of it is answered while its keys are in doubt."""
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        stored = stored_key(world.places["n1"], "k4")
        for place in world.places.values():
            rot(place, stored)
        for node in nodes:
            await patrol(world, node)
        await world.until(lambda: all((Space.DATA, stored) in node.repairs.lost() for node in nodes), "it is lost")
        for node in nodes:
            meet(node, "k4")
            assert value_of(node, "k40") is None
        await world.leader().write(put("k40", b"beside it"), size_bytes=1)
        await world.settled()
        for node in nodes:
            assert value_of(node, "k40") == b"beside it"

    world.run(scenario)


def test_alone_the_neighbours_of_a_damaged_version_are_in_doubt_until_the_loss_is_accepted() -> None:
    world = World(limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        stored = stored_key(world.places["n1"], "k4")
        rot(world.places["n1"], stored)
        await patrol(world, n1)
        meet(n1, "k40")
        await n1.accept_loss(stored)
        await until_whole(world, n1)
        assert value_of(n1, "k40") is None
        assert value_of(n1, "k4") is None

    world.run(scenario)


# --- what nobody has -----------------------------------------------------------------------------------------------


async def lose_everywhere(world: World, name: str) -> bytes:
    stored = stored_key(world.places["n1"], name)
    for place in world.places.values():
        rot(place, stored)
        meet(place.node, name)
    await world.until(
        lambda: all((Space.DATA, stored) in place.node.repairs.lost() for place in world.places.values()), "it is lost"
    )
    return stored


def test_a_key_that_nobody_has_whole_is_data_loss_and_everything_else_works() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        await lose_everywhere(world, "k2")
        for node in nodes:
            meet(node, "k2")
            assert value_of(node, "k1") == b"value 1"
            (case,) = node.repairs.cases
            assert case.problem == "no other member has a whole copy"
            assert "k2" in case.damage.what
            assert not node.is_installing
        await world.leader().write(put("k1", b"new"), size_bytes=1)
        await world.leader().transfer_leader("n2")
        await world.led(but="n1")
        await world.leader().write(put("k3", b"new"), size_bytes=1)
        # A version that is written over it is a whole one.
        await world.leader().write(put("k2", b"new"), size_bytes=1)
        await world.settled()
        for node in nodes:
            assert [value_of(node, name) for name in ("k1", "k2", "k3")] == [b"new"] * 3

    world.run(scenario)


def test_a_new_member_is_brought_a_snapshot_in_which_the_lost_key_is_as_lost() -> None:
    world = World(settings=RaftSettings(retain_entries=0, retain_bytes=0))

    async def scenario() -> None:
        await world.grow(*NAMES)
        await fill(world, count=40)
        stored = await lose_everywhere(world, "k2")
        n4 = await world.join("n4")
        await world.promote("n4")
        await world.settled()
        assert value_of(n4, "k1") == b"value 1"
        meet(n4, "k2")
        await world.until(lambda: (Space.DATA, stored) in n4.repairs.lost(), "the new one knows it, too")
        assert world.fetches
        assert equal(world)

    world.run(scenario)


def test_a_new_member_that_has_it_from_the_log_brings_it_back() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        await lose_everywhere(world, "k2")
        await world.join("n4")
        await until_whole(world, *nodes)
        assert equal(world)

    world.run(scenario)


def test_who_cannot_be_asked_may_have_it_so_it_is_not_lost_yet() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        world.silent.add("n3")
        for name in ("n1", "n2"):
            rot(world.places[name], stored_key(world.places[name], "k2"))
            meet(world.places[name].node, "k2")
        await world.sleep(30_000)
        for node in nodes[:2]:
            (case,) = node.repairs.cases
            assert not case.is_lost
            assert "n3 can't be reached" in case.problem
            assert not node.repairs.lost()
        world.silent.clear()
        await until_whole(world, *nodes)
        assert equal(world)

    world.run(scenario)


def test_who_is_behind_may_have_it_in_its_log_so_it_is_not_lost_yet() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        await world.leader().write(put("new", b"1"), size_bytes=1)
        await world.settled()
        world.places["n3"].disk.hold()
        await world.leader().write(put("new", b"2"), size_bytes=1)
        await world.sleep(200)
        for name in ("n1", "n2"):
            rot(world.places[name], stored_key(world.places[name], "new"))
            meet(world.places[name].node, "new")
        await world.sleep(30_000)
        for node in nodes[:2]:
            (case,) = node.repairs.cases
            assert not case.is_lost
            assert "n3: it is behind" in case.problem
        world.places["n3"].disk.release()
        await until_whole(world, *nodes)
        assert [value_of(node, "new") for node in nodes] == [b"2"] * 3

    world.run(scenario)


def test_a_node_alone_says_that_there_is_no_other_copy_and_goes_on() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        rot(world.places["n1"], stored_key(world.places["n1"], "k2"))
        meet(n1, "k2")
        await world.sleep(100)
        (case,) = n1.repairs.cases
        assert case.is_lost
        assert case.problem == "there is no other member that could have a copy"
        await n1.write(put("k1", b"new"), size_bytes=1)
        await n1.write(put("k2", b"new"), size_bytes=1)
        assert value_of(n1, "k2") == b"new"

    world.run(scenario)


def test_a_learner_helps_a_node_alone() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        await world.join("n2")
        await world.settled()
        rot(world.places["n1"], stored_key(world.places["n1"], "k2"))
        meet(n1, "k2")
        await until_whole(world, n1)
        assert value_of(n1, "k2") == b"value 2"

    world.run(scenario)


# --- a loss is accepted --------------------------------------------------------------------------------------------


def test_an_accepted_loss_is_a_deletion_at_its_timestamp_on_every_replica() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        older = (await world.leader().write(put("k2", b"older"), size_bytes=1)).ts
        await world.leader().write(put("k2", b"newer"), size_bytes=1)
        await world.sleep(100)
        stored = await lose_everywhere(world, "k2")
        await world.leader().accept_loss(stored)
        await world.sleep(100)
        await world.settled()
        assert equal(world)
        for node in nodes:
            assert value_of(node, "k2") is None
            version = node.reader(older).get(key("k2"))
            assert version is not None
            assert version.payload == b"older", "what was before it is what it was"
        await until_whole(world, *nodes)
        await world.leader().write(put("k2", b"again"), size_bytes=1)
        await world.settled()
        assert value_of(nodes[2], "k2") == b"again"

    world.run(scenario)


def test_a_version_in_the_future_that_is_given_up_never_comes_true() -> None:
    """Its timestamp has turned, and nobody knows the true one."""
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        place = world.places["n1"]
        true = stored_key(place, "k2")
        turned = true[:-9] + bytes([true[-9] & 0xBF]) + true[-8:]
        assert turned < true, "a larger timestamp"
        with place.engine.write() as txn:
            value = txn.get(Space.DATA, true)
            assert value is not None
            txn.delete(Space.DATA, true)
            txn.put(Space.DATA, turned, value)
        n1.repairs.report(Damage.at(Space.DATA, turned))
        await world.sleep(10)
        await n1.accept_loss(turned)
        with place.engine.read() as txn:
            assert txn.get(Space.DATA, turned) is None
        await n1.write(put("k2", b"again"), size_bytes=1)
        assert value_of(n1, "k2") == b"again"

    world.run(scenario)


def test_no_loss_is_accepted_of_what_somebody_has_whole_or_may_have() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        leader = world.leader()
        stored = stored_key(world.places["n1"], "k2")
        with pytest.raises(InvalidArgument, match="is not damaged on the leader"):
            await leader.accept_loss(stored)
        rot(world.places["n1"], stored)
        with pytest.raises(InvalidArgument, match="is not damaged on the leader"):
            await leader.accept_loss(stored)
        assert value_of(nodes[0], "k2") == b"value 2", "it was repaired instead"
        world.silent.add("n3")
        for name in ("n1", "n2"):
            rot(world.places[name], stored)
        with pytest.raises(Unavailable, match=r"n3 can't be reached.*start or remove"):
            await leader.accept_loss(stored)
        with pytest.raises(NotLeader):
            await nodes[1].accept_loss(stored)
        for malformed in (b"", bytes(12), bytes(512)):
            with pytest.raises(InvalidArgument, match="a stored key has 13 to 511 bytes"):
                await leader.accept_loss(malformed)
        world.silent.clear()
        await until_whole(world, *nodes)
        assert equal(world)

    world.run(scenario)


def test_a_loss_is_accepted_once_where_the_request_is_repeated() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world)
        stored = stored_key(world.places["n1"], "k2")
        rot(world.places["n1"], stored)
        request_id = bytes(n1.read_ts()) + bytes(8)
        first = await n1.accept_loss(stored, request_id=request_id)
        again = await n1.accept_loss(stored, request_id=request_id)
        assert again.repeated
        assert again.ts == first.ts

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
        await nodes[2].rebuild()
        assert not nodes[2].is_installing
        assert equal(world)
        assert nodes[2].repairs.counts.items_put == 2

    world.run(scenario)


def test_a_comparison_with_nobody_who_answers_ends_and_changes_nothing() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        world.silent.update(("n1", "n2"))
        with pytest.raises(Unavailable, match="no other member's copy can be had"):
            await nodes[2].rebuild()
        assert value_of(nodes[2], "k1") == b"value 1"
        assert equal(world)

    world.run(scenario)
