"""Reads again all that a start would read, in small pieces, beside the thread that appends.

Segments one after the other, from the oldest that is needed to the end of the last append when a piece began: bytes
behind that may be a frame that is being written. A segment that is dropped meanwhile is passed over. Each piece opens
the files anew, since a file that stayed open would stay on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from cortado.errors import DataLoss
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.files import LogDirectory
from cortado.store.log_files.frames import Frame
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.segments import Ending, SegmentReader, file_bytes, segment_name


@dataclass(frozen=True, slots=True)
class SegmentDamage:
    """A segment that can't be read at a start. ``what`` names it and the byte."""

    segment: int
    what: str


@dataclass(frozen=True, slots=True)
class LogPiece:
    """A verified piece of a segment: ``frames`` check. ``is_last`` ends the pass."""

    frames: Sequence[Frame]
    bytes: int
    damage: SegmentDamage | None = None
    is_last: bool = False


class SegmentPieces:
    """One segment, read in pieces by a ``reader`` that says how it ends."""

    def __init__(self, open_files: Callable[[], LogDirectory], number: int) -> None:
        """``open_files`` opens the folder to be read; each piece closes it again."""
        self._open_files = open_files
        self.number = number
        self.reader: SegmentReader | None = None

    def step(self, bytes_max: int, durable_end: int | None) -> Sequence[Frame]:
        """Return the frames of the next piece, of about ``bytes_max``; no byte from ``durable_end`` on is read. Raises
        DataLoss; StorageFailed if the file can't be read."""
        name = segment_name(self.number)
        with closing(self._open_files()) as files:
            reader = self.reader
            if reader is None:
                reader = self.reader = SegmentReader(self.number, file_bytes(files, self.number))
            begins, end = reader.end, reader.size_bytes if durable_end is None else durable_end
            wanted = end - begins if reader.needs_rest else max(bytes_max, reader.wanted_bytes)
            size = min(wanted, end - begins)
            content = files.read(name, begins, size)
        if len(content) < size:
            raise DataLoss(f"the log file {name}", f"it ends at byte {begins + len(content)}, and was longer")
        return reader.take(content, begins, is_rest=begins + size >= end)

    def problem(self, durable_end: int | None, *, may_be_open: bool = False) -> str:
        """Return the problem of the segment's end; empty while that is not known. Only the newest one
        ``may_be_open``."""
        reader = self.reader
        if reader is None or reader.ending is None:
            return ""
        if reader.ending is Ending.DAMAGED:
            return reader.problem
        if durable_end is not None and reader.end != durable_end:
            return f"it ends there, and was durable up to byte {durable_end}"
        if durable_end is None and not may_be_open and reader.ending is not Ending.SEALED:
            return "it ends there, but other segments follow it"
        return ""


class LogPass:
    """One pass over all segments."""

    def __init__(self, log_files: LogFiles) -> None:
        self._log_files = log_files
        self._pieces = SegmentPieces(log_files.reader, 0)

    def step(self, bytes_max: int) -> LogPiece:
        """Return the next piece, of about ``bytes_max``."""
        log_files = self._log_files
        # Before the file is read: bytes that were durable then are there.
        newest, durable_end = log_files.durable_end
        number = max(self._pieces.number, log_files.oldest_needed)
        if number > newest:
            return LogPiece((), 0, is_last=True)
        if self._pieces.number != number:
            self._pieces = SegmentPieces(log_files.reader, number)
        piece = self._read(durable_end if number == newest else None, bytes_max)
        reader = self._pieces.reader
        is_over = piece.damage is not None or reader is None or reader.ending is not None
        if is_over:
            self._pieces = SegmentPieces(log_files.reader, number + 1)
        damage = piece.damage if number >= log_files.oldest_needed else None
        return LogPiece(piece.frames, piece.bytes, damage, is_last=is_over and number >= newest)

    def _read(self, durable_end: int | None, bytes_max: int) -> LogPiece:
        pieces = self._pieces
        begins = 0 if pieces.reader is None else pieces.reader.end
        try:
            frames = pieces.step(bytes_max, durable_end)
        except (DataLoss, StorageFailed) as error:
            return LogPiece((), 0, SegmentDamage(pieces.number, str(error)))
        assert pieces.reader is not None
        end, problem = pieces.reader.end, pieces.problem(durable_end)
        what = f"the log file {segment_name(pieces.number)}: byte {end}: {problem}"
        return LogPiece(frames, end - begins, SegmentDamage(pieces.number, what) if problem else None)
