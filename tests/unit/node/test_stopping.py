"""A node that is stopped leaves nothing behind that it knows to be committed: its data can be looked at as it lies. One
that was killed applies it at its start, and has room to do so or waits."""

from __future__ import annotations

import asyncio

from cortado.store.engine.interface import Space
from cortado.store.host.status import node_status
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import applied_key
from support.node_world import World
from support.nodes import NodeDisk, key, put, run, running_node


def test_what_was_acknowledged_right_before_a_stop_is_applied_by_it() -> None:
    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            for number in range(3):
                await node.meta.write(put(f"k{number}", b"v"), size_bytes=1)
            last = node_status(node).last_index
        with disk.engine.read() as txn:
            assert AppliedState.decode(txn.get(Space.META, applied_key(META_GROUP.group_id)) or b"").index == last

    run(scenario)


def test_a_start_waits_for_room_for_what_is_committed_and_says_so() -> None:
    world = World()

    async def scenario() -> None:
        (n1,) = await world.grow("n1")
        place = world.places["n1"]
        place.data.hold()
        await n1.meta.write(put("k", b"v"))
        place.crash()
        limit_bytes, place.engine.limit_bytes = place.engine.limit_bytes, place.engine.use().used_bytes
        starting = asyncio.ensure_future(place.start())
        await world.sleep(5_000)
        assert not starting.done()
        assert "full" in place.node.refused_for
        place.engine.limit_bytes = limit_bytes
        n1 = await starting
        assert n1.refused_for == ""
        found = n1.meta.reader(await n1.meta.reads.linearize()).get(key("k"))
        assert found is not None
        assert found.payload == b"v"

    world.run(scenario)
