"""One node: the face that services talk to.

::

    services ──► Node ── write(evaluate) ──► Turns ──► ReplicatedLog ──► StateMachine ──► Engine
                  │                           (loop)                      (storage thread)
                  ├── resolve_read(at) ─────► ReadPoints
                  ├── reader(ts), scan_chunk ► VersionStore   point reads on the loop
                  └── scan(step) ───────────► the scan thread, a slice at a time

Time and randomness come in by the door: ``physical_ms`` is the wall clock, ``monotonic_ms`` measures durations. Every
coroutine runs on the loop that called :meth:`Node.start`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from cortado.errors import InvalidArgument, NotLeader, ResourceExhausted, Unavailable
from cortado.raft.single import SingleLog
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.clock.hlc import MAX_OFFSET_MS, Clock
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine
from cortado.store.mvcc.evaluation import BumpEpoch, Evaluate, Evaluation, RaiseCeiling
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.store import VersionStore
from cortado.store.node.admission import Gate
from cortado.store.node.commands import COMMAND_OVERHEAD_BYTES
from cortado.store.node.lag import LoopLag
from cortado.store.node.limits import NodeLimits
from cortado.store.node.proposals import EncodeReply, Proposal, WriteResult
from cortado.store.node.reads import ReadPoints
from cortado.store.node.requests import Memory, check_request_id, check_same_request
from cortado.store.node.state import AppliedState
from cortado.store.node.state_machine import StateMachine
from cortado.store.node.status import NodeStatus
from cortado.store.node.storage import StorageThread
from cortado.store.node.turns import Turns

T = TypeVar("T")

Submitted: TypeAlias = Proposal | WriteResult
"""A write in line, or what it was answered before."""

_LOG: Final = logging.getLogger(__name__)
_NOTHING: Final = Mutations()
# Where there is no room for a turn of this size, the status says that writes are refused.
_ROOM_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Who answers: in the header of every reply."""

    cluster_id: str
    node_id: str


def no_reply(_ts: Timestamp, _reply: object) -> bytes:
    """For callers within the process, who take the domain's reply as it is."""
    return b""


class Node:
    """A group of one on an open engine. Make it, :meth:`start` it on a running loop, :meth:`stop` it there."""

    def __init__(
        self,
        engine: Engine,
        *,
        identity: NodeIdentity,
        physical_ms: Callable[[], int],
        monotonic_ms: Callable[[], float],
        limits: NodeLimits | None = None,
        max_clock_offset_ms: int = MAX_OFFSET_MS,
    ) -> None:
        """Raises DataLoss where the engine's state is damaged. The engine stays the caller's to close, after stop."""
        self.identity = identity
        self.limits = limits or NodeLimits()
        self.store = VersionStore(engine)
        self._engine = engine
        self.monotonic_ms = monotonic_ms
        memory = Memory(self.limits.remember_ms, self.limits.remember_requests_max, self.limits.remember_bytes_max)
        self._machine = StateMachine(engine, self.store, memory)
        state = self._machine.state
        # Above everything that was ever committed or promised, whatever the physical clock says.
        self.clock = Clock(physical_ms, last=max(state.last_ts, state.ceiling), max_offset_ms=max_clock_offset_ms)
        self._log = SingleLog(identity.node_id, term=state.term + 1, last_index=state.index, last_term=state.term)
        self._catalog_cache = CatalogCache()
        self.writes = Gate("writes", count_max=self.limits.writes_max, bytes_max=self.limits.write_bytes_max)
        self.reads = Gate("reads", count_max=self.limits.reads_max)
        self.scans = Gate("scans", count_max=self.limits.scans_max)
        self.bulk_streams = Gate("bulk streams", count_max=self.limits.bulk_streams_max)
        self.lag = LoopLag(monotonic_ms)
        self._scan_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cortado-scan")
        self._requests_in_flight: dict[bytes, Proposal] = {}
        self._started_ms = monotonic_ms()
        self._is_stopping = False
        self._failed: asyncio.Future[BaseException]
        self._loop: asyncio.AbstractEventLoop
        self._storage: StorageThread
        self._turns: Turns
        self._read_points: ReadPoints

    # --- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve. Returns when the first entry of this life is durable, or, where there is no room for it, read-only."""
        self._loop = asyncio.get_running_loop()
        self._failed = self._loop.create_future()
        self._storage = StorageThread(self._loop)
        self._turns = Turns(
            loop=self._loop,
            log=self._log,
            clock=self.clock,
            machine=self._machine,
            storage=self._storage,
            limits=self.limits,
            monotonic_ms=self.monotonic_ms,
            on_finished=self._finished,
            on_failure=self._fail,
        )
        self._read_points = ReadPoints(
            self._turns, self.clock, ceiling_ahead_ms=self.limits.ceiling_ahead_ms, raise_ceiling=self._raise_ceiling
        )
        self.lag.start(self._loop)
        try:
            # The first entry of this term; what it says is only what a read would ask for anyway.
            await self._raise_ceiling(self.clock.now())
        except ResourceExhausted as full:
            _LOG.warning("starting without room for writes: %s", full)

    async def stop(self) -> None:
        """Refuse new work, finish what is in flight, end the threads."""
        self._is_stopping = True
        await self._turns.drained()
        self.lag.stop()
        await asyncio.to_thread(self._storage.stop)
        await asyncio.to_thread(self._scan_thread.shutdown, wait=True, cancel_futures=True)

    async def failed(self) -> BaseException:
        """Return only when the node can't go on: the process must end."""
        return await asyncio.shield(self._failed)

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
        """Evaluate, replicate and apply; return once it is durable.

        ``size_bytes`` is about what the request holds. ``encode_reply`` makes the bytes that are answered, and
        remembered where there is a ``request_id``. A caller who is cancelled while waiting leaves; what was evaluated
        goes on. Raises whatever ``evaluate`` refuses with, ResourceExhausted, OutcomeUnknown, InvalidArgument of the
        request id, Unavailable.
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
        place_taken: bool = False,
    ) -> Submitted:
        """The first half of :meth:`write`: put it in line, to be evaluated after everything submitted before.

        Where ``place_taken``, the caller has taken a place of ``size_bytes`` in ``writes``, which is given back for it.
        """
        is_held = place_taken
        try:
            self._check_serving()
            known = self._known(request_id, request_hash) if request_id else None
            if known is not None:
                return known
            self._engine.admit(size_bytes + COMMAND_OVERHEAD_BYTES)
            if not is_held:
                self.writes.enter(size_bytes)
                is_held = True
            done: asyncio.Future[WriteResult] = self._loop.create_future()
            proposal = Proposal(evaluate, encode_reply, size_bytes, request_id, request_hash, done, waiters=1)
            self._turns.propose(proposal)
            is_held = False
        finally:
            if is_held:
                self.writes.leave(size_bytes)
        if request_id:
            self._requests_in_flight[request_id] = proposal
        return proposal

    async def answer(self, submitted: Submitted) -> WriteResult:
        """The second half of :meth:`write`: await it, once for each call of :meth:`submit`."""
        if isinstance(submitted, WriteResult):
            return submitted
        try:
            return await asyncio.shield(submitted.done)
        finally:
            submitted.waiters -= 1

    def _known(self, request_id: bytes, request_hash: bytes) -> Submitted | None:
        """The first call with this id, or what it was answered; None for a new request. Raises as ``answer_of``."""
        first = self._requests_in_flight.get(request_id)
        if first is not None:
            check_same_request(request_hash, first.request_hash)
            first.waiters += 1
            return first
        check_request_id(request_id, self.clock)
        remembered = self._machine.remembered(request_id, request_hash)
        if remembered is None:
            return None
        return WriteResult(remembered.ts, remembered.reply, repeated=True)

    async def bump_epoch(
        self,
        from_epoch: int,
        *,
        request_id: bytes = b"",
        request_hash: bytes = b"",
        encode_reply: EncodeReply = no_reply,
    ) -> WriteResult:
        """Begin the epoch after ``from_epoch``. Raises InvalidArgument where that is not the current one."""

        def evaluate(_reader: Reader, commit_ts: Timestamp) -> Evaluation:
            if from_epoch != commit_ts.epoch:
                raise InvalidArgument("from_epoch", f"the current epoch is {commit_ts.epoch}", str(from_epoch))
            return Evaluation(_NOTHING, from_epoch + 1, BumpEpoch(from_epoch + 1))

        return await self.write(evaluate, request_id=request_id, request_hash=request_hash, encode_reply=encode_reply)

    async def _raise_ceiling(self, ceiling: Timestamp) -> None:
        """Housekeeping: it is not counted as a write, and may use the reserve."""

        def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            return Evaluation(_NOTHING, None, RaiseCeiling(ceiling))

        done: asyncio.Future[WriteResult] = self._loop.create_future()
        proposal = Proposal(evaluate, no_reply, 0, b"", b"", done, is_housekeeping=True, waiters=1)
        self._turns.propose(proposal)
        await self.answer(proposal)

    def _finished(self, proposal: Proposal) -> None:
        if proposal.is_housekeeping:
            return
        self.writes.leave(proposal.size_bytes)
        if proposal.request_id:
            del self._requests_in_flight[proposal.request_id]

    def _fail(self, error: BaseException) -> None:
        self._failed.set_result(error)

    def _check_serving(self) -> None:
        if self._is_stopping:
            raise Unavailable("the node is stopping", retry_delay_ms=1_000)
        if not self._log.is_leader:
            raise NotLeader("this node does not lead", leader=self._log.leader)

    # --- reads -------------------------------------------------------------------------------------------------

    def read_ts(self) -> Timestamp:
        """The linearizable read's timestamp."""
        return self._read_points.newest

    async def resolve_read(self, at: Timestamp | None) -> Timestamp:
        """The timestamp to read at, once it can be read at; None asks for the newest. Raises TimestampInFuture."""
        if at is None:
            return self._read_points.newest
        return await self._read_points.resolve(at)

    def reader(self, read_ts: Timestamp) -> Reader:
        """One state, for point reads on the loop."""
        return self.store.snapshot(read_ts)

    def catalog(self, reader: Reader) -> Catalog:
        """The catalogue as ``reader`` sees it, read through a cache that all readers share."""
        return Catalog(reader, self._catalog_cache)

    async def scan(self, step: Callable[[], T]) -> T:
        """Run one bounded slice of a scan on the scan thread; slices of all scans take turns."""
        return await self._loop.run_in_executor(self._scan_thread, step)

    # --- what an operator asks ---------------------------------------------------------------------------------

    @property
    def term(self) -> int:
        return self._log.term

    @property
    def applied(self) -> AppliedState:
        """What the last durable entry says."""
        return self._turns.applied

    def status(self) -> NodeStatus:
        """Use and limits of everything bounded."""
        use = self._engine.use()
        refused_for = self._turns.refused_for
        try:
            self._engine.admit(_ROOM_BYTES)
        except ResourceExhausted as full:
            refused_for = full.message()
        return NodeStatus(
            refused_for=refused_for,
            is_stopping=self._is_stopping,
            leader=self._log.leader,
            applied_index=self._turns.applied.index,
            uptime_ms=int(self.monotonic_ms() - self._started_ms),
            map_used_bytes=use.used_bytes,
            map_limit_bytes=use.limit_bytes,
            disk_free_bytes=self._engine.disk_free_bytes(),
            queues=[gate.use() for gate in (self.writes, self.reads, self.scans, self.bulk_streams)],
            loop_lag_ms_max=self.lag.max_ms(),
        )
