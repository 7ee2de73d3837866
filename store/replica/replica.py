"""One group's replica on a host: services ask it for reads and writes.

::

    services ──► Replica ── write(evaluate) ──► Driver ──► RaftLog ──► LogFiles, then StateMachine ──► Engine
                  │                              │  ▲
                  │                    Transport ◄  └─ Host.receive(): peers' messages
                  ├── reads ────► ReadPoints: the timestamp to read at, once it can be read at
                  ├── reader(ts), store.scan_chunk    point reads on the loop, slices of scans beside it
                  ├── members ──► Membership: add, promote, remove, transfer
                  ├── watches ──► the changes of key ranges
                  └── integrity, snapshot_...         repair this replica, and replace its state
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from cortado.errors import CortadoError, OutcomeUnknown, TransactionAborted, Unavailable
from cortado.raft.configuration import Configuration
from cortado.raft.log import PeerProgress
from cortado.raft.registry import Member, Roster
from cortado.store.auth.caller import CALLER, asking, checked
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS
from cortado.store.mvcc.evaluation import Evaluate
from cortado.store.mvcc.reader import Reader
from cortado.store.observe.call import CURRENT
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.collection.collector import Collector
from cortado.store.replica.collection.leases import Leases
from cortado.store.replica.context import GroupContext
from cortado.store.replica.controls import cancelled, higher_ceiling
from cortado.store.replica.driver import Driver
from cortado.store.replica.duties.duties import Duties
from cortado.store.replica.duties.jobs import JobRunner
from cortado.store.replica.duties.large_transactions import LargeTransactions
from cortado.store.replica.feed.watches import Watches
from cortado.store.replica.membership import Membership
from cortado.store.replica.read.expiring import keep_time
from cortado.store.replica.read.read_timestamps import ReadPoints
from cortado.store.replica.repair.integrity import Integrity
from cortado.store.replica.snapshots.receiver import SnapshotReceiver
from cortado.store.replica.snapshots.sender import SnapshotSender
from cortado.store.replica.write.proposals import EncodeReply, Place, Proposal, WriteResult
from cortado.store.replica.write.request_table.lookup import Cancelling, KnownRequests, Submitted
from cortado.store.replica.write.request_table.records import CANCELLED_HASH, is_cancelled, owned_hash
from cortado.store.replica.write.run import RunPlace

_LOG: Final = logging.getLogger(__name__)

_STOPPING: Final = "stopping"
_INSTALLING: Final = "installing"
_STEP_BYTES: Final = 64 << 10
"""About the bytes that a step of a job writes."""


class Role(StrEnum):
    """A replica's part in its group."""

    LEADER = "leader"
    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    """A voter that knows of no leader."""
    LEARNER = "learner"
    """A member without a vote (yet): it takes the log and does not count."""


def no_reply(_ts: Timestamp, _reply: object) -> bytes:
    """Encode no reply, for callers within the process, which take the domain's reply as it is."""
    return b""


class Replica:
    """Made by its host on the running loop, which starts and stops it."""

    def __init__(self, group: GroupContext) -> None:
        process = group.process
        self._group = group
        self.group_id = group.of.group_id
        self.process = process
        self._loop = asyncio.get_running_loop()
        self._catalog_cache = CatalogCache()
        self.store = group.store
        self.log = group.log
        self.driver = driver = Driver(group, on_leading=self._leads, on_lost=self._leads_no_more, on_failure=self._fail)
        self.features = group.machine.features
        """The parts of the state that are kept in memory."""
        self.roles = self.features.roles
        """The roles by which calls and writes are decided."""
        self.duties = Duties(driver.fail)
        """This replica's work beside writes while it leads."""
        self.collector = Collector(
            group,
            driver,
            write=self.keep_house,
            catalog=self.catalog,
            on_damage=lambda damage: self.store.on_damage(damage),
        )
        """Removes old versions and dropped data."""
        self.reads = ReadPoints(group, driver, raise_ceiling=self._raise_ceiling)
        """At which timestamp a read may be served here, and when."""
        self.leases = Leases(group, driver, self.reads, write=self.keep_house, would_free=self.collector.would_free)
        """Keeps old versions from being collected."""
        self.jobs = JobRunner(group, driver, self.reads, write=self._write_step, catalog=self.catalog)
        """Long work that the leader does step by step."""
        self.large_transactions = LargeTransactions(group, driver, write=self.keep_house)
        """Puts committed large transactions in place."""
        if group.of.holds_meta:
            self.duties.add("collection", self.collector.run)
            self.duties.add("ending leases", self.leases.run)
            self.duties.add("running jobs", self.jobs.run)
            self.duties.add("large transactions", self.large_transactions.run)
        self.members = Membership(
            driver, group.node_id, lambda: process.clock.reading().wall_ms, lambda: self.roles.appended
        )
        """Changes of the members, and of the leader."""
        self.watches = Watches(
            store=group.store,
            group_id=self.group_id,
            limits=process.limits,
            feed=driver.feed,
            run_scan=process.scan,
            has_leader=lambda: group.log.leader != "",
            is_idle_for=self._is_idle_for,
            close_time=self._close_time,
        )
        """The changes of key ranges, for their watches."""
        self.duties.add("keeping time", lambda: keep_time(lambda: driver.applied, self._is_idle_for, self._close_time))
        self.integrity = Integrity(group, driver, on_repaired=self._repaired)
        """The damage here: how it is found, and how far it is repaired."""
        self.snapshot_sender = SnapshotSender(group, self.integrity.repairs, on_damage=self.integrity.report)
        """The whole state as a file, for members that fell behind."""
        self.snapshot_receiver = SnapshotReceiver(
            group,
            driver=driver,
            on_change=self._readable_or_not,
            on_damage=self.integrity.report,
            on_failure=driver.fail,
        )
        """Receives the state that replaces this replica's."""
        self.known_requests = KnownRequests(driver, group.machine.request_table, process.clock)
        self.features.on_disrupted = self._disrupted

    # --- start and stop ---------------------------------------------------------------------------------------

    async def look_for_leftovers(self) -> None:
        """Delete leftovers of snapshots, or go on with an installation that was cut off: before :meth:`serve`."""
        await self.snapshot_receiver.start()

    async def serve(self) -> None:
        """Serve, as :meth:`Host.start` says."""
        driver = self.driver
        driver.after_round = self._look_at_snapshots
        driver.compaction.held_index = lambda: self.snapshot_sender.held_index
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

    async def hand_over(self) -> None:
        """Let another voter lead, if this one leads and there is another."""
        if self.driver.failure is None and self.driver.leadership.is_ready and not self.driver.is_alone:
            try:
                _LOG.info("handed leadership over to %s", await self.members.transfer())
            except CortadoError as refused:
                _LOG.warning("leadership was not handed over: %s", refused)

    async def stop(self) -> None:
        """Finish the work in flight; the host takes no new work."""
        self.integrity.close()
        self.watches.stop(Unavailable("the node is stopping", retry_delay_ms=1_000))
        if self.driver.failure is None:
            self.driver.veto(_STOPPING, True)
        await self.duties.stop()
        await self.integrity.stop()
        await self.snapshot_receiver.stop()
        await self.snapshot_sender.stop()
        await self.driver.close()

    @property
    def ready(self) -> bool:
        """Return whether this replica can serve: its data is a state, and it knows a leader or is a ready one."""
        leadership = self.driver.leadership
        if self.process.life.is_stopping or self.is_installing or self.driver.failure is not None:
            return False
        return leadership.is_ready if leadership.is_elected else self.log.leader != ""

    def _leads(self) -> None:
        """Begin a term of our own. Complete an earlier leader's unfinished change of the registry, and announce our
        addresses if they are new."""
        self.reads.term_begins()
        identity = self.process.identity
        own = self.log.roster.member(identity.node_id)
        try:
            self.log.members.tidy()
            if own is not None and identity.peer_address:
                self.log.members.bind(identity.as_member(own.storage_id or identity.storage_id))
        except CortadoError as problem:
            # Leadership is being handed over, or an address is another member's: no reason not to lead.
            both = f"{identity.address} and {identity.peer_address}"
            _LOG.warning("the addresses %s could not be made known: %s", both, problem)
        if not self.process.life.is_stopping:
            self.duties.begin()

    def _leads_no_more(self) -> None:
        self.duties.end()
        self.forget_states()

    def _repaired(self) -> None:
        """Load again: stored items were changed below the log's back."""
        self.driver.pipeline.repaired()
        self.forget_states()

    def _fail(self, error: BaseException) -> None:
        self.watches.stop(Unavailable("the node has stopped: " + str(error)))
        self.process.life.fail(error)

    def _is_idle_for(self, ms: int) -> bool:
        """Return whether this node leads, and nothing was written for ``ms``, or is about to be."""
        driver = self.driver
        is_idle = driver.leadership.is_ready and driver.pipeline.newest_in_flight is None
        return is_idle and self.process.clock.physical_ms - driver.applied.last_ts.wall_ms >= ms

    def _look_at_snapshots(self) -> None:
        """Let the snapshots see whether the log wants one made, or brought here."""
        self.snapshot_sender.poll()
        self.snapshot_receiver.poll()

    def _readable_or_not(self) -> None:
        """Note that this replica's data stops being a state, or is one again. Runs on the loop, before the first byte
        of the old state goes. So a read that checks *after* its own transaction never answers from half a state."""
        unreadable = self.snapshot_receiver.unreadable
        self.store.unreadable = unreadable
        self.driver.veto(_INSTALLING, bool(unreadable))
        if unreadable:
            # All of it is replaced by data that was verified whole.
            self.store.trust(b"", ABOVE_KEYS)
            self.store.trust_requests()
            self.watches.end_all(Unavailable(unreadable, retry_delay_ms=1_000))
        self.forget_states()

    def _disrupted(self) -> None:
        """Follow entries that may put versions at any timestamps, or the end of such entries."""
        # These versions are older than the entries that bring them: no watch may take them for recent changes.
        self.driver.feed.recent.clear(self.driver.applied.last_ts)
        self.forget_states()
        again = Unavailable("versions of earlier times were put in place: watch again", retry_delay_ms=100)
        refusal = self.features.refusal()
        self.watches.end_all(again if refusal is None else refusal)

    # --- writes ------------------------------------------------------------------------------------------------

    async def write(
        self,
        evaluate: Evaluate,
        *,
        size_bytes: int = 0,
        request_id: bytes = b"",
        request_hash: bytes = b"",
        encode_reply: EncodeReply = no_reply,
        while_closed: bool = False,
    ) -> WriteResult:
        """Evaluate and replicate; return once it is committed, which a majority's disks make sure of.

        ``size_bytes`` is about the request's size. ``encode_reply`` makes the answer's bytes, which are remembered if
        there is a ``request_id``. ``while_closed``: also while no caller is served. A caller that is cancelled while
        waiting leaves; an evaluated write goes on. Raises the refusals of ``evaluate``, NotLeader, ResourceExhausted,
        OutcomeUnknown, InvalidArgument of the request id, Restoring, Unavailable.
        """
        return await self.answer(
            self.submit(
                evaluate,
                size_bytes=size_bytes,
                request_id=request_id,
                request_hash=request_hash,
                encode_reply=encode_reply,
                while_closed=while_closed,
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
        while_closed: bool = False,
    ) -> Submitted:
        """Put a write in line, to be evaluated after all submitted before: the first half of :meth:`write`.

        ``places`` are those that the caller holds for it, one of ``writes`` among them. They are left with its answer,
        or now if it is not put in line. A call that frees room may use the reserve. Rights are checked at evaluation.
        """
        held = list(places)
        try:
            self._group.check_serving()
            caller = CALLER.get()
            frees = caller is not None and caller.frees
            evaluate = checked(evaluate, caller, lambda: self.roles.appended)
            if request_id:
                known = self.known_requests.find(request_id, request_hash)
                if known is not None:
                    return known
                evaluate = self.known_requests.admit(evaluate, request_id)
            if not held:
                held.append(self.process.writes.take(size_bytes))
            proposal = Proposal(evaluate, encode_reply, size_bytes, request_id, request_hash, held, waiters=1)
            proposal.while_closed, proposal.frees = while_closed, frees
            self.driver.propose(proposal)
            held = []
            if (call := CURRENT.get()) is not None:
                call.write = proposal
        finally:
            for place in held:
                place.leave()
        return proposal

    async def answer(self, submitted: Submitted) -> WriteResult:
        """Await a write, once for each call of :meth:`submit`: the second half of :meth:`write`."""
        if isinstance(submitted, WriteResult):
            return submitted
        if isinstance(submitted, Cancelling):
            await self.answer(submitted.cancel)
            raise TransactionAborted("settled")
        try:
            return await submitted.answer(self._loop)
        finally:
            submitted.waiters -= 1

    async def settle(self, request_id: bytes, admit: Callable[[], None] | None = None) -> WriteResult | None:
        """Return the result of the write with this id, or None if it has not happened, and never will.

        A write under way is waited for. An unknown one is cancelled: a record under its id refuses every later attempt;
        before that ``admit`` may raise. Raises as :meth:`write`; OutcomeUnknown if the record of its outcome is
        forgotten.
        """
        self._group.check_serving()
        cancelled_hash = owned_hash(CANCELLED_HASH, asking()().principal)
        while isinstance(first := self.known_requests.first(request_id, cancelled_hash), Proposal | RunPlace):
            first.waiters += 1
            try:
                await self.answer(first)
            except OutcomeUnknown:
                raise
            except CortadoError:
                # A refusal is not remembered: another attempt may be on its way.
                pass
        if first is None:
            if admit is not None:
                admit()
            await self.write(cancelled, request_id=request_id, request_hash=cancelled_hash)
            return None
        if is_cancelled(first.request_hash):
            return None
        return WriteResult(first.ts, first.reply, repeated=True)

    async def keep_house(self, evaluate: Evaluate, *, while_closed: bool = False) -> WriteResult:
        """Write as :meth:`write` does, without a caller: it is not counted as a write, and may use the reserve.
        ``while_closed``: also while no caller is served."""
        proposal = Proposal(evaluate, no_reply, 0, b"", b"", waiters=1, while_closed=while_closed, is_own=True)
        self.driver.propose(proposal)
        return await self.answer(proposal)

    async def _raise_ceiling(self, ceiling: Timestamp) -> None:
        await self.keep_house(higher_ceiling(ceiling), while_closed=True)

    async def _close_time(self) -> None:
        """Write an entry at the clock's timestamp."""
        await self._raise_ceiling(self.process.clock.now())

    async def _write_step(self, evaluate: Evaluate) -> WriteResult:
        return await self.write(evaluate, size_bytes=_STEP_BYTES)

    # --- reads -------------------------------------------------------------------------------------------------

    def check_serving(self) -> None:
        """Raise Unavailable if the node stops, or the data is no state."""
        self._group.check_serving()

    def holds(self, key: bytes) -> bool:
        """Return whether ``key`` is one of this group's."""
        start, end = self._group.of.data
        return start <= key < end

    def read_ts(self) -> Timestamp:
        """Return the last timestamp here that can be read at, for reads that need not be linearizable."""
        return self.driver.pipeline.newest_ts

    def reader(self, read_ts: Timestamp) -> Reader:
        """Return one state, for point reads on the loop. Raises Unavailable if leadership, and with it committed and
        unapplied writes, was lost since ``read_ts`` was given out."""
        return self.driver.pipeline.reader(read_ts)

    def catalog(self, reader: Reader, asker: Asker = ANYBODY) -> Catalog:
        """Return the catalogue as ``reader`` sees it, by a shared cache. Its cost counts for ``asker``."""
        return Catalog(reader, self._catalog_cache, asker=asker)

    def forget_states(self) -> None:
        """Forget cached states: stored items changed below the log's back, or writes in flight may never happen."""
        self._catalog_cache.clear()

    # --- peers -------------------------------------------------------------------------------------------------

    def log_position(self) -> tuple[int, int]:
        """Return term and index of the log's last entry: the greater position knows the newer members."""
        index, term = self.log.last
        return term, index

    def known_member(self, node_id: str) -> Member | None:
        """Return a member by any configuration that may be in force here, even if its removal is not committed yet."""
        return self.log.standing.member(node_id)

    def is_removed(self, node_id: str) -> bool:
        """Return whether it is known here to be committed that this id is used up."""
        return self.log.standing.is_removed(node_id)

    def known_members(self) -> tuple[Member, ...]:
        """Return all members that may be in force. Before this node received anything: those that let it in."""
        return self.log.standing.members

    def believe(self, node_id: str, position: tuple[int, int]) -> None:
        """Hear a stranger that members vouched for; the log of the one that is furthest ends at ``position``."""
        self.log.standing.believe(node_id, position)

    def is_believed(self, node_id: str) -> bool:
        """Return whether that word still tells more than our own log."""
        return self.log.standing.is_believed(node_id)

    async def bind_member(self, member: Member) -> Roster:
        """Bind a member's data directory, which presents itself through a peer."""
        return await self.members.bind(member)

    async def read_range(self, ask: Ask) -> Answer:
        """Read a range, or its first part, for a peer that repairs its own. Raises Unavailable if the data is no
        state, or lacks a version of the range."""
        self._group.check_serving()
        return await self.integrity.answer(ask)

    # --- state -------------------------------------------------------------------------------------------------

    @property
    def configuration(self) -> Configuration:
        """Return the group's members, as far as this node's log says."""
        return self.log.configuration

    @property
    def roster(self) -> Roster:
        """Return the members with their addresses."""
        return self.log.roster

    def member_progress(self) -> Sequence[PeerProgress]:
        """Return, at the leader, how far each other member is; empty elsewhere."""
        return self.log.progress

    @property
    def term(self) -> int:
        return self.log.term

    @property
    def applied(self) -> AppliedState:
        """Return the applied state."""
        return self.driver.applied

    @property
    def is_installing(self) -> bool:
        """True while this replica's data is no state: a snapshot replaces it."""
        return self._group.is_installing

    @property
    def leader(self) -> Member | None:
        """Return the leader, as far as this node knows."""
        return self.log.roster.member(self.log.leader)

    @property
    def role(self) -> Role:
        if self.driver.leadership.is_elected:
            return Role.LEADER
        if not self.log.configuration.is_voter(self._group.node_id):
            return Role.LEARNER
        return Role.FOLLOWER if self.log.leader else Role.CANDIDATE
