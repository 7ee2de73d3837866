"""Followers with little room beside a leader with plenty: its appends leave their reserves."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import NotLeader, ResourceExhausted
from cortado.raft.settings import RaftSettings
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.auth.current import Credential
from cortado.store.engine.interface import LAST_RESERVE_PART
from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from support.node_world import World
from support.nodes import put, read

RESERVE_BYTES = 200_000
LIMIT_BYTES = 600_000
VALUE = b"v" * 2_000


async def scarce(world: World, *node_ids: str) -> None:
    """Make their disks small from now on, and let the leader know."""
    for node_id in node_ids:
        engine = world.places[node_id].engine
        engine.reserve_bytes, engine.limit_bytes = RESERVE_BYTES, LIMIT_BYTES
    await world.sleep(500)


def left_bytes(world: World, node_id: str) -> int:
    engine = world.places[node_id].engine
    return engine.limit_bytes - engine.use().used_bytes


async def fill(node: Host, name: str, count: int) -> int:
    """Make ``count`` writes at once, and return how many of them were refused. All have an answer."""
    writes = [node.meta.write(put(f"{name}{number}", VALUE), size_bytes=len(VALUE)) for number in range(count)]
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    refused = [each for each in outcomes if isinstance(each, BaseException)]
    assert {type(each) for each in refused} <= {ResourceExhausted}
    return len(refused)


@pytest.mark.parametrize("together", [1, 10, 400])
@pytest.mark.parametrize("frees", [False, True])
def test_what_is_appended_leaves_the_reserves_of_a_majority_however_much_is_in_flight(
    together: int, frees: bool
) -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await scarce(world, "n2", "n3")
        CALLER.set(Caller(Credential(), (), frees=frees))
        refused = 0
        for number in range(800 // together):
            refused += await fill(n1, f"k{number}-", together)
        assert 0 < refused < 800
        await world.settled()
        kept_bytes = RESERVE_BYTES // LAST_RESERVE_PART if frees else RESERVE_BYTES
        for node_id in ("n2", "n3"):
            # It is not given up too early, either.
            assert kept_bytes <= left_bytes(world, node_id) < LIMIT_BYTES - 100_000

    world.run(scenario)


def test_one_follower_without_room_is_no_hindrance_and_two_of_two_are_named() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        world.places["n2"].engine.limit_bytes = RESERVE_BYTES
        world.places["n2"].engine.reserve_bytes = RESERVE_BYTES
        await world.sleep(500)
        assert await fill(n1, "a", 50) == 0
        assert node_status(n1).state == "serving"
        assert node_status(n2).state.startswith("read-only")
        await scarce(world, "n3")
        while await fill(n1, "b", 1) == 0:
            pass
        with pytest.raises(ResourceExhausted, match=r"n2 has 0 bytes left above the reserve, n3 has \d+ bytes") as full:
            await n1.meta.write(put("c", VALUE), size_bytes=len(VALUE))
        assert full.value.retry_delay_ms > 0
        assert "n3" in node_status(n1).state
        # The leader's own writes go on, and so do writes that free room.
        await n1.meta.keep_house(put("own", b"v"))
        CALLER.set(Caller(Credential(), (), frees=True))
        await n1.meta.write(put("freed", b"v"), size_bytes=1)
        CALLER.set(None)
        # A quiet cluster learns that there is room again.
        world.places["n3"].engine.limit_bytes = 1 << 30
        await world.sleep(500)
        assert node_status(n1).state == "serving"
        assert await fill(n1, "c", 50) == 0

    world.run(scenario)


def test_with_one_follower_gone_the_other_one_decides() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        await scarce(world, "n3")
        world.cut_off("n2")
        await world.sleep(1_000)
        assert 0 < await fill(n1, "k", 400) < 400
        assert left_bytes(world, "n3") >= RESERVE_BYTES
        world.heal()
        await world.sleep(1_000)
        assert await fill(n1, "l", 10) == 0

    world.run(scenario)


def test_a_new_leader_leaves_the_reserves_too() -> None:
    world = World()

    async def scenario() -> None:
        n1, _, n3 = await world.grow("n1", "n2", "n3")
        await scarce(world, "n1", "n2")
        while not await fill(n1, f"{world.now_ms}-", 20):
            pass
        await world.settled()
        # A leader looks at its own disk now and then, and this one is small.
        kept_bytes = {each: min(left_bytes(world, each), RESERVE_BYTES) for each in ("n1", "n2")}
        await n1.meta.members.transfer("n3")
        leader = await world.led(but="n1")
        assert leader is n3
        assert await fill(n3, "l", 400) > 0
        await world.settled()
        assert any(left_bytes(world, each) >= kept_bytes[each] for each in kept_bytes)

    world.run(scenario)


def test_a_follower_without_room_sends_callers_to_the_leader() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        world.places["n2"].engine.limit_bytes = world.places["n2"].engine.reserve_bytes = RESERVE_BYTES
        with pytest.raises(NotLeader):
            await n2.meta.write(put("k", b"v"), size_bytes=1)
        await n1.meta.write(put("k", b"v"), size_bytes=1)
        assert read(n1, "k", await n1.meta.reads.linearize()) == b"v"

    world.run(scenario)


@pytest.mark.parametrize("is_away", [False, True])
def test_where_room_is_scarce_the_log_is_kept_short_on_a_quiet_cluster_too(is_away: bool) -> None:
    """Entries that an answering member lacks are kept."""
    settings = RaftSettings(retain_bytes=640_000)
    world = World(settings=settings)
    kept_bytes = settings.retain_bytes // 64

    async def scenario() -> None:
        n1, n2, n3 = await world.grow("n1", "n2", "n3")
        assert await fill(n1, "k", 100) == 0
        await world.settled()
        for node in (n1, n2, n3):
            assert node.meta.log.window.size[1] > 200_000
        if is_away:
            world.cut_off("n3")
            await world.sleep(2 * settings.election_ms_max)
        for place in world.places.values():
            # Less than twice the reserve, and more than it.
            place.engine.reserve_bytes = 600_000
            place.engine.limit_bytes = 1_000_000
        await world.sleep(500)
        for node in (n1, n2):
            assert node.meta.log.window.size[1] <= 2 * kept_bytes
            stored = world.places[node.process.identity.node_id].log_disk
            assert node.process.log_files.oldest_needed == node.process.log_files.use().newest_segment, (
                "the files are gone, too"
            )
            assert len(stored.names()) == 1
        assert not n1.meta.log.window.snapshot_needs

    world.run(scenario)


def test_a_leader_with_scarce_room_keeps_what_a_member_lacks_that_answers() -> None:
    world = World(settings=RaftSettings(retain_bytes=640_000))

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        # n3 stores nothing for a while, and answers heartbeats.
        world.places["n3"].disk.hold()
        engine = world.places["n1"].engine
        engine.reserve_bytes, engine.limit_bytes = 600_000, 1_000_000
        assert await fill(n1, "k", 80) == 0
        await world.sleep(500)
        assert n1.meta.log.window.size[1] > 160_000
        world.places["n3"].disk.release()
        await world.settled()
        await world.sleep(500)
        assert n1.meta.log.window.size[1] <= 20_000
        assert world.fetches <= 2, "only to join"

    world.run(scenario)
