"""The folder of a host's log files: unsynced writes may survive a crash, whole or in part, by sectors.

::

    append ──► write, sync [, create, write, sync ...]   a job of the log thread; its sync takes its time
                                       crash here: a prefix of these happened; of a write without a completed sync, any
                                       sectors of 512 bytes did

The true content is kept beside the disk's, so that a test knows the damage (:meth:`LogDisk.damaged`, ``log_lies.py``).
A process reads its files when it starts: until then it does not know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cortado.errors import DataLoss, ResourceExhausted
from cortado.raft.log import LogRecord
from cortado.store.engine.failures import StorageFailed, disk_full
from cortado.store.log_files.log_files import LogFiles

SECTOR_BYTES = 512
SEGMENT_BYTES = 4 << 10


@dataclass
class Write:
    """Of a file."""

    name: str
    offset: int
    data: bytes


@dataclass
class _Create:
    name: str
    size_bytes: int


@dataclass
class _Remove:
    name: str


@dataclass
class _Sync:
    name: str


class LogDisk:
    """See :class:`~cortado.store.log_files.files.LogDirectory`; one for all lives of a host."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._seen: dict[str, bytearray] = {}
        self.durable: dict[str, bytearray] = {}
        """The content of the disk."""
        self.kept: dict[str, bytearray] = {}
        """The content of a disk that never lies."""
        self.written: list[Write] = []
        """Each write that is durable, of the files that are there."""
        self.is_begun = False
        """A process had files here."""
        self.has_lost_end = False
        """The last append is not there, though it was acknowledged."""
        self._operations: list[Write | _Create | _Remove | _Sync] = []
        self._appending: Sequence[LogRecord] = ()
        self._is_frame_next = False
        self.on_logged: Callable[[Sequence[LogRecord]], None] = lambda _records: None
        """Hears of records that became durable."""
        self.on_appending: Callable[[int], None] = lambda _size_bytes: None
        """Hears how much is about to be appended; raises ResourceExhausted if there is no room for it."""
        self.is_in_job = False
        self.is_full = False
        # By a draw of its own, so that it changes no other.
        own = random.Random()
        own.setstate(source.getstate())
        self.promises_blocks = own.random() < 0.25
        """Whether a file that was made while there was room has room for its writes."""
        self.fails_next_sync = False
        self.appends = self.torn_kept = self.torn_lost = self.refused = 0
        self.is_in_doubt = False

    @classmethod
    def holding(cls, files: dict[str, bytearray]) -> LogDisk:
        """Return a disk with these files, to be read."""
        disk = cls(random.Random(0))
        disk._seen = files
        return disk

    # --- calls of a node ---------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return list(self._seen)

    def create(self, name: str, size_bytes: int) -> None:
        if self.is_full:
            self.refused += 1
            raise disk_full(0, "simulated")
        assert name not in self._seen
        self._do(_Create(name, size_bytes))

    def write(self, name: str, offset: int, data: bytes) -> None:
        if self.is_full and not self.promises_blocks:
            self.refused += 1
            # A file system finds no room for a page, so the part that it has taken ends at a sector of the file.
            begun = data[: max((offset + len(data) // 2) // SECTOR_BYTES * SECTOR_BYTES - offset, 0)]
            if begun:
                self._do(Write(name, offset, bytes(begun)))
            raise disk_full(0, "simulated")
        self._do(Write(name, offset, bytes(data)))

    def sync(self, name: str) -> None:
        if self.fails_next_sync:
            self.fails_next_sync = False
            self.is_in_doubt = True
            raise StorageFailed("simulated")
        self._do(_Sync(name))

    def read(self, name: str, offset: int, size: int) -> bytes:
        if name not in self._seen:
            raise DataLoss(f"the log file {name}", "it is not there")
        return bytes(self._seen[name][offset : offset + size])

    def size(self, name: str) -> int:
        if name not in self._seen:
            raise DataLoss(f"the log file {name}", "it is not there")
        return len(self._seen[name])

    def remove(self, name: str) -> None:
        self._do(_Remove(name))

    def reader(self) -> LogDisk:
        """Return a reader of the disk's content, with writes on their way there. It remembers nothing."""
        files = {name: bytearray(content) for name, content in self.durable.copy().items()}
        for each in self._operations:
            if isinstance(each, _Create) or each.name in files:
                _perform(files, each)
        return LogDisk.holding(files)

    def close(self) -> None:
        """End the process; the files stay."""

    def _do(self, operation: Write | _Create | _Remove | _Sync) -> None:
        _perform(self._seen, operation)
        self._operations.append(operation)
        if not self.is_in_job:
            self.finish_sync()

    # --- its later fate ----------------------------------------------------------------------------------------

    def appending(self, records: Sequence[LogRecord]) -> None:
        """Note the records about to be written, perhaps behind the beginning of a new segment."""
        self._appending, self._is_frame_next = records, False

    def frame_is_next(self) -> None:
        """Note that the next write holds the appended records."""
        self._is_frame_next = True

    def finish_sync(self) -> None:
        """End the job's syncs. Writes that it did not sync wait on."""
        last = max((at for at, each in enumerate(self._operations) if not isinstance(each, Write)), default=-1)
        for each in self._operations[: last + 1]:
            self._keep(each)
        del self._operations[: last + 1]
        if self._appending and not any(isinstance(each, Write) for each in self._operations):
            self.appends += 1
            self._logged()

    def refused_append(self) -> None:
        """Note that an append had no room: nothing of it is there."""
        self._appending = ()

    def crash(self) -> None:
        """Lose power, at some moment since the last sync that ended."""
        operations, self._operations = self._operations, []
        appending, self._appending = self._appending, ()
        self.is_in_doubt = self.is_in_job = False
        happened = self._random.randint(0, len(operations))
        is_whole = not any(isinstance(each, Write) for each in operations[happened:])
        unsynced: list[Write] = []
        for each in operations[:happened]:
            if isinstance(each, Write):
                unsynced.append(each)
                continue
            for write in unsynced:
                self._keep(write)
            unsynced.clear()
            self._keep(each)
        for write in unsynced:
            is_whole = self._tear(write) and is_whole
        self.reread()
        if appending and operations and self._is_frame_next:
            self.torn_kept += is_whole
            self.torn_lost += not is_whole
            if is_whole:
                self.on_logged(appending)

    def reread(self) -> None:
        """Show the process the content of the disk: nothing is on its way there."""
        self._seen = {name: bytearray(content) for name, content in self.durable.copy().items()}

    def wipe(self) -> None:
        """Put an empty disk in its place."""
        self._seen, self._operations, self._appending = {}, [], ()
        self.durable, self.kept, self.written = {}, {}, []
        self.is_begun = self.has_lost_end = False

    def damaged(self) -> list[str]:
        """Return the files that are damaged or missing."""
        return sorted(name for name, content in self.kept.items() if self.durable.get(name) != content)

    def _keep(self, operation: Write | _Create | _Remove | _Sync) -> None:
        """Make an operation durable, as a whole."""
        match operation:
            case Write():
                self.written.append(operation)
            case _Remove(name):
                self.written = [each for each in self.written if each.name != name]
        self._put(operation)

    def _put(self, operation: Write | _Create | _Remove | _Sync) -> None:
        _perform(self.kept, operation)
        if isinstance(operation, _Create) or operation.name in self.durable:
            _perform(self.durable, operation)

    def _logged(self) -> None:
        records, self._appending = self._appending, ()
        self.on_logged(records)

    def _tear(self, write: Write) -> bool:
        """Keep a random part of a write's sectors. Returns whether all are kept."""
        chance = self._random.choice((0.0, 0.5, 1.0))
        is_whole = True
        at, end = write.offset, write.offset + len(write.data)
        while at < end:
            next_at = min((at // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
            if self._random.random() < chance:
                part = write.data[at - write.offset : next_at - write.offset]
                self._put(Write(write.name, at, part))
            else:
                is_whole = False
            at = next_at
        return is_whole


def _perform(files: dict[str, bytearray], operation: Write | _Create | _Remove | _Sync) -> None:
    match operation:
        case Write(name, offset, data):
            files[name][offset : offset + len(data)] = data
        case _Create(name, size_bytes):
            files[name] = bytearray(size_bytes)
        case _Remove(name):
            del files[name]
        case _Sync():
            pass


class WatchedLogFiles(LogFiles):
    """A life's log files; they tell the disk of each append in advance."""

    disk: LogDisk

    def _make_room(self, body_bytes: int) -> None:
        super()._make_room(body_bytes)
        self.disk.frame_is_next()

    def append(self, records: Sequence[LogRecord]) -> None:
        self.disk.on_appending(sum(len(each.payload) for each in records))
        self.disk.appending(records)
        try:
            super().append(records)
        except ResourceExhausted:
            # After a failed sync, the write may be there.
            self.disk.refused_append()
            raise


def open_log_files(disk: LogDisk) -> LogFiles:
    """Open log files. Raises DataLoss, as the real ones."""
    disk.reread()
    damaged = disk.damaged()
    log_files = WatchedLogFiles.open(disk, segment_bytes_max=SEGMENT_BYTES, may_begin=not disk.is_begun)
    assert isinstance(log_files, WatchedLogFiles)
    unnoticed = [name for name in damaged if int(name) >= log_files.oldest_needed]
    assert not unnoticed, f"a start did not notice that these log files are damaged: {unnoticed}"
    disk.is_begun = True
    log_files.disk = disk
    return log_files
