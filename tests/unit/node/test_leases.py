"""Leases over several nodes and virtual time: a holder that is heard of keeps its lease, under any leader; a holder
that falls silent loses it."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import HoldExpired, InvalidArgument, NotLeader, SnapshotTooOld, Unavailable
from cortado.proto.v1 import collection_pb2 as pb
from cortado.store.clock.timestamp import ZERO
from cortado.store.collection.leases import Lease, acquire, end, move
from cortado.store.collection.safepoints import CLUSTERS, Retentions, raise_safepoints
from cortado.store.host.host import Host
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.replica.collection import leases
from cortado.store.replica.collection.leases import LOOK_EVERY_MS
from cortado.store.replica.controls import epoch_after
from cortado.store.server.collection_service import CollectionService
from cortado.store.server.convert import timestamp_value
from support.node_world import World
from support.nodes import put, read

ONE, OTHER = bytes(16), bytes([1] * 16)
TTL_MS = 10_000
RETENTION_MS = 10_000
SOON_MS = 3 * LOOK_EVERY_MS
"""Within this an expired lease has ended."""


async def acquired(node: Host, lease_id: bytes = ONE, ttl_ms: int = TTL_MS) -> Lease:
    result = await node.meta.write(acquire(lease_id, None, ttl_ms, "a job"))
    assert isinstance(result.value, Lease)
    return result.value


async def ids(node: Host) -> list[bytes]:
    return [lease.lease_id for lease in await node.meta.leases.all()]


def test_who_is_silent_for_longer_than_his_ttl_loses_his_lease_and_nobody_else_does() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        lease, _ = await acquired(n1), await acquired(n1, OTHER)
        for _ in range(6):
            await world.sleep(TTL_MS / 3)
            await n1.meta.leases.keep(OTHER)
        assert await ids(n1) == [OTHER]
        with pytest.raises(HoldExpired) as lost:
            await n1.meta.leases.keep(ONE)
        assert lost.value.hold_id == lease.lease_id.hex()
        assert n1.meta.leases.ended == 1
        await world.settled()
        last = n1.meta.log.last
        await n1.meta.leases.keep(OTHER)
        await world.sleep(2 * LOOK_EVERY_MS)
        assert n1.meta.log.last == last, "keeping one alive writes nothing"
        assert n2.meta.leases.count == n3.meta.leases.count == 0

    world.run(scenario)


def test_it_lives_for_its_whole_ttl_and_not_much_longer() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await acquired(n1)
        await world.sleep(TTL_MS - 100)
        assert await ids(n1) == [ONE]
        await world.sleep(SOON_MS)
        assert await ids(n1) == []

    world.run(scenario)


def test_a_new_leader_gives_every_lease_its_whole_ttl_again() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await acquired(n1)
        await world.sleep(TTL_MS - 1_000)
        await world.settled()
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        await world.sleep(TTL_MS - 1_000)
        assert await ids(leader) == [ONE], "nobody could tell that its holder is alive"
        await leader.meta.leases.keep(ONE)
        await world.sleep(TTL_MS - 1_000)
        assert await ids(leader) == [ONE]
        await world.sleep(1_000 + SOON_MS)
        assert await ids(leader) == []

    world.run(scenario)


def test_a_leader_that_led_before_begins_anew_too() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        await acquired(n1)
        await world.sleep(1_500)
        await n1.meta.members.transfer("n2")
        await world.led(but="n1")
        await world.sleep(TTL_MS - 2_000)
        await n2.meta.leases.keep(ONE)
        await n2.meta.members.transfer("n1")
        await world.led(but="n2")
        # By the expiry of its first term, the lease has long ended.
        await world.sleep(SOON_MS)
        assert await ids(n1) == [ONE]

    world.run(scenario)


def test_a_leader_that_was_deposed_and_does_not_know_it_keeps_nothing() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await acquired(n1)
        world.cut_off("n1")
        with pytest.raises(NotLeader):
            await n1.meta.leases.keep(ONE)

    world.run(scenario)


def test_a_holder_that_comes_while_his_lease_is_being_ended_comes_too_late() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await acquired(n1)
        await world.settled()
        world.places["n1"].disk.hold()
        await world.sleep(TTL_MS + SOON_MS)
        with pytest.raises(HoldExpired):
            await n1.meta.leases.keep(ONE)
        world.places["n1"].disk.release()
        await world.until(lambda: n1.meta.leases.count == 0, "it has ended")
        assert await ids(n1) == []

    world.run(scenario)


def test_a_consumers_lease_that_moves_while_it_is_being_ended_has_not_ended(caplog: pytest.LogCaptureFixture) -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        await n1.meta.write(move(ONE, None, TTL_MS, "a stream", "me"))
        await world.settled()
        await world.sleep(0.9 * TTL_MS)
        world.places["n1"].disk.hold()
        moving = asyncio.ensure_future(n1.meta.write(move(ONE, None, TTL_MS, "a stream", "me")))
        # The leader has not applied that when it ends the leases that it knows of.
        await world.sleep(0.1 * TTL_MS + SOON_MS)
        world.places["n1"].disk.release()
        await moving
        await world.sleep(SOON_MS)
        assert await ids(n1) == [ONE]
        assert n1.meta.leases.ended == 0

    world.run(scenario)
    assert "has ended" not in caplog.text


def test_messages_that_come_twice_make_one_lease_and_one_end() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        world.copies = 2
        first, again = await asyncio.gather(acquired(n1), acquired(n1))
        assert first == again
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        # The first answer was lost with its leader: the same is asked of the next one.
        assert await acquired(leader) == first
        assert await ids(leader) == [ONE]
        await world.sleep(TTL_MS + SOON_MS)
        assert await ids(leader) == []
        await world.until(lambda: n2.meta.applied == leader.meta.applied, "all is applied")

    world.run(scenario)


def test_there_is_an_age_however_alive_the_holder_is_and_whoever_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "AGE_MS_MAX", 30_000)
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        lease = await acquired(n1)
        assert n1.meta.leases.age_ms(lease) < 1_000
        for _ in range(4):
            await world.sleep(5_000)
            await n1.meta.leases.keep(ONE)
        await n1.meta.members.transfer("n2")
        n2 = await world.led(but="n1")
        await world.sleep(6_000)
        await n2.meta.leases.keep(ONE)
        assert 26_000 <= n2.meta.leases.age_ms(lease) < 30_000
        await world.sleep(4_000 + SOON_MS)
        with pytest.raises(HoldExpired):
            await n2.meta.leases.keep(ONE)

    world.run(scenario)


def test_a_consumers_lease_outlives_silence_and_leaders_and_ends_where_it_is_not_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "AGE_MS_MAX", 30_000)
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        ttl_ms = 100_000

        async def moved(node: Host) -> Lease:
            lease = (await node.meta.write(move(ONE, None, ttl_ms, "a stream", "me"))).value
            assert isinstance(lease, Lease)
            return lease

        await moved(n1)
        await world.sleep(ttl_ms - 10_000)
        second = await moved(n1)
        await world.sleep(ttl_ms / 2)
        assert await n1.meta.leases.all() == [second], "moved since, and nobody has to keep it"
        await n1.meta.members.transfer("n2")
        n2 = await world.led(but="n1")
        await world.sleep(ttl_ms / 2 - 10_000)
        assert await n2.meta.leases.all() == [second]
        assert n2.meta.leases.silent_ms(second) >= ttl_ms - 20_000, "its age is in the log, and not a leader's memory"
        await world.sleep(10_000 + SOON_MS)
        assert await n2.meta.leases.all() == []

    world.run(scenario)


def test_a_consumers_place_that_has_an_owner_is_moved_by_nobody_else() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")

        async def moved(owner: str) -> Lease:
            lease = (await n1.meta.write(move(ONE, None, TTL_MS, "a stream", "me", owner))).value
            assert isinstance(lease, Lease)
            return lease

        await moved("stream 1")
        kept = await moved("stream 1")
        for other, said in (("stream 2", "stream 2"), ("", "no owner")):
            with pytest.raises(InvalidArgument) as refused:
                await moved(other)
            told = f"is the place of stream 1, which moved it at {kept.acquired_ts}, and not of {said}: "
            then = f"use a name for each, or end the hold {ONE.hex()}"
            assert (refused.value.field, refused.value.problem, refused.value.value) == ("consumer", told + then, "me")
        assert await n1.meta.leases.all() == [kept]
        await n1.meta.write(end(ONE))
        assert (await moved("stream 2")).owner == "stream 2"
        with pytest.raises(InvalidArgument, match="owner: must not be set without a consumer"):
            request = pb.AcquireLeaseRequest(lease_id=OTHER, owner="stream 1")
            await CollectionService(n1).acquire_lease(request)

    world.run(scenario)


def test_after_a_new_epoch_the_age_counts_from_when_the_leader_saw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "AGE_MS_MAX", 30_000)
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        lease = await acquired(n1, ttl_ms=60_000)
        await world.sleep(20_000 - SOON_MS)
        await n1.meta.write(epoch_after(0))
        # A wall time of another epoch may be of the year 2071: it tells nothing.
        assert 15_000 < n1.meta.leases.age_ms(lease) < 20_000

    world.run(scenario)


def test_the_oldest_is_known_to_the_leader_alone() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        assert n1.meta.leases.oldest() is None
        early = (await n1.meta.write(put("k", b"v"))).ts
        await acquired(n1)
        older = (await n1.meta.write(acquire(OTHER, early, TTL_MS, ""))).value
        await world.until(lambda: n1.meta.leases.count == 2, "it has looked")
        assert n1.meta.leases.oldest() == older
        assert n2.meta.leases.oldest() is None
        await n1.meta.members.transfer("n2")
        await world.until(lambda: n2.meta.leases.oldest() == older, "the next one has looked")
        assert n1.meta.leases.oldest() is None

    world.run(scenario)


# --- collection beside leases --------------------------------------------------------------------------------------


async def told(node: Host) -> list[pb.RunCollectionResponse]:
    """Return a run's own report."""
    said = []
    async for each in CollectionService(node).run(pb.RunCollectionRequest()):
        assert isinstance(each, pb.RunCollectionResponse)
        said.append(each)
    return said


async def status(node: Host) -> pb.CollectionStatusResponse:
    found = await CollectionService(node).status(pb.CollectionStatusRequest())
    assert isinstance(found, pb.CollectionStatusResponse)
    return found


def test_the_safepoint_waits_for_the_oldest_lease_and_goes_on_behind_it() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await n1.meta.write(put("k", b"before"))
        lease = await acquired(n1, ttl_ms=600_000)
        for _ in range(8):
            await n1.meta.write(put("k", b"after"))
            await world.sleep(RETENTION_MS / 2)
        assert (await told(n1))[-1].done
        found = await status(n1)
        assert timestamp_value(found.safepoint) == lease.ts
        assert found.holder.lease_id == ONE
        assert found.lag_ms > 2 * RETENTION_MS
        assert read(n1, "k", lease.ts) == b"before"
        await n1.meta.write(end(ONE))
        await world.sleep(RETENTION_MS + 1_000)
        await told(n1)
        found = await status(n1)
        assert timestamp_value(found.safepoint) > lease.ts
        assert not found.HasField("holder")
        # Eight versions of the pair, and one of the list of leases.
        assert found.removed == 9
        with pytest.raises(SnapshotTooOld):
            read(n1, "k", lease.ts)
        with pytest.raises(SnapshotTooOld):
            await n1.meta.write(acquire(ONE, lease.ts, TTL_MS, ""))

    world.run(scenario)


def test_of_a_lease_and_a_safepoint_that_would_pass_it_the_later_in_the_log_gives_way() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        early = (await n1.meta.write(put("k", b"v"))).ts
        bound = (await n1.meta.write(put("k", b"w"))).ts
        rise = raise_safepoints(Retentions({}, ZERO), {CLUSTERS: bound})
        await world.settled()
        # All of them are in one batch, or in flight: nothing of it is applied.
        world.places["n1"].disk.hold()
        holding = asyncio.ensure_future(n1.meta.write(acquire(ONE, early, TTL_MS, "")))
        held_back = asyncio.ensure_future(n1.meta.write(rise))
        ending = asyncio.ensure_future(n1.meta.write(end(ONE)))
        rising = asyncio.ensure_future(n1.meta.write(rise))
        too_late = asyncio.ensure_future(n1.meta.write(acquire(OTHER, early, TTL_MS, "")))
        await world.sleep(10)
        world.places["n1"].disk.release()
        assert isinstance((await holding).value, Lease)
        assert (await held_back).value == Safepoints(early)
        await ending
        assert (await rising).value == Safepoints(bound)
        with pytest.raises(SnapshotTooOld) as refused:
            await too_late
        assert refused.value.safepoint == str(bound)

    world.run(scenario)


def test_a_follower_says_who_leads_and_runs_nothing() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        _, n2, _ = await world.grow("n1", "n2", "n3")
        with pytest.raises(NotLeader):
            await status(n2)
        with pytest.raises(NotLeader):
            await told(n2)

    world.run(scenario)


def test_a_run_tells_how_it_goes_and_ends_where_its_caller_leaves() -> None:
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        # The leader's own pass takes long.
        async with n1.meta.collector._turns:
            running = CollectionService(n1).run(pb.RunCollectionRequest())
            for _ in range(2):
                said = await anext(running)
                assert isinstance(said, pb.RunCollectionResponse)
                assert not said.done
            await running.aclose()
        assert [each.done for each in await told(n1)] == [True]

    world.run(scenario)


def test_nothing_is_collected_while_the_safepoints_are_damaged() -> None:
    """The safepoint assumed instead lies above all readable times, so that every read of the past is refused."""
    world = World(retention_ms=RETENTION_MS)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        first = (await n1.meta.write(put("k", b"first"))).ts
        await n1.meta.write(put("k", b"second"))
        machine, held = n1.meta._group.machine, n1.meta.store.safepoints
        machine.are_safepoints_damaged = True
        n1.meta.store.safepoints = Safepoints(n1.meta.applied.last_ts)
        with pytest.raises(Unavailable, match="safepoints are damaged"):
            await n1.meta.collector.pass_now()
        machine.are_safepoints_damaged, n1.meta.store.safepoints = False, held
        assert read(n1, "k", first) == b"first"

    world.run(scenario)
