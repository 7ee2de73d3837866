"""The host gives messages and finds of the patrol to their replicas, and ends with any of its replicas."""

from __future__ import annotations

import pytest

from cortado.errors import Internal, NotFound
from cortado.store.engine.interface import Disordered, Space
from cortado.store.keys.keyspace import kv_key, meta_key
from cortado.store.mvcc.damage import Damage
from cortado.store.process.range_copies import Ask
from cortado.store.replica.group_range import META_GROUP, GroupRange
from cortado.store.replica.snapshots.marker import Marker, marker_key
from support.memory_engine import MemoryEngine
from support.node_world import World
from support.nodes import run, running_node

OTHER_GROUP = META_GROUP.group_id + 1


def test_every_key_lies_with_the_only_replica() -> None:
    world = World()

    async def scenario() -> None:
        [node] = await world.grow("n1")
        for key in (kv_key("a", b""), kv_key("z", b"\xff" * 100), meta_key("table", 1)):
            assert node.replica_of(key) is node.meta

    world.run(scenario)


def test_what_is_for_a_group_without_a_replica_here_is_dropped_or_not_found() -> None:
    world = World()

    async def scenario() -> None:
        [node] = await world.grow("n1")
        node.receive("n2", OTHER_GROUP, [b"a message"])
        assert node.meta.driver.inbox.use == (0, 0)
        node.receive("n2", META_GROUP.group_id, [b"a message"])
        assert node.meta.driver.inbox.use == (1, 9)
        with pytest.raises(NotFound):
            node.read_snapshot(OTHER_GROUP, "since-0", 0)
        with pytest.raises(NotFound):
            await node.read_range(OTHER_GROUP, Ask(Space.DATA, b"a", b"b"))

    world.run(scenario)


def test_a_replica_that_fails_ends_the_host_and_the_first_reason_is_told() -> None:
    async def scenario() -> None:
        async with running_node() as node:
            first = Internal("first")
            node.meta.driver.fail(first)
            node.process.life.fail(Internal("second"))
            assert await node.process.life.failed() is first

    run(scenario)


def test_a_start_deletes_snapshot_files_of_groups_that_are_not_here() -> None:
    world = World()

    async def scenario() -> None:
        place = world.place("n1", is_first=True)
        for name in ("in-2-12ab", "out-2-12ab", "out-12ab", "in-1-12ab"):
            place.snapshot_files.write(name, 0, b"half a snapshot")
        await place.start()
        assert place.snapshot_files.names() == []

    world.run(scenario)


def test_a_replica_deletes_its_own_leftovers_alone() -> None:
    world = World()

    async def scenario() -> None:
        [node] = await world.grow("n1")
        files = world.places["n1"].snapshot_files
        for name in ("in-2-12ab", "out-2-12ab", "in-1-12ab", "out-1-12ab"):
            files.write(name, 0, b"half a snapshot")
        await node.meta.look_for_leftovers()
        assert files.names() == ["in-2-12ab", "out-2-12ab"]

    world.run(scenario)


def test_a_replica_takes_the_finds_of_its_own_range_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    async def scenario() -> None:
        [node] = await world.grow("n1")
        integrity = node.meta.integrity
        taken: list[Damage] = []
        monkeypatch.setattr(node.meta.store, "on_damage", taken.append)
        monkeypatch.setattr(integrity, "_of", GroupRange(2, (b"g", b"p"), b"\x00\x02"))
        own = [damage(b"a", b"h"), damage(b"m", b"z"), damage(b"a", b"z"), damage(b"", b""), damage(b"h", b"")]
        for each in [damage(b"a", b"g"), *own, damage(b"p", b"z"), damage(b"z", b"")]:
            integrity.found(each)
        assert taken == own

    world.run(scenario)


def test_disorder_found_at_the_opening_outlasts_an_installation_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clearing the old state may stop at a key that has turned, and leave the items behind it."""
    world = World()

    async def scenario() -> None:
        await world.grow("n1", "n2", "n3")
        place = world.places["n2"]
        await place.stop()
        with place.engine.write() as txn:
            txn.put(Space.META, marker_key(META_GROUP.group_id), Marker().encode())
        disordered = [Disordered(Space.REQUESTS, b"\0\0\0\1", b"\0\0\0\2")]
        monkeypatch.setattr(MemoryEngine, "disordered", disordered, raising=False)
        world.cut_off("n2")
        node = await place.start()
        assert node.meta.is_installing
        assert [each.start for each in node.meta.store.suspect_requests] == [b"\0\0\0\1"]

    world.run(scenario)


def damage(start: bytes, end: bytes) -> Damage:
    return Damage(Space.DATA, start, end, "found by the patrol")
