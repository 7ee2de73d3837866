"""The bytes of a frame, which one append writes, and how a frame that a crash tore is told from one that rotted.

::

    content   mark "frm\\x1f" 4 | length of the body 4 | CRC-32C of the body 4 | CRC-32C of the twelve bytes before 4
              body: purpose 1 | oldest segment that is needed 8 | records
    record    kind 1 | group id 4 | index 8 | term 8 | length of the payload 4 | payload

    stored    content, cut where the file's sectors of 512 bytes end: each piece ends in a stamp 4 of its own,
              the last one after zeros up to a multiple of 32 bytes

      sector             |        sector          |        sector
      ... frame A ... sA3|head body ........... sB4| body ... 0 0 sB5  head body ...

Numbers are big-endian, checksums little-endian. Both checksums cover the segment's number and the frame's offset too,
which are not stored, and a stamp is made of these and the sector's number: a frame, or a sector of it, that the disk
wrote to another place, or that an earlier segment left, checks nowhere else.

**The possible ends of the last segment.** A segment is created full of zeros. An append writes one frame behind the
last one and syncs it, and only then does another follow. So when a crash comes, at most one frame is not synced, and
only zeros are behind it. For each sector that it touches, the disk has the old bytes (zeros at the frame's place) or
the new ones. Disks promise that for sectors, not for bytes.

Now each *piece* (what a frame has in one sector) ends in its stamp, which is never zero. So a piece that reads as zeros
all over was not written, even if its payload holds zeros, and a piece that does not end in its stamp was written by no
append to this place. That makes the cases exact, with E the first offset behind the last frame that checks:

1. Zeros from E to the file's end: nothing was written there.
2. The head at E checks. Then its length is true, since a head never crosses a sector (32 divides 512): the bounds of
   the frame's pieces are known. It is *torn* if a piece reads as zeros, every other one ends in its stamp, and behind
   the frame's end there are zeros only. If no piece reads as zeros, it was written whole and changed later: *damage*.
3. The first piece is zeros, head and length with it, and other bytes follow. Stamps depend on E and their sectors
   alone, so they are known nevertheless. *Torn* if every following sector is zeros or ends in its stamp, and the last
   written bytes are a stamp at a multiple of 32. A frame that was lost in front of others is not this: those have other
   stamps. Nor is one that strayed here. Both are *damage*.
4. All else: a head that does not check in a sector that is not zeros, a stamp of another place: *damage*.

No flip of bits turns one into the other: a stamp has at least two bits set, so one flip does not make a piece zeros;
a length that changed fails the head's own checksum, and does not get to claim zeros behind the frame.

**Caveats.** A disk that acknowledged a sync and lost a whole sector of the last frame, or all that it wrote last (the
last written sector may hold the ends of several frames), looks like a crash before the sync. No file can tell by
itself; a log that ends before the last applied entry is found by the layer above. A bit that flips in the unwritten
region is damage too, though no data is lost: a write that strayed would look the same.

Sources: log blocks of InnoDB and the update sequence of NTFS, for marks in every sector; *All File Systems Are Not
Created Equal* (Pillai et al., 2014) for what crashes leave.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

import google_crc32c
import numpy as np
import numpy.typing as npt

from cortado.raft.log import LogRecord, RecordKind

SECTOR_BYTES: Final = 512
ALIGNMENT: Final = 32
STAMP_BYTES: Final = 4
MARK: Final = b"frm\x1f"
HEAD_BYTES: Final = 16
_PIECE_BYTES: Final = SECTOR_BYTES - STAMP_BYTES
# Odd, and its bits are mixed: the stamps of no two sectors of a file are the same by it.
_STRIDE: Final = 0x9E37_79B1
_PLACE: Final = struct.Struct(">QQ")
_BODY_HEAD: Final = struct.Struct(">BQ")
_RECORD_HEAD: Final = struct.Struct(">BIQQI")
_LARGE_BODY_BYTES: Final = 8 << 10
_KINDS: Final = {int(kind): kind for kind in RecordKind}


class Purpose(IntEnum):
    """The purposes of a frame."""

    STATE = 1
    """The first one of a segment, and only that: every group's hard state, and the end of its entries."""
    APPEND = 2
    END = 3
    """The segment's last one: the next segment exists."""


@dataclass(frozen=True, slots=True)
class Frame:
    """``[offset, end)`` of a segment. Segments with a number below ``oldest`` are needed no longer, and may be gone."""

    offset: int
    end: int
    purpose: Purpose
    oldest: int
    records: Sequence[LogRecord]


class Tail(Enum):
    """The states of the bytes behind the last frame that checks."""

    CLEAN = "zeros"
    TORN = "a frame that a crash tore"
    DAMAGED = "damage"


# --- writing -------------------------------------------------------------------------------------------------------


def length_of_body(records: Sequence[LogRecord]) -> int:
    """Return how many bytes the body of a frame with these has."""
    return _BODY_HEAD.size + _RECORD_HEAD.size * len(records) + sum([len(each.payload) for each in records])


def encode_body(purpose: Purpose, oldest: int, records: Sequence[LogRecord] = ()) -> bytes:
    parts, pack = [_BODY_HEAD.pack(purpose, oldest)], _RECORD_HEAD.pack
    for each in records:
        payload = each.payload
        parts += (pack(each.kind, each.group_id, each.index, each.term, len(payload)), payload)
    return b"".join(parts)


def stored_bytes(offset: int, body_bytes: int) -> int:
    """Return how long a frame at ``offset`` is in the file."""
    behind_first = HEAD_BYTES + body_bytes - (_PIECE_BYTES - offset % SECTOR_BYTES)
    if behind_first <= 0:
        return _aligned(HEAD_BYTES + body_bytes + STAMP_BYTES)
    sectors, last = divmod(behind_first - 1, _PIECE_BYTES)
    return SECTOR_BYTES - offset % SECTOR_BYTES + sectors * SECTOR_BYTES + _aligned(last + 1 + STAMP_BYTES)


def encode_frame(segment: int, offset: int, body: bytes) -> bytes:
    """Return the bytes that stand in ``segment`` from ``offset`` on, a multiple of ALIGNMENT."""
    place = google_crc32c.value(_PLACE.pack(segment, offset))
    head = MARK + len(body).to_bytes(4, "big") + google_crc32c.extend(place, body).to_bytes(4, "little")
    head += google_crc32c.extend(place, head).to_bytes(4, "little")
    if len(body) >= _LARGE_BODY_BYTES:
        return _cut_large(head, body, offset, place)
    return _cut(head + body, offset, place)


def _cut(content: bytes, offset: int, place: int) -> bytes:
    first = _PIECE_BYTES - offset % SECTOR_BYTES
    pieces = [content[:first]]
    pieces += [content[start : start + _PIECE_BYTES] for start in range(first, len(content), _PIECE_BYTES)]
    last_bytes = len(pieces[-1]) + STAMP_BYTES
    pieces[-1] += bytes(_aligned(last_bytes) - last_bytes)
    stamps = _stamps(place, offset // SECTOR_BYTES, len(pieces))
    return b"".join([part for piece in zip(pieces, stamps, strict=True) for part in piece])


def _cut_large(head: bytes, body: bytes, offset: int, place: int) -> bytes:
    """Cut a frame of more than two sectors as :func:`_cut` does: those between the first and the last are copied all at
    once."""
    frame = bytearray(stored_bytes(offset, len(body)))
    # The bytes in the first sector, and in the last one; whole sectors are between.
    begins = SECTOR_BYTES - offset % SECTOR_BYTES
    in_first = begins - STAMP_BYTES - HEAD_BYTES
    sectors, in_last = divmod(len(body) - in_first - 1, _PIECE_BYTES)
    in_last += 1
    ends = begins + sectors * SECTOR_BYTES
    frame[:HEAD_BYTES] = head
    frame[HEAD_BYTES : HEAD_BYTES + in_first] = memoryview(body)[:in_first]
    frame[ends : ends + in_last] = memoryview(body)[-in_last:]
    stamps = _many_stamps(place, offset // SECTOR_BYTES, sectors + 2)
    frame[begins - STAMP_BYTES : begins], frame[-STAMP_BYTES:] = stamps[0].tobytes(), stamps[-1].tobytes()
    between = np.frombuffer(frame, np.uint8, sectors * SECTOR_BYTES, begins).reshape(sectors, SECTOR_BYTES)
    pieces = np.frombuffer(body, np.uint8, sectors * _PIECE_BYTES, in_first).reshape(sectors, _PIECE_BYTES)
    between[:, :_PIECE_BYTES], between[:, _PIECE_BYTES:] = pieces, stamps[1:-1]
    return bytes(frame)


def _stamps(place: int, sector: int, count: int) -> list[bytes]:
    """Return the stamps of ``count`` sectors. Neither end of a stamp is zero, whatever the checksum of the frame's
    place."""
    start = place + sector * _STRIDE
    numbers = [each & 0xFFFF_FFFF | 0x8000_0001 for each in range(start, start + count * _STRIDE, _STRIDE)]
    packed = struct.pack(f">{count}I", *numbers)
    return [packed[at : at + STAMP_BYTES] for at in range(0, len(packed), STAMP_BYTES)]


def _many_stamps(place: int, sector: int, count: int) -> npt.NDArray[np.uint8]:
    """Return the stamps of :func:`_stamps`, a row of bytes for each."""
    numbers = np.uint64(place + sector * _STRIDE) + np.arange(count, dtype=np.uint64) * np.uint64(_STRIDE)
    return (numbers | np.uint64(0x8000_0001)).astype(np.uint32).astype(">u4").view(np.uint8).reshape(-1, STAMP_BYTES)


def _aligned(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


# --- reading -------------------------------------------------------------------------------------------------------


# ``content`` is the file's bytes from ``begins`` on; offsets are the file's.


def frame_end(content: bytes, segment: int, offset: int, begins: int = 0) -> int | None:
    """Return the end of the frame at ``offset``, if its head checks."""
    head = content[offset - begins : offset - begins + HEAD_BYTES]
    if head[:4] != MARK or len(head) < HEAD_BYTES:
        return None
    place = google_crc32c.value(_PLACE.pack(segment, offset))
    if google_crc32c.extend(place, head[:12]).to_bytes(4, "little") != head[12:]:
        return None
    return offset + stored_bytes(offset, int.from_bytes(head[4:8], "big"))


def body_at(content: bytes, segment: int, offset: int, begins: int = 0) -> bytes | None:
    """Return the body of the frame at ``offset``, if every byte of the frame is as it was written."""
    end = frame_end(content, segment, offset, begins)
    if end is None or end - begins > len(content):
        return None
    stored = content[offset - begins : end - begins]
    first = _PIECE_BYTES - offset % SECTOR_BYTES
    starts = range(first + STAMP_BYTES, len(stored), SECTOR_BYTES)
    pieces = [stored[:first], *(stored[start : start + _PIECE_BYTES] for start in starts)]
    body_bytes = int.from_bytes(stored[4:8], "big")
    body = b"".join(pieces)[HEAD_BYTES : HEAD_BYTES + body_bytes]
    # Its checksums, and stamps and padding too: nothing in a frame may change unseen.
    return body if encode_frame(segment, offset, body) == stored else None


def decode_frame(body: bytes, offset: int, end: int) -> Frame:
    """Decode a frame's body. Raises ValueError if this version does not write such a body."""
    purpose, oldest = _BODY_HEAD.unpack_from(body)
    records, place = [], _BODY_HEAD.size
    while place < len(body):
        kind, group_id, index, term, length = _RECORD_HEAD.unpack_from(body, place)
        place += _RECORD_HEAD.size + length
        if kind not in _KINDS or place > len(body):
            raise ValueError(f"a record of kind {kind} and {length} bytes: it was written by a newer version")
        records.append(LogRecord(_KINDS[kind], group_id, index, term, body[place - length : place]))
    return Frame(offset, end, Purpose(purpose), oldest, records)


def judge_tail(content: bytes, segment: int, offset: int, begins: int = 0) -> tuple[Tail, str]:
    """Judge the bytes at ``offset``, where no frame checks, of a file that ends with ``content``. Returns also the
    reason, if they are damage. The module's docstring lists the cases."""
    written_end = begins + len(content.rstrip(b"\0"))
    if written_end <= offset:
        return Tail.CLEAN, ""
    end = frame_end(content, segment, offset, begins)
    if end is None:
        if any(content[offset - begins : _sector_end(offset) - begins]):
            return Tail.DAMAGED, "no frame begins there, and it is not empty"
        # Only a bound of the frame's end is known: none of it stands behind this.
        end = offset + _aligned(written_end - offset)
    elif end > begins + len(content):
        return Tail.DAMAGED, f"a frame that ends at byte {end}, behind the file's end"
    elif written_end > end:
        return Tail.DAMAGED, "the frame there does not check, and something follows it"
    return _judge_pieces(content, segment, offset, end, begins)


def _judge_pieces(content: bytes, segment: int, offset: int, end: int, begins: int) -> tuple[Tail, str]:
    place = google_crc32c.value(_PLACE.pack(segment, offset))
    is_torn, start = False, offset
    while start < end:
        piece = content[start - begins : min(_sector_end(start), end) - begins]
        if not any(piece):
            is_torn = True
        elif not piece.endswith(_stamps(place, start // SECTOR_BYTES, 1)[0]):
            return Tail.DAMAGED, f"what stands at byte {start} belongs to no frame that begins there"
        start = _sector_end(start)
    return (Tail.TORN, "") if is_torn else (Tail.DAMAGED, "the frame there was written whole, and does not check")


def _sector_end(offset: int) -> int:
    return offset - offset % SECTOR_BYTES + SECTOR_BYTES
