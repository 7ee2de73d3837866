"""Executions that were constructed to break what nodes promise their callers: each must fail to."""

from __future__ import annotations

import asyncio

from support.node_world import World
from support.nodes import increment, put, read


def test_a_group_that_shrinks_to_one_reads_what_it_has_answered() -> None:
    """Alone, what was waiting for the other voter is decided at once, and applied a sync later."""
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        world.hold("n2", "n1")
        writing = asyncio.ensure_future(n1.write(put("a", b"1"), size_bytes=1))
        disk = world.places["n1"].disk
        before = disk.done
        await world.until(lambda: disk.done > before and disk.is_idle, "its own disk has the write")
        assert not writing.done()
        disk.hold()
        removing = asyncio.ensure_future(n1.remove_member("n2"))
        await world.sleep(50)
        newest = asyncio.ensure_future(n1.linearize())
        await world.sleep(50)
        if writing.done():
            answered = writing.result()
            if newest.done():
                assert newest.result() >= answered.ts
        disk.release()
        await removing
        assert await newest >= (await writing).ts

    world.run(scenario)


def test_a_damaged_replica_of_an_idle_group_is_rebuilt() -> None:
    """Nobody has anything newer than what it has applied itself."""
    world = World()

    async def scenario() -> None:
        n1, _, n3 = await world.grow("n1", "n2", "n3")
        await n1.write(put("a", b"1"), size_bytes=1)
        await world.settled()
        await world.sleep(1_000)
        assert n3.snapshots is not None
        await asyncio.wait_for(n3.snapshots.rebuild(), 30)
        assert read(n3, "a") == b"1"
        await n1.write(put("b", b"2"), size_bytes=1)
        await world.settled()
        assert read(n3, "b") == b"2"

    world.run(scenario)


def test_an_address_that_is_anothers_keeps_nobody_from_leading() -> None:
    """An operator's mistake in one node's flags is no reason for it to stop when it is elected."""
    world = World()

    async def scenario() -> None:
        await world.grow("n1", "n2", "n3")
        place = world.places["n2"]
        await place.stop()
        place.address = world.places["n3"].address
        n2 = await place.start()
        await world.sleep(3_000)
        await world.leader().transfer_leader("n2")
        led = await world.led()
        assert led is n2
        assert (await led.write(increment("a"), size_bytes=1)).value == 1
        assert led._turns.failure is None

    world.run(scenario)
