"""The host gives incoming messages to their replica, and ends with any of its replicas."""

from __future__ import annotations

import pytest

from cortado.errors import Internal, NotFound
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key, meta_key
from cortado.store.process.range_copies import Ask
from cortado.store.replica.group_range import META_GROUP
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
