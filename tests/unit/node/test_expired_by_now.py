"""A read without a time does not see values that expired while there was no leader, or while the leader's process stood
still."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.kv.operations import KvPut, evaluate_put
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.read.expiring import LAG_MS
from cortado.store.replica.read.read_timestamps import Stale
from support.node_world import World
from support.nodes import increment, read

TTL_MS = 800
OUTAGE_MS = 4_000.0


def put_for(name: str, ttl_ms: int) -> Evaluate:
    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        return evaluate_put(reader, commit_ts, "test", KvPut(name.encode(), b"v", expiry=Expiry(ttl_ms)))

    return evaluate


async def newest(node: Host, name: str) -> bytes | None:
    return read(node, name, await node.meta.reads.resolve(None))


@pytest.mark.parametrize("members", [("n1",), ("n1", "n2", "n3")], ids=len)
def test_the_first_read_after_an_outage_longer_than_a_ttl_does_not_see_the_row(members: tuple[str, ...]) -> None:
    world = World()

    async def scenario() -> None:
        [n1, *_] = await world.grow(*members)
        written = await n1.meta.write(put_for("k", TTL_MS))
        await n1.meta.write(put_for("kept", 3_600_000))
        assert await newest(n1, "k") == b"v"
        await world.settled()
        for place in world.places.values():
            place.crash()
        await world.sleep(OUTAGE_MS)
        for place in world.places.values():
            await place.start()
        leader = await world.led()
        assert leader.meta.read_ts().wall_ms < written.ts.wall_ms + TTL_MS, "nothing was written since"
        reads = [asyncio.ensure_future(newest(leader, name)) for name in ("k", "kept", "k")]
        assert await asyncio.gather(*reads) == [None, b"v", None]
        assert read(leader, "k", written.ts) == b"v"

    world.run(scenario)


def test_nor_does_a_stale_read_at_the_leader() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await n1.meta.write(put_for("k", TTL_MS))
        await world.settled()
        world.places["n1"].crash()
        await world.sleep(OUTAGE_MS)
        n1 = await world.places["n1"].start()
        assert read(n1, "k", await n1.meta.reads.resolve(Stale(60_000))) is None

    world.run(scenario)


def test_nor_a_read_of_a_leader_that_wrote_nothing_for_long() -> None:
    """Its process was stopped, or its machine slept: no other node took its place."""
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await n1.meta.write(put_for("k", TTL_MS))
        n1.meta.duties.end()
        await world.sleep(LAG_MS / 2)
        last = node_status(n1).last_index
        assert await newest(n1, "k") == b"v"
        await world.sleep(2 * LAG_MS)
        assert await asyncio.gather(*(newest(n1, "k") for _ in range(5))) == [None] * 5
        assert node_status(n1).last_index == last + 1, "one entry for all"

    world.run(scenario)


def test_where_nothing_can_expire_a_new_leader_writes_nothing_for_reads() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await n1.meta.write(increment("n"))
        await n1.meta.write(put_for("k", TTL_MS))
        await world.sleep(3 * LAG_MS)
        assert await newest(n1, "k") is None
        await world.settled()
        world.places["n1"].crash()
        await world.sleep(OUTAGE_MS)
        n1 = await world.places["n1"].start()
        last = node_status(n1).last_index
        assert await newest(n1, "n") == b"1"
        assert node_status(n1).last_index == last

    world.run(scenario)


def test_where_no_entry_can_be_stored_reads_go_on() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await n1.meta.write(put_for("k", TTL_MS))
        n1.meta.duties.end()
        await world.settled()
        await world.sleep(3 * LAG_MS)
        world.places["n1"].disk.failures += [ResourceExhausted("the disk is full", 1_000, "disk")]
        assert await newest(n1, "k") == b"v"
        assert await newest(n1, "k") is None

    world.run(scenario)
