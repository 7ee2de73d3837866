"""Verification of log files: do they hold the bytes that were written? Each segment is verified by itself; if no node
writes, all of them together, too. A segment is read in pieces, so that it never takes a thread for long.

In a segment, the checksums of every frame are verified, and of the entry or hard state in every record. Each record
must follow the state that its group had before. A problem is named by the segment and the byte where the frame begins
(``cortado.store.keys.decoded.log_file_key``).

Beside a node that writes, only durable bytes are verified. In the current segment they end with the last append
(:attr:`~cortado.store.log_files.log_files.LogFiles.durable_end`): the bytes behind it may be a frame that is being
written. A segment that the node drops meanwhile is skipped. Each piece opens the files anew: a descriptor that stayed
open would keep a dropped segment on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cortado.errors import DataLoss, InvalidArgument
from cortado.raft.log import LogRecord, RecordKind
from cortado.raft.records import decode_hard_state, decode_record
from cortado.store.engine.failures import StorageFailed
from cortado.store.keys.decoded import KeyKind, decode_key, log_file_key
from cortado.store.log_files.files import FolderFiles, LogDirectory
from cortado.store.log_files.frames import Frame, Purpose
from cortado.store.log_files.ledger import Held, Ledger
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.recovery import examine
from cortado.store.log_files.segments import (
    Ending,
    nothing_there,
    read_segment,
    segment_name,
    segment_numbers,
)
from cortado.store.log_files.verifying import SegmentPieces
from cortado.store.server.inspection.problems import CHECKSUM, SEQUENCE, Problems

_FIRST: Final = 1
_PIECE_BYTES: Final = 256 << 10


@dataclass(frozen=True, slots=True)
class LogSegments:
    """The place of the segments: ``open_files`` to read them, and, beside a node that runs, its ``writer``."""

    open_files: Callable[[], LogDirectory]
    writer: LogFiles | None = None

    @classmethod
    def of_folder(cls, folder: Path, writer: LogFiles | None = None) -> LogSegments:
        return cls(lambda: FolderFiles(folder, may_write=False), writer)


@dataclass(slots=True)
class Verified:
    """The result of a piece; ``resume`` is the start of the next one, empty at the end."""

    records: int = 0
    size_bytes: int = 0
    resume: bytes = b""


def verify_segment(log: LogSegments, start: bytes, end: bytes, found: Problems) -> Generator[None, None, Verified]:
    """Verify the first segment at or after ``start`` and before ``end``, both empty or keys of log files. It takes some
    time: between two pieces it yields. Raises InvalidArgument if they are not such keys."""
    first, before = _segment_of("start", start) or 0, _segment_of("end", end)
    with closing(log.open_files()) as files:
        oldest, newest = _held(log, files)
    number = max(first, oldest)
    if number > newest or (before is not None and number >= before):
        if log.writer is None and not newest:
            found.add(log_file_key(_FIRST, 0), SEQUENCE, nothing_there().message())
        return Verified()
    verified = yield from _verify(log, number, found)
    if number < newest and (before is None or number + 1 < before):
        verified.resume = log_file_key(number + 1, 0)
    elif number == newest and log.writer is None:
        with closing(log.open_files()) as files:
            _check_together(files, number, found)
    return verified


def _segment_of(field_: str, key: bytes) -> int | None:
    """Return the segment that a key of a log file names; None for an empty key. Raises InvalidArgument."""
    if not key:
        return None
    decoded = decode_key(key)
    if decoded.kind is not KeyKind.LOG_FILE:
        raise InvalidArgument(field_, "must be empty or the resume of another reply: a place in a log file", key.hex())
    return decoded.log_segment


def _held(log: LogSegments, files: LogDirectory) -> tuple[int, int]:
    """Return the oldest and the newest segment that should be there. In a directory without a writer, all between those
    that are there should be, too."""
    if log.writer is not None:
        return log.writer.oldest_needed, log.writer.durable_end[0]
    numbers = segment_numbers(files)
    return (numbers[0], numbers[-1]) if numbers else (1, 0)


def _verify(log: LogSegments, number: int, found: Problems) -> Generator[None, None, Verified]:
    writer, pieces, followed = log.writer, SegmentPieces(log.open_files, number), _Followed()
    # Taken before the file is read: the bytes that were durable then are there.
    newest, durable_end = (0, 0) if writer is None else writer.durable_end
    end = durable_end if number == newest else None
    verified = Verified()
    while pieces.reader is None or pieces.reader.ending is None:
        try:
            frames = pieces.step(_PIECE_BYTES, end)
        except (DataLoss, StorageFailed) as error:
            if writer is None or writer.oldest_needed <= number:
                _add_unreadable(log, number, error, found)
            return Verified()
        _check_records(number, frames, followed, found)
        verified.records += sum(len(each.records) for each in frames)
        yield
    problem = pieces.problem(end, may_be_open=writer is None)
    if problem:
        found.add(log_file_key(number, pieces.reader.end), CHECKSUM, problem)
    verified.size_bytes = end or pieces.reader.size_bytes
    return verified


def _add_unreadable(log: LogSegments, number: int, error: DataLoss | StorageFailed, found: Problems) -> None:
    name, message = segment_name(number), error.message() if isinstance(error, DataLoss) else str(error)
    with closing(log.open_files()) as files:
        is_there = name in files.names()
    if not is_there:
        message = DataLoss(f"the log file {name}", "it is missing, and others that follow it are there").message()
    found.add(log_file_key(number, 0), CHECKSUM if is_there else SEQUENCE, message)


def _check_together(files: LogDirectory, newest: int, found: Problems) -> None:
    """Check, if every segment is whole by itself, that together they are a log, as a start does."""
    try:
        if any(read_segment(files, each).ending is Ending.DAMAGED for each in segment_numbers(files)):
            return
        examine(files)
    except DataLoss as error:
        if found.is_empty:
            found.add(log_file_key(newest, 0), SEQUENCE, error.message())


# --- records ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Followed:
    """The states of the groups, as far as the segment's records tell; until one record does not follow."""

    is_broken: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    terms: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Index and term of the last entry, by group."""

    def take(self, number: int, frame: Frame) -> None:
        """Take the records of a frame of segment ``number``. Raises ValueError if one does not follow."""
        if frame.purpose is Purpose.STATE:
            self.ledger.begin(frame.records)
            self.ledger.segments.append(Held(number, 0))
            return
        self.ledger.make(self.ledger.after(frame.records))
        for record in frame.records:
            if record.kind is RecordKind.ENTRY:
                index, term = self.terms.get(record.group_id, (0, 0))
                if record.index == index + 1 and record.term < term:
                    place = f"entry {record.index} of group {record.group_id} is of term {record.term}"
                    raise ValueError(f"{place}, and follows one of term {term}")
                self.terms[record.group_id] = record.index, record.term


def _check_records(number: int, frames: Sequence[Frame], followed: _Followed, found: Problems) -> None:
    for frame in frames:
        place = log_file_key(number, frame.offset)
        for record in frame.records:
            try:
                _check_record(record)
            except DataLoss as damage:
                found.add(place, CHECKSUM, damage.message())
        if not followed.is_broken:
            try:
                followed.take(number, frame)
            except ValueError as problem:
                found.add(place, SEQUENCE, str(problem))
                followed.is_broken = True


def _check_record(record: LogRecord) -> None:
    """Check a record. Raises DataLoss if its entry or hard state is damaged, or another than the record says."""
    if record.kind is RecordKind.ENTRY:
        term = decode_record(record.group_id, record.index, record.payload).term
        if term != record.term:
            what = f"entry {record.index} of group {record.group_id}"
            raise DataLoss(what, f"it is of term {term}, and its record says {record.term}")
    elif record.kind is RecordKind.HARD_STATE:
        state = decode_hard_state(record.group_id, record.payload)
        if (state.base_index, state.base_term) != (record.index, record.term):
            base = f"{state.base_index} of term {state.base_term}"
            problem = f"its base is {base}, and its record says {record.index} of term {record.term}"
            raise DataLoss(f"the hard state of group {record.group_id}", problem)
