"""A log file that rots while a node serves is found by the patrol, and dropped before a start could refuse it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cortado.errors import DataLoss
from cortado.raft.settings import RaftSettings
from cortado.store.host.host import Host
from cortado.store.log_files.log_files import LogFiles
from cortado.store.process.limits import NodeLimits
from support.node_world import Place, World
from support.nodes import put, read

PATROL_MS = 300
LIMITS = replace(NodeLimits(), patrol_ms=PATROL_MS)


def rot(place: Place) -> str:
    """Turn a bit of the first frame of the newest log file. Returns the file's name."""
    log = place.log_disk
    name = max(log.durable)
    log.durable[name][100] ^= 1
    log.reread()
    with pytest.raises(DataLoss):
        LogFiles.open(type(log).holding({each: bytearray(content) for each, content in log.durable.items()}))
    return name


async def dropped(world: World, place: Place, name: str) -> None:
    await world.until(lambda: name not in place.log_disk.durable, f"{name} is dropped on {place.node_id}")


@pytest.mark.parametrize("node_id", ["n1", "n2"])
def test_a_rotten_log_file_of_a_leader_or_a_follower_is_dropped_and_its_next_start_finds_a_whole_log(
    node_id: str,
) -> None:
    world = World(limits=LIMITS, settings=RaftSettings(retain_entries=1_000))

    async def scenario() -> None:
        nodes = await world.grow("n1", "n2", "n3")
        for number in range(20):
            await nodes[0].meta.write(put(f"k{number}", b"v"))
        await world.settled()
        place = world.places[node_id]
        name = rot(place)
        await dropped(world, place, name)
        written = await nodes[0].meta.write(put("later", b"w"))
        await world.settled()
        place.crash()
        place.log_disk.crash()
        again = await place.start()
        await world.until(lambda: again.meta.applied.last_ts >= written.ts, "it has all that was written")
        assert read(again, "later", written.ts) == b"w"
        assert all(read(again, f"k{number}", written.ts) == b"v" for number in range(20))
        assert again.patrol.progress.damaged == 0

    world.run(scenario)


def test_a_group_of_one_that_is_idle_gets_rid_of_it_too() -> None:
    world = World(limits=LIMITS)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        written = await n1.meta.write(put("k", b"v"))
        await world.settled()
        place = world.places["n1"]
        # The second time there is nothing any more that could be dropped from the log with it.
        for _ in range(2):
            await dropped(world, place, rot(place))
        place.crash()
        place.log_disk.crash()
        again = await place.start()
        await world.until(lambda: again.meta.applied.last_ts >= written.ts, "it has what was written")
        assert read(again, "k", written.ts) == b"v"

    world.run(scenario)


def test_where_nothing_can_be_appended_behind_the_damage_the_node_ends_and_says_why() -> None:
    world = World(limits=LIMITS)
    failed: list[BaseException] = []

    async def scenario() -> None:
        nodes: list[Host] = await world.grow("n1", "n2", "n3")
        await world.settled()
        place = world.places["n2"]
        name = rot(place)
        end = nodes[1].process.log_files.durable_end[1]
        # The bytes that the next frame goes to are no zeros either.
        for content in (place.log_disk.durable[name], place.log_disk._seen[name]):
            content[end + 3] ^= 1
        failed.append(await nodes[1].process.life.failed())

    world.run(scenario)
    assert isinstance(failed[0], DataLoss)
    assert "another process has written" in failed[0].message()
