"""Items that no replica has whole: DATA_LOSS, and all else works, until an operator gives it up by name."""

from __future__ import annotations

import logging

import pytest

from cortado.errors import InvalidArgument, NotLeader, Unavailable
from cortado.raft.settings import RaftSettings
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.repair.by_operator import accept_loss
from support.damaged_nodes import (
    NAMES,
    equal,
    fill,
    lose_everywhere,
    meet,
    patrol,
    rot,
    stored_key,
    until_whole,
    value_of,
)
from support.node_world import World
from support.nodes import key, put

# --- items that no replica has -------------------------------------------------------------------------------------


def test_a_key_that_nobody_has_whole_is_data_loss_and_everything_else_works() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        await lose_everywhere(world, "k2")
        for node in nodes:
            meet(node, "k2")
            assert value_of(node, "k1") == b"value 1"
            (case,) = node.meta.integrity.repairs.cases
            assert case.problem == "no other member has a whole copy"
            assert "k2" in case.damage.what
            assert not node.meta.is_installing
        await world.leader().meta.write(put("k1", b"new"), size_bytes=1)
        await world.leader().meta.members.transfer("n2")
        await world.led(but="n1")
        await world.leader().meta.write(put("k3", b"new"), size_bytes=1)
        # A version that is written over it is a whole one.
        await world.leader().meta.write(put("k2", b"new"), size_bytes=1)
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
        await world.until(lambda: (Space.DATA, stored) in n4.meta.integrity.repairs.lost(), "the new one knows it, too")
        assert world.fetches
        assert equal(world)

    world.run(scenario)


def test_no_snapshot_brings_a_lost_version_whose_key_is_in_doubt_until_the_loss_is_accepted() -> None:
    """In its range, reads of its neighbours are refused; it is unknown which keys are there."""
    world = World(settings=RaftSettings(retain_entries=0, retain_bytes=0), limits=NodeLimits(patrol_ms=1_000))

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        await fill(world, count=40)
        place = world.places["n1"]
        true_key = stored_key(place, "k2")
        # Into the future: a read finds nothing any more.
        wrong_key = true_key[:-12] + b"\x00" + true_key[-11:]
        with place.engine.write() as txn:
            value = txn.get(Space.DATA, true_key)
            assert value is not None
            txn.delete(Space.DATA, true_key)
            txn.put(Space.DATA, wrong_key, value)
        await patrol(world, n1)
        await world.until(lambda: (Space.DATA, wrong_key) in n1.meta.integrity.repairs.lost(), "it is lost")
        n2 = await world.join("n2")
        await world.sleep(30_000)
        assert not n2.meta.applied.index
        meet(n1, "k2")
        await accept_loss(n1.meta, wrong_key)
        await world.settled()
        await until_whole(world, n1, n2)
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
            (case,) = node.meta.integrity.repairs.cases
            assert not case.is_lost
            assert "n3 can't be reached" in case.problem
            assert not node.meta.integrity.repairs.lost()
        world.silent.clear()
        await until_whole(world, *nodes)
        assert equal(world)

    world.run(scenario)


def test_who_is_behind_may_have_it_in_its_log_so_it_is_not_lost_yet() -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        await world.leader().meta.write(put("new", b"1"), size_bytes=1)
        await world.settled()
        world.places["n3"].disk.hold()
        await world.leader().meta.write(put("new", b"2"), size_bytes=1)
        await world.sleep(200)
        for name in ("n1", "n2"):
            rot(world.places[name], stored_key(world.places[name], "new"))
            meet(world.places[name].node, "new")
        await world.sleep(30_000)
        for node in nodes[:2]:
            (case,) = node.meta.integrity.repairs.cases
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
        (case,) = n1.meta.integrity.repairs.cases
        assert case.is_lost
        assert case.problem == "there is no other member that could have a copy"
        await n1.meta.write(put("k1", b"new"), size_bytes=1)
        await n1.meta.write(put("k2", b"new"), size_bytes=1)
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
        older = (await world.leader().meta.write(put("k2", b"older"), size_bytes=1)).ts
        await world.leader().meta.write(put("k2", b"newer"), size_bytes=1)
        await world.sleep(100)
        stored = await lose_everywhere(world, "k2")
        await accept_loss(world.leader().meta, stored)
        await world.sleep(100)
        await world.settled()
        assert equal(world)
        for node in nodes:
            assert value_of(node, "k2") is None
            version = node.meta.reader(older).get(key("k2"))
            assert version is not None
            assert version.payload == b"older", "what was before it is what it was"
        await until_whole(world, *nodes)
        await world.leader().meta.write(put("k2", b"again"), size_bytes=1)
        await world.settled()
        assert value_of(nodes[2], "k2") == b"again"

    world.run(scenario)


def test_a_version_in_the_future_that_is_given_up_never_comes_true() -> None:
    """Its timestamp has turned, and the true one is unknown."""
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
        n1.meta.integrity.repairs.report(Damage.at(Space.DATA, turned))
        await world.sleep(10)
        await accept_loss(n1.meta, turned)
        with place.engine.read() as txn:
            assert txn.get(Space.DATA, turned) is None
        await n1.meta.write(put("k2", b"again"), size_bytes=1)
        assert value_of(n1, "k2") == b"again"

    world.run(scenario)


def test_no_loss_is_accepted_of_what_somebody_has_whole_or_may_have(caplog: pytest.LogCaptureFixture) -> None:
    world = World()

    async def scenario() -> None:
        nodes = await world.grow(*NAMES)
        await fill(world)
        leader = world.leader()
        stored = stored_key(world.places["n1"], "k2")
        with pytest.raises(InvalidArgument, match="the leader has nothing damaged under this key"):
            await accept_loss(leader.meta, stored)
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == [], "no damage is told of"
        rot(world.places["n1"], stored)
        with pytest.raises(InvalidArgument, match="the leader has nothing damaged under this key"):
            await accept_loss(leader.meta, stored)
        assert value_of(nodes[0], "k2") == b"value 2", "it was repaired instead"
        world.silent.add("n3")
        for name in ("n1", "n2"):
            rot(world.places[name], stored)
        with pytest.raises(Unavailable, match=r"n3 can't be reached.*start or remove"):
            await accept_loss(leader.meta, stored)
        with pytest.raises(NotLeader):
            await accept_loss(nodes[1].meta, stored)
        for malformed in (b"", bytes(12), bytes(512)):
            with pytest.raises(InvalidArgument, match="a stored key has 13 to 511 bytes"):
                await accept_loss(leader.meta, malformed)
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
        request_id = bytes(n1.meta.read_ts()) + bytes(8)
        first = await accept_loss(n1.meta, stored, request_id=request_id)
        again = await accept_loss(n1.meta, stored, request_id=request_id)
        assert again.repeated
        assert again.ts == first.ts

    world.run(scenario)
