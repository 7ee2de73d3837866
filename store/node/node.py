"""One node: the face that services talk to.

::

    services ──► Node ── write(evaluate) ──► Driver ──► RaftLog ──► LogFiles, then StateMachine ──► Engine
                  │                           │  ▲
                  │                 Transport ◄  └─ receive(): what peers send
                  ├── linearize(), resolve_read(at) ─► ReadPoints, ReadIndex
                  ├── reader(ts), scan_chunk ► VersionStore   point reads on the loop
                  ├── host ─────────────────► what the process has once: clock, gates, budget, the scan thread
                  └── members ──────────────► Membership: add, promote, remove, transfer

Time, randomness, disk and network come in by the door: ``host_time`` knows the wall clock, ``monotonic_ms`` measures
durations; on a loop with virtual time, with a storage and an executor that run in place, a node is a deterministic
function of what it is given. Every coroutine runs on the loop that called :meth:`Node.start`.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import AsyncGenerator, Callable, Sequence, Set
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, TypeVar

from cortado.errors import (
    CortadoError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unsupported,
)
from cortado.raft.configuration import Configuration, Member
from cortado.raft.group import RaftLog
from cortado.raft.log import PeerProgress
from cortado.raft.settings import RaftSettings
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.clock.hlc import MAX_OFFSET_MS
from cortado.store.clock.host_time import HostTime
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, KEY_BYTES_MAX, Engine
from cortado.store.log_files.log_files import LogFiles
from cortado.store.mvcc.damage import GROUP_ID, Damage
from cortado.store.mvcc.evaluation import Evaluate
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.store import VersionStore
from cortado.store.node.admission import Gate
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.budget import Share
from cortado.store.node.changefeed.watches import Watches
from cortado.store.node.controls import accepted_loss, epoch_after, higher_ceiling
from cortado.store.node.driver import Driver
from cortado.store.node.group_context import GroupContext
from cortado.store.node.host import Host
from cortado.store.node.limits import NodeLimits
from cortado.store.node.log_entry import COMMAND_OVERHEAD_BYTES, ENTRY_OVERHEAD_BYTES
from cortado.store.node.membership import Membership
from cortado.store.node.opening import open_log
from cortado.store.node.proposals import EncodeReply, Place, Proposal, WriteResult
from cortado.store.node.read_timestamps import ReadPoints, Stale
from cortado.store.node.repair.integrity import Integrity
from cortado.store.node.repair.ranges import Answer, Ask, answer
from cortado.store.node.request_table.lookup import KnownRequests, Submitted
from cortado.store.node.snapshots.files import SnapshotFiles
from cortado.store.node.snapshots.group_range import GroupRange
from cortado.store.node.snapshots.snapshots import Snapshots
from cortado.store.node.state_machine import StateMachine
from cortado.store.node.status import NodeStatus, Role, snapshot_text
from cortado.store.node.storage_thread import Storage, StorageThread
from cortado.store.node.transport import NoPeers, Transport
from cortado.store.observe.call import CURRENT

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
# Where there is no room for a batch of this size, the status says that writes are refused.
_ROOM_BYTES: Final = 64 << 10

_BAD_CLOCK: Final = "clock"
_STOPPING: Final = "stopping"
_INSTALLING: Final = "installing"
CAUGHT_UP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Who answers: in the header of every reply. ``storage_id`` names the data directory (empty: in memory)."""

    cluster_id: str
    node_id: str
    storage_id: str = ""


def no_reply(_ts: Timestamp, _reply: object) -> bytes:
    """For callers within the process, who take the domain's reply as it is."""
    return b""


@dataclass(frozen=True, slots=True)
class NodeParts:
    """What a started node is made of, for who measures it and changes nothing."""

    driver: Driver
    log: RaftLog
    log_files: LogFiles
    read_points: ReadPoints


class Node:
    """One replica on an open engine. Make it, :meth:`start` it on a running loop, :meth:`stop` it there."""

    _failed: asyncio.Future[BaseException]
    _loop: asyncio.AbstractEventLoop
    _log_thread: Storage
    _storage: Storage
    _log: RaftLog
    _driver: Driver
    _read_points: ReadPoints
    _known_requests: KnownRequests
    members: Membership
    """Changes of who belongs to the group, and of who leads it."""
    integrity: Integrity
    """What is damaged here: how it is found, and how far it is repaired."""
    watches: Watches
    """The changes of key ranges, for who watches them."""

    def __init__(
        self,
        engine: Engine,
        log_files: LogFiles,
        *,
        identity: NodeIdentity,
        host_time: HostTime,
        monotonic_ms: Callable[[], float],
        limits: NodeLimits | None = None,
        max_clock_offset_ms: int = MAX_OFFSET_MS,
        address: str = "",
        peer_address: str = "",
        joining: Configuration | None = None,
        transport: Transport | None = None,
        thread: Callable[[asyncio.AbstractEventLoop, str], Storage] = StorageThread,
        run_scan: Executor | None = None,
        random: random_module.Random | None = None,
        raft: RaftSettings | None = None,
        snapshot_files: SnapshotFiles | None = None,
    ) -> None:
        """``address`` (host:port) is where this node serves clients, ``peer_address`` where peers. Without a log it
        begins a group of one, or stays empty until a leader brings it up where the node is ``joining``: the members
        that let it in, which it hears until it has a log. ``thread`` makes the threads that write, each with its name;
        ``run_scan`` runs slices of scans (one thread, unless given). ``random`` draws election timers and what tells
        this incarnation of the node from earlier ones; without it they follow from the node's id and the time.

        Raises DataLoss where the engine's state is damaged, InvalidArgument for limits that do not fit each other. The
        engine stays the caller's to close, after stop.
        """
        self.identity = identity
        self.address = address
        self.peer_address = peer_address
        self.settings = raft or RaftSettings()
        self.settings.check()
        limits = limits or NodeLimits()
        limits.check(self.settings.entry_bytes_max - ENTRY_OVERHEAD_BYTES)
        self.store = VersionStore(engine)
        self._log_files = log_files
        self._is_joining = joining
        self._transport = transport or NoPeers()
        self._make_thread = thread
        self._snapshot_files = snapshot_files
        self._random = random or random_module.Random(f"{identity.node_id} {monotonic_ms()}")
        self._machine = StateMachine(engine, self.store)
        state = self._machine.state
        self.host = Host(
            engine,
            node_id=identity.node_id,
            host_time=host_time,
            monotonic_ms=monotonic_ms,
            limits=limits,
            max_clock_offset_ms=max_clock_offset_ms,
            last_ts=max(state.last_ts, state.ceiling),
            run_scan=run_scan,
        )
        self._catalog_cache = CatalogCache()
        self._is_stopping = False
        self.snapshots: Snapshots | None = None
        """Set by :meth:`start` where there is a place for snapshot files; what peers are sent comes from there."""

    # --- start and stop ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve. A group of one: returns when this node leads it, or, where there is no room for that, read-only. A
        larger group: returns at once; :attr:`ready` tells when it has found its leader.

        Raises DataLoss where the log is damaged, ResourceExhausted where there is no room to begin one.
        """
        self._loop = asyncio.get_running_loop()
        self._failed = self._loop.create_future()
        self._log = open_log(
            self._log_files,
            self._machine,
            member=self._bound(self.identity.storage_id),
            group_id=GROUP_ID,
            joining=self._is_joining,
            settings=self.settings,
            source=self._random,
            now_ms=self.host.monotonic_ms(),
        )
        self._log_thread = self._make_thread(self._loop, "log")
        self._storage = self._make_thread(self._loop, "storage")
        group = self._context()
        self._driver = driver = Driver(
            group, on_leading=self._leads, on_lost=self._catalog_cache.clear, on_failure=self._fail
        )
        self._read_points = ReadPoints(
            driver,
            self.host.clock,
            ceiling_ahead_ms=self.host.limits.ceiling_ahead_ms,
            monotonic_ms=self.host.monotonic_ms,
            raise_ceiling=self._raise_ceiling,
        )
        self._known_requests = KnownRequests(driver, self._machine, self.host.clock)
        self.members = Membership(driver, self.identity.node_id)
        self.watches = self._make_watches()
        self.integrity = Integrity(group, driver, on_repaired=self._catalog_cache.clear)
        self.host.start(self._loop)
        # Of two nodes nobody can say whose clock is right; of three, at once, two can.
        driver.on_configured = self.host.clock_watch.compare
        self.host.clock_watch.start(self._voters, lambda is_off: driver.veto(_BAD_CLOCK, is_off))
        if self._snapshot_files is not None:
            self.snapshots = snapshots = self._make_snapshots(group, self._snapshot_files)
            await self.snapshots.start()
            driver.after_round = self.snapshots.poll
            driver.compaction.held_index = lambda: snapshots.held_index
        await self.integrity.start()
        driver.schedule()
        if driver.is_alone:
            await driver.until(
                lambda: (
                    driver.leadership.is_ready
                    or self.is_installing
                    or (bool(driver.refused_for) and driver.is_settled_alone)
                )
            )
            if driver.refused_for:
                _LOG.warning("starting without room for writes: %s", driver.refused_for)

    def _context(self) -> GroupContext:
        return GroupContext(
            self.identity.cluster_id,
            self.identity.node_id,
            GroupRange(GROUP_ID),
            self.settings,
            self.host,
            self.store,
            self._machine,
            self._log,
            self._log_files,
            self._log_thread,
            self._storage,
            self._transport,
            self._random,
        )

    def _make_watches(self) -> Watches:
        driver = self._driver
        return Watches(
            engine=self.host.engine,
            store=self.store,
            limits=self.host.limits,
            feed=driver.feed,
            run_scan=self.host.scan,
            has_leader=lambda: self._log.leader != "",
            is_idle_for=self._is_idle_for,
            close_time=lambda: self._raise_ceiling(self.host.clock.now()),
        )

    def _is_idle_for(self, ms: int) -> bool:
        """Whether this node leads, and nothing was written for ``ms``, or is about to be."""
        driver = self._driver
        is_idle = driver.leadership.is_ready and driver.pipeline.newest_in_flight is None
        return is_idle and self.host.clock.physical_ms - driver.applied.last_ts.wall_ms >= ms

    def _make_snapshots(self, group: GroupContext, files: SnapshotFiles) -> Snapshots:
        return Snapshots(
            group,
            files=files,
            driver=self._driver,
            lost=self.integrity.repairs.lost,
            on_damage=self.integrity.report,
            on_change=self._snapshots_changed,
            on_failure=self._driver.fail,
        )

    def _snapshots_changed(self) -> None:
        """This replica's data stops being a state, or is one again."""
        snapshots = self.snapshots
        assert snapshots is not None
        self.store.unreadable = snapshots.unreadable
        self._driver.veto(_INSTALLING, bool(snapshots.unreadable))
        if snapshots.unreadable:
            # All of it is replaced, by what was verified whole.
            self.store.trust(b"", ABOVE_KEYS)
            self.store.trust_requests()
            self.watches.end_all(Unavailable(snapshots.unreadable, retry_delay_ms=1_000))
        self._catalog_cache.clear()

    async def stop(self, hand_over: bool = True) -> None:
        """Refuse new work, finish what is in flight, end the threads. A leader hands over first where it can, serving
        until then, so that callers find the next one at once."""
        if hand_over and not self._is_stopping and self._driver.failure is None:
            await self._hand_over()
        self._is_stopping = True
        self.integrity.close()
        self.watches.stop(Unavailable("the node is stopping", retry_delay_ms=1_000))
        if self._driver.failure is None:
            self._driver.veto(_STOPPING, True)
        await self.integrity.stop()
        if self.snapshots is not None:
            await self.snapshots.stop()
        await self._driver.close()
        self._log_thread.stop()
        self._storage.stop()
        self.host.stop()

    async def _hand_over(self) -> None:
        if self._driver.leadership.is_ready and not self._driver.is_alone:
            try:
                _LOG.info("handed leadership over to %s", await self.members.transfer())
            except CortadoError as refused:
                _LOG.warning("leadership was not handed over: %s", refused)

    async def failed(self) -> BaseException:
        """Return only when the node can't go on: the process must end."""
        return await asyncio.shield(self._failed)

    @property
    def ready(self) -> bool:
        """Whether this node can serve: it knows a leader, or is one that may evaluate, and its data is a state."""
        if self._is_stopping or self.is_installing or self._driver.failure is not None:
            return False
        return self._driver.leadership.is_ready if self._driver.leadership.is_elected else self._log.leader != ""

    def _leads(self) -> None:
        """A term of ours has begun. Let the others know if we are reached under other addresses now."""
        own = self._log.configuration.member(self.identity.node_id)
        if own is None or not self.peer_address:
            return
        bound = self._bound(own.storage_id or self.identity.storage_id)
        try:
            self._log.members.bind(bound)
        except CortadoError as problem:
            # Another change is under way, or an address is another member's: no reason not to lead.
            both = f"{self.address} and {self.peer_address}"
            _LOG.warning("the addresses %s could not be made known: %s", both, problem)

    def _bound(self, storage_id: str) -> Member:
        """This node as a member, with its addresses."""
        return Member(self.identity.node_id, self.peer_address, storage_id, self.address)

    def _fail(self, error: BaseException) -> None:
        self.watches.stop(Unavailable("the node has stopped: " + str(error)))
        self._failed.set_result(error)

    # --- peers -------------------------------------------------------------------------------------------------

    def receive(self, sender: str, group_id: int, bodies: Sequence[bytes]) -> None:
        """What the transport brings of a peer that presented itself."""
        if group_id == GROUP_ID:
            self._driver.receive(sender, bodies)

    def log_position(self) -> tuple[int, int]:
        """Term and index of the last entry of the log: whose is greater knows the newer members."""
        index, term = self._log.last
        return term, index

    def known_member(self, node_id: str) -> Member | None:
        """A member by any configuration that may be in force here: one whose removal is not committed yet, too."""
        return self._log.standing.member(node_id)

    def known_members(self) -> tuple[Member, ...]:
        """All of those. Before this node received anything: who let it in."""
        return self._log.standing.members

    def believe(self, node_id: str, position: tuple[int, int]) -> None:
        """Hear a stranger that members vouched for; the log of the one that is furthest ends at ``position``."""
        self._log.standing.believe(node_id, position)

    def is_believed(self, node_id: str) -> bool:
        """Whether that word still tells more than our own log."""
        return self._log.standing.is_believed(node_id)

    def read_snapshot(self, group_id: int, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        """A snapshot's bytes from ``offset`` on, for a peer. Raises NotFound where there is none."""
        if self.snapshots is None or group_id != GROUP_ID:
            raise NotFound("snapshot", f"{snapshot_id} of group {group_id}")
        return self.snapshots.read(snapshot_id, offset)

    async def read_range(self, group_id: int, ask: Ask) -> Answer:
        """What is stored here in a range, or in the first part of it, for a peer that repairs its own. Raises NotFound,
        Unavailable where the data is no state."""
        if group_id != GROUP_ID:
            raise NotFound("group", str(group_id))
        self._check_serving()
        found = await self.host.scan(lambda: answer(self.host.engine, GroupRange(group_id), ask))
        for key in found.damaged:
            self.integrity.report(Damage.at(ask.space, key))
        return found

    def observe_peer_clock(self, node_id: str, low_ms: float, high_ms: float) -> None:
        """A peer's physical clock minus our monotonic one lies between these."""
        self.host.clock_watch.observe(node_id, low_ms, high_ms)

    def _voters(self) -> Set[str]:
        return {each.node_id for each in self._log.configuration.voters}

    # --- writes ------------------------------------------------------------------------------------------------

    async def write(
        self,
        evaluate: Evaluate,
        *,
        size_bytes: int = 0,
        request_id: bytes = b"",
        request_hash: bytes = b"",
        encode_reply: EncodeReply = no_reply,
    ) -> WriteResult:
        """Evaluate and replicate; return once it is committed, which a majority's disks make sure of.

        ``size_bytes`` is about what the request holds. ``encode_reply`` makes the bytes that are answered, and
        remembered where there is a ``request_id``. A caller who is cancelled while waiting leaves; what was evaluated
        goes on. Raises whatever ``evaluate`` refuses with, NotLeader, ResourceExhausted, OutcomeUnknown,
        InvalidArgument of the request id, Unavailable.
        """
        return await self.answer(
            self.submit(
                evaluate,
                size_bytes=size_bytes,
                request_id=request_id,
                request_hash=request_hash,
                encode_reply=encode_reply,
            )
        )

    def submit(
        self,
        evaluate: Evaluate,
        *,
        size_bytes: int,
        request_id: bytes = b"",
        request_hash: bytes = b"",
        encode_reply: EncodeReply = no_reply,
        places: Sequence[Place] = (),
    ) -> Submitted:
        """The first half of :meth:`write`: put it in line, to be evaluated after everything submitted before.

        ``places`` are what the caller holds for it, one of ``writes`` among them. They are left when the write has its
        answer, or now where it is not put in line.
        """
        held = list(places)
        try:
            self._check_serving()
            if request_id:
                known = self._known_requests.find(request_id, request_hash)
                if known is not None:
                    return known
                evaluate = self._known_requests.admit(evaluate, request_id)
            self.host.engine.admit(size_bytes + COMMAND_OVERHEAD_BYTES + self._driver.pipeline.appended_bytes)
            if not held:
                held.append(self.host.writes.take(size_bytes))
            proposal = Proposal(evaluate, encode_reply, size_bytes, request_id, request_hash, held, waiters=1)
            self._driver.propose(proposal)
            held = []
            call = CURRENT.get()
            if call is not None:
                call.write = proposal
        finally:
            for place in held:
                place.leave()
        return proposal

    async def answer(self, submitted: Submitted) -> WriteResult:
        """The second half of :meth:`write`: await it, once for each call of :meth:`submit`."""
        if isinstance(submitted, WriteResult):
            return submitted
        try:
            return await submitted.answer(self._loop)
        finally:
            submitted.waiters -= 1

    async def bump_epoch(
        self,
        from_epoch: int,
        *,
        request_id: bytes = b"",
        request_hash: bytes = b"",
        encode_reply: EncodeReply = no_reply,
    ) -> WriteResult:
        """Begin the epoch after ``from_epoch``; it has begun when this returns. Raises InvalidArgument where that is
        not the current one."""
        return await self.write(
            epoch_after(from_epoch), request_id=request_id, request_hash=request_hash, encode_reply=encode_reply
        )

    async def _raise_ceiling(self, ceiling: Timestamp) -> None:
        """Housekeeping: it is not counted as a write, and may use the reserve."""
        proposal = Proposal(higher_ceiling(ceiling), no_reply, 0, b"", b"", waiters=1)
        self._driver.propose(proposal)
        await self.answer(proposal)

    def _check_serving(self) -> None:
        if self._is_stopping:
            raise Unavailable("the node is stopping", retry_delay_ms=1_000)
        if self.is_installing:
            raise Unavailable(f"this replica cannot serve: {self.store.unreadable}", retry_delay_ms=1_000)

    # --- reads -------------------------------------------------------------------------------------------------

    def read_ts(self) -> Timestamp:
        """The last timestamp here that can be read at: what a read that need not be linearizable sees."""
        return self._driver.pipeline.newest_ts

    async def linearize(self) -> Timestamp:
        """A timestamp at which everything is seen that was acknowledged, by any node, before this call.

        In a group of one nothing is waited for. Raises NotLeader, Unavailable.
        """
        newest = self._driver.read_now()
        if newest is not None:
            return newest
        if self.is_installing:
            self._check_serving()
        return await self._driver.read()

    async def resolve_read(self, at: Timestamp | Stale | None) -> Timestamp:
        """The timestamp to read at, once it can be read at; None asks for the newest.

        Raises TimestampInFuture, NotLeader, Unavailable (a replica that is too stale, or whose data is replaced).
        """
        if at is None:
            newest = self._driver.read_now()
            return await self.linearize() if newest is None else newest
        if self.is_installing:
            self._check_serving()
        if isinstance(at, Stale):
            return await self._read_points.stale(at)
        return await self._read_points.at(at)

    async def caught_up(self) -> None:
        """Return when everything is applied here that this node knows to be committed: whoever was answered by it and
        then asks for the catalogue without a time finds what he was answered. Raises Unavailable where the data is
        being replaced, or that takes longer than ``CAUGHT_UP_S``."""
        self._check_serving()
        driver, committed = self._driver, self._log.durable_commit_index
        if driver.applied.index >= committed:
            return
        caught_up = driver.until(lambda: driver.applied.index >= committed or self.is_installing)
        try:
            await asyncio.wait_for(caught_up, CAUGHT_UP_S)
        except TimeoutError:
            problem = f"this replica has not applied within {CAUGHT_UP_S:g} s what it knows to be committed"
            raise Unavailable(problem, retry_delay_ms=1_000) from None
        self._check_serving()

    async def applied_to(self, read_ts: Timestamp) -> Timestamp:
        """``read_ts``, once all that it sees is applied: what is to be scanned is read from the engine alone. Raises
        Unavailable once the node stopped."""
        driver = self._driver
        if driver.applied.last_ts < min(read_ts, driver.pipeline.acknowledged_ts):
            await driver.until(lambda: driver.applied.last_ts >= min(read_ts, driver.pipeline.acknowledged_ts))
        return read_ts

    def reader(self, read_ts: Timestamp) -> Reader:
        """One state, for point reads on the loop. Raises Unavailable where leadership, and with it what was committed
        and is not applied, was lost since ``read_ts`` was given out."""
        return self._driver.pipeline.reader(read_ts)

    def catalog(self, reader: Reader) -> Catalog:
        """The catalogue as ``reader`` sees it, read through a cache that all readers share."""
        return Catalog(reader, self._catalog_cache)

    # --- members -----------------------------------------------------------------------------------------------

    @property
    def configuration(self) -> Configuration:
        """Who belongs to the group, as far as this node's log says."""
        return self._log.configuration

    def member_progress(self) -> Sequence[PeerProgress]:
        """At the leader, how far each other member is; empty elsewhere."""
        return self._log.progress

    async def bind_member(self, member: Member) -> Configuration:
        """A member's data directory presents itself, through a peer."""
        return await self.members.bind(member)

    async def rebuild(self) -> None:
        """Compare everything here with another member's, the leader's first, and make it the same.

        For damage that no read of ours meets: what a scrub finds by comparison. This node goes on serving meanwhile.
        Raises Unsupported for a node that is alone, Unavailable where no other member can be asked.
        """
        if len(self._log.configuration.members) < 2:
            raise Unsupported("rebuilding a node that is alone", "no other member has a copy; restore a backup")
        self._check_serving()
        await self.integrity.repairs.rebuild()

    async def accept_loss(
        self,
        engine_key: bytes,
        *,
        request_id: bytes = b"",
        request_hash: bytes = b"",
        encode_reply: EncodeReply = no_reply,
    ) -> WriteResult:
        """Give up the damaged item under a stored key of which no member has a whole copy, on every replica.

        Raises InvalidArgument where what is stored there is not damaged, Unavailable where not every member has said
        that it has no whole copy, NotLeader.
        """
        if not TIMESTAMP_BYTES < len(engine_key) <= KEY_BYTES_MAX:
            problem = f"a stored key has {TIMESTAMP_BYTES + 1} to {KEY_BYTES_MAX} bytes"
            raise InvalidArgument("key", problem, f"{len(engine_key)} bytes")
        self._check_serving()
        known = self._known_requests.find(request_id, request_hash) if request_id else None
        if known is not None:
            return await self.answer(known)
        await self.applied_to(await self.linearize())
        loss = await self.integrity.repairs.check_lost(engine_key)
        if loss.request_floor >= (request_id or bytes(self.host.clock.reading())):
            problem = (
                "a request of the last moments may be among those that are lost: run the command again in a moment"
            )
            raise Unavailable(problem, retry_delay_ms=1_000)
        result = await self.write(
            accepted_loss(loss), request_id=request_id, request_hash=request_hash, encode_reply=encode_reply
        )
        await self.caught_up()
        self._catalog_cache.clear()
        self.integrity.repairs.look_again()
        return result

    # --- what an operator asks ---------------------------------------------------------------------------------

    @property
    def queues(self) -> tuple[Gate | Share, ...]:
        """What stands before each queue of requests."""
        host = self.host
        gates = (host.writes, host.reads, host.scans, host.bulk_streams, self.watches.gate)
        return (*gates, host.budget.calls, host.budget.chunks)

    @property
    def parts(self) -> NodeParts:
        return NodeParts(self._driver, self._log, self._log_files, self._read_points)

    @property
    def term(self) -> int:
        return self._log.term

    @property
    def applied(self) -> AppliedState:
        """What the last applied entry says."""
        return self._driver.applied

    @property
    def is_installing(self) -> bool:
        """True while this replica's data is no state: a snapshot takes its place."""
        return self.store.unreadable != ""

    @property
    def leader(self) -> Member | None:
        """Who leads, as far as this node knows."""
        return self._log.configuration.member(self._log.leader)

    @property
    def role(self) -> Role:
        if self._driver.leadership.is_elected:
            return Role.LEADER
        if not self._log.configuration.is_voter(self.identity.node_id):
            return Role.LEARNER
        return Role.FOLLOWER if self._log.leader else Role.CANDIDATE

    def status(self) -> NodeStatus:
        """Use and limits of everything bounded."""
        use = self.host.engine.use()
        refused_for = self._driver.refused_for
        try:
            self.host.engine.admit(_ROOM_BYTES)
        except ResourceExhausted as full:
            refused_for = full.message()
        leader = self.leader
        return NodeStatus(
            refused_for=refused_for,
            is_stopping=self._is_stopping,
            role=self.role,
            term=self._log.term,
            leader=self._log.leader,
            leader_address="" if leader is None else leader.address,
            applied_index=self._driver.applied.index,
            last_index=self._log.last[0],
            uptime_ms=self.host.uptime_ms,
            map_used_bytes=use.used_bytes,
            map_limit_bytes=use.limit_bytes,
            disk_free_bytes=self.host.engine.disk_free_bytes(),
            queues=[queue.use() for queue in self.queues],
            loop_lag_ms_max=self.host.loop_delay.max_ms(),
            clock_offsets=self.host.clock_watch.offsets(),
            snapshot="" if self.snapshots is None else snapshot_text(self.snapshots.progress),
            unreadable=self.store.unreadable,
            slowed=self._driver.compaction.slowed,
            patrol=self.integrity.patrol.progress,
            damage=self.integrity.repairs.items(),
            damaged=self.integrity.repairs.counts.damaged,
            repaired=self.integrity.repairs.counts.repaired,
        )
