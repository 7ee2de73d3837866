"""The log files of a process: one sequence of records for all groups, durable when ``append`` returns.

::

    0000000000000007   sealed      entries that some group still needs
    0000000000000008   sealed
    0000000000000009   current     frame, frame, frame ... zeros      <- append: one write, one sync

``frames.py`` has the bytes and the possible remains of a crash, ``segments.py`` the files, ``ledger.py`` the needed
segments.

**An append** checks that its records follow their groups' last ones, and writes them as one frame: after a crash it is
there whole or not at all, and once ``append`` returned it is there. The frame names the oldest segment that is needed,
its own records counted, so after its sync the older ones go: a start that finds the frame misses none of them, and one
that does not find it has them still.

**A new segment** is begun when the next frame does not fit. It is created, gets its header and the state of all groups,
and is synced; then END is written behind the last frame of the one before, and synced; then comes the append. Nothing
is appended between: the first frame's state would be old. A crash at any step is completed or taken back
(``recovery.py``).

**Failures.** ResourceExhausted: nothing was appended, and the next append goes to the same place. The remains of the
refused write are overwritten with zeros first, synced, since a crash must find either zeros or the new frame there. Any
other failure on the way to the disk is final: every later call raises StorageFailed again (W4 of the design: after a
failed sync the kernel may take dropped pages for written ones).

One thread appends. ``use`` may be called from another, and ``reader`` (``verifying.py`` reads beside it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from cortado.errors import DataLoss, ResourceExhausted, Unavailable
from cortado.invariants import invariant
from cortado.raft.log import LogRecord
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.files import LogDirectory
from cortado.store.log_files.frames import (
    ALIGNMENT,
    Purpose,
    encode_body,
    encode_frame,
    length_of_body,
    stored_bytes,
)
from cortado.store.log_files.ledger import Change, Held, Ledger
from cortado.store.log_files.recovery import Recovered, StoredGroup, recover
from cortado.store.log_files.segments import (
    END_BYTES,
    beginning_bytes,
    encode_beginning,
    encode_end,
    segment_name,
)

FIRST_SEGMENT_BYTES: Final = 1 << 20
SEGMENT_BYTES_MAX: Final = 16 << 20
SCARCE_SEGMENT_BYTES: Final = 4 << 20
"""A segment goes as a whole: the smaller it is, the sooner there is room on a disk that is nearly full."""
_BLOCK_BYTES: Final = 4_096
_NO_CHANGE: Final = Change({}, {}, {})


@dataclass(frozen=True, slots=True)
class LogFilesUse:
    """The size of the log files: ``size_bytes`` on the disk; the current segment has ``free_bytes`` of them left."""

    segments: int
    size_bytes: int
    free_bytes: int
    oldest_segment: int
    newest_segment: int


class LogFiles:
    """Made by ``open``."""

    def __init__(self, files: LogDirectory, recovered: Recovered | None, segment_bytes_max: int) -> None:
        self._files = files
        self._segment_bytes_max = segment_bytes_max
        self.is_room_scarce = False
        """The disk is nearly full. Set from any thread."""
        self._ledger = Ledger() if recovered is None else recovered.ledger
        self._groups = {} if recovered is None else recovered.groups
        self._end = 0 if recovered is None else recovered.end
        self._oldest = 1 if recovered is None else recovered.oldest
        # One value, so that another thread never sees the number of one segment with the end of another.
        self._durable_end = (self._ledger.segments[-1].number if recovered else 0, self._end)
        # A refused write may have left bytes from the end up to here.
        self._soiled_end = 0
        # The coming next segment: created, or perhaps in part.
        self._next: Held | None = None
        self._next_end = 0
        # A segment whose creation and removal were both refused.
        self._refused_name: str | None = None
        self._failure: BaseException | None = None

    @classmethod
    def open(
        cls, files: LogDirectory, *, segment_bytes_max: int = SEGMENT_BYTES_MAX, may_begin: bool = True
    ) -> LogFiles:
        """Recover from the files. The first segment is made if there is none; without ``may_begin`` that is DataLoss.
        Raises DataLoss, naming file and byte, and then nothing was changed; ResourceExhausted; StorageFailed."""
        log_files = cls(files, recover(files, may_begin=may_begin), segment_bytes_max)
        if not log_files._ledger.segments:
            with log_files._failures():
                log_files._create_next(0)
                log_files._begin_next()
        return log_files

    @property
    def groups(self) -> Mapping[int, StoredGroup]:
        """Return the recovered groups by id, until they are taken."""
        return self._groups

    def take_groups(self) -> dict[int, StoredGroup]:
        """Return the recovered groups by id, once: the log files keep no entries in memory."""
        groups, self._groups = self._groups, {}
        return groups

    def use(self) -> LogFilesUse:
        held = tuple(self._ledger.segments)
        return LogFilesUse(
            len(held),
            sum(each.size_bytes for each in held),
            held[-1].size_bytes - self._end,
            held[0].number,
            held[-1].number,
        )

    @property
    def oldest_needed(self) -> int:
        """Number of the oldest segment that is needed; older ones are dropped, or about to be. From any thread."""
        return self._oldest

    @property
    def durable_end(self) -> tuple[int, int]:
        """Return the current segment's number, and the end of its durable bytes. From any thread. Older segments are
        durable whole."""
        return self._durable_end

    def reader(self) -> LogDirectory:
        """Return the files, to be read from any thread, up to :attr:`durable_end`. The caller closes it."""
        return self._files.reader()

    def close(self) -> None:
        """Nothing is waiting to be written. Later appends raise Unavailable."""
        if self._failure is None:
            self._failure = Unavailable("the log files are closed")
        self._files.close()

    # --- appending -------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[LogRecord]) -> None:
        """All of ``records`` are durable when it returns. Raises ResourceExhausted, and nothing is appended;
        StorageFailed, and whether they are is unknown: the process must end."""
        if self._failure is not None:
            raise self._unusable()
        if not records:
            return
        change = self._followed(records)
        with self._failures():
            if self._refused_name is not None:
                self._remove_refused()
            self._make_room(length_of_body(records))
            oldest = self._ledger.oldest_needed(change)
            body = encode_body(Purpose.APPEND, oldest, records)
            self._write_frame(encode_frame(self._ledger.segments[-1].number, self._end, body))
            self._ledger.make(change)
            self._oldest = oldest
            if self._ledger.segments[0].number < oldest:
                self._drop_old()

    def writes_alone(self, records: Sequence[LogRecord]) -> bool:
        """Return whether an append of ``records`` is one write and one sync: it creates no segment, removes none, and
        has nothing to mend before. Ask it while nothing is being appended."""
        is_mending = self._refused_name is not None or self._soiled_end > self._end
        is_dropping = self._ledger.segments[0].number < self._oldest
        return not (is_mending or is_dropping) and self._fits(length_of_body(records))

    def leave(self, number: int) -> None:
        """Append to segment ``number`` no more, so that it goes when nothing needs it. Raises ResourceExhausted;
        StorageFailed; DataLoss if nothing can be appended to it at all."""
        if self._failure is not None:
            raise self._unusable()
        if self._ledger.segments[-1].number == number:
            with self._failures():
                self._remove_refused()
                self._roll(0)

    def _followed(self, records: Sequence[LogRecord]) -> Change:
        problem, change = "", _NO_CHANGE
        try:
            change = self._ledger.after(records)
        except ValueError as error:
            problem = str(error)
        invariant(not problem, "a record follows what its group's log holds", problem)
        return change

    def _write_frame(self, frame: bytes) -> None:
        """Behind the last one of the current segment, durably."""
        name = segment_name(self._ledger.segments[-1].number)
        if self._soiled_end > self._end:
            self._files.write(name, self._end, bytes(self._soiled_end - self._end))
            self._files.sync(name)
        elif any(self._files.read(name, self._end, ALIGNMENT)):
            problem = f"byte {self._end}: another process has written into this data directory"
            raise DataLoss(f"the log file {name}", problem)
        self._soiled_end = self._end + len(frame)
        self._files.write(name, self._end, frame)
        self._sync(name)
        self._end = self._soiled_end
        self._durable_end = (self._ledger.segments[-1].number, self._end)

    def _drop_old(self) -> None:
        while self._ledger.segments[0].number < self._oldest:
            try:
                self._files.remove(segment_name(self._ledger.segments[0].number))
            except ResourceExhausted:
                # Some file systems need room to delete. The appended frame is durable, and the next append tries again.
                return
            self._ledger.segments.popleft()

    # --- a new segment ---------------------------------------------------------------------------------------------

    def _make_room(self, body_bytes: int) -> None:
        """Make a frame of ``body_bytes`` fit behind the end: begin a new segment if it does not."""
        while self._next is not None or not self._fits(body_bytes):
            self._roll(body_bytes)

    def _roll(self, body_bytes: int) -> None:
        """To a segment in which a frame of ``body_bytes`` fits."""
        if self._next is None:
            self._create_next(body_bytes)
        self._write_frame(encode_end(self._ledger.segments[-1].number, self._end, self._oldest))
        self._begin_next()

    def _fits(self, body_bytes: int) -> bool:
        return self._end + stored_bytes(self._end, body_bytes) + END_BYTES <= self._ledger.segments[-1].size_bytes

    def _create_next(self, body_bytes: int) -> None:
        """Create a whole segment with its first frame, durable, in which a frame of ``body_bytes`` fits. If the disk
        has no room for one of the usual size, create a small one. Raises ResourceExhausted, and leaves none."""
        segments = self._ledger.segments
        number = segments[-1].number + 1 if segments else 1
        oldest = self._ledger.oldest_needed(_NO_CHANGE) or number
        state = encode_body(Purpose.STATE, oldest, self._ledger.state())
        end = beginning_bytes(state)
        needed = -(-(end + stored_bytes(end, body_bytes) + END_BYTES) // _BLOCK_BYTES) * _BLOCK_BYTES
        usual = min(2 * segments[-1].size_bytes, self._segment_bytes_max) if segments else FIRST_SEGMENT_BYTES
        if self.is_room_scarce:
            usual = min(usual, SCARCE_SEGMENT_BYTES)
        sizes = sorted({needed, max(needed, min(usual, self._segment_bytes_max))}, reverse=True)
        for size in sizes:
            try:
                self._create(number, size, state)
                break
            except ResourceExhausted:
                if size == sizes[-1]:
                    raise
        self._next, self._next_end, self._oldest = Held(number, size), end, oldest

    def _create(self, number: int, size_bytes: int, state: bytes) -> None:
        name = segment_name(number)
        self._files.create(name, size_bytes)
        try:
            self._files.write(name, 0, encode_beginning(number, size_bytes, state))
        except ResourceExhausted:
            self._refused_name = name
            self._remove_refused()
            raise
        self._sync(name)

    def _remove_refused(self) -> None:
        """Remove a refused segment before the next append: a start would take it for the next segment, with an old
        first frame."""
        if self._refused_name is not None:
            self._files.remove(self._refused_name)
            self._refused_name = None

    def _begin_next(self) -> None:
        assert self._next is not None
        self._ledger.segments.append(self._next)
        self._end = self._soiled_end = self._next_end
        self._durable_end = (self._next.number, self._end)
        self._next = None

    # --- failures --------------------------------------------------------------------------------------------------

    def _sync(self, name: str) -> None:
        try:
            self._files.sync(name)
        except ResourceExhausted as error:
            raise StorageFailed(f"the log file {name} can't be synced: {error}") from error

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Keep any failure other than a full disk: the disk's content is unknown from then on."""
        try:
            yield
        except ResourceExhausted:
            raise
        except BaseException as error:
            self._failure = error
            raise

    def _unusable(self) -> Unavailable | StorageFailed:
        if isinstance(self._failure, Unavailable | StorageFailed):
            return self._failure
        return StorageFailed(f"the log files failed before: {self._failure}")
