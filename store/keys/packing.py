"""Many byte strings end to end, with their lengths: how rows travel if each by itself would cost too much.

::

    [b"ab", b"", b"c"]   <->   b"abc",  02000000 00000000 01000000     little-endian, 32 bits unsigned

Both ways are single calls for all of them. A message of two fields is read several times as fast as one field for each
row, and a row costs no object but its bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct, pack, unpack
from typing import Final

LENGTH_BYTES: Final = 4
_KEPT_PIECES_MAX: Final = 2_000
"""Python keeps the formats of a hundred calls, at 32 bytes for each piece."""


def join(pieces: Collection[bytes]) -> tuple[bytes, bytes]:
    """Return the pieces end to end, and their lengths. Each has less than 4 GiB."""
    return b"".join(pieces), pack(f"<{len(pieces)}I", *map(len, pieces))


def cut(joined: bytes | bytearray, packed_lengths: bytes) -> tuple[bytes, ...]:
    """Return the pieces that :func:`join` was given. Raises ValueError, which names the contradiction, if the two do
    not fit."""
    if len(packed_lengths) % LENGTH_BYTES:
        raise ValueError(f"{len(packed_lengths)} bytes of lengths are not a multiple of {LENGTH_BYTES}")
    count = len(packed_lengths) // LENGTH_BYTES
    if 0 < count <= _KEPT_PIECES_MAX and packed_lengths == packed_lengths[:LENGTH_BYTES] * count:
        size_bytes = int.from_bytes(packed_lengths[:LENGTH_BYTES], "little")
        if size_bytes * count == len(joined):
            # Pieces of one length: Python keeps their format, and so it takes a quarter of the time.
            return unpack(f"{size_bytes}s" * count, joined)
    lengths = unpack(f"<{count}I", packed_lengths)
    if sum(lengths) != len(joined):
        raise ValueError(f"there are {len(joined)} bytes, and the lengths say {sum(lengths)}")
    # One call that cuts all: a third of the cost of one slice for each.
    return Struct("%ds" * count % lengths).unpack(joined)


def cut_equal(joined: bytes, size_bytes: int) -> tuple[bytes, ...]:
    """Pieces of ``size_bytes`` each. Raises ValueError if they do not come out even."""
    count, left = divmod(len(joined), size_bytes)
    if left:
        raise ValueError(f"{len(joined)} bytes are not a multiple of {size_bytes}")
    return unpack(f"{size_bytes}s" * count, joined)
