"""Members of a group as far as snapshots see them: engines with a state, logs that need or offer one, a driver that
pauses, and streams between them that a test can break, corrupt or keep waiting."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, cast

from cortado.errors import CortadoError, Internal, NotFound, Unavailable
from cortado.raft.group import RaftLog
from cortado.raft.log import LogRecord, PeerProgress, SnapshotMeta, SnapshotOffer
from cortado.raft.records import HardState, StoredLog, Writes
from cortado.raft.registry import Member, Roster
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, Space, WriteTransaction
from cortado.store.host.opening import complete_reset, stored_log
from cortado.store.keys.types import LogicalKey
from cortado.store.log_files.log_files import LogFiles
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import encode_versions
from cortado.store.process.process import NodeIdentity, Process
from cortado.store.process.range_copies import Answer
from cortado.store.process.snapshot_files import SnapshotFiles
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.process.storage_thread import Done, Job
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.context import GroupContext
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import applied_key, reset_key
from cortado.store.replica.snapshots.receiver import SnapshotReceiver
from cortado.store.replica.snapshots.sender import SnapshotSender
from cortado.store.replica.write.request_table.records import Remembered, encode_remembered
from support.logs import memory_log_disk, memory_log_files
from support.memory_engine import MemoryEngine
from support.memory_snapshot_files import MemorySnapshotFiles

T = TypeVar("T")

CLUSTER = "cluster-a"
GROUP = 1
WAIT_S = 20.0
MEMBERS = Roster.of(
    voters=tuple(Member(name, f"{name}:7621", f"disk of {name}") for name in ("n1", "n2", "n3")),
)
SMALL = SnapshotSettings(
    slice_bytes=2_000,
    slice_items=16,
    chunk_bytes=700,
    sync_bytes=5_000,
    transaction_bytes=5_000,
    transaction_items=40,
    reserve_bytes=0,
    retry_ms_min=0,
    retry_ms_max=1,
)
"""Bounds so small that a little state has many blocks, chunks and transactions."""


class Crash(BaseException):
    """The process ends here."""


def ts_of(number: int) -> Timestamp:
    return Timestamp(0, 1_763_643_600_000 + number, 0)


def fill(engine: Engine, *, index: int, term: int = 3, rows: int = 100, value_bytes: int = 50) -> AppliedState:
    """Give an engine a state: ``rows`` versions, a third as many remembered requests, and the applied record."""
    source = random.Random(index)
    keys = [LogicalKey(b"k%06d" % (number * 7 % 1_000_003)) for number in range(rows)]
    payloads = [source.randbytes(value_bytes) for _ in keys]
    ids = [bytes(ts_of(number)) + number.to_bytes(8) for number in range(rows // 3)]
    state = AppliedState(index=index, term=term, last_ts=ts_of(index), requests=len(ids))
    with engine.write() as txn:
        txn.put_many(Space.DATA, sorted(encode_versions(keys, payloads, ts_of(index))))
        for request_id in ids:
            key = META_GROUP.segment + request_id
            txn.put(Space.REQUESTS, key, encode_remembered(key, Remembered(b"h" * 16, ts_of(index), b"reply")))
        txn.put(Space.META, applied_key(GROUP), state.encode())
    return state


def contents(engine: Engine) -> dict[Space, dict[bytes, bytes]]:
    """Return all that an engine holds, but how the log is to be reset."""
    held: dict[Space, dict[bytes, bytes]] = {}
    with engine.read() as txn:
        for space in (Space.DATA, Space.REQUESTS, Space.META):
            page = txn.page(space, b"\x00", b"\xff" * 512, max_items=1 << 30, max_bytes=1 << 40)
            held[space] = dict(zip(page.keys, page.values, strict=True))
    held[Space.META].pop(reset_key(GROUP), None)
    return held


def stored_state(engine: Engine) -> AppliedState:
    with engine.read() as txn:
        encoded = txn.get(Space.META, applied_key(GROUP))
    return AppliedState.decode_stored(encoded)


class CountingEngine(MemoryEngine):
    """Ends the process at a commit: ``crash_at`` (from 1) before it is durable, or after it if ``is_durable``.
    ``failures`` are raised by the commits after ``fail_after``, one each."""

    def __init__(self, *, limit_bytes: int = 1 << 30) -> None:
        super().__init__(limit_bytes=limit_bytes)
        self.commits = 0
        self.crash_at = 0
        self.is_durable = False
        self.failures: list[Exception] = []
        self.fail_after = 0

    def write(self) -> Iterator[WriteTransaction]:  # type: ignore[override]
        return self._write()  # type: ignore[return-value]

    @contextmanager
    def _write(self) -> Iterator[WriteTransaction]:
        with super().write() as txn:
            yield txn
            if self.failures and self.commits >= self.fail_after:
                raise self.failures.pop(0)
            self.commits += 1
            if self.commits == self.crash_at and not self.is_durable:
                raise Crash
        if self.commits == self.crash_at:
            raise Crash


class FakeLog:
    """The part of a :class:`~cortado.raft.group.RaftLog` that snapshots use, and its window in one."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.term = 3
        self.leader = ""
        self.durable_commit_index = 0
        self.first_index = 1
        self.applied_index = 0
        self.roster, self.configuration = MEMBERS, MEMBERS.configuration
        self.snapshot_needs: Sequence[str] = ()
        self.snapshot_offer: SnapshotOffer | None = None
        self.progress: Sequence[PeerProgress] = ()
        self.offered: list[tuple[str, SnapshotMeta]] = []
        self.installs: list[SnapshotMeta] = []
        self.may_lead = True

    @property
    def window(self) -> FakeLog:
        return self

    @property
    def base(self) -> tuple[int, int]:
        return self.first_index - 1, 0

    def roster_at(self, index: int) -> Roster:
        return MEMBERS

    def offer_snapshot(self, to: str, meta: SnapshotMeta) -> None:
        self.offered.append((to, meta))

    def install(self, meta: SnapshotMeta) -> Writes:
        if meta.index <= self.applied_index:
            raise Internal(f"a snapshot of entry {meta.index} is older than what is applied")
        state = HardState(self.term, "", meta.index, meta.term, meta.roster)
        return [state.log_record(GROUP)]

    def installed(self, meta: SnapshotMeta) -> None:
        self.installs.append(meta)
        self.applied_index = meta.index
        self.durable_commit_index = max(self.durable_commit_index, meta.index)


@dataclass
class FakeProcess:
    """The part of a :class:`~cortado.store.process.process.Process` that snapshots use."""

    identity: NodeIdentity
    engine: Engine
    log_files: LogFiles
    transport: _Transport
    random: random.Random
    snapshot_files: SnapshotFiles
    snapshot_settings: SnapshotSettings
    scan: Callable[[Callable[[], object]], Awaitable[object]]
    monotonic_ms: Callable[[], float]


class CrashingLog(LogFiles):
    """Ends the process at an append, before it is durable or after."""

    crash_at_append = False
    is_durable = False

    def append(self, records: Sequence[LogRecord]) -> None:
        if self.crash_at_append and not self.is_durable:
            raise Crash
        super().append(records)
        if self.crash_at_append:
            raise Crash


class FakeDriver:
    """A driver that is either paused or not."""

    def __init__(self) -> None:
        self.is_paused = False
        self.resumed: list[AppliedState] = []
        self.on_pause: Callable[[], None] = lambda: None

    async def pause(self) -> None:
        self.is_paused = True
        await asyncio.sleep(0)
        self.on_pause()

    def resume(self, state: AppliedState) -> None:
        assert self.is_paused, "resumed, but not paused"
        self.is_paused = False
        self.resumed.append(state)


class InlineStorage:
    """Runs each job ``takes_s`` later, on the loop, until ``jobs_max`` were run. A crash ends everything: no callback
    runs any more."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self._takes_s = takes_s
        self.crashed = asyncio.Event()
        self.jobs = 0
        self.jobs_max = 1 << 60
        self._waiting: list[tuple[Job, Done]] = []

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        asyncio.get_running_loop().call_later(self._takes_s, self._run, job, done)

    def stop(self) -> None:
        """Do nothing: nothing runs beside the loop."""

    def go_on(self) -> None:
        """Run the held jobs, and all later ones."""
        self.jobs_max = 1 << 60
        for job, done in self._waiting:
            self.submit(job, done)

    def _run(self, job: Job, done: Done) -> None:
        if self.crashed.is_set():
            return
        if self.jobs == self.jobs_max:
            self._waiting.append((job, done))
            return
        self.jobs += 1
        try:
            outcome: object = job()
        except Crash:
            self.crashed.set()
            return
        except BaseException as error:
            outcome = error
        asyncio.get_running_loop().call_soon(done, outcome)


class Network:
    """Streams between the members of one test, broken by hand."""

    def __init__(self) -> None:
        self.members: dict[str, Replica] = {}
        self.break_after: list[int] = []
        """Each next stream breaks after this number of bytes."""
        self.flip_at: set[int] = set()
        """Offsets in a snapshot at which the next stream that passes flips a bit; each once."""
        self.fetches: list[tuple[str, str, int]] = []
        self.hold: asyncio.Event | None = None
        self.sent_bytes = 0

    async def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        self.fetches.append((peer, snapshot_id, offset))
        assert group_id == GROUP
        left = self.break_after.pop(0) if self.break_after else 1 << 60
        member = self.members.get(peer)
        if member is None:
            raise Unavailable(f"{peer} can't be reached")
        async for chunk in member.sender.read(snapshot_id, offset):
            if self.hold is not None:
                await self.hold.wait()
            if len(chunk) > left:
                yield chunk[:left]
                raise Unavailable("the stream broke")
            left -= len(chunk)
            sent = bytearray(chunk)
            for place in [each for each in self.flip_at if offset <= each < offset + len(chunk)]:
                sent[place - offset] ^= 1
                self.flip_at.discard(place)
            offset += len(chunk)
            self.sent_bytes += len(chunk)
            yield bytes(sent)


class _Transport:
    def __init__(self, network: Network) -> None:
        self.fetch_snapshot = network.fetch_snapshot

    def configure(self, configuration: Roster) -> None:
        """Connect all members."""

    def send(self, group_id: int, messages: Sequence[object]) -> None:
        raise AssertionError("snapshots send no messages of the log's")

    async def read_range(self, peer: str, group_id: int, ask: object) -> Answer:
        raise AssertionError("snapshots repair nothing")


class FakeKnown:
    """Stands for a replica's repairs: the test says which damage they know."""

    def __init__(self) -> None:
        self.items: set[tuple[Space, bytes]] = set()
        self.ranges: list[Damage] = []

    def lost(self) -> set[tuple[Space, bytes]]:
        return self.items

    def missing(self) -> list[Damage]:
        return self.ranges


class Replica:
    """One member: an engine and snapshot files, which survive, and a life on them."""

    def __init__(
        self,
        network: Network,
        node_id: str,
        *,
        engine: Engine | None = None,
        files: SnapshotFiles | None = None,
        settings: SnapshotSettings = SMALL,
        cluster_id: str = CLUSTER,
    ) -> None:
        self.network = network
        self.node_id = node_id
        self.engine: Engine = engine or CountingEngine()
        self.files: SnapshotFiles = files or MemorySnapshotFiles()
        self.log_disk = memory_log_disk()
        self.log_files: CrashingLog
        self.settings = settings
        self.cluster_id = cluster_id
        self.now_ms = 0.0
        self.begin_life()

    def begin_life(self) -> None:
        """Create the objects of a new process. A reset of the log that was not completed is completed."""
        opened = CrashingLog.open(self.log_disk)
        assert isinstance(opened, CrashingLog)
        self.log_files = opened
        self.store = VersionStore(self.engine)
        self.machine = StateMachine(self.engine, self.store, META_GROUP)
        complete_reset(self.machine, self.log_files, GROUP, self.stored_log())
        self.log = FakeLog(self.node_id)
        self.log.durable_commit_index = self.log.applied_index = stored_state(self.engine).index
        self.driver = FakeDriver()
        self.storage = InlineStorage()
        self.failures: list[BaseException] = []
        self.changes: list[str] = []
        self.damage: list[Damage] = []
        self.known = FakeKnown()
        self.scan_steps = 0
        group = self._group()
        self.sender = SnapshotSender(group, self.known, on_damage=self.damage.append)
        self.receiver = SnapshotReceiver(
            group,
            driver=self.driver,
            on_change=self._changed,
            on_damage=self.damage.append,
            on_failure=self.failures.append,
        )
        self.network.members[self.node_id] = self

    def _group(self) -> GroupContext:
        process = FakeProcess(
            NodeIdentity(self.cluster_id, self.node_id),
            self.engine,
            self.log_files,
            _Transport(self.network),
            random.Random(self.node_id),
            self.files,
            self.settings,
            self.run_scan,
            lambda: self.now_ms,
        )
        return GroupContext(
            cast(Process, process),
            self.storage,
            self.storage,
            META_GROUP,
            self.store,
            self.machine,
            cast(RaftLog, self.log),
        )

    def stored_log(self) -> StoredLog:
        """Return the log that a start would find."""
        return stored_log(memory_log_files(self.log_disk).groups, GROUP, owner="")

    @property
    def base_index(self) -> int:
        """Return the index at which the stored log begins."""
        return self.stored_log().hard_state.base_index

    async def restart(self) -> None:
        """Lose power and start again: nothing of this life goes on, and unsynced writes are gone."""
        await self.stop()
        assert isinstance(self.files, MemorySnapshotFiles)
        self.files.crash()
        if isinstance(self.engine, CountingEngine):
            self.engine.crash_at = 0
        self.begin_life()
        await self.receiver.start()

    def run_scan(self, step: Callable[[], T]) -> Awaitable[T]:
        async def run() -> T:
            await asyncio.sleep(0)
            self.scan_steps += 1
            return step()

        return asyncio.ensure_future(run())

    def _changed(self) -> None:
        self.store.unreadable = self.receiver.unreadable
        self.changes.append(self.receiver.unreadable)

    def is_readable(self) -> bool:
        return not self.store.unreadable

    def poll(self) -> None:
        """Poll as a node does after each round."""
        self.sender.poll()
        self.receiver.poll()

    async def stop(self) -> None:
        await self.receiver.stop()
        await self.sender.stop()


async def until(condition: Callable[[], object], *polled: Replica) -> None:
    """Let the loop run, polling as rounds do, until ``condition`` holds."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        for replica in polled:
            if not replica.driver.is_paused:
                replica.poll()
        await asyncio.sleep(0.0005)
        assert time.monotonic() < deadline, "it did not happen in time"


async def offer(leader: Replica, follower: Replica) -> SnapshotMeta:
    """Let the follower need a snapshot, the leader make and offer one, and the offer arrive."""
    leader.log.snapshot_needs = (follower.node_id,)
    before = len(leader.log.offered)
    await until(lambda: len(leader.log.offered) > before, leader)
    to, meta = leader.log.offered[-1]
    assert to == follower.node_id
    follower.log.leader = leader.node_id
    follower.log.snapshot_offer = SnapshotOffer(leader.node_id, meta)
    return meta


async def read_all(replica: Replica, snapshot_id: str, offset: int = 0) -> bytes:
    return b"".join([chunk async for chunk in replica.sender.read(snapshot_id, offset)])


def is_gone(files: SnapshotFiles, name: str) -> bool:
    try:
        files.size(name)
    except NotFound:
        return True
    except CortadoError:
        return False
    return False


async def stop_all(*replicas: Replica) -> None:
    for replica in replicas:
        await replica.stop()
        assert not replica.failures, replica.failures
