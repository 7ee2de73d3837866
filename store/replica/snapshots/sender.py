"""The side that has the state: makes snapshots for members that fell behind, offers them, and reads them out.

::

    log.window.snapshot_needs ──► copy (scan thread, one read transaction) ──► file ──► log.window.offer_snapshot
                                                                         │
    a peer's FetchSnapshot ◄── read(snapshot_id, offset), in chunks ◄────┘

One snapshot serves all members that need one, for as long as the log still continues after it; then another is made,
but never while a peer is reading. A member that takes longer to bring a snapshot than the log keeps entries would
otherwise be offered one after the other and never come to an end: so the log is asked to keep the entries behind a
snapshot in use (:attr:`SnapshotSender.held_index`). A snapshot's file goes when it has not been read for a while, and
with the process: leftovers are deleted at the next start. A reader that takes nothing (its host lost power, or it means
harm) keeps nothing: while it held a snapshot that the log has left behind, no other member would get one.

Any replica with a whole state can be read from, not the leader alone: its applied entries are committed, whichever node
leads now. If a replica's installation was cut off, and its file is of no use any more, it asks for ``since-40``: any
snapshot of index 40 or above, which is made if needed.

A sender that meets damage in its own data gives nothing up: the damage is reported, to be repaired from the other
members. The copy is tried again, until the item is whole, or no member has it whole (:mod:`.file_writer`). While it
knows that a version is missing here, it makes no copy: nothing in it would tell the receiver.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from cortado.errors import CortadoError, DataLoss, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from cortado.raft.log import SnapshotMeta
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from cortado.store.process.snapshot_files import made_name
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.context import GroupContext
from cortado.store.replica.snapshots.file_writer import SnapshotWriter
from cortado.store.replica.snapshots.marker import applied_key
from cortado.store.replica.snapshots.ports import Backoff

_LOG: Final = logging.getLogger(__name__)

_SINCE: Final = "since-"
_INSTALLED_BYTES_PER_MS: Final = 20_000
"""A slow member's rate, 20 MB/s: for so long, after it has read a large snapshot, it may still be installing it."""


def any_since(index_min: int) -> str:
    """Return the id that asks for any snapshot of at least this index, if none was offered."""
    return f"{_SINCE}{index_min}"


@dataclass(slots=True)
class _File:
    meta: SnapshotMeta
    used_ms: float
    readers: int = 0
    was_asked_for: bool = False
    """Asked for by a member that needs no log entries, but data."""


class KnownDamage(Protocol):
    """The damage of this replica, as far as it is known."""

    def lost(self) -> Set[tuple[Space, bytes]]:
        """Return the damaged items that no member has whole."""

    def missing(self) -> Sequence[Damage]:
        """Return the ranges that lack a version which another member has."""


class SnapshotSender:
    """All on the loop; the steps that it runs elsewhere share nothing with it."""

    def __init__(
        self,
        group: GroupContext,
        known: KnownDamage,
        *,
        on_damage: Callable[[Damage], None],
    ) -> None:
        """``on_damage`` hears of damage that is not ``known`` yet. It is repaired before there is a snapshot."""
        self._engine = group.process.engine
        self._log = group.log
        self._files = group.process.snapshot_files
        self._store = group.store
        self._of = group.of
        self._cluster_id = group.process.identity.cluster_id
        self._run_scan = group.process.scan
        self._monotonic_ms = group.process.monotonic_ms
        self._random = group.process.random
        self._settings = settings = group.process.snapshot_settings
        self._known = known
        self._on_damage = on_damage
        self._backoff = Backoff(group.process.random, settings)
        self._not_before_ms = 0.0
        self._made: dict[str, _File] = {}
        self._newest: _File | None = None
        self._copying: asyncio.Task[_File] | None = None
        self._copying_index: int | None = None
        self._offered: dict[str, tuple[int, str]] = {}
        self._readers = 0
        self.made = 0
        self.sent_bytes = 0
        """Since the start, as :attr:`made`, the number of snapshots that were made."""

    def poll(self) -> None:
        """Look which members need a snapshot. Cheap; call it after each round."""
        if self._made:
            self._drop_idle(self._monotonic_ms())
        needs = self._log.window.snapshot_needs
        for satisfied in self._offered.keys() - set(needs):
            del self._offered[satisfied]
        if not needs:
            return
        peers, newest = self._reachable(needs), self._newest
        may_copy = self._copying is None and not self._store.unreadable
        if newest is not None and newest.meta.index + 1 >= self._first_index():
            self._offer(peers, newest)
        elif newest is not None and newest.readers:
            # The log has left it behind. A snapshot that is half fetched is worth more than a new beginning.
            return
        elif peers and may_copy and self._monotonic_ms() >= self._not_before_ms:
            self._copy()

    @property
    def held_index(self) -> int | None:
        """Return the index above which the log should keep its entries: a snapshot up to there is being made, or on its
        way. None if the log may drop any entry."""
        held = [] if self._copying_index is None else [self._copying_index]
        now_ms, is_needed = self._monotonic_ms(), bool(self._log.window.snapshot_needs)
        for file in self._made.values():
            is_wanted = file.readers or is_needed or file.was_asked_for
            if is_wanted and not self._is_idle(file, now_ms):
                held.append(file.meta.index)
        return min(held, default=None)

    async def read(self, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a snapshot from ``offset`` on, in chunks.

        Raises NotFound if there is no such snapshot (any more), InvalidArgument behind its end, ResourceExhausted if
        too many read already, Unavailable if this replica has no state to give.
        """
        if self._readers >= self._settings.readers_max:
            limit = self._settings.readers_max
            raise ResourceExhausted(f"{self._readers} snapshots are being read", 1_000, "snapshot readers", limit)
        self._readers += 1
        try:
            file = await self._find(snapshot_id)
            file.readers += 1
            file.used_ms = self._monotonic_ms()
            try:
                async for chunk in self._chunks(file, offset):
                    yield chunk
                    file.used_ms = self._monotonic_ms()
            finally:
                file.readers -= 1
                file.used_ms = self._monotonic_ms()
        finally:
            self._readers -= 1

    async def stop(self) -> None:
        """End what runs. The files stay for the next start to delete."""
        copying, self._copying = self._copying, None
        if copying is not None:
            copying.cancel()
            await asyncio.wait([copying])

    # --- making ------------------------------------------------------------------------------------------------

    def _copy(self) -> asyncio.Task[_File]:
        if self._copying is None:
            self._copying = asyncio.get_running_loop().create_task(self._make())
            self._copying.add_done_callback(self._copied)
        return self._copying

    def _copied(self, task: asyncio.Task[_File]) -> None:
        if self._copying is task:
            self._copying = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._backoff.reset()
            return
        self._not_before_ms = self._monotonic_ms() + self._backoff.next_ms()
        if isinstance(error, CortadoError):
            _LOG.warning("a snapshot was not made: %s", error)
        else:
            _LOG.error("a defect in making a snapshot", exc_info=error)

    async def _make(self) -> _File:
        snapshot_id = f"{self._random.getrandbits(64):016x}"
        name = made_name(self._of.group_id, snapshot_id)
        writer = SnapshotWriter(self._engine, self._files, name, self._of, self._settings, self._known.lost())
        is_complete = False
        try:
            # From before the copy begins: between that and our hearing of it, the log must not go past it.
            self._copying_index = self._first_index() - 1
            state = await self._run_scan(writer.begin)
            self._copying_index = state.index
            if state.index < self._first_index() - 1:
                raise Unavailable("the log has moved past the snapshot that was begun", 100)
            members = self._log.window.roster_at(state.index)
            await self._run_scan(lambda: writer.write_header(snapshot_id, self._cluster_id, state, members))
            while not is_complete:
                # A version that is reported missing during the copy may be missing in it.
                if missing := self._known.missing():
                    raise Unavailable(f"a version is missing here: {missing[0].what}", 1_000)
                is_complete = await self._run_scan(writer.step)
        except DataLoss as damage:
            self._put_off(writer.damaged or [Damage.of_tree(damage)])
            raise
        finally:
            if not is_complete:
                self._copying_index = None
            await self._run_scan(writer.close)
            if not is_complete:
                await self._run_scan(lambda: self._files.remove(name))
        meta = SnapshotMeta(snapshot_id, state.index, state.term, members, writer.size_bytes)
        _LOG.info("made snapshot %s of index %d, %d bytes", snapshot_id, state.index, writer.size_bytes)
        self.made += 1
        self._newest = self._made[snapshot_id] = _File(meta, self._monotonic_ms())
        self._copying_index = None
        return self._newest

    def _put_off(self, damaged: Sequence[Damage]) -> None:
        """There is no snapshot until this is repaired, or is known to be whole nowhere."""
        for each in damaged:
            self._on_damage(each)

    def _first_index(self) -> int:
        """Return the first entry that the log still has."""
        return self._log.window.base[0] + 1

    # --- offering ----------------------------------------------------------------------------------------------

    def _reachable(self, needs: Sequence[str]) -> list[str]:
        """Return the members in need that were heard of lately: a copy for a dead one would be made again and again."""
        silent = {each.node_id for each in self._log.progress if each.last_heard_ms > self._settings.heard_ms}
        return [peer for peer in needs if peer not in silent]

    def _offer(self, peers: list[str], file: _File) -> None:
        """Once for each peer and term: the log repeats it."""
        offer = (self._log.term, file.meta.snapshot_id)
        for peer in peers:
            if self._offered.get(peer) != offer:
                self._offered[peer] = offer
                self._log.window.offer_snapshot(peer, file.meta)

    def _drop_idle(self, now_ms: float) -> None:
        for snapshot_id, file in list(self._made.items()):
            if self._is_idle(file, now_ms):
                del self._made[snapshot_id]
                if file is self._newest:
                    self._newest = None
                self._remove(snapshot_id)

    def _is_idle(self, file: _File, now_ms: float) -> bool:
        """Return whether it was not read for longer than a member needs to install it."""
        kept_ms = max(self._settings.keep_ms, file.meta.size_bytes / _INSTALLED_BYTES_PER_MS)
        return now_ms - file.used_ms > kept_ms

    def _remove(self, snapshot_id: str) -> None:
        async def remove() -> None:
            try:
                await self._run_scan(lambda: self._files.remove(made_name(self._of.group_id, snapshot_id)))
            except CortadoError as problem:
                _LOG.warning("a snapshot was not deleted: %s", problem)

        self._removing = asyncio.get_running_loop().create_task(remove())

    # --- reading out -------------------------------------------------------------------------------------------

    async def _find(self, snapshot_id: str) -> _File:
        since = snapshot_id.removeprefix(_SINCE)
        if since != snapshot_id and since.isascii() and since.isdigit():
            newest = await self._newest_since(int(since))
            newest.was_asked_for = True
            return newest
        file = self._made.get(snapshot_id)
        if file is None:
            raise NotFound("snapshot", snapshot_id)
        return file

    async def _newest_since(self, index_min: int) -> _File:
        while self._newest is None or self._newest.meta.index < index_min:
            if self._store.unreadable:
                raise Unavailable("this replica has no state of its own to give", 1_000)
            applied_index = await self._run_scan(self._applied_index)
            if applied_index < index_min:
                raise Unavailable(f"this replica stands at {applied_index}, behind {index_min}", 1_000)
            # Made by a task of its own: a caller that gives up waiting for it, and asks again, finds it further on.
            await asyncio.shield(self._copy())
        return self._newest

    def _applied_index(self) -> int:
        with self._engine.read() as txn:
            return AppliedState.decode_stored(txn.get(Space.META, applied_key(self._of.group_id))).index

    async def _chunks(self, file: _File, offset: int) -> AsyncIterator[bytes]:
        size_bytes = file.meta.size_bytes
        if not 0 <= offset <= size_bytes:
            raise InvalidArgument("offset", f"must be between 0 and the snapshot's {size_bytes} bytes", str(offset))
        name = made_name(self._of.group_id, file.meta.snapshot_id)
        while offset < size_bytes:
            length = min(self._settings.chunk_bytes, size_bytes - offset)
            chunk = await self._run_scan(partial(self._files.read, name, offset, length))
            if not chunk:
                raise NotFound("snapshot", file.meta.snapshot_id)
            yield chunk
            self.sent_bytes += len(chunk)
            offset += len(chunk)
