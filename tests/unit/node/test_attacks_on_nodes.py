"""Executions that were constructed to break the promises of nodes to their callers: each must fail to."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import ResourceExhausted, Unavailable
from cortado.raft.bootstrap import force_single_writes
from cortado.store.host.opening import stored_log
from cortado.store.replica.repair.by_operator import rebuild
from support.logs import memory_log_files
from support.node_world import World
from support.nodes import NodeDisk, increment, make_node, put, read, run, running_node


def test_a_group_that_shrinks_to_one_reads_what_it_has_answered() -> None:
    """Alone, entries that waited for the other voter are committed at once, and applied a sync later."""
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        world.hold("n2", "n1")
        writing = asyncio.ensure_future(n1.meta.write(put("a", b"1"), size_bytes=1))
        disk = world.places["n1"].disk
        before = disk.done
        await world.until(lambda: disk.done > before and disk.is_idle, "its own disk has the write")
        assert not writing.done()
        disk.hold()
        removing = asyncio.ensure_future(n1.meta.members.remove("n2"))
        await world.sleep(50)
        newest = asyncio.ensure_future(n1.meta.reads.linearize())
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
    """No member has newer state than it has applied itself."""
    world = World()

    async def scenario() -> None:
        n1, _, n3 = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put("a", b"1"), size_bytes=1)
        await world.settled()
        await world.sleep(1_000)
        await asyncio.wait_for(rebuild(n3.meta), 30)
        assert read(n3, "a") == b"1"
        await n1.meta.write(put("b", b"2"), size_bytes=1)
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
        place.peer_address = world.places["n3"].peer_address
        n2 = await place.start()
        await world.sleep(3_000)
        await world.leader().meta.members.transfer("n2")
        led = await world.led()
        assert led is n2
        assert (await led.meta.write(increment("a"), size_bytes=1)).value == 1
        assert led.meta.driver.failure is None

    world.run(scenario)


def test_a_node_that_starts_without_room_answers_reads() -> None:
    """Alone, and it cannot even store that it leads: the answered writes are all there is."""

    async def scenario() -> None:
        disk = NodeDisk()
        async with running_node(disk) as node:
            written = await node.meta.write(put("a", b"1"), size_bytes=1)
        disk.failures = [ResourceExhausted("full", 100, "disk", 1) for _ in range(100)]
        node = make_node(disk)
        await node.start()
        try:
            assert await asyncio.wait_for(node.meta.reads.linearize(), 5) == written.ts
            assert read(node, "a") == b"1"
        finally:
            disk.failures = []
            await node.stop()

    run(scenario)


def test_a_recovered_survivor_knows_no_request_and_answers_no_read_before_it_has_applied_its_log() -> None:
    """Entries that it held and had not applied count as committed from then on: a retry of it must find it."""
    world = World()

    async def scenario() -> None:
        n1, _ = await world.grow("n1", "n2")
        first = await n1.meta.write(put("a", b"1"), size_bytes=1)
        world.hold("n2", "n1")
        request_id = bytes(first.ts) + bytes(8)
        place = world.places["n1"]
        before = place.disk.done
        writing = asyncio.ensure_future(n1.meta.write(increment("c"), size_bytes=1, request_id=request_id))
        await world.until(lambda: place.disk.done > before and place.disk.is_idle, "its own disk has the write")
        place.crash()
        world.places["n2"].crash()
        writing.cancel()
        log_files = memory_log_files(place.log_disk)
        log = stored_log(log_files.take_groups(), 1, owner=place.member.storage_id)
        writes, _ = force_single_writes(1, log, place.member)
        log_files.append(writes)
        # The first thing that it finds is a full disk, before it has applied the entries that it takes for committed.
        place.holds_data = True
        full = [ResourceExhausted("full", 100, "disk", 1) for _ in range(3)]
        starting = asyncio.ensure_future(place.start(*full))
        await world.sleep(50)
        assert not starting.done()
        node = place.node
        with pytest.raises(Unavailable):
            await node.meta.write(increment("c"), size_bytes=1, request_id=request_id)
        reading = asyncio.ensure_future(node.meta.reads.linearize())
        await world.sleep(50)
        assert not reading.done()
        place.data.release()
        await starting
        await world.led()
        assert (await reading) > first.ts
        again = await node.meta.write(increment("c"), size_bytes=1, request_id=request_id)
        assert again.repeated
        assert read(node, "c") == b"1"

    world.run(scenario)
