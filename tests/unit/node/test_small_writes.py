"""A node's loop runs small writes of the log itself while the disk is quick; the same holds of them as of others."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import OutcomeUnknown, ResourceExhausted
from cortado.store.engine.failures import StorageFailed
from cortado.store.host.host import Host
from cortado.store.log_files.log_files import LogFiles
from cortado.store.process.log_storage import QUICK_WRITES
from cortado.store.replica.log_writer import SMALL_BYTES, SMALL_CALLERS
from support.node_world import World
from support.nodes import put, read


async def grown(world: World) -> list[Host]:
    """Return three nodes whose loops run small writes."""
    nodes = await world.grow("n1", "n2", "n3")
    for number in range(QUICK_WRITES + 4):
        await nodes[0].meta.write(put(f"warm {number}", b"v"))
    await world.settled()
    return nodes


def counts(world: World) -> list[int]:
    return [place.here.done for place in world.places.values()]


def test_small_writes_run_on_the_loop_of_leader_and_followers() -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, n2, n3 = await grown(world)
        before, threads = counts(world), [place.disk.done for place in world.places.values()]
        written = await n1.meta.write(put("k", b"v"))
        await world.settled()
        assert [now - then for now, then in zip(counts(world), before, strict=True)] == [1, 1, 1]
        assert [place.disk.done for place in world.places.values()] == threads
        for node in (n1, n2, n3):
            assert read(node, "k", written.ts) == b"v"

    world.run(scenario)


@pytest.mark.parametrize("held", ["n1", "n2"])
def test_nothing_is_acknowledged_before_the_loop_has_written(held: str) -> None:
    """The leader counts its own disk, and a follower acknowledges what its disk has."""
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, *_ = await grown(world)
        world.cut_off("n3")
        world.places[held].here.hold()
        writing = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        await world.until(lambda: world.places[held].here.waiting == 1, "the write waits")
        await world.sleep(20)
        assert not writing.done()
        world.places[held].here.release()
        await writing

    world.run(scenario)


def test_a_write_of_the_loop_that_fails_stops_the_node_and_no_other() -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, *_ = await grown(world)
        world.places["n1"].here.failures = [StorageFailed("the disk is gone")]
        writing = asyncio.ensure_future(n1.meta.write(put("k", b"v")))
        assert isinstance(await n1.process.life.failed(), StorageFailed)
        with pytest.raises(OutcomeUnknown):
            await writing
        world.places["n1"].crash()
        leader = await world.led(but="n1")
        await leader.meta.write(put("k", b"w"))

    world.run(scenario)


def test_a_write_of_the_loop_without_room_is_tried_again_whole() -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, *_ = await grown(world)
        place = world.places["n1"]
        place.here.failures = [ResourceExhausted("no room", resource="disk")]
        written = await n1.meta.write(put("k", b"v"))
        await world.settled()
        assert not place.here.failures and read(n1, "k", written.ts) == b"v"

    world.run(scenario)


def test_terms_and_votes_go_by_the_thread() -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        await grown(world)
        before = counts(world)
        world.places["n1"].crash()
        for place in (world.places["n2"], world.places["n3"]):
            place.here.hold()
        logs = [world.places[each].node.meta.log for each in ("n2", "n3")]
        await world.until(lambda: {log.leader for log in logs} in ({"n2"}, {"n3"}), "one of them leads")
        assert counts(world) == before

    world.run(scenario)


def test_what_is_large_goes_by_the_thread() -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, *_ = await grown(world)
        before = counts(world)
        await n1.meta.write(put("k", bytes(SMALL_BYTES)))
        await world.settled()
        assert counts(world) == before
        await n1.meta.write(put("k", bytes(SMALL_BYTES // 2)))
        await world.settled()
        assert counts(world) != before

    world.run(scenario)


@pytest.mark.parametrize(("callers", "is_here"), [(SMALL_CALLERS, True), (SMALL_CALLERS + 1, False)])
def test_a_leader_with_many_callers_has_more_to_do_than_to_wait(callers: int, is_here: bool) -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, *_ = await grown(world)
        place = world.places["n1"]
        here, thread = place.here.done, place.disk.done
        await asyncio.gather(*(n1.meta.write(put(f"k{number}", b"v")) for number in range(callers)))
        assert (place.here.done > here, place.disk.done > thread) == (is_here, not is_here)

    world.run(scenario)


def test_a_node_alone_writes_by_its_thread() -> None:
    """No other one takes over if its disk hangs."""
    world = World(writes_here=True)

    async def scenario() -> None:
        n1 = await world.place("n1", is_first=True).start()
        for number in range(2 * QUICK_WRITES):
            await n1.meta.write(put(f"k{number}", b"v"))
        assert counts(world) == [0]

    world.run(scenario)


def test_a_write_that_needs_a_segment_goes_by_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(writes_here=True)

    async def scenario() -> None:
        n1, *_ = await grown(world)
        before = counts(world)
        monkeypatch.setattr(LogFiles, "writes_alone", lambda _self, _records: False)
        await n1.meta.write(put("k", b"v"))
        await world.settled()
        assert counts(world) == before

    world.run(scenario)
