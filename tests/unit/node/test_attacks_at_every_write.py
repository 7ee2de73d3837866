"""A group grows, shrinks or hands over, and one of its two nodes dies in the middle of each of its writes to its two
stores, one after the other: every answered write is there afterwards, and the group goes on."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import NotLeader, ResourceExhausted
from cortado.store.host.host import Host
from cortado.store.process.storage_thread import Done, Job
from support.node_world import HeldStorage, Place, World
from support.nodes import put, read

pytestmark = pytest.mark.slow

WRITES_MAX = 60


class Story:
    """One life of two nodes, in which that of ``victim`` ends with its write number ``at``, be it of the log files or
    of the data. It ends before the write is durable, or (``is_durable``) after, and before any caller hears of it."""

    def __init__(self, victim: str, at: int, *, is_durable: bool, shrinks: bool) -> None:
        self.world = World()
        self.victim = victim
        self.at = at
        self.is_durable = is_durable
        self.shrinks = shrinks
        self.answered: list[str] = []
        self.has_crashed = False
        self.writes = 0

    def _arm(self, place: Place) -> None:
        for thread in (place.disk, place.data):
            self._arm_thread(place, thread)

    def _arm_thread(self, place: Place, thread: HeldStorage) -> None:
        def end(job: Job, done: Done, original=thread._end) -> None:
            self.writes += 1
            if self.writes != self.at:
                original(job, done)
                return
            if self.is_durable:
                job()
            self.has_crashed = True
            place.crash()

        thread._end = end  # type: ignore[method-assign]

    async def _write(self, name: str) -> None:
        await self.world.leader().meta.write(put(name, name.encode()), size_bytes=1)
        self.answered.append(name)

    async def _live(self) -> None:
        world = self.world
        n1 = await world.place("n1", is_first=True).start()
        if self.victim == "n1":
            self._arm(world.places["n1"])
        await self._write("alone")
        place = world.place("n2")
        await n1.meta.members.add("n2", place.peer_address)
        place.joined = await n1.meta.bind_member(place.member)
        await place.start()
        if self.victim == "n2":
            self._arm(place)
        await self._write("with a learner")
        await world.promote("n2")
        await self._write("with a voter")
        if self.shrinks:
            writing = [asyncio.ensure_future(self._write(f"beside {number}")) for number in range(3)]
            await n1.meta.members.remove("n2")
            await asyncio.gather(*writing)
        else:
            await n1.meta.members.transfer("n2")
        await self._write("last")

    async def tell(self) -> bool:
        """Run the story. Returns False if no node died: the victim has no write of that number."""
        world = self.world
        living = asyncio.ensure_future(self._live())
        await world.until(lambda: living.done() or self.has_crashed, "it ends one way or the other")
        if not self.has_crashed:
            await living
            return False
        living.cancel()
        await asyncio.wait([living])
        for place in world.places.values():
            if not place.is_running:
                await place.start()
        led = await self._goes_on()
        ts = await led.meta.reads.linearize()
        missing = [name for name in self.answered if read(led, name, ts) != name.encode()]
        assert not missing, f"answered, and lost: {missing}"
        return True

    async def _goes_on(self) -> Host:
        while True:
            led = await self.world.led()
            try:
                await led.meta.write(put("afterwards", b"1"), size_bytes=1)
            except (NotLeader, ResourceExhausted):
                await self.world.sleep(20)
            else:
                return led


@pytest.mark.parametrize("shrinks", [True, False], ids=["shrinks", "hands over"])
@pytest.mark.parametrize("is_durable", [False, True], ids=["lost", "durable"])
@pytest.mark.parametrize("victim", ["n1", "n2"])
def test_a_death_at_any_write_loses_nothing_that_was_answered(victim: str, is_durable: bool, shrinks: bool) -> None:
    for at in range(1, WRITES_MAX):
        story = Story(victim, at, is_durable=is_durable, shrinks=shrinks)
        if not story.world.run(story.tell):
            assert at > 8, "there was too little to interrupt"
            return
    raise AssertionError("the story has no end")


class WithoutRoom(Story):
    """The same, but the disk is full when the victim's write number ``at`` comes, and has room again soon after."""

    def _arm_thread(self, place: Place, thread: HeldStorage) -> None:
        def end(job: Job, done: Done, original=thread._end) -> None:
            self.writes += 1
            if self.writes == self.at:
                self.has_crashed = True
                thread.failures = [ResourceExhausted("full", 100, "disk", 1)]
            original(job, done)

        thread._end = end  # type: ignore[method-assign]

    async def _write(self, name: str) -> None:
        while True:
            try:
                await super()._write(name)
            except ResourceExhausted:
                await self.world.sleep(20)
            else:
                return

    async def tell(self) -> bool:
        await self._live()
        led = await self._goes_on()
        ts = await led.meta.reads.linearize()
        missing = [name for name in self.answered if read(led, name, ts) != name.encode()]
        assert not missing, f"answered, and lost: {missing}"
        assert led.process.writes.use().count == 0
        return self.has_crashed


@pytest.mark.parametrize("shrinks", [True, False], ids=["shrinks", "hands over"])
@pytest.mark.parametrize("victim", ["n1", "n2"])
def test_a_full_disk_at_any_write_loses_nothing_that_was_answered(victim: str, shrinks: bool) -> None:
    for at in range(1, WRITES_MAX):
        story = WithoutRoom(victim, at, is_durable=False, shrinks=shrinks)
        if not story.world.run(story.tell):
            assert at > 8, "there was too little to interrupt"
            return
    raise AssertionError("the story has no end")
