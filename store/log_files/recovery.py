"""Recovery of the log files at a start.

It reads the last segment first, which names the oldest one that is needed, then all of those in their order, and puts
each group's entries together. Only if all of it is whole does it change the files: it completes or takes back the step
that a crash cut off.

============================================  =================================================================
found                                         done
============================================  =================================================================
a frame at the end of the last segment, torn  its bytes become zeros, synced before anything is appended there
a last segment whose creation a crash ended   removed; the one before it goes on
a whole one, but the one before is not sealed  END is written, since nothing was appended to the new one yet
segments that nothing needs any more          removed
the end of the last two segments              synced: the process that wrote them may have been killed before it did
============================================  =================================================================

Any other difference from the written bytes is DataLoss. A last segment that lost its beginning is not one that was
never finished if the one before it is sealed: END is written only when the next one is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cortado.raft.log import LogRecord, RecordKind
from cortado.store.log_files.files import LogDirectory
from cortado.store.log_files.frames import Frame, Purpose
from cortado.store.log_files.ledger import Held, Ledger
from cortado.store.log_files.segments import (
    Ending,
    Segment,
    damaged,
    encode_end,
    missing,
    nothing_there,
    read_segment,
    segment_name,
    segment_numbers,
)


@dataclass(slots=True)
class StoredGroup:
    """A group as the log files hold it: ``entries`` follow the hard state's index without a gap."""

    hard_state: LogRecord | None = None
    entries: list[LogRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recovered:
    """``end`` is where the next frame goes, in the ledger's last segment; ``oldest`` the oldest that is needed."""

    ledger: Ledger
    groups: dict[int, StoredGroup]
    end: int
    oldest: int


@dataclass(frozen=True, slots=True)
class Examined:
    """The repairs to be made, and their result. If ``last`` is None, nothing was ever appended."""

    last: Segment | None = None
    before_last: Segment | None = None
    to_remove: Sequence[int] = ()
    recovered: Recovered | None = None


def recover(files: LogDirectory, *, may_begin: bool = True) -> Recovered | None:
    """Recover the files. Returns None if there is no segment, or only the very first one, unfinished; that is DataLoss
    without ``may_begin``. Raises DataLoss, and changed nothing then."""
    examined = examine(files)
    if examined.recovered is None and not may_begin:
        raise nothing_there()
    if examined.last is not None:
        _repair(files, examined.before_last, examined.last)
    # Only now: the frame that names the oldest needed segment may not have been durable before.
    for number in examined.to_remove:
        files.remove(segment_name(number))
    return examined.recovered


def read_groups(files: LogDirectory) -> dict[int, StoredGroup]:
    """Return the stored groups by id, for tools that read the files of a process that has ended. Raises DataLoss, also
    if there is no log file."""
    recovered = examine(files).recovered
    if recovered is None:
        raise nothing_there()
    return recovered.groups


def examine(files: LogDirectory) -> Examined:
    """Changes nothing. Raises DataLoss."""
    numbers = segment_numbers(files)
    if not numbers:
        return Examined()
    last = read_segment(files, numbers[-1])
    unfinished: list[int] = []
    if last.ending is Ending.UNFINISHED:
        unfinished = [numbers.pop()]
        if unfinished == [1] and not numbers:
            return Examined(to_remove=unfinished)
        last = _last_but_one(files, numbers, unfinished[0])
    _check_last(last)
    oldest = last.frames[-1].oldest
    needed = [number for number in numbers if number >= oldest]
    _check_numbers(needed, oldest)
    replay, before_last = _Replay(), None
    for number in needed[:-1]:
        before_last = read_segment(files, number)
        _check_before_last(before_last, last)
        replay.take(before_last)
    replay.take(last)
    recovered = Recovered(replay.ledger, replay.finish(), last.end, oldest)
    old = [number for number in numbers if number < oldest]
    return Examined(last, before_last, old + unfinished, recovered)


def _last_but_one(files: LogDirectory, numbers: Sequence[int], unfinished: int) -> Segment:
    if not numbers or numbers[-1] != unfinished - 1:
        raise missing(unfinished - 1, "and the one behind it is unfinished")
    last = read_segment(files, numbers[-1])
    if last.ending is Ending.SEALED:
        problem = "its beginning is gone, but the segment before it was sealed when it was whole"
        raise damaged(segment_name(unfinished), problem, 0)
    return last


def _check_last(last: Segment) -> None:
    if last.ending is Ending.SEALED:
        raise missing(last.number + 1, "but the one before it was sealed when it was there")
    if last.ending is Ending.UNFINISHED:
        raise last.damage("it is unfinished, but another one follows")
    if last.ending is Ending.DAMAGED:
        raise last.damage()


def _check_before_last(segment: Segment, last: Segment) -> None:
    """One that others follow is sealed. The last but one need not be, while nothing was appended to the last one."""
    if segment.ending is Ending.SEALED:
        return
    is_rolling = segment.number == last.number - 1 and last.ending is Ending.OPEN and last.is_without_appends
    if segment.ending is not Ending.OPEN or not is_rolling:
        raise segment.damage(segment.problem or "it ends there, but other segments follow it")


def _check_numbers(needed: Sequence[int], oldest: int) -> None:
    for place, number in enumerate(needed):
        if number != oldest + place:
            raise missing(oldest + place, "and segments behind it are there")
    if not needed:
        raise missing(oldest, "and an older one says that it is needed")


def _repair(files: LogDirectory, before_last: Segment | None, last: Segment) -> None:
    name = segment_name(last.number)
    if last.ending is Ending.TORN:
        files.write(name, last.end, bytes(last.written_end - last.end))
    files.sync(name)
    if before_last is None:
        return
    name = segment_name(before_last.number)
    if before_last.ending is Ending.OPEN:
        files.write(name, before_last.end, encode_end(before_last.number, before_last.end, last.frames[0].oldest))
    files.sync(name)


class _Replay:
    """The ledger and the entries, from the oldest segment's first frame on."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._groups: dict[int, StoredGroup] = {}
        # By group, the last entry that a segment before the oldest one held: it must turn out to be needed no more.
        self._gone: dict[int, int] = {}

    def take(self, segment: Segment) -> None:
        """Raises DataLoss naming the frame."""
        for frame in segment.frames:
            try:
                self._take_frame(segment, frame)
            except ValueError as problem:
                raise segment.damage(str(problem), frame.offset) from problem

    def _take_frame(self, segment: Segment, frame: Frame) -> None:
        ledger = self.ledger
        if frame.purpose is not Purpose.STATE:
            ledger.make(ledger.after(frame.records))
            for record in frame.records:
                self._take_record(record)
            return
        if not ledger.segments:
            ledger.begin(frame.records)
            self._groups = {group_id: StoredGroup(place.hard_state) for group_id, place in ledger.places.items()}
            self._gone = {group_id: place.last for group_id, place in ledger.places.items()}
        elif ledger.state() != list(frame.records):
            raise ValueError("its first frame does not follow from the segments before it")
        ledger.segments.append(Held(segment.number, segment.size_bytes))

    def _take_record(self, record: LogRecord) -> None:
        group = self._groups.setdefault(record.group_id, StoredGroup())
        entries = group.entries
        first = entries[0].index if entries else record.index
        if record.kind is RecordKind.HARD_STATE:
            group.hard_state = record
            del entries[: max(0, record.index + 1 - first)]
            return
        del entries[max(0, record.index - first) :]
        self._gone[record.group_id] = min(self._gone.get(record.group_id, 0), record.index - 1)
        if record.kind is RecordKind.ENTRY:
            entries.append(record)

    def finish(self) -> dict[int, StoredGroup]:
        """Return the groups. Raises DataLoss if an entry is in none of the segments that its group needs."""
        for group_id, group in self._groups.items():
            assert group.hard_state is not None
            base, gone = group.hard_state.index, self._gone.get(group_id, 0)
            if gone > base:
                oldest = self.ledger.segments[0].number
                raise missing(oldest - 1, f"with the entries {base + 1} to {gone} of group {group_id}")
        return self._groups
