"""Reads all of the log files, for an operator or a patrol. It changes nothing, and reports damage.

``walk`` reads the segments in their order and yields what it :class:`Found`: each record with its place, and each
damage. Behind damage it goes on with the next segment. If each segment is whole, it checks last that they fit together,
as a start does. A frame that a crash tore at the end is reported, and is no damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cortado.errors import DataLoss
from cortado.raft.log import LogRecord
from cortado.store.log_files.files import LogDirectory
from cortado.store.log_files.frames import Purpose
from cortado.store.log_files.recovery import examine
from cortado.store.log_files.segments import Ending, Segment, read_segment, segment_numbers


@dataclass(frozen=True, slots=True)
class Found:
    """A ``record`` in the frame at ``offset`` of a segment, or another finding: ``text``."""

    segment: int
    offset: int
    record: LogRecord | None = None
    text: str = ""
    is_damage: bool = False
    is_state: bool = False
    """The record is repeated at the segment's beginning, from the segments before."""


def walk(files: LogDirectory) -> Iterator[Found]:
    """Yield all that the segments hold, also those that a start would remove."""
    numbers, is_damaged = segment_numbers(files), False
    for number in numbers:
        for found in _in_file(files, number, is_last=number == numbers[-1]):
            is_damaged |= found.is_damage
            yield found
    if not is_damaged:
        try:
            examine(files)
        except DataLoss as error:
            yield Found(numbers[-1], 0, text=str(error), is_damage=True)


def _in_file(files: LogDirectory, number: int, *, is_last: bool) -> Iterator[Found]:
    try:
        segment = read_segment(files, number)
    except DataLoss as error:
        yield Found(number, 0, text=str(error), is_damage=True)
    else:
        yield from _in_segment(segment, is_last=is_last)


def _in_segment(segment: Segment, *, is_last: bool) -> Iterator[Found]:
    for frame in segment.frames:
        for record in frame.records:
            yield Found(segment.number, frame.offset, record, is_state=frame.purpose is Purpose.STATE)
    if segment.ending is Ending.DAMAGED:
        yield Found(segment.number, segment.end, text=segment.problem, is_damage=True)
    elif segment.ending in (Ending.TORN, Ending.UNFINISHED):
        yield Found(segment.number, segment.end, text=segment.ending.value, is_damage=not is_last)
