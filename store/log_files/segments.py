"""A segment: one file of the log, named by its number, sixteen decimal digits.

::

    header 64   "cortado log file" 16 | format 2 | segment's number 8 | size of the file 8 | zeros | CRC-32C 4
    frame       STATE: every group's hard state, and where its entries end
    frame       APPEND ...
    frame       END, once the next segment exists
    zeros       up to the file's size

Numbers rise by one. The header and the first frame are one write, so both begin in one sector: where there is the one,
there is the other's beginning. Room for END is always kept, so that sealing never needs more than is there.

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
"""No file is read into memory that is larger: what one append may hold is bounded far below."""
END_BYTES: Final = 32
"""What the frame END takes, wherever it stands."""
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
    """What was read of a segment: ``frames`` check, and ``end`` is where the last of them ends. Up to ``written_end``
    something stands. ``problem`` says what is wrong at the end, where it is DAMAGED."""

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
    """Of all segments, ascending. Files of other names are not ours."""
    return sorted(int(name) for name in files.names() if _NAME.fullmatch(name))


def encode_header(number: int, size_bytes: int) -> bytes:
    fields = _HEADER.pack(MAGIC, FORMAT, number, size_bytes)
    return fields + _checksum(fields)


def encode_beginning(number: int, size_bytes: int, state: bytes) -> bytes:
    """Header and first frame, whose body is ``state``."""
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
    """Everything that checks, and how it ends. Raises DataLoss where the disk can't read it."""
    name = segment_name(number)
    size_bytes = files.size(name)
    if size_bytes > FILE_BYTES_MAX:
        raise damaged(name, f"it has {size_bytes} bytes, and no log file has more than {FILE_BYTES_MAX}", 0)
    return decode_segment(number, files.read(name, 0, size_bytes))


def decode_segment(number: int, content: bytes) -> Segment:
    frames: list[Frame] = []
    end, ending, problem = _read_frames(number, content, frames)
    return Segment(number, len(content), frames, end, len(content.rstrip(b"\0")), ending, problem)


def _read_frames(number: int, content: bytes, frames: list[Frame]) -> tuple[int, Ending, str]:
    """Fill ``frames``. Where the last one ends, how the segment ends, and what is wrong there."""
    if not any(content[:HEADER_BYTES]):
        # Its first sector was not written: whatever else stands there can only be of the first frame's write.
        tail, problem = judge_tail(content, number, HEADER_BYTES)
        if tail is Tail.DAMAGED:
            return 0, Ending.DAMAGED, f"the header is gone, and {problem}"
        return 0, Ending.UNFINISHED, ""
    problem = _header_problem(number, content)
    if problem:
        return 0, Ending.DAMAGED, problem
    offset = HEADER_BYTES
    while (body := body_at(content, number, offset)) is not None:
        end = frame_end(content, number, offset)
        assert end is not None
        try:
            frames.append(_in_order(frames, decode_frame(body, offset, end)))
        except (ValueError, struct.error) as error:
            return offset, Ending.DAMAGED, str(error)
        offset = end
    return offset, *_ending(number, content, frames, offset)


def _header_problem(number: int, content: bytes) -> str:
    """What is wrong with the header, or nothing."""
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
    if size != len(content):
        return f"it has {len(content)} bytes, and was made with {size}"
    return ""


def _in_order(before: Sequence[Frame], frame: Frame) -> Frame:
    """Raises ValueError where the frame can't stand behind those ``before`` it."""
    if (frame.purpose is Purpose.STATE) != (not before):
        raise ValueError(f"a frame {frame.purpose.name} stands in place {len(before) + 1}")
    if before and before[-1].purpose is Purpose.END:
        raise ValueError("a frame stands behind the end")
    if before and frame.oldest < before[-1].oldest:
        raise ValueError(f"its oldest segment is {frame.oldest}, but it was {before[-1].oldest} before")
    return frame


def _ending(number: int, content: bytes, frames: Sequence[Frame], end: int) -> tuple[Ending, str]:
    tail, problem = judge_tail(content, number, end)
    is_sealed = bool(frames) and frames[-1].purpose is Purpose.END
    if tail is Tail.CLEAN and frames:
        return (Ending.SEALED if is_sealed else Ending.OPEN), ""
    if tail is Tail.TORN and not is_sealed:
        return (Ending.TORN if frames else Ending.UNFINISHED), ""
    if tail is Tail.CLEAN:
        return Ending.DAMAGED, "the first frame is gone"
    return Ending.DAMAGED, problem or "something stands behind the end"
