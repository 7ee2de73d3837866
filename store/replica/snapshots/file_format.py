"""The bytes of a snapshot file: one group's whole state at one place of its log.

::

    "cortado snapshot" 16 | format 8
    frame H   what it is: snapshot id, cluster, group, place in the log, members
    frame B   a run of items of one space, in the order of their keys        } any number,
    frame B   ...                                                            } in the order of spaces
    frame E   how many blocks and items there are, and a digest of all bytes before this frame

    frame     tag 1 | length of the body 4 | body | CRC-32C over tag, length and body 4

Numbers are big-endian, checksums little-endian. ``docs/formats/snapshots.md`` has each body; golden files pin them.

The frames' checksums find bits that a disk or a network flipped, each at its place; the digest (BLAKE2b, 32 bytes)
finds a frame that is missing, doubled, or of another file. The reader trusts nothing: every length is bounded before it
is used.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

import google_crc32c

from cortado.errors import DataLoss
from cortado.raft.registry import Roster
from cortado.store.engine.interface import Space

MAGIC: Final = b"cortado snapshot"
FORMAT: Final = 8
FRAME_BYTES_MAX: Final = 64 << 20
"""A block has about 1 MiB; one item alone, the largest that is ever stored, a few more."""

HEADER: Final = b"H"
BLOCK: Final = b"B"
END: Final = b"E"
DIGEST_BYTES: Final = 32

PREFIX_BYTES: Final = len(MAGIC) + 2
FRAME_HEAD_BYTES: Final = 5
CHECKSUM_BYTES: Final = 4

_FRAME_HEAD: Final = struct.Struct(">cI")
_PLACE: Final = struct.Struct(">IQQ")
_LENGTH: Final = struct.Struct(">I")
_BLOCK_HEAD: Final = struct.Struct(">BI")
_END: Final = struct.Struct(f">QQ{DIGEST_BYTES}s")
_CODE_OF_SPACE: Final = {Space.DATA: 1, Space.REQUESTS: 2, Space.META: 3}
_SPACE_OF_CODE: Final = {code: space for space, code in _CODE_OF_SPACE.items()}


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The cluster and group of the state, which is everything applied up to ``index``; its entry is of ``term``."""

    snapshot_id: str
    cluster_id: str
    group_id: int
    index: int
    term: int
    roster: Roster


class Block(NamedTuple):
    """A run of items of one space; parallel lists."""

    space: Space
    keys: Sequence[bytes]
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class FileEnd:
    """How many blocks and items came before, and the digest of all bytes before this frame."""

    blocks: int
    items: int
    digest: bytes


# --- writing ---------------------------------------------------------------------------------------------------


def encode_beginning(header: FileHeader) -> bytes:
    """Return the first bytes of a snapshot file, up to the first block."""
    texts = (header.snapshot_id.encode(), header.cluster_id.encode(), header.roster.encode())
    body = _PLACE.pack(header.group_id, header.index, header.term)
    body += b"".join(_LENGTH.pack(len(text)) + text for text in texts)
    return MAGIC + FORMAT.to_bytes(2) + _frame(HEADER, body)


def encode_block(block: Block) -> bytes:
    """One block's frame."""
    space, keys, values = block
    count = len(keys)
    lengths = struct.pack(f">{count}H{count}I", *map(len, keys), *map(len, values))
    return _frame(BLOCK, b"".join((_BLOCK_HEAD.pack(_CODE_OF_SPACE[space], count), lengths, *keys, *values)))


def encode_end(end: FileEnd) -> bytes:
    return _frame(END, _END.pack(end.blocks, end.items, end.digest))


def _frame(tag: bytes, body: bytes) -> bytes:
    head = _FRAME_HEAD.pack(tag, len(body)) + body
    return head + _checksum(head)


def _checksum(data: bytes) -> bytes:
    checksum: int = google_crc32c.value(data)
    return checksum.to_bytes(CHECKSUM_BYTES, "little")


# --- reading ---------------------------------------------------------------------------------------------------


def damaged(detail: str) -> DataLoss:
    return DataLoss("a snapshot", detail)


def check_prefix(prefix: bytes) -> None:
    """Raises DataLoss if the first PREFIX_BYTES are not those of a snapshot file that this version reads."""
    if prefix[: len(MAGIC)] != MAGIC or len(prefix) < PREFIX_BYTES:
        raise damaged(f"it does not begin as one: {prefix[:PREFIX_BYTES]!r}")
    format_ = int.from_bytes(prefix[len(MAGIC) : PREFIX_BYTES])
    if format_ != FORMAT:
        raise damaged(f"format {format_} is unknown, this version reads {FORMAT}")


def frame_bytes(head: bytes, offset: int) -> int:
    """Return the length of the frame that begins with ``head``, its first FRAME_HEAD_BYTES; ``offset`` is the frame's
    place. Raises DataLoss."""
    if len(head) < FRAME_HEAD_BYTES:
        raise damaged(f"it is cut off at byte {offset}")
    tag, length = head[:1], int.from_bytes(head[1:FRAME_HEAD_BYTES])
    if tag not in (HEADER, BLOCK, END) or length > FRAME_BYTES_MAX:
        raise damaged(f"no frame at byte {offset}: tag {tag!r}, length {length}")
    return FRAME_HEAD_BYTES + length + CHECKSUM_BYTES


def open_frame(frame: bytes, offset: int) -> tuple[bytes, bytes]:
    """Tag and body of a whole frame. Raises DataLoss if its checksum is wrong."""
    body_end = len(frame) - CHECKSUM_BYTES
    if body_end < FRAME_HEAD_BYTES or frame[body_end:] != _checksum(frame[:body_end]):
        raise damaged(f"the frame of {len(frame)} bytes at byte {offset} has a wrong checksum")
    return frame[:1], frame[FRAME_HEAD_BYTES:-CHECKSUM_BYTES]


def decode_header(body: bytes) -> FileHeader:
    """Raises DataLoss."""
    try:
        group_id, index, term = _PLACE.unpack_from(body)
        texts: list[bytes] = []
        place = _PLACE.size
        for _ in range(3):
            (length,) = _LENGTH.unpack_from(body, place)
            place += _LENGTH.size + length
            texts.append(body[place - length : place])
        if place != len(body):
            raise ValueError(f"{len(body)} bytes, its fields say {place}")
        return FileHeader(texts[0].decode(), texts[1].decode(), group_id, index, term, Roster.decode(texts[2]))
    except (struct.error, ValueError) as problem:
        raise damaged(f"a malformed header: {problem}") from problem


def decode_block(body: bytes) -> Block:
    """Raises DataLoss."""
    try:
        code, count = _BLOCK_HEAD.unpack_from(body)
        lengths = struct.unpack_from(f">{count}H{count}I", body, _BLOCK_HEAD.size)
    except (struct.error, OverflowError) as problem:
        raise damaged(f"a malformed block: {problem}") from problem
    ends = list(accumulate(lengths, initial=_BLOCK_HEAD.size + 6 * count))
    if ends[-1] != len(body) or code not in _SPACE_OF_CODE:
        raise damaged(f"a malformed block of space {code}: {len(body)} bytes, its items say {ends[-1]}")
    pieces = [body[start:end] for start, end in pairwise(ends)]
    return Block(_SPACE_OF_CODE[code], pieces[:count], pieces[count:])


def decode_end(body: bytes) -> FileEnd:
    """Raises DataLoss."""
    if len(body) != _END.size:
        raise damaged(f"a malformed end of {len(body)} bytes")
    return FileEnd(*_END.unpack(body))
