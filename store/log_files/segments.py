"""A segment: one file of the log, named by its number, sixteen decimal digits.

::

    header 64   "cortado log file" 16 | format 2 | segment's number 8 | size of the file 8 | zeros | CRC-32C 4
    frame       STATE: every group's hard state, and the end of its entries
    frame       APPEND ...
    frame       END, once the next segment exists
    zeros       up to the file's size

Numbers rise by one. The header and the first frame are one write, and both begin in one sector: if the one is there, so
is the other's beginning. Room for END is always kept, so that sealing never needs more room.

The header holds the file's size, so that a file that lost its end is not taken for a short one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import google_crc32c

from cortado.errors import DataLoss
from cortado.store.log_files.files import LogDirectory
from cortado.store.log_files.frames import (
    HEAD_BYTES,
    Frame,
    Purpose,
    Tail,
    body_at,
    decode_frame,
    encode_body,
    encode_frame,
    frame_end,
    judge_tail,
    stored_bytes,
)

MAGIC: Final = b"cortado log file"
FORMAT: Final = 1
HEADER_BYTES: Final = 64
FILE_BYTES_MAX: Final = 1 << 30
"""No larger file is read into memory: the bound of one append is far below."""
END_BYTES: Final = 32
"""The size of the frame END, at any place."""
_HEADER: Final = struct.Struct(">16sHQQ26x")
_NAME: Final = re.compile(r"[0-9]{16}")

_ADVICE: Final = (
    "this replica's log can't be trusted; remove the node and let it join again with an empty data directory"
)


class Ending(Enum):
    """How a segment ends."""

    OPEN = "it takes more"
    SEALED = "its last frame is END"
    TORN = "a crash tore the frame at its end"
    UNFINISHED = "a crash came while it was created"
    DAMAGED = "it is damaged"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as it was read: ``frames`` check, and ``end`` is the end of the last of them. Written bytes reach up to
    ``written_end``. ``problem`` describes the damage, if the end is DAMAGED."""

    number: int
    size_bytes: int
    frames: Sequence[Frame]
    end: int
    written_end: int
    ending: Ending
    problem: str = ""

    @property
    def is_without_appends(self) -> bool:
        return len(self.frames) == 1

    def damage(self, problem: str | None = None, offset: int | None = None) -> DataLoss:
        return damaged(segment_name(self.number), problem or self.problem, self.end if offset is None else offset)


def damaged(name: str, problem: str, offset: int) -> DataLoss:
    return DataLoss(f"the log file {name}", f"byte {offset}: {problem}: {_ADVICE}")


def missing(number: int, problem: str) -> DataLoss:
    return DataLoss(f"the log file {segment_name(number)}", f"it is missing, {problem}: {_ADVICE}")


def nothing_there() -> DataLoss:
    return DataLoss("the log files", f"there are none, and there were: {_ADVICE}")


def segment_name(number: int) -> str:
    return f"{number:016d}"


def segment_numbers(files: LogDirectory) -> list[int]:
    """Return the numbers of all segments, ascending. Files of other names are not ours."""
    return sorted(int(name) for name in files.names() if _NAME.fullmatch(name))


def encode_header(number: int, size_bytes: int) -> bytes:
    fields = _HEADER.pack(MAGIC, FORMAT, number, size_bytes)
    return fields + _checksum(fields)


def encode_beginning(number: int, size_bytes: int, state: bytes) -> bytes:
    """Return the header and the first frame, with ``state`` as its body."""
    return encode_header(number, size_bytes) + encode_frame(number, HEADER_BYTES, state)


def encode_end(number: int, offset: int, oldest: int) -> bytes:
    return encode_frame(number, offset, encode_body(Purpose.END, oldest))


def beginning_bytes(state: bytes) -> int:
    return HEADER_BYTES + stored_bytes(HEADER_BYTES, len(state))


def _checksum(data: bytes) -> bytes:
    checksum: int = google_crc32c.value(data)
    return checksum.to_bytes(4, "little")


# --- reading -------------------------------------------------------------------------------------------------------


def read_segment(files: LogDirectory, number: int) -> Segment:
    """Read all frames that check, and the segment's end. Raises DataLoss if the disk can't read it."""
    return decode_segment(number, files.read(segment_name(number), 0, file_bytes(files, number)))


def file_bytes(files: LogDirectory, number: int) -> int:
    """Return the size of the segment's file. Raises DataLoss if no append can have made one so long."""
    name = segment_name(number)
    size_bytes = files.size(name)
    if size_bytes > FILE_BYTES_MAX:
        raise damaged(name, f"it has {size_bytes} bytes, and no log file has more than {FILE_BYTES_MAX}", 0)
    return size_bytes


def decode_segment(number: int, content: bytes) -> Segment:
    reader = SegmentReader(number, len(content))
    frames = reader.take(content, 0, is_rest=True)
    assert reader.ending is not None
    written_end = len(content.rstrip(b"\0"))
    return Segment(number, len(content), frames, reader.end, written_end, reader.ending, reader.problem)


class SegmentReader:
    """Reads a segment a piece at a time: each piece takes the file's bytes from ``end`` on.

    ``ending`` is known with the rest of the file, and ``problem`` with it if that is DAMAGED.
    """

    def __init__(self, number: int, size_bytes: int) -> None:
        self.number = number
        self.size_bytes = size_bytes
        self.end = 0
        """Behind the last frame that checks; 0 before the header is read."""
        self.wanted_bytes = HEADER_BYTES
        """So much must be given next, or the rest."""
        self.needs_rest = False
        """A frame does not check: only the rest of the file tells why."""
        self.ending: Ending | None = None
        self.problem = ""
        self._last: Frame | None = None

    def take(self, content: bytes, begins: int, *, is_rest: bool) -> list[Frame]:
        """Return the frames that ``content`` holds whole, from byte ``begins`` of the file on; ``is_rest`` if it holds
        all that follows."""
        frames: list[Frame] = []
        self.needs_rest = False
        if begins == 0:
            self._take_header(content, is_rest)
        while self.ending is None and not self.needs_rest:
            end = frame_end(content, self.number, self.end, begins)
            if not is_rest and (end or self.end + HEAD_BYTES) > begins + len(content):
                self.wanted_bytes = (end or self.end + HEAD_BYTES) - self.end
                return frames
            body = body_at(content, self.number, self.end, begins)
            if body is not None and end is not None:
                self._take_frame(body, end, frames)
            elif is_rest:
                self.ending, self.problem = self._judge(content, begins)
            else:
                self.needs_rest = True
        return frames

    def _take_header(self, content: bytes, is_rest: bool) -> None:
        if any(content[:HEADER_BYTES]):
            self.problem = _header_problem(self.number, self.size_bytes, content)
            self.ending = Ending.DAMAGED if self.problem else None
            self.end = 0 if self.problem else HEADER_BYTES
        elif not is_rest:
            self.needs_rest = True
        else:
            # Its first sector was not written: any other bytes there can only be of the first frame's write.
            tail, problem = judge_tail(content, self.number, HEADER_BYTES)
            is_damaged = tail is Tail.DAMAGED
            self.ending = Ending.DAMAGED if is_damaged else Ending.UNFINISHED
            self.problem = f"the header is gone, and {problem}" if is_damaged else ""

    def _take_frame(self, body: bytes, end: int, frames: list[Frame]) -> None:
        try:
            self._last = _in_order(self._last, decode_frame(body, self.end, end))
        except (ValueError, struct.error) as error:
            self.ending, self.problem = Ending.DAMAGED, str(error)
            return
        frames.append(self._last)
        self.end = end

    def _judge(self, content: bytes, begins: int) -> tuple[Ending, str]:
        tail, problem = judge_tail(content, self.number, self.end, begins)
        is_sealed = self._last is not None and self._last.purpose is Purpose.END
        if tail is Tail.CLEAN and self._last is not None:
            return (Ending.SEALED if is_sealed else Ending.OPEN), ""
        if tail is Tail.TORN and not is_sealed:
            return (Ending.UNFINISHED if self._last is None else Ending.TORN), ""
        if tail is Tail.CLEAN:
            return Ending.DAMAGED, "the first frame is gone"
        return Ending.DAMAGED, problem or "something stands behind the end"


def _header_problem(number: int, size_bytes: int, content: bytes) -> str:
    """Return the problem of the header; empty if it has none."""
    header = content[:HEADER_BYTES]
    if header[: len(MAGIC)] != MAGIC or len(header) < HEADER_BYTES:
        return f"it does not begin as a log file: {header[: len(MAGIC)]!r}"
    _, format_, stored_number, size = _HEADER.unpack_from(header)
    if format_ != FORMAT:
        return f"format {format_} is unknown, this version reads {FORMAT}"
    if header != encode_header(stored_number, size):
        return "the header's checksum does not match"
    if stored_number != number:
        return f"it is segment {stored_number} under another's name"
    if size != size_bytes:
        return f"it has {size_bytes} bytes, and was made with {size}"
    return ""


def _in_order(before: Frame | None, frame: Frame) -> Frame:
    """Return ``frame``. Raises ValueError if it can't stand behind the one ``before`` it."""
    if (frame.purpose is Purpose.STATE) != (before is None):
        raise ValueError(f"a frame {frame.purpose.name} can't stand at byte {frame.offset}")
    if before is not None and before.purpose is Purpose.END:
        raise ValueError("a frame stands behind the end")
    if before is not None and frame.oldest < before.oldest:
        raise ValueError(f"its oldest segment is {frame.oldest}, but it was {before.oldest} before")
    return frame
