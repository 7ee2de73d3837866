"""The side that lacks the state: fetches a snapshot while the old state still serves, then installs it with the driver
paused.

::

            an offer of the leader's        all of it, verified           the marker is durable
    Idle ──────────────────────────► Fetching ─────────────────► Pausing ───────────────────────► Installing ──► Idle
     ▲                                │ ▲  ▲                        │                               │    ▲  finished
     │  the log got there by itself,  │ │  └──── no room for it ────┘               its file turned │    │
     └──── or it keeps coming damaged ┘ └─ a newer offer                           out to be damaged▼    │ another,
                                                                                           Refetching ───┘ verified
    a marker at the start ──► Installing, where its file is whole; else Refetching

The old state is good until the marker is durable, and the marker is written only when a whole file is verified and
synced: so nothing is given up for a promise. While the marker stands (*Installing*, *Refetching*) this replica has no
state, and does not lead; :attr:`unreadable` says why. The entries that it has acknowledged to its leader stay in its
log, which an installation keeps behind the snapshot's place; so its vote and its acknowledgements stay true throughout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from cortado.errors import CortadoError, DataLoss, ResourceExhausted, Unavailable
from cortado.invariants import invariant
from cortado.raft.log import SnapshotMeta
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from cortado.store.process.snapshot_files import delete_files, fetched_name, group_of, is_fetched, names_in
from cortado.store.process.storage_thread import Storage, run_job
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.context import GroupContext
from cortado.store.replica.snapshots.fetch import Fetch
from cortado.store.replica.snapshots.file_reader import Verification, WholeFile
from cortado.store.replica.snapshots.installation import Installation, read_marker
from cortado.store.replica.snapshots.marker import applied_key
from cortado.store.replica.snapshots.ports import Backoff, PausableDriver

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_DAMAGED_MAX: Final = 2
"""A snapshot that came damaged so often is damaged at its sender."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is brought here."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """The snapshot of an offer is on its way, or waits here for room; everything goes on beside it."""

    offered: SnapshotMeta
    fetch: Fetch


@dataclass(frozen=True, slots=True)
class Pausing:
    """The snapshot's file is whole. The driver comes to a stop, and reads go on."""

    file: WholeFile


@dataclass(frozen=True, slots=True)
class Installing:
    """The snapshot takes the place of the old state, which is not read any more; ``why`` for people."""

    why: str


@dataclass(frozen=True, slots=True)
class Refetching:
    """The old state is gone, and so is the file of the snapshot that was to replace it: any other will do."""

    fetch: Fetch | None


State: TypeAlias = Idle | Fetching | Pausing | Installing | Refetching
_INSTALLING: Final = (Pausing, Installing, Refetching)


@dataclass(frozen=True, slots=True)
class ReceiverProgress:
    """The progress for status pages: the peer, and the bytes received; ``size_bytes`` is 0 if it is not known."""

    peer: str
    received_bytes: int
    size_bytes: int
    problem: str


class SnapshotReceiver:
    """All on the loop. One task at a time brings and installs; :meth:`poll` begins it, or replaces it."""

    def __init__(
        self,
        group: GroupContext,
        *,
        driver: PausableDriver,
        on_change: Callable[[], None],
        on_damage: Callable[[Damage], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``on_damage`` hears of each item that came damaged with a snapshot, since no member has it whole."""
        self._group = group
        self._engine = group.process.engine
        self._log = group.log
        self._files = group.process.snapshot_files
        self._of = group.of
        self._driver = driver
        self._storage = group.storage_thread
        self._run_scan = group.process.scan
        self._settings = settings = group.process.snapshot_settings
        self._on_change = on_change
        self._on_damage = on_damage
        self._on_failure = on_failure
        self._backoff = Backoff(group.process.random, settings)
        self._state: State = Idle()
        self._task: asyncio.Task[None] | None = None
        self._refused_id = ""
        self._problem = ""
        self.installed = 0
        """Snapshots, since the start."""

    # --- questions of the node ---------------------------------------------------------------------------------------

    @property
    def unreadable(self) -> str:
        """Why nothing can be read here now; empty if it can."""
        match self._state:
            case Installing(why):
                return f"this replica can't be read now: {why}"
            case Refetching():
                return "this replica can't be read now: its snapshot is gone, and is fetched again"
        return ""

    @property
    def is_installing(self) -> bool:
        """True from before the driver is paused until it goes on."""
        return isinstance(self._state, _INSTALLING)

    @property
    def progress(self) -> ReceiverProgress | None:
        """None if nothing is being brought."""
        match self._state:
            case Idle():
                return None
            case Fetching(fetch=fetch) | Refetching(fetch=Fetch() as fetch):
                return ReceiverProgress(fetch.peer, fetch.received_bytes, fetch.size_bytes, self._problem)
        return ReceiverProgress("", 0, 0, self._problem)

    async def start(self) -> None:
        """Delete leftovers, and if a marker stands, pause the driver and begin to make this replica whole."""
        marker = await self._run_scan(lambda: read_marker(self._engine, self._of.group_id))
        kept = self._name(marker.snapshot_id) if marker is not None and marker.snapshot_id else ""
        await self._run_scan(lambda: self._delete_leftovers(kept))
        if marker is None:
            return
        self._become(Installing("an installation was cut off"))
        await self._driver.pause()
        self._begin(self._go_on(kept))

    def poll(self) -> None:
        """Look whether the leader offers something. Cheap; call it after each round."""
        state = self._state
        if isinstance(state, _INSTALLING):
            return
        offer = self._log.window.snapshot_offer
        if offer is not None and self._is_new(offer.meta):
            self._stop_task()
            fetch = self._new_fetch(offer.sender, offer.meta)
            self._become(Fetching(offer.meta, fetch))
            self._begin(self._follow(fetch))
        elif isinstance(state, Fetching) and state.offered.index <= self._log.durable_commit_index:
            # The log got there by itself.
            self._stop_task()
            self._become(Idle())

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
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def _become(self, state: State) -> None:
        before, self._state = self.unreadable, state
        if self.unreadable != before:
            self._on_change()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``. An unforeseen failure stops the node: its state may be neither the old one nor the new one."""
        try:
            await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            _LOG.critical("the node stops: a snapshot could not be installed", exc_info=error)
            self._on_failure(error)

    def _is_new(self, meta: SnapshotMeta) -> bool:
        if meta.snapshot_id == self._refused_id or meta.index <= self._log.durable_commit_index:
            return False
        state = self._state
        return not isinstance(state, Fetching) or state.offered.snapshot_id != meta.snapshot_id

    async def _follow(self, fetch: Fetch) -> None:
        """Fetch the offered snapshot, and install it."""
        offered_id = fetch.snapshot_id
        await self._run_scan(lambda: self._delete_fetched(but=self._name(offered_id)))
        whole = await self._bring(fetch)
        if whole is None:
            # Damaged at its sender: the next offer, of another snapshot, may do.
            self._refused_id = offered_id
            self._become(Idle())
            return
        fetching = self._state
        while not await self._replace(whole):
            self._become(fetching)
            await self._wait()

    async def _replace(self, whole: WholeFile) -> bool:
        """Install if the old state is whole. False if there is no room: the old state still stands."""
        self._become(Pausing(whole))
        await self._driver.pause()
        if whole.header.index <= self._log.durable_commit_index:
            await self._resume_as_before()
            await self._run_scan(self._delete_fetched)
            return True
        installation = self._installation(whole)
        self._become(Installing("a snapshot is being installed"))
        try:
            await self._run_scan(installation.check_fits)
            await run_job(self._storage, installation.mark)
        except ResourceExhausted as full:
            self._failed(full)
            await self._resume_as_before()
            return False
        if not await self._install(installation, whole):
            await self._make_whole()
        return True

    async def _resume_as_before(self) -> None:
        state = await self._run_scan(self._stored_state)
        # Readable last: the checks on reads follow from the state, and are looked up in it.
        self._driver.resume(state)
        self._become(Idle())

    async def _go_on(self, name: str) -> None:
        """At a start under a marker: install its file again, or get another."""
        whole = await self._verified(name) if name else None
        if whole is not None and await self._install(self._installation(whole), whole):
            return
        await self._make_whole()

    async def _make_whole(self) -> None:
        """Ask the members, one after the other, until one's state is installed. The marker stands."""
        # The state of a member that is behind the applied index here is of no use: the log could not go on from there.
        index_min = (await self._run_scan(self._stored_state)).index
        tries = 0
        self._become(Refetching(None))
        while True:
            peers = self._peers()
            if peers:
                fetch = self._new_fetch(peers[tries % len(peers)], None, index_min)
                self._become(Refetching(fetch))
                whole = await self._bring(fetch, once=True)
                tries += 1
                if whole is not None:
                    installation = self._installation(whole)
                    await self._retried(installation.mark)
                    self._become(Installing("a snapshot is being installed"))
                    if await self._install(installation, whole):
                        return
                    self._become(Refetching(None))
            await self._wait()

    def _peers(self) -> list[str]:
        """Return the other members, the leader first. An offer's sender, too: a replica without a log knows no
        members."""
        offer = self._log.window.snapshot_offer
        first = [self._log.leader, "" if offer is None else offer.sender]
        members = self._log.configuration.members
        return [each for each in dict.fromkeys([*first, *members]) if each not in ("", self._group.node_id)]

    # --- bringing ----------------------------------------------------------------------------------------------

    def _new_fetch(self, peer: str, offered: SnapshotMeta | None, index_min: int = 0) -> Fetch:
        return Fetch(self._group, peer, offered, index_min)

    async def _bring(self, fetch: Fetch, *, once: bool = False) -> WholeFile | None:
        """Fetch, over as many streams as it takes, and verify. None if it keeps coming damaged or, if only ``once``, at
        the first attempt that brought nothing."""
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

    async def _verify(self, name: str) -> WholeFile:
        """Verify the whole file. Raises DataLoss, and the errors of reading it."""
        verification = Verification(
            self._files,
            name,
            self._of,
            cluster_id=self._group.process.identity.cluster_id,
            slice_bytes=self._settings.slice_bytes,
        )
        while (whole := await self._run_scan(verification.step)) is None:
            pass
        return whole

    async def _verified(self, name: str) -> WholeFile | None:
        """None if it is damaged or gone."""
        try:
            return await self._verify(name)
        except CortadoError as problem:
            self._failed(problem)
            return None

    # --- installing --------------------------------------------------------------------------------------------

    def _installation(self, whole: WholeFile) -> Installation:
        return Installation(self._engine, self._files, whole, self._of, self._settings)

    async def _install(self, installation: Installation, whole: WholeFile) -> bool:
        """Under the marker, to the end. False if the file turns out to be damaged: another snapshot is needed."""
        header = whole.header
        meta = SnapshotMeta(header.snapshot_id, header.index, header.term, header.roster, whole.size_bytes)
        try:
            while not await self._retried(installation.clear):
                pass
            while not await self._retried(installation.load):
                pass
            state = await self._finish(installation, meta)
        except CortadoError as problem:
            self._failed(problem)
            return False
        self.installed += 1
        _LOG.info("installed snapshot %s of index %d", header.snapshot_id, header.index)
        # Readable last: the checks on reads follow from the state, and are looked up in it.
        self._driver.resume(state)
        self._become(Idle())
        for damage in whole.damaged:
            self._on_damage(damage)
        await self._run_scan(self._delete_fetched)
        return True

    async def _finish(self, installation: Installation, meta: SnapshotMeta) -> AppliedState:
        """The last transaction, and after it the log's reset; if the log stands at the snapshot's place already, since
        only the data was bad, it goes on as it is."""
        applied = await self._run_scan(self._stored_state)
        writes = self._log.window.install(meta) if meta.index > applied.index else []
        log_reset = writes[-1].payload if writes else b""
        state = await self._retried(lambda: installation.finish(log_reset))
        is_same = (state.index, state.term) == (meta.index, meta.term)
        invariant(is_same, "the state that was installed is the snapshot's", state, meta.index, meta.term)
        if writes:
            await self._retried(lambda: self._group.process.log_files.append(writes), self._group.log_thread)
            self._log.window.installed(meta)
            await self._retried(self._group.machine.forget_log_reset)
        return state

    async def _retried(self, transaction: Callable[[], T], thread: Storage | None = None) -> T:
        """Run it, on the storage thread unless another is given, until there is room for it."""
        while True:
            try:
                outcome = await run_job(thread or self._storage, transaction)
            except ResourceExhausted as full:
                self._failed(full)
                await self._wait()
            else:
                self._backoff.reset()
                return outcome

    # --- small things ------------------------------------------------------------------------------------------

    def _failed(self, problem: CortadoError) -> None:
        self._problem = problem.message()
        _LOG.warning("a snapshot is not here yet: %s", self._problem)

    async def _wait(self) -> None:
        await asyncio.sleep(self._backoff.next_ms() / 1000)

    def _stored_state(self) -> AppliedState:
        with self._engine.read() as txn:
            encoded = txn.get(Space.META, applied_key(self._of.group_id))
        return AppliedState.decode_stored(encoded)

    def _name(self, snapshot_id: str) -> str:
        return fetched_name(self._of.group_id, snapshot_id)

    def _delete_fetched(self, but: str = "") -> None:
        delete_files(self._files, [name for name in self._own_files() if is_fetched(name) and name != but])

    def _delete_leftovers(self, but: str) -> None:
        """Delete leftovers at a start: also snapshots that were made for peers, which no peer knows of any more."""
        delete_files(self._files, [name for name in self._own_files() if name != but])

    def _own_files(self) -> list[str]:
        return [name for name in names_in(self._files) if group_of(name) == self._of.group_id]
