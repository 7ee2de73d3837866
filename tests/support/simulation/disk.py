"""A disk that loses unsynced writes, and the engine and the storage thread of a node that writes on it.

::

    job runs ──► transaction ends ──► syncing: invisible, not durable ──sync ends──► visible and durable ──► done
                                        `── crash here: gone, or (torn) there

A commit becomes visible when it is durable, as LMDB's does: its meta page is written last. At a crash in between either
of the two pages may have survived, so a coin decides. A write without room is refused when the transaction ends.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from cortado.errors import Unavailable
from cortado.store.engine.failures import StorageFailed, disk_full
from cortado.store.engine.interface import Disordered, LentMap, MapUse, PointReader, RoomLeft, Space
from cortado.store.process.storage_thread import Done, Job
from support.memory_engine import Items as MemoryItems
from support.memory_engine import MemoryReads
from support.simulation.groups import Groups, group_of
from support.simulation.log_disk import LogDisk
from support.simulation.loop import NodeLoop, Scheduler

Changes: TypeAlias = list[tuple[Space, bytes, bytes | None]]

_MAP_BYTES = 1 << 30
_LONG_MS = 300.0
_DIGEST_MASK = (1 << 64) - 1


class Items(MemoryItems):
    """One space, written an item at a time."""

    __slots__ = ()

    def set(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            if self.values.pop(key, None) is not None:
                del self.keys[bisect_left(self.keys, key)]
            return
        if key not in self.values:
            if self.keys and key > self.keys[-1]:
                self.keys.append(key)
            else:
                insort(self.keys, key)
        self.values[key] = value


class Scarcity:
    """A disk that has its reserve left, and nothing else. ``on_used_up`` hears when that is gone, too."""

    def __init__(self, reserve_bytes: int, on_used_up: Callable[[], None]) -> None:
        self.reserve_bytes = self.left_bytes = reserve_bytes
        self._on_used_up = on_used_up

    @property
    def is_used_up(self) -> bool:
        return self.left_bytes <= 0

    def take(self, size_bytes: int) -> None:
        was_used_up = self.is_used_up
        self.left_bytes -= size_bytes
        if self.is_used_up and not was_used_up:
            self._on_used_up()

    def give_back(self, size_bytes: int) -> None:
        """Take the room of deleted items again, as LMDB does. A moved item takes twice its room only for a moment."""
        if not self.is_used_up:
            self.left_bytes = min(self.left_bytes + size_bytes, self.reserve_bytes)


class Disk:
    """The data that survive a crash, and the disk's behaviour. ``random`` decides how long syncs take, and which writes
    tear."""

    def __init__(self, scheduler: Scheduler, source: random.Random, groups: Groups) -> None:
        self.spaces = {space: Items() for space in Space}
        self.digests: Counter[int] = Counter()
        """By group, the digest of its DATA, REQUESTS and applied state: equal on two replicas that stand at the same
        entry. Under 0, of items that are no group's."""
        self._groups = groups
        self.on_durable: Callable[[Changes], None] = lambda _changes: None
        self.on_applied: Callable[[Changes], None] | None = None
        """A disk that lies does so here: the write is durable, and may be changed."""
        self.turned: dict[tuple[Space, bytes], bytes] = {}
        """Damaged items, with their true values: the digest is of that."""
        self.repaired = 0
        self.sync_ms = (0.2, 1.5)
        self.hangs_until_ms = 0.0
        self._is_full = False
        self.scarcity: Scarcity | None = None
        """The scarcity of room, for both stores."""
        self._fails_next_sync = False
        self.commits = self.torn_kept = self.torn_lost = self.refused = 0
        self.log = LogDisk(source)
        self.log.on_appending = self._take
        self._scheduler = scheduler
        self._random = source
        self._syncing: Changes | None = None
        self._in_doubt = False
        self._readers: list[SimulatedRead] = []

    @property
    def is_full(self) -> bool:
        """No room for either store."""
        return self._is_full or (self.scarcity is not None and self.scarcity.is_used_up)

    @is_full.setter
    def is_full(self, value: bool) -> None:
        self._is_full = self.log.is_full = value

    @property
    def fails_next_sync(self) -> bool:
        """The next sync fails, of whichever store."""
        return self._fails_next_sync

    @fails_next_sync.setter
    def fails_next_sync(self, value: bool) -> None:
        self._fails_next_sync = self.log.fails_next_sync = value

    # --- a transaction's end -----------------------------------------------------------------------------------

    def commit(self, changes: Changes) -> None:
        """End the transaction and begin its sync. Raises ResourceExhausted, StorageFailed."""
        self.finish_sync()
        if self.is_full and any(value is not None for _, _, value in changes):
            self.refused += 1
            raise disk_full(0, "simulated")
        self._take(sum(len(key) + len(value) for _, key, value in changes if value is not None))
        if self.scarcity is not None:
            deleted = [(key, self.spaces[space].values.get(key)) for space, key, value in changes if value is None]
            self.scarcity.give_back(sum(len(key) + len(value) for key, value in deleted if value is not None))
        self._syncing = changes
        if self._fails_next_sync:
            self.fails_next_sync = False
            self._in_doubt = True
            raise StorageFailed("simulated")

    def _take(self, size_bytes: int) -> None:
        if self.scarcity is not None:
            if self.scarcity.is_used_up:
                raise disk_full(0, "simulated: its reserve is used up")
            self.scarcity.take(size_bytes)

    def sync_takes_ms(self) -> float:
        took_ms = self._random.uniform(*self.sync_ms)
        return max(took_ms, self.hangs_until_ms - self._scheduler.now_ms)

    def finish_sync(self) -> None:
        """Make the syncing write durable and visible."""
        changes, self._syncing = self._syncing, None
        if changes is not None:
            self._apply(changes)
            self.commits += 1

    def crash(self) -> None:
        """Lose power: a write that was syncing is there as a whole, or not at all; in the log files, in part."""
        self.log.crash()
        changes, self._syncing = self._syncing, None
        self._in_doubt = False
        self._readers.clear()
        self.hangs_until_ms = 0.0
        if changes is None:
            return
        if self._random.random() < 0.5:
            self.torn_kept += 1
            self._apply(changes)
        else:
            self.torn_lost += 1

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        self.log.wipe()
        self._syncing = None
        self.spaces = {space: Items() for space in Space}
        self.turned.clear()
        self.on_applied = None
        self.digests.clear()

    def damage(self, space: Space, key: bytes, value: bytes) -> None:
        """Return this value on reads there from now on, despite later writes."""
        values = self.spaces[space].values
        self.turned.setdefault((space, key), values[key])
        values[key] = value

    @property
    def is_syncing(self) -> bool:
        return self._syncing is not None

    @property
    def is_data_in_doubt(self) -> bool:
        """A sync of the data failed."""
        return self._in_doubt

    @property
    def is_in_doubt(self) -> bool:
        """Return whether a sync failed: no process may write before a new one has read the disk."""
        return self._in_doubt or self.log.is_in_doubt

    def _apply(self, changes: Changes) -> None:
        for reader in self._readers:
            reader.keep_state()
        self._readers.clear()
        gone: dict[tuple[Space, bytes], bytes] = {}
        for space, key, value in changes:
            items = self.spaces[space]
            if space is Space.DATA or space is Space.REQUESTS or (space is Space.META and key.startswith(b"applied")):
                before = items.values.get(key)
                turned = self.turned.pop((space, key), None)
                if turned is not None:
                    before = gone[space, key] = turned
                self.repaired += value is not None and gone.get((space, key)) == value
                of = group_of(self._groups, space, key)
                digest = self.digests[of]
                if before is not None:
                    digest -= _digest_of(space, key, before)
                if value is not None:
                    digest += _digest_of(space, key, value)
                self.digests[of] = digest & _DIGEST_MASK
            items.set(key, value)
        self.on_durable(changes)
        if self.on_applied is not None:
            self.on_applied(changes)


def _digest_of(space: Space, key: bytes, value: bytes) -> int:
    return int.from_bytes(blake2b(b"%s/%d/%s/%s" % (space.encode(), len(key), key, value), digest_size=8).digest())


class SimulatedRead(MemoryReads):
    """A read transaction: the visible state at its begin, copied only if a commit comes while it is open."""

    def __init__(self, disk: Disk, engine: SimulatedEngine) -> None:
        self._disk = disk
        self._engine = engine
        self._spaces = disk.spaces

    def __enter__(self) -> Self:
        self._engine.check_open()
        self._spaces = self._disk.spaces
        self._disk._readers.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self in self._disk._readers:
            self._disk._readers.remove(self)

    def keep_state(self) -> None:
        self._spaces = {space: items.copy() for space, items in self._spaces.items()}


class SimulatedWrite(SimulatedRead):
    """The one writer: it writes in place, and its end takes everything back until the sync has ended."""

    def __enter__(self) -> Self:
        self._engine.check_open()
        if self._disk.is_syncing and not self._engine.is_in_job:
            raise AssertionError("a write transaction beside the storage thread's")
        self._disk.finish_sync()
        self._spaces = self._disk.spaces
        self._changes: Changes = []
        self._before: Changes = []
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for space, key, value in reversed(self._before):
            self._spaces[space].set(key, value)
        if error is None:
            self._disk.commit(self._changes)
            if not self._engine.is_in_job:
                self._disk.finish_sync()

    def put(self, space: Space, key: bytes, value: bytes) -> None:
        self._set(space, key, value)

    def put_many(self, space: Space, items: Iterable[tuple[bytes, bytes]]) -> None:
        for key, value in items:
            self._set(space, key, value)

    def delete(self, space: Space, key: bytes) -> bool:
        if key not in self._spaces[space].values:
            return False
        self._set(space, key, None)
        return True

    def delete_range(self, space: Space, start: bytes, end: bytes, *, max_items: int | None = None) -> int:
        keys = self._spaces[space].keys
        first, last = bisect_left(keys, start), bisect_left(keys, end)
        if max_items is not None:
            last = min(last, first + max_items)
        gone = keys[first : max(first, last)]
        for key in gone:
            self._set(space, key, None)
        return len(gone)

    def delete_places(self, space: Space, start: bytes, places: Iterable[int]) -> None:
        keys = self._spaces[space].keys
        first = bisect_left(keys, start)
        for key in [keys[first + place] for place in places]:
            self._set(space, key, None)

    def _set(self, space: Space, key: bytes, value: bytes | None) -> None:
        items = self._spaces[space]
        self._before.append((space, key, items.values.get(key)))
        self._changes.append((space, key, value))
        items.set(key, value)


class SimulatedEngine:
    """One life's view of its disk; see :class:`~cortado.store.engine.interface.Engine`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._is_open = True
        self.is_in_job = False

    @property
    def disordered(self) -> Sequence[Disordered]:
        return ()

    @property
    def mapped(self) -> LentMap | str:
        return "it is in memory"

    def read(self) -> SimulatedRead:
        return SimulatedRead(self._disk, self)

    def point_reader(self, space: Space) -> PointReader:
        def seek(key: bytes) -> tuple[bytes, bytes] | None:
            self.check_open()
            items = self._disk.spaces[space]
            place = bisect_left(items.keys, key)
            return (items.keys[place], items.values[items.keys[place]]) if place < len(items.keys) else None

        return seek

    def write(self) -> SimulatedWrite:
        return SimulatedWrite(self._disk, self)

    def admit(self, size_bytes: int, *, behind_bytes: int = 0, frees: bool = False) -> None:
        if self._disk.is_full or (self._disk.scarcity is not None and not frees):
            raise disk_full(0, "simulated")

    def room(self) -> RoomLeft:
        scarcity = self._disk.scarcity
        if scarcity is not None and not self._disk.is_full:
            return RoomLeft(scarcity.left_bytes, scarcity.reserve_bytes)
        return RoomLeft(self.disk_free_bytes(), 1)

    def use(self) -> MapUse:
        self.check_open()
        return MapUse(0, _MAP_BYTES)

    def disk_free_bytes(self) -> int:
        return 0 if self._disk.is_full else _MAP_BYTES

    @property
    def is_in_doubt(self) -> bool:
        """A sync of the data failed."""
        return self._disk.is_data_in_doubt

    def finish_sync(self) -> None:
        """End the sync of a job."""
        self._disk.finish_sync()

    def close(self) -> None:
        self._is_open = False

    def check_open(self) -> None:
        if not self._is_open:
            raise Unavailable("the data directory is closed")


class SimulatedThread:
    """A thread of one life that writes; see :class:`~cortado.store.process.storage_thread.Storage`.

    ``io`` is a loop that is never paused: a stopped process does not stop its disk. ``store`` is the target of its
    writes.
    """

    def __init__(self, loop: NodeLoop, io: NodeLoop, disk: Disk, store: Syncing) -> None:
        self._loop = loop
        self._io = io
        self._store = store
        self._disk = disk
        self._jobs: deque[tuple[Job, Done]] = deque()
        self._is_busy = False

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        self._jobs.append((job, done))
        self._begin()

    def stop(self) -> None:
        """Stop taking jobs; earlier jobs end in their own time."""

    def _begin(self) -> None:
        if self._is_busy or not self._jobs:
            return
        self._is_busy = True
        job, done = self._jobs.popleft()
        outcome = _outcome_of(job, self._store, self._disk)
        delay_ms = self._disk.sync_takes_ms()
        self._io.call_later(delay_ms / 1000, self._end, done, outcome)

    def _end(self, done: Done, outcome: object) -> None:
        if not self._store.is_in_doubt:
            self._store.finish_sync()
        self._is_busy = False
        self._loop.call_soon(done, outcome)
        self._loop.call_soon(self._begin)


class SimulatedLoopStorage:
    """Writes of one life's loop, which stands still for each of them; see
    :class:`~cortado.store.process.log_storage.LoopStorage`. ``counts`` counts them."""

    def __init__(self, loop: NodeLoop, io: NodeLoop, disk: Disk, counts: Counter[str]) -> None:
        self._loop = loop
        self._io = io
        self._disk = disk
        self._counts = counts

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        self._loop.call_soon(self._begin, job, done)

    def stop(self) -> None:
        """Do nothing: nothing runs beside the loop."""

    def _begin(self, job: Job, done: Done) -> None:
        outcome = _outcome_of(job, self._disk.log, self._disk)
        self._loop.write()
        takes_ms = self._disk.sync_takes_ms()
        self._counts["writes of the log on the loop"] += 1
        self._counts["writes of the log that hold the loop"] += takes_ms > _LONG_MS
        self._counts["writes of the log on the loop that fail"] += isinstance(outcome, BaseException)
        self._io.call_later(takes_ms / 1000, self._end, done, outcome)

    def _end(self, done: Done, outcome: object) -> None:
        if not self._disk.log.is_in_doubt:
            self._disk.log.finish_sync()
        self._loop.wrote(done, outcome)


def _outcome_of(job: Job, store: Syncing, disk: Disk) -> object:
    """Run a job; its syncs end later. Returns its result or its exception."""
    store.is_in_job = True
    try:
        if disk.is_in_doubt:
            raise StorageFailed("a sync failed before")
        return job()
    except BaseException as error:
        return error
    finally:
        store.is_in_job = False


class Syncing(Protocol):
    """One store of a life, to a thread that writes there."""

    is_in_job: bool

    @property
    def is_in_doubt(self) -> bool:
        """Its own sync failed."""

    def finish_sync(self) -> None: ...
