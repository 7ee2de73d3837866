"""Reads everything again that a start would read, in small pieces, beside the thread that appends.

Segments one after the other, from the oldest that is needed to where the last append ended when a piece began: what
stands behind that may be a frame that is being written. A segment that is dropped meanwhile is passed over. Each piece
opens the files anew, since a file that stayed open would stay on the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from cortado.errors import DataLoss
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.frames import Frame
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.segments import Ending, SegmentReader, segment_name


@dataclass(frozen=True, slots=True)
class SegmentDamage:
    """A segment that can't be read at a start. ``what`` names it and the byte."""

    segment: int
    what: str


@dataclass(frozen=True, slots=True)
class LogPiece:
    """What was verified of a segment: ``frames`` check. ``is_last`` ends the pass."""

    frames: Sequence[Frame]
    bytes: int
    damage: SegmentDamage | None = None
    is_last: bool = False


class LogPass:
    """One pass over all segments."""

    def __init__(self, log_files: LogFiles) -> None:
        self._log_files = log_files
        self._reader: SegmentReader | None = None
        self._next = 0

    def step(self, bytes_max: int) -> LogPiece:
        """The next piece, of about ``bytes_max``."""
        log_files = self._log_files
        # Before the file is read: what was durable then is there.
        newest, durable_end = log_files.durable_end
        number = max(self._next, log_files.oldest_needed)
        if number > newest:
            return LogPiece((), 0, is_last=True)
        if self._reader is None or self._reader.number != number:
            self._reader, self._next = None, number
        try:
            piece = self._read(number, durable_end if number == newest else None, bytes_max)
        except (DataLoss, StorageFailed) as error:
            piece = LogPiece((), 0, SegmentDamage(number, str(error)))
        is_over = piece.damage is not None or self._reader is None or self._reader.ending is not None
        if is_over:
            self._next = number + 1
        if piece.damage is not None and number < log_files.oldest_needed:
            piece = LogPiece(piece.frames, piece.bytes)
        return LogPiece(piece.frames, piece.bytes, piece.damage, is_last=is_over and number >= newest)

    def _read(self, number: int, durable_end: int | None, bytes_max: int) -> LogPiece:
        """Raises DataLoss, StorageFailed."""
        name = segment_name(number)
        with closing(self._log_files.reader()) as files:
            reader = self._reader
            if reader is None:
                reader = self._reader = SegmentReader(number, files.size(name))
            begins, end = reader.end, reader.size_bytes if durable_end is None else durable_end
            wanted = end - begins if reader.needs_rest else max(bytes_max, reader.wanted_bytes)
            size = min(wanted, end - begins)
            content = files.read(name, begins, size)
        if len(content) < size:
            raise DataLoss(f"the log file {name}", f"it ends at byte {begins + len(content)}, and was longer")
        frames = reader.take(content, begins, is_rest=begins + len(content) >= end)
        problem = _problem(reader, durable_end)
        damage = SegmentDamage(number, f"the log file {name}: byte {reader.end}: {problem}") if problem else None
        return LogPiece(frames, reader.end - begins, damage)


def _problem(reader: SegmentReader, durable_end: int | None) -> str:
    match reader.ending:
        case None:
            return ""
        case Ending.DAMAGED:
            return reader.problem
        case Ending.SEALED:
            return ""
        case _ if durable_end is None:
            return "it ends there, but other segments follow it"
        case _ if reader.end != durable_end:
            return f"it ends there, and was durable up to byte {durable_end}"
        case _:
            return ""
