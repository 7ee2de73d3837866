"""A random run of writes, watches, crashes, cuts and snapshots, and the histories of its watchers in the end.

All bounds are tiny, so that every way on which a change can reach a watcher is taken all the time: the queue, the
changes in memory, and the versions in the engine, in windows and slices of a few changes each.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from cortado.errors import CortadoError
from cortado.raft.settings import RaftSettings
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.host.host import Host
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.feed import history, watch
from support.node_world import World
from support.nodes import key
from support.watch_history import problems, state_after
from support.watchers import Watcher, committed_in

KEYS = [f"k{number:02}" for number in range(12)]
NODES = ["n1", "n2", "n3"]
LIMITS = NodeLimits(
    watch_queue_events_max=8,
    watch_queue_bytes_max=400,
    watch_bytes_max=2_000,
    watch_recent_entries_max=4,
    watch_passes_max=1,
    watch_pass_events_max=5,
    watch_close_ms=100,
    watch_leaderless_ms=300,
)
SETTINGS = RaftSettings(retain_entries=6)


def changes(chosen: random.Random, number: int) -> Evaluate:
    """Return one commit of some keys."""
    count = chosen.choice([1, 1, 1, 2, 5, 10])
    names = chosen.sample(KEYS, count)
    deletes = {name for name in names if chosen.random() < 0.3}

    def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        for name in names:
            if name in deletes:
                mutations.delete(key(name))
            else:
                mutations.put(key(name), f"{number} of {name}".encode())
        return Evaluation(mutations, None)

    return evaluate


class Scene:
    """One random run."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.watchers: list[tuple[Watcher, bytes, bytes]] = []
        self.timestamps = [ZERO]
        self.written = 0
        self.problems: list[str] = []

    async def run(self) -> None:
        await self.world.grow(*NODES)
        for _ in range(60):
            await self.random.choice([self.write] * 8 + [self.wait] * 2 + [self.watch] * 2 + [self.hurt])()
        await self.mend()
        newest = self.world.leader().meta.read_ts()
        await self.world.until(lambda: all(each.resolved >= newest for each, *_ in self.watchers), "all have seen all")
        self.problems = self.judge()
        for watcher, *_ in self.watchers:
            watcher.stop()

    async def write(self) -> None:
        """Make one write, or some that share an entry of the log."""
        leader = await self.world.led()
        count = self.random.choice([1, 1, 4])
        await asyncio.gather(*[self.write_to(leader, self.written + number) for number in range(count)])
        self.written += count

    async def write_to(self, leader: Host, number: int) -> None:
        # Refused or unknown: the engine knows the committed writes.
        with suppress(CortadoError):
            result = await leader.meta.write(changes(self.random, number), size_bytes=100)
            self.timestamps.append(result.ts)

    async def wait(self) -> None:
        await self.world.sleep(self.random.choice([1, 10, 100, 400]))

    async def watch(self) -> None:
        start, end = sorted(self.random.sample([b"", *(each.encode() for each in KEYS), b"z"], 2))
        after = self.random.choice(self.timestamps)
        watcher = Watcher(self.any_node(), after, start=start, end=end, pause=self.pace(), turn_to=self.any_node)
        self.watchers.append((watcher, start, end))

    def pace(self) -> Callable[[], Awaitable[None]] | None:
        pause_ms = self.random.choice([0, 0, 5, 60])
        return (lambda: self.world.sleep(pause_ms)) if pause_ms else None

    def any_node(self) -> Host:
        return self.random.choice([each.node for each in self.world.places.values() if each.is_running])

    async def hurt(self) -> None:
        places = self.world.places
        down = [each for each in places.values() if not each.is_running]
        if down:
            await down[0].start()
        elif self.world.cuts:
            self.world.heal()
        elif self.random.random() < 0.5:
            place = places[self.random.choice(NODES)]
            place.crash()
            place.node.meta.watches.stop(CortadoError())
        else:
            self.world.cut_off(self.random.choice(NODES))

    async def mend(self) -> None:
        self.world.heal()
        for place in self.world.places.values():
            if not place.is_running:
                await place.start()
        await self.world.led()
        await self.world.settled()

    def judge(self) -> list[str]:
        """Hold each watcher's history, and the state that it adds up to, against the leader's data."""
        found: list[str] = []
        node = self.world.leader()
        for watcher, start, end in self.watchers:
            committed = committed_in(node, start, end)
            found += problems(watcher.history, watcher.after, committed)
            in_time = sorted(committed, key=lambda each: each.ts)
            state = state_after(state_after({}, in_time, watcher.after), watcher.history, watcher.resolved)
            if state != state_after({}, in_time, watcher.resolved):
                found.append(f"the changes do not add up to the state at {watcher.resolved}")
        return found


def with_tiny_slices(patch: pytest.MonkeyPatch) -> None:
    """Make batches, slices and reads of a few changes."""
    patch.setattr(watch, "BATCH_EVENTS_MAX", 3)
    patch.setattr(history, "KEYS_PER_STEP", 7)
    patch.setattr(history, "ITEMS_PER_READ", 2)


def run_scene(seed: int) -> list[str]:
    """Return the problems in the histories of a run's watchers."""
    world = World(limits=LIMITS, settings=SETTINGS)
    scene = Scene(world, seed)
    world.run(scene.run)
    return scene.problems
