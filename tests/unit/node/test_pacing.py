"""A member that fell behind catches up under steady load: the log is held for it, and writers are slowed a little."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise

import pytest

from cortado.raft.settings import RaftSettings
from cortado.store.host.status import node_status
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.compaction import DELAY_MS_MAX, TRIES_MAX, Pacing, append_rate
from support.node_world import World
from support.nodes import put

MIB = 1 << 20
BEGINS, HELD_MAX = 80 * MIB, 256 * MIB


def test_nothing_is_slowed_while_the_log_has_its_usual_length() -> None:
    assert append_rate(0, BEGINS, HELD_MAX, 0) == math.inf
    assert append_rate(BEGINS, BEGINS, HELD_MAX, TRIES_MAX) == math.inf


def test_the_rate_falls_gently_from_64_to_2_mib_a_second_and_never_below() -> None:
    rates = [append_rate(held, BEGINS, HELD_MAX, 0) / MIB for held in range(BEGINS + 1, 2 * HELD_MAX, MIB)]
    assert rates[0] == pytest.approx(64, rel=0.01)
    assert rates == sorted(rates, reverse=True)
    assert max(before / after for before, after in pairwise(rates)) < 1.03, "without a step"
    assert rates[-1] == 2


def test_each_failed_try_halves_the_slowest_rate_and_after_the_last_nothing_is_slowed() -> None:
    slowest = [append_rate(HELD_MAX, BEGINS, HELD_MAX, tries) / MIB for tries in range(TRIES_MAX + 2)]
    assert slowest == [2, 1, 0.5, 0.25, math.inf]


def test_an_entry_waits_for_as_long_as_the_one_before_it_takes_at_the_rate_but_never_for_long() -> None:
    pacing = Pacing()
    pacing.appended(100 * MIB, 0)
    assert pacing.due_ms(5) == 5
    pacing.rate = 2.0 * MIB
    pacing.appended(MIB, 1_000)
    assert pacing.due_ms(1_000) == 1_500
    pacing.appended(100 * MIB, 2_000)
    assert pacing.due_ms(2_000) == 2_000 + DELAY_MS_MAX
    assert pacing.batch_bytes(4 * MIB) == MIB // 2 + 1
    pacing.rate = math.inf
    assert pacing.due_ms(2_001) == 2_001
    assert pacing.batch_bytes(4 * MIB) == 4 * MIB


class Load:
    """Callers who write as fast as they are let: without being slowed, 2 MB a second."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.is_over = False
        self.done = 0
        self.longest_ms = 0.0
        self._tasks = [world.loop.create_task(self._write(number)) for number in range(4)]

    async def _write(self, number: int) -> None:
        while not self.is_over:
            began_ms = self._world.now_ms
            await self._world.leader().meta.write(put(f"k{number}", bytes(20_000)), size_bytes=20_000)
            self.longest_ms = max(self.longest_ms, self._world.now_ms - began_ms)
            self.done += 1
            await self._world.sleep(max(40 - (self._world.now_ms - began_ms), 1))

    async def end(self) -> None:
        self.is_over = True
        await asyncio.gather(*self._tasks)


SETTINGS = RaftSettings(retain_bytes=1 * MIB, retain_entries=1_000)
LIMITS = NodeLimits(held_bytes_max=8 * MIB)


def test_a_member_whose_snapshot_takes_longer_than_the_log_is_held_catches_up_under_steady_load() -> None:
    world = World(settings=SETTINGS, limits=LIMITS)

    async def scenario() -> None:
        n1, _, _ = await world.grow("n1", "n2", "n3")
        load = Load(world)
        await world.sleep(1_000)
        world.cut_off("n3")
        await world.sleep(6_000)
        behind = world.places["n3"].node
        # It may have begun with one.
        installed = behind.meta.snapshot_receiver.installed
        # A snapshot takes so long that 12 MB and more would be written meanwhile.
        world.fetch_bytes_per_s = 1_000_000
        world.heal()
        before = load.done
        await world.until(lambda: bool(node_status(n1).slowed), "the leader says that it slows writes down")
        assert "n3" in node_status(n1).slowed
        # Its status costs much, and this is looked at often.
        await world.until(
            lambda: n1.meta.applied.index - behind.meta.applied.index < 50 and not node_status(n1).slowed, "it is back"
        )
        # One may have been made while it was cut off, which the log had left behind before it came back.
        assert behind.meta.snapshot_receiver.installed <= installed + 2
        assert load.done > before + 100, "writers went on"
        assert load.longest_ms < 4_000
        await load.end()
        await world.settled()
        assert n1.meta.log.window.size[1] < 2 * MIB, "what was held is dropped"

    world.run(scenario)
