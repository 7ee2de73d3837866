"""While room is scarce, leases end: as many as free something, those of one timestamp together."""

from __future__ import annotations

import pytest

from cortado.errors import HoldExpired, ResourceExhausted
from cortado.proto.v1 import collection_pb2 as pb
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.auth.current import Credential
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.collection.leases import acquire, move
from cortado.store.host.host import Host
from cortado.store.replica.collection.leases import LOOK_EVERY_MS, MAKE_ROOM_MS
from cortado.store.server.collection_service import CollectionService
from support.node_world import World
from support.nodes import put

ONE, OTHER = bytes(16), bytes([1] * 16)
RETENTION_MS = 10_000
SOON_MS = 3 * LOOK_EVERY_MS


async def ids(node: Host) -> list[bytes]:
    return [lease.lease_id for lease in await node.meta.leases.all()]


async def overwritten(node: Host) -> None:
    """Write one more version: the one before is garbage, once no lease keeps it."""
    await node.meta.write(put("k", b"v"))


async def leased_and_overwritten(node: Host, *lease_ids: bytes) -> None:
    """Write versions so that each lease keeps one that the others do not; all of that is beyond the retention."""
    for lease_id in lease_ids:
        await overwritten(node)
        await node.meta.write(acquire(lease_id, None, 600_000, ""))
    await overwritten(node)
    await overwritten(node)


def make_tight(world: World) -> None:
    engine = world.places["n1"].engine
    engine.reserve_bytes = engine.limit_bytes // 2


def test_while_room_is_scarce_the_oldest_ends_and_after_a_while_the_next() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await leased_and_overwritten(n1, ONE, OTHER)
        await world.sleep(RETENTION_MS + SOON_MS)
        assert await ids(n1) == [ONE, OTHER]
        engine = world.places["n1"].engine
        engine.reserve_bytes = engine.limit_bytes // 2
        await world.sleep(SOON_MS)
        assert await ids(n1) == [OTHER]
        with pytest.raises(HoldExpired):
            await n1.meta.leases.keep(ONE)
        await world.sleep(MAKE_ROOM_MS / 2)
        assert await ids(n1) == [OTHER], "what the first one kept is being collected"
        engine.reserve_bytes = 0
        await world.sleep(MAKE_ROOM_MS)
        assert await ids(n1) == [OTHER]
        engine.reserve_bytes = engine.limit_bytes // 2
        await world.sleep(SOON_MS)
        assert await ids(n1) == []

    world.run(scenario)


def numbered(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_leases_at_one_timestamp_end_together_for_want_of_room() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await overwritten(n1)
        at = n1.meta.read_ts()
        for number in range(100):
            await n1.meta.write(acquire(numbered(number), at, 600_000, ""))
        await leased_and_overwritten(n1, OTHER)
        await world.sleep(RETENTION_MS + SOON_MS)
        make_tight(world)
        await world.sleep(SOON_MS)
        assert await ids(n1) == [OTHER]

    world.run(scenario)


def test_leases_between_which_nothing_is_kept_end_together() -> None:
    """Each alone would free nothing, and the next one would come a minute later."""
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await overwritten(n1)
        for number in range(20):
            await n1.meta.write(acquire(numbered(number), None, 600_000, ""))
        await leased_and_overwritten(n1, OTHER)
        await world.sleep(RETENTION_MS + SOON_MS)
        make_tight(world)
        await world.sleep(SOON_MS)
        assert await ids(n1) == [OTHER]

    world.run(scenario)


@pytest.mark.parametrize("retention_ms", [KEEP_ALL, 600_000])
def test_no_lease_ends_for_want_of_room_where_that_frees_nothing(retention_ms: int) -> None:
    """The retention keeps all of it as well."""
    world = World(retention_ms=retention_ms)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await leased_and_overwritten(n1, ONE, OTHER)
        await world.sleep(RETENTION_MS)
        make_tight(world)
        await world.sleep(2 * MAKE_ROOM_MS)
        assert await ids(n1) == [ONE, OTHER]

    world.run(scenario)


def test_while_room_stays_scarce_ever_more_end_at_once() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await leased_and_overwritten(n1, *map(numbered, range(16)))
        await world.sleep(RETENTION_MS + SOON_MS)
        make_tight(world)
        left = []
        for _ in range(4):
            await world.sleep(SOON_MS)
            left.append(len(await ids(n1)))
            await world.sleep(MAKE_ROOM_MS - SOON_MS)
        assert left == [15, 13, 9, 1]

    world.run(scenario)


def test_on_a_full_disk_an_operator_ends_a_consumers_lease() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await leased_and_overwritten(n1, ONE)
        await n1.meta.write(move(OTHER, None, 600_000, "a stream", "me"))
        await overwritten(n1)
        await world.sleep(RETENTION_MS + SOON_MS)
        engine = world.places["n1"].engine
        engine.reserve_bytes = engine.limit_bytes
        await world.sleep(SOON_MS)
        assert await ids(n1) == [OTHER], "the oldest ends by itself, and the next one in a minute"
        with pytest.raises(ResourceExhausted):
            await n1.meta.write(put("k", b"v"))
        CALLER.set(Caller(Credential(), (), frees=True))
        request = pb.ReleaseLeaseRequest(lease_id=OTHER)
        assert pb.ReleaseLeaseResponse.FromString(await CollectionService(n1).release_lease(request)).ended
        assert await ids(n1) == []

    world.run(scenario)
