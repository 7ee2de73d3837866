"""Several production nodes in one process and on one loop with virtual time: a disk that a test can hold, fill or
break, and a network that it can cut, hold, and let speak twice.

Nothing here is random, and nothing waits: time stands still while anything can run, and then jumps. So a test of an
election takes milliseconds, and is the same each time.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from cortado.errors import NotFound, Unavailable
from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.raft.settings import RaftSettings
from cortado.store.clock.hlc import MAX_OFFSET_MS
from cortado.store.clock.host_time import HostTime
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.host.host import Host
from cortado.store.process.limits import NodeLimits
from cortado.store.process.peer_clocks import FORGOTTEN_MS
from cortado.store.process.process import NodeIdentity, Surroundings
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.process.storage_thread import Done, Job
from cortado.store.replica.replica import Role
from support.logs import memory_log_disk, memory_log_files
from support.memory_engine import MemoryEngine
from support.memory_snapshot_files import MemorySnapshotFiles
from support.nodes import NOW_MS
from support.simulation.groups import ONE_GROUP, Groups
from support.simulation.loop import NodeLoop, Scheduler

T = TypeVar("T")

LINK_MS = 1.0
SYNC_MS = 0.5
PATIENCE_MS = 60_000.0


class HeldStorage:
    """A thread's place: a job takes effect when its sync ends. ``failures`` are raised by the next ones."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: deque[tuple[Job, Done]] = deque()
        self._is_running = False
        self.is_held = False
        self.failures: list[Exception] = []
        self.done = 0

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        self._jobs.append((job, done))
        self._next()

    def stop(self) -> None:
        """Do nothing: nothing runs that must end."""

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False
        self._next()

    def let_one_through(self) -> None:
        """Run the job that waits first, now, while the others stay held."""
        job, done = self._jobs.popleft()
        self._end(job, done)

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    @property
    def is_idle(self) -> bool:
        return not self._jobs and not self._is_running

    def _next(self) -> None:
        if self._jobs and not self._is_running and not self.is_held:
            self._is_running = True
            self._loop.call_later(SYNC_MS / 1000, self._run)

    def _run(self) -> None:
        self._is_running = False
        if self.is_held:
            return
        self._end(*self._jobs.popleft())
        self._next()

    def _end(self, job: Job, done: Done) -> None:
        outcome: object
        try:
            outcome = self.failures.pop(0) if self.failures else job()
        except Exception as error:
            outcome = error
        self.done += 1
        done(outcome)


class InPlace(Executor):
    """The scan thread's place: the loop runs its steps itself."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: there is nothing to end."""


class WorldTransport:
    """One node's way to the others."""

    def __init__(self, world: World, node_id: str) -> None:
        self._world = world
        self._node_id = node_id
        self.rosters: list[Roster] = []

    def configure(self, roster: Roster) -> None:
        self.rosters.append(roster)

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        for message in messages:
            self._world.carry(self._node_id, group_id, message)

    async def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        place = self._world.places.get(peer)
        self._world.fetches += offset == 0
        if place is None or not place.is_running:
            raise NotFound("snapshot", snapshot_id)
        async for piece in place.node.meta.snapshot_sender.read(snapshot_id, offset):
            if self._world.fetch_bytes_per_s:
                await self._world.sleep(len(piece) / self._world.fetch_bytes_per_s * 1_000)
            yield piece

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        place = self._world.places.get(peer)
        if place is None or not place.is_running or peer in self._world.silent:
            raise Unavailable(f"{peer} can't be reached")
        self._world.ranges_read += 1
        return await place.node.read_range(group_id, ask)


class Place:
    """A host: it outlives its node's processes."""

    def __init__(self, world: World, node_id: str, *, is_first: bool) -> None:
        self._world = world
        self.node_id = node_id
        self.address = f"{node_id}.test:7621"
        self.peer_address = f"{node_id}.test:7622"
        self.storage_id = f"disk-of-{node_id}"
        self.engine = MemoryEngine()
        self.snapshot_files = MemorySnapshotFiles()
        self.wall_offset_ms = 0
        self.is_first = is_first
        self.joined = Roster()
        self.is_running = False
        self.holds_data = False
        """The next life's data is held, from its beginning."""
        self.lives = 0
        self.node: Host
        self.log_disk = memory_log_disk()
        self.disk: HeldStorage
        self.data: HeldStorage
        self.here: HeldStorage
        """The writes of the log that the loop runs itself, in a world that has such."""
        self.transport: WorldTransport

    @property
    def member(self) -> Member:
        """This node, as it binds itself."""
        return Member(self.node_id, self.peer_address, self.storage_id, self.address)

    async def start(self, *failures: Exception) -> Host:
        """Begin a life on a disk; its first writes of the log end with ``failures``."""
        world = self._world
        self.lives += 1
        self.disk, self.data, self.here = (HeldStorage(world.loop) for _ in range(3))
        self.disk.failures = list(failures)
        self.data.is_held, self.holds_data = self.holds_data, False
        self.transport = WorldTransport(world, self.node_id)
        self.node = Host(
            NodeIdentity("cluster-a", self.node_id, self.storage_id, self.address, self.peer_address),
            Surroundings(
                engine=self.engine,
                log_files=memory_log_files(self.log_disk),
                snapshot_files=self.snapshot_files,
                host_time=HostTime(
                    lambda: NOW_MS + int(world.now_ms) + self.wall_offset_ms,
                    lambda: world.loop.time() * 1000,
                    max_offset_ms=MAX_OFFSET_MS,
                ),
                monotonic_ms=lambda: world.loop.time() * 1000,
                random=random.Random(f"{self.node_id} {self.lives}"),
                transport=self.transport,
                thread=lambda _loop, name: self.disk if name == "log" else self.data,
                here=(lambda _loop: self.here) if world.writes_here else None,
                run_scan=InPlace(),
            ),
            limits=world.limits,
            raft=world.settings,
            retention_ms=world.retention_ms,
            joining=None if self.is_first else self.joined,
        )
        self.node.groups = world.groups
        await self.node.start()
        self.is_running = True
        return self.node

    def crash(self) -> None:
        """End the process, with its unsynced writes. (Its callbacks find a closed node.)"""
        self.is_running = False
        self.disk.hold()
        self.data.hold()
        self.here.hold()
        self.node.meta.driver._is_closed = True
        self.node.meta.driver._scheduler.stop()
        self.node.loop_delay.stop()

    async def stop(self) -> None:
        await self.node.stop()
        self.is_running = False


class World:
    """All places, and the network between them."""

    def __init__(
        self,
        *,
        limits: NodeLimits | None = None,
        settings: RaftSettings | None = None,
        retention_ms: int = KEEP_ALL,
        writes_here: bool = False,
        groups: Groups = ONE_GROUP,
    ) -> None:
        """``writes_here``: the loop runs small writes of the log itself while the disk is quick. ``groups`` divide the
        keys of each node."""
        self.groups = groups
        self.limits = limits or NodeLimits()
        self.writes_here = writes_here
        self.retention_ms = retention_ms
        self.settings = settings or RaftSettings()
        self.scheduler = Scheduler()
        self.problems: list[str] = []
        self.loop = NodeLoop(self.scheduler, "world", self.problems.append)
        self.places: dict[str, Place] = {}
        self.cuts: set[tuple[str, str]] = set()
        self.copies = 1
        self.fetches = 0
        self.ranges_read = 0
        self.silent: set[str] = set()
        """Nodes that answer no node that repairs its data."""
        self.tells_clocks = True
        """A node hears a peer's clock with its first message, and now and then, unless the test has told it one."""
        self._told_to_ms: dict[tuple[str, int, str], float] = {}
        self.fetch_bytes_per_s = 0
        """How fast snapshots come over; 0: at once."""
        self.held_links: set[tuple[str, str]] = set()
        self.held: list[tuple[str, int, Message]] = []

    # --- running a test ----------------------------------------------------------------------------------------

    def run(self, scenario: Callable[[], Awaitable[T]]) -> T:
        """Run an async test to its end. Raises AssertionError if it hangs, or if something failed unseen."""
        task: asyncio.Task[Any] = self.loop.create_task(_coroutine(scenario))
        ended = self.scheduler.run_until(task.done, until_ms=10 * PATIENCE_MS)
        self.loop.bury()
        assert ended, "the scenario hangs"
        found: T = task.result()
        assert not self.problems, self.problems
        return found

    @property
    def now_ms(self) -> float:
        return self.scheduler.now_ms

    async def sleep(self, ms: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(ms / 1000)

    async def until(self, condition: Callable[[], bool], what: str, patience_ms: float = PATIENCE_MS) -> None:
        """Return once ``condition`` holds, looked at each virtual millisecond."""
        deadline_ms = self.now_ms + patience_ms
        while not condition():
            assert self.now_ms < deadline_ms, f"{what}: not within {patience_ms:.0f} virtual ms"
            await self.sleep(1)

    # --- nodes -------------------------------------------------------------------------------------------------

    def place(self, node_id: str, *, is_first: bool = False) -> Place:
        self.places[node_id] = Place(self, node_id, is_first=is_first)
        return self.places[node_id]

    async def grow(self, *node_ids: str) -> list[Host]:
        """Make a cluster of these voters; the first begins it, and leads."""
        first = await self.place(node_ids[0], is_first=True).start()
        nodes = [first]
        for node_id in node_ids[1:]:
            nodes.append(await self.join(node_id))
            await self.promote(node_id)
        await self.settled()
        return nodes

    async def settled(self) -> None:
        """Return when every node that runs has applied all, and nothing is being stored."""
        running = [each for each in self.places.values() if each.is_running]

        def has_settled(place: Place) -> bool:
            replica = place.node.meta
            is_idle = place.disk.is_idle and place.data.is_idle and place.here.is_idle
            return is_idle and replica.log.last[0] == replica.applied.index

        await self.until(
            lambda: len({each.node.meta.applied for each in running}) == 1 and all(map(has_settled, running)),
            "all have applied all",
        )

    async def join(self, node_id: str) -> Host:
        """Add a new learner."""
        place = self.place(node_id)
        leader = self.leader()
        await leader.meta.members.add(node_id, place.peer_address)
        place.joined = await leader.meta.bind_member(place.member)
        return await place.start()

    async def promote(self, node_id: str) -> None:
        place = self.places[node_id]
        await self.until(
            lambda: place.node.meta.applied.index >= self.leader().meta.applied.index > 0, f"{node_id} has caught up"
        )
        await self.until(lambda: self._progress(node_id) >= self.leader().meta.applied.index, "the leader knows")
        await self.leader().meta.members.promote(node_id)

    def _progress(self, node_id: str) -> int:
        found = [each.match_index for each in self.leader().meta.member_progress() if each.node_id == node_id]
        return found[0] if found else 0

    def leaders(self) -> list[Host]:
        """Return the hosts that believe to lead, by term."""
        nodes = [each.node for each in self.places.values() if each.is_running]
        return sorted((node for node in nodes if node.meta.role is Role.LEADER), key=lambda node: node.meta.term)

    def leader(self) -> Host:
        return self.leaders()[-1]

    async def led(self, *, but: str = "", above: int = 0) -> Host:
        """Wait for a node that leads and may evaluate: another one than ``but``, in a term above ``above``."""

        def found() -> list[Host]:
            return [
                node
                for node in self.leaders()
                if node.process.identity.node_id != but
                and node.meta.term > above
                and node.meta.driver.leadership.is_ready
            ]

        await self.until(lambda: bool(found()), "somebody leads")
        return found()[-1]

    # --- the network -------------------------------------------------------------------------------------------

    def carry(self, sender: str, group_id: int, message: Message) -> None:
        link = (sender, message.to)
        if link in self.cuts:
            return
        if link in self.held_links:
            self.held.append((sender, group_id, message))
            return
        for _ in range(self.copies):
            self.loop.call_later(LINK_MS / 1000, self._arrive, sender, group_id, message)

    def _arrive(self, sender: str, group_id: int, message: Message) -> None:
        place = self.places.get(message.to)
        if (sender, message.to) not in self.cuts and place is not None and place.is_running:
            heard = (place.node_id, place.lives, sender)
            if self.tells_clocks and self._told_to_ms.get(heard, 0.0) <= self.now_ms:
                apart_ms = self.places[sender].wall_offset_ms - place.wall_offset_ms
                self.tell_clock(place.node, sender, apart_ms - 1, apart_ms + 1)
                self._told_to_ms[heard] = self.now_ms + FORGOTTEN_MS / 2
            place.node.receive(sender, group_id, [message.body])

    def tell_clock(self, node: Host, peer: str, low_ms: float, high_ms: float) -> None:
        """Let ``node`` hear that the peer's wall clock minus its own lies between these."""
        node_id = node.process.identity.node_id
        self._told_to_ms[node_id, self.places[node_id].lives, peer] = math.inf
        own_ms, _ = node.process.host_time.offsets_ms()
        node.observe_peer_clock(peer, low_ms + own_ms, high_ms + own_ms)

    def cut_off(self, node_id: str) -> None:
        """Stop all traffic to and from a node."""
        for other in self.places:
            self.cuts |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        self.cuts.clear()

    def hold(self, sender: str, to: str) -> None:
        self.held_links.add((sender, to))

    def let_go(self) -> None:
        """Deliver the held messages now, in their order, through any present cut of the network."""
        held, self.held = self.held, []
        self.held_links.clear()
        for sender, group_id, message in held:
            place = self.places[message.to]
            if place.is_running:
                place.node.receive(sender, group_id, [message.body])


async def _coroutine(scenario: Callable[[], Awaitable[T]]) -> T:
    return await scenario()
