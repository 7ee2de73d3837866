"""The side that lacks the state: fetches a spool while the old state still serves, then installs it with turns paused.

::

    log.snapshot_offer ──► fetch, resume, verify ──► pause ──► mark, clear, load, finish ──► log.installed, resume
                           (reads go on)                       (no reads, no turns)
    a marker at the start ──► verify its file ─────────────────┘
    damaged data ──► hand leadership over, pause, mark ──► fetch from any member ──► verify ──► clear, load, finish

While the marker stands this replica is none: :attr:`unreadable` says why, and :attr:`may_lead` is False. What it has
acknowledged to its leader stays in its log, which an installation keeps behind the snapshot's place; so its vote and
its acknowledgements stay true throughout.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from cortado.errors import CortadoError, DataLoss, ResourceExhausted, Unavailable
from cortado.raft.log import ReplicatedLog, SnapshotMeta, SnapshotOffer
from cortado.store.engine.interface import Engine, Space
from cortado.store.node.snapshots.fetch import FETCHED, Fetch, fetched_name
from cortado.store.node.snapshots.group_range import GroupRange
from cortado.store.node.snapshots.installation import Installation, read_marker, write_marker
from cortado.store.node.snapshots.marker import Marker, applied_key
from cortado.store.node.snapshots.seams import Backoff, PausableTurns, RunScan
from cortado.store.node.snapshots.settings import SnapshotSettings
from cortado.store.node.snapshots.spool_reader import Verification, WholeSpool
from cortado.store.node.snapshots.spools import SpoolDirectory
from cortado.store.node.state import AppliedState
from cortado.store.node.storage import Storage
from cortado.store.node.transport import Transport

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_DAMAGED_MAX: Final = 2
"""A spool that came damaged so often is damaged where it comes from."""


@dataclass(frozen=True, slots=True)
class TargetProgress:
    """For status pages: from whom, and how far; ``size_bytes`` is 0 where it is not known."""

    peer: str
    received_bytes: int
    size_bytes: int
    problem: str


class SnapshotTarget:
    """All on the loop. One task at a time brings and installs; :meth:`poll` begins it, or replaces it."""

    def __init__(
        self,
        *,
        engine: Engine,
        log: ReplicatedLog,
        node_id: str,
        spools: SpoolDirectory,
        of: GroupRange,
        cluster_id: str,
        transport: Transport,
        turns: PausableTurns,
        storage: Storage,
        run_scan: RunScan,
        random_: random.Random,
        settings: SnapshotSettings,
        on_change: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._engine = engine
        self._log = log
        self._node_id = node_id
        self._spools = spools
        self._of = of
        self._cluster_id = cluster_id
        self._transport = transport
        self._turns = turns
        self._storage = storage
        self._run_scan = run_scan
        self._settings = settings
        self._on_change = on_change
        self._on_failure = on_failure
        self._backoff = Backoff(random_, settings)
        self._task: asyncio.Task[None] | None = None
        self._fetch: Fetch | None = None
        self._following: SnapshotMeta | None = None
        self._refused_id = ""
        self._stepping_down: asyncio.Future[None] | None = None
        self._problem = ""
        self.unreadable = ""
        self.is_installing = False
        self.installed = 0
        """Snapshots, since the start."""

    # --- what the node asks ------------------------------------------------------------------------------------

    @property
    def may_lead(self) -> bool:
        """False where this replica has no state, or is about to give it up."""
        return not self.unreadable and self._stepping_down is None

    @property
    def progress(self) -> TargetProgress | None:
        """None where nothing is being brought."""
        if self._task is None or self._task.done():
            return None
        fetch = self._fetch
        if fetch is None:
            return TargetProgress("", 0, 0, self._problem)
        return TargetProgress(fetch.peer, fetch.received_bytes, fetch.size_bytes, self._problem)

    async def start(self) -> None:
        """Delete leftovers, and where a marker stands, pause the turns and begin to make this replica whole."""
        marker = await self._run_scan(lambda: read_marker(self._engine, self._of.group_id))
        kept = fetched_name(marker.snapshot_id) if marker is not None and marker.snapshot_id else ""
        await self._run_scan(lambda: self._delete_leftovers(kept))
        if marker is None:
            return
        self._became_unreadable("an installation was cut off")
        await self._turns.pause()
        self._begin(self._go_on(kept))

    def poll(self) -> None:
        """Look whether the leader offers something. Cheap; call it after each turn."""
        if self._stepping_down is not None and self._log.leader != self._node_id:
            if not self._stepping_down.done():
                self._stepping_down.set_result(None)
            return
        if self.unreadable or self.is_installing:
            return
        offer = self._log.snapshot_offer
        if offer is not None and self._is_new(offer.meta):
            self._stop_task()
            self._following = offer.meta
            self._begin(self._follow(offer))
        elif self._following is not None and self._following.index <= self._log.decided:
            # The log got there by itself.
            self._stop_task()

    async def rebuild(self) -> None:
        """Give the own state up, for it is damaged, and return when another member's is in its place.

        Raises DataLoss, and changes nothing, where there is no other member to take it from.
        """
        if not self.unreadable:
            if len(self._log.configuration.members) < 2:
                raise DataLoss("this replica's data", "no other member has a copy; restore a backup")
            await self._step_down()
            if not self.unreadable and not self.is_installing:
                self._stop_task()
                self._became_unreadable("its data is damaged, and is fetched anew")
                self._begin(self._give_up_state())
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """End what runs, between two transactions; a marker that stands brings the next start back to it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    # --- the one task ------------------------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._backoff.reset()
        self._problem = ""
        self._task = asyncio.get_running_loop().create_task(self._guarded(work))

    def _stop_task(self) -> None:
        task, self._task, self._fetch, self._following = self._task, None, None, None
        if task is not None:
            task.cancel()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """A failure that nobody foresaw stops the node: its state may be neither the old one nor the new one."""
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            _LOG.critical("the node stops: a snapshot could not be installed", exc_info=error)
            self._on_failure(error)

    def _is_new(self, meta: SnapshotMeta) -> bool:
        if meta.snapshot_id == self._refused_id or meta.index <= self._log.decided:
            return False
        return self._following is None or self._following.snapshot_id != meta.snapshot_id

    async def _follow(self, offer: SnapshotOffer) -> None:
        """Bring what was offered, and install it."""
        await self._run_scan(lambda: self._delete_fetched(but=fetched_name(offer.meta.snapshot_id)))
        whole = await self._bring(self._new_fetch(offer.sender, offer.meta))
        if whole is None:
            # Damaged where it comes from: the next offer, of another spool, may do.
            self._refused_id, self._following = offer.meta.snapshot_id, None
            return
        while not await self._replace(whole):
            await self._wait()

    async def _replace(self, whole: WholeSpool) -> bool:
        """Install where the old state is whole. False where there is no room: the old state still stands."""
        self.is_installing = True
        await self._turns.pause()
        if whole.header.index <= self._log.decided:
            self._following = None
            await self._resume_as_before()
            await self._run_scan(self._delete_fetched)
            return True
        installation = self._installation(whole)
        self._became_unreadable("a snapshot is being installed")
        try:
            await self._run_scan(installation.check_fits)
            await self._store(installation.mark)
        except ResourceExhausted as full:
            self._failed(full)
            await self._resume_as_before()
            return False
        if not await self._install(installation, whole):
            await self._make_whole()
        return True

    async def _resume_as_before(self) -> None:
        state = await self._run_scan(self._stored_state)
        self.is_installing = False
        self._became_readable()
        self._turns.resume(state)

    async def _go_on(self, name: str) -> None:
        """At a start under a marker: install its spool again, or get another."""
        whole = await self._verified(name) if name else None
        if whole is not None and await self._install(self._installation(whole), whole):
            return
        await self._make_whole()

    async def _give_up_state(self) -> None:
        """Mark the damaged state as none, durably, so that no restart takes it for one."""
        await self._turns.pause()
        await self._retried(lambda: write_marker(self._engine, self._of.group_id, Marker()))
        await self._make_whole()

    async def _make_whole(self) -> None:
        """Ask the members, one after the other, until one's state is installed. The marker stands."""
        # A member that is behind what was applied here is no good: the log could not go on from there.
        index_min = (await self._run_scan(self._stored_state)).index
        turn = 0
        while True:
            peers = self._peers()
            if peers:
                whole = await self._bring(self._new_fetch(peers[turn % len(peers)], None, index_min), once=True)
                turn += 1
                if whole is not None:
                    installation = self._installation(whole)
                    await self._retried(installation.mark)
                    if await self._install(installation, whole):
                        return
            await self._wait()

    def _peers(self) -> list[str]:
        """The other members, the leader first. An offer's sender, too: a replica without a log knows no members."""
        offer = self._log.snapshot_offer
        first = [self._log.leader, "" if offer is None else offer.sender]
        members = [each.node_id for each in self._log.configuration.members]
        return [each for each in dict.fromkeys(first + members) if each not in ("", self._node_id)]

    # --- bringing ----------------------------------------------------------------------------------------------

    def _new_fetch(self, peer: str, offered: SnapshotMeta | None, index_min: int = 0) -> Fetch:
        self._fetch = Fetch(
            peer,
            offered,
            transport=self._transport,
            spools=self._spools,
            run_scan=self._run_scan,
            settings=self._settings,
            cluster_id=self._cluster_id,
            group_id=self._of.group_id,
            index_min=index_min,
        )
        return self._fetch

    async def _bring(self, fetch: Fetch, *, once: bool = False) -> WholeSpool | None:
        """Fetch, over as many streams as it takes, and verify. None where it keeps coming damaged, or, where only
        ``once``, at the first attempt that brought nothing."""
        times_damaged = 0
        while True:
            before_bytes = fetch.received_bytes
            try:
                if await fetch.attempt():
                    return await self._verify(fetch.name)
                self._failed(Unavailable("the stream ended early"))
            except DataLoss as damage:
                self._failed(damage)
                times_damaged += 1
                fetch.restart()
                if once or times_damaged == _DAMAGED_MAX:
                    return None
            except CortadoError as problem:
                self._failed(problem)
                if once and fetch.received_bytes == before_bytes:
                    return None
            if fetch.received_bytes > before_bytes:
                self._backoff.reset()
            await self._wait()

    async def _verify(self, name: str) -> WholeSpool:
        """Raises DataLoss, and whatever keeps it from being read."""
        verification = Verification(
            self._spools, name, self._of, cluster_id=self._cluster_id, slice_bytes=self._settings.slice_bytes
        )
        while (whole := await self._run_scan(verification.step)) is None:
            pass
        return whole

    async def _verified(self, name: str) -> WholeSpool | None:
        """None where it is damaged or gone."""
        try:
            return await self._verify(name)
        except CortadoError as problem:
            self._failed(problem)
            return None

    # --- installing --------------------------------------------------------------------------------------------

    def _installation(self, whole: WholeSpool) -> Installation:
        return Installation(self._engine, self._spools, whole, self._of, self._settings)

    async def _install(self, installation: Installation, whole: WholeSpool) -> bool:
        """Under the marker, to the end. False where the spool turns out to be damaged: another one is needed."""
        self.is_installing = True
        header = whole.header
        meta = SnapshotMeta(header.snapshot_id, header.index, header.term, header.configuration, whole.size_bytes)
        try:
            while not await self._retried(installation.clear):
                pass
            while not await self._retried(installation.load):
                pass
            state = await self._finish(installation, meta)
        except CortadoError as problem:
            self._failed(problem)
            self.is_installing = False
            return False
        self.installed += 1
        _LOG.info("installed snapshot %s of index %d", header.snapshot_id, header.index)
        self._fetch = self._following = None
        self.is_installing = False
        self._became_readable()
        self._turns.resume(state)
        await self._run_scan(self._delete_fetched)
        return True

    async def _finish(self, installation: Installation, meta: SnapshotMeta) -> AppliedState:
        """The last transaction, with the log's reset; where the log stands at the snapshot's place already, since only
        the data was bad, it goes on as it is."""
        applied = await self._run_scan(self._stored_state)
        is_reset = meta.index > applied.index
        log_writes = self._log.install(meta) if is_reset else ()
        state = await self._retried(lambda: installation.finish(log_writes))
        if is_reset:
            self._log.installed(meta)
        return state

    async def _retried(self, transaction: Callable[[], T]) -> T:
        """Run it until there is room for it."""
        while True:
            try:
                outcome = await self._store(transaction)
            except ResourceExhausted as full:
                self._failed(full)
                await self._wait()
            else:
                self._backoff.reset()
                return outcome

    async def _store(self, transaction: Callable[[], T]) -> T:
        """Run one transaction on the storage thread."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(outcome: Any) -> None:
            if future.done():
                return
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._storage.submit(transaction, done)
        return await future

    # --- small things ------------------------------------------------------------------------------------------

    async def _step_down(self) -> None:
        """A leader hands over first: while it leads, everybody depends on it."""
        if self._log.leader == self._node_id:
            self._stepping_down = self._stepping_down or asyncio.get_running_loop().create_future()
            self._on_change()
            await asyncio.shield(self._stepping_down)
            self._stepping_down = None
            self._on_change()

    def _became_unreadable(self, why: str) -> None:
        self.unreadable = f"this replica can't be read now: {why}"
        self._on_change()

    def _became_readable(self) -> None:
        self.unreadable = ""
        self._on_change()

    def _failed(self, problem: CortadoError) -> None:
        self._problem = problem.message()
        _LOG.warning("a snapshot is not here yet: %s", self._problem)

    async def _wait(self) -> None:
        await asyncio.sleep(self._backoff.next_ms() / 1000)

    def _stored_state(self) -> AppliedState:
        with self._engine.read() as txn:
            encoded = txn.get(Space.META, applied_key(self._of.group_id))
        return AppliedState() if encoded is None else AppliedState.decode(encoded)

    def _delete_fetched(self, but: str = "") -> None:
        self._delete([name for name in self._names() if name.startswith(FETCHED) and name != but])

    def _delete_leftovers(self, but: str) -> None:
        """At a start: also what was made for peers, which nobody knows of any more."""
        self._delete([name for name in self._names() if name != but])

    def _names(self) -> list[str]:
        try:
            return self._spools.names()
        except CortadoError as problem:
            _LOG.warning("leftovers of snapshots can't be listed: %s", problem)
            return []

    def _delete(self, names: list[str]) -> None:
        for name in names:
            try:
                self._spools.remove(name)
            except CortadoError as problem:
                _LOG.warning("a leftover of a snapshot was not deleted: %s", problem)
