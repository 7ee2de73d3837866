"""Three whole nodes in one process and in virtual time, joined by queues: members that can be cut off, crashed at a
chosen transaction of an installation, and started again on their disks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from cortado.errors import CortadoError, NotFound, Unavailable
from cortado.raft.log import Message
from cortado.raft.registry import Member as ConfiguredMember
from cortado.raft.registry import Roster
from cortado.raft.settings import RaftSettings
from cortado.store.engine.interface import Space, WriteTransaction
from cortado.store.host.host import Host
from cortado.store.process.process import NodeIdentity, Surroundings
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.replica.replica import Role
from cortado.store.replica.snapshots.marker import marker_key
from support.logs import memory_log_disk, memory_log_files
from support.memory_engine import MemoryEngine
from support.memory_snapshot_files import MemorySnapshotFiles
from support.node_world import InPlace
from support.nodes import SetClock, followed, key, put
from support.simulation.loop import NodeLoop, Scheduler
from support.snapshots import Crash, InlineStorage

CLUSTER = "cluster-a"
QUICK = RaftSettings(heartbeat_ms=30, election_ms_min=600, election_ms_max=1000, retain_entries=20)
WAIT_S = 30.0
RUN_MS = 600_000
SYNC_S = 0.002


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a test to its end in virtual time: an election, or a second to wait, takes no time."""
    problems: list[str] = []
    scheduler = Scheduler()
    loop = NodeLoop(scheduler, "test", problems.append)

    async def bounded() -> None:
        await scenario()

    task = loop.create_task(bounded())
    assert scheduler.run_until(task.done, until_ms=RUN_MS), "it does not end"
    task.result()
    loop.bury()
    assert problems == []


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class InstallEngine(MemoryEngine):
    """Counts the transactions of installations, and ends the process at one of them: before it is durable, or after."""

    def __init__(self) -> None:
        super().__init__()
        self.installing = 0
        self.crash_at = 0
        self.is_durable = False

    def write(self) -> Iterator[WriteTransaction]:  # type: ignore[override]
        return self._write()  # type: ignore[return-value]

    @contextmanager
    def _write(self) -> Iterator[WriteTransaction]:
        marker = marker_key(1)
        with super().write() as txn:
            was_marked = txn.get(Space.META, marker) is not None
            yield txn
            is_part = was_marked or txn.get(Space.META, marker) is not None
            self.installing += is_part
            is_last = is_part and self.installing == self.crash_at
            if is_last and not self.is_durable:
                raise Crash
        if is_last:
            raise Crash


class Member:
    """One node, with the parts that survive its process."""

    def __init__(self, cluster: SnapshotCluster, node_id: str) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.engine = InstallEngine()
        self.log_disk = memory_log_disk()
        self.files = MemorySnapshotFiles()
        self.lives = 0
        self.is_up = False
        self.joined = Roster()

    async def start(self) -> None:
        self.lives += 1
        self.storage = InlineStorage(takes_s=SYNC_S)
        self.node = Host(
            NodeIdentity(
                CLUSTER, self.node_id, f"disk of {self.node_id}", f"{self.node_id}:7621", f"{self.node_id}:7622"
            ),
            Surroundings(
                engine=self.engine,
                log_files=memory_log_files(self.log_disk),
                snapshot_files=self.files,
                host_time=followed(SetClock()),
                monotonic_ms=lambda: _now_s() * 1000,
                random=random.Random(f"{self.node_id} {self.lives}"),
                transport=_Transport(self),
                thread=lambda _loop, _name: self.storage,
                run_scan=InPlace(),
            ),
            raft=QUICK,
            joining=None if self.node_id == "n1" else self.joined,
        )
        self.is_up = True
        await self.node.start()

    async def crash(self) -> None:
        """End the process, with its unsynced writes."""
        self.is_up = False
        self.storage.crashed.set()
        await self.node.meta.snapshot_receiver.stop()
        await self.node.meta.snapshot_sender.stop()
        # The rest of this life must not run a round any more.
        self.node.meta.driver.fail(Unavailable("killed"))
        self.files.crash()
        self.engine.crash_at = 0

    @property
    def applied_index(self) -> int:
        return self.node.meta.applied.index

    @property
    def last_index(self) -> int:
        return self.node.meta.log_position()[1]

    def data(self) -> dict[bytes, bytes]:
        with self.engine.read() as txn:
            page = txn.page(Space.DATA, b"\x00", b"\xff" * 512, max_items=1 << 30, max_bytes=1 << 40)
        return dict(zip(page.keys, page.values, strict=True))

    def value(self, name: str) -> bytes | None:
        version = self.node.meta.reader(self.node.meta.read_ts()).get(key(name))
        return None if version is None else version.payload


class SnapshotCluster:
    """``cut`` members hear no other member, and no other member hears them. Streams of snapshots wait while ``hold`` is
    clear."""

    def __init__(self) -> None:
        self.members = {name: Member(self, name) for name in ("n1", "n2", "n3")}
        self.cut: set[str] = set()
        self.hold = asyncio.Event()
        self.hold.set()
        self.flip_at: set[int] = set()
        self.fetches: list[tuple[str, str, int]] = []
        self.written: dict[str, bytes] = {}
        self._number = 0

    @property
    def leader(self) -> Member | None:
        leading = [each for each in self.members.values() if each.is_up and each.node.meta.role is Role.LEADER]
        return max(leading, key=lambda each: each.node.meta.term, default=None)

    def are_joined(self, one: str, other: str) -> bool:
        both_up = self.members[one].is_up and self.members[other].is_up
        return both_up and not {one, other} & self.cut

    async def write(self, size_bytes: int = 40) -> None:
        """Write one more key at the leader, however long that takes."""
        self._number += 1
        name, value = f"row {self._number:05}", random.Random(self._number).randbytes(size_bytes)
        deadline = _now_s() + WAIT_S
        while True:
            leader = self.leader
            try:
                if leader is not None and leader.node_id not in self.cut:
                    await asyncio.wait_for(leader.node.meta.write(put(name, value), size_bytes=size_bytes), 2)
                    self.written[name] = value
                    return
            except (CortadoError, TimeoutError):
                pass
            assert _now_s() < deadline, "nothing can be written"
            await asyncio.sleep(0.01)

    async def write_many(self, count: int, size_bytes: int = 40) -> None:
        for _ in range(count):
            await self.write(size_bytes)

    @asynccontextmanager
    async def being_written(self) -> AsyncIterator[None]:
        """Write in the background, one key after the other, as long as the block lasts."""
        stop = asyncio.Event()

        async def write_on() -> None:
            while not stop.is_set():
                await self.write()
                await asyncio.sleep(0.002)

        writing = asyncio.ensure_future(write_on())
        try:
            yield
        finally:
            stop.set()
            await writing

    async def converged(self, *members: Member) -> None:
        """Wait until all have applied the same, and hold all that was acknowledged."""
        everybody = members or tuple(self.members.values())
        # Acknowledged entries are applied a little later.
        await until(lambda: len({index for each in everybody for index in (each.applied_index, each.last_index)}) == 1)
        for each in everybody:
            assert each.data() == everybody[0].data()
        for each in everybody:
            for name, value in self.written.items():
                assert each.value(name) == value, f"{each.node_id} lacks {name}"


class _Transport:
    """The transport of one life of one member."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._cluster = member.cluster
        self._life = member.lives

    def configure(self, configuration: Roster) -> None:
        """Connect all members that are not cut off."""

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        for message in messages:
            asyncio.get_running_loop().call_soon(self._deliver, group_id, message)

    def _deliver(self, group_id: int, message: Message) -> None:
        sender = self._member
        if sender.lives == self._life and self._cluster.are_joined(sender.node_id, message.to):
            receiver = self._cluster.members[message.to].node
            own_ms, _ = receiver.process.host_time.offsets_ms()
            receiver.observe_peer_clock(sender.node_id, own_ms - 1, own_ms + 1)
            receiver.receive(sender.node_id, group_id, [message.body])

    async def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        cluster, receiver = self._cluster, self._member.node_id
        cluster.fetches.append((peer, snapshot_id, offset))
        sender = cluster.members[peer]
        if not cluster.are_joined(receiver, peer):
            raise Unavailable(f"{peer} can't be reached")
        life = sender.lives
        async for chunk in sender.node.meta.snapshot_sender.read(snapshot_id, offset):
            await cluster.hold.wait()
            if not cluster.are_joined(receiver, peer) or sender.lives != life:
                raise Unavailable("the stream broke")
            sent = bytearray(chunk)
            for place in [each for each in cluster.flip_at if offset <= each < offset + len(chunk)]:
                sent[place - offset] ^= 1
                cluster.flip_at.discard(place)
            offset += len(chunk)
            yield bytes(sent)

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        if not self._cluster.are_joined(self._member.node_id, peer):
            raise Unavailable(f"{peer} can't be reached")
        return await self._cluster.members[peer].node.read_range(group_id, ask)


async def until(condition: Callable[[], object]) -> None:
    deadline = _now_s() + WAIT_S
    while not condition():
        await asyncio.sleep(0.002)
        assert _now_s() < deadline, "it did not happen in time"


def bound(name: str) -> ConfiguredMember:
    """Return a node as it binds itself."""
    return ConfiguredMember(name, f"{name}:7622", f"disk of {name}", f"{name}:7621")


@asynccontextmanager
async def three_nodes() -> AsyncIterator[SnapshotCluster]:
    """Run a group of three voters, with n1 leading at first."""
    cluster = SnapshotCluster()
    first = cluster.members["n1"]
    await first.start()
    try:
        for name in ("n2", "n3"):
            cluster.members[name].joined = await first.node.meta.members.add(name, f"{name}:7622")
            await cluster.members[name].start()
            await first.node.meta.bind_member(bound(name))
            await _promoted(first, name)
        yield cluster
    finally:
        for member in cluster.members.values():
            if member.is_up:
                await member.node.stop(hand_over=False)


async def _promoted(leader: Member, name: str) -> None:
    deadline = _now_s() + WAIT_S
    while True:
        try:
            await leader.node.meta.members.promote(name)
            return
        except (Unavailable, NotFound):
            assert _now_s() < deadline, f"{name} never caught up"
            await asyncio.sleep(0.01)
