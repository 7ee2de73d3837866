"""Many Avro bodies read side by side: a vector of positions, one *lane* for each value that is being read.

The bodies lie behind each other in one buffer. A read takes each lane's position and the end of its row. It gives the
values and the positions after them, in a handful of numpy calls for any number of lanes::

    buffer   [row 0 ......][row 1 ...][row 2 .........] 0 0 0 0 ... (padding)
    pos          ^              ^         ^               ^ park
    end                   ^          ^               ^

Invariants:

- Before every read a lane's position is at most its row's end, or it is parked. The padding is longer than the
  widest single read, so no read leaves the buffer.
- A lane whose read went past its row's end, or found a malformed value, marks its row as bad and is *parked* on the
  padding. There every length, count and branch reads as zero. Since the park is past every end, a parked lane is parked
  again after each read: it costs nothing but its place in the vector.
- A lane's row is known by its end, since rows without bytes are judged before they become lanes.

Marks say only that a row is bad; :mod:`cortado.schema.documents` names its error. Varints are unpacked eight bytes at a
time in one 64-bit word (SIMD within a register; Lemire et al., *Stream VByte*, 2017, describes the family).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import Bools, Bytes, Ints, Offsets, offsets_of
from cortado.schema.limits import FREE_ITEMS_MAX

WINDOW_BYTES = 64
"""Short strings are gathered as windows of their longest length, up to this."""

_PADDING = bytes(4 * WINDOW_BYTES)
_HIGH_BITS = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)
_SWAR = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
# The first n bytes of a little-endian word.
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


class Lanes:
    """The padded bodies, which end at ``row_ends``; ``bad``, the marks of the malformed rows; and ``free_items``, how
    many values without bytes each row was charged with."""

    __slots__ = ("_terminators", "bad", "buffer", "free_items", "park", "raw", "row_ends", "words")

    def __init__(self, bodies: bytes | memoryview, row_ends: Ints) -> None:
        self.raw = b"".join((bodies, _PADDING))
        self.buffer: Bytes = np.frombuffer(self.raw, np.uint8)
        self.words: npt.NDArray[np.uint64] = self.view("<u8")
        self.park = len(bodies)
        self.row_ends = row_ends
        self.bad: Bools = np.zeros(len(row_ends), np.bool_)
        self.free_items: Ints = np.zeros(len(row_ends), np.int64)
        self._terminators: Ints | None = None

    def view(self, dtype: str) -> npt.NDArray[Any]:
        """Return the buffer as an array with a (mostly unaligned) value at each byte's position."""
        size = np.dtype(dtype).itemsize
        return np.ndarray((len(self.raw) - size + 1,), dtype, self.raw, strides=(1,))

    def reject(self, wrong: Bools, after: Ints, end: Ints, values: Ints | None = None) -> None:
        """Mark the rows of the ``wrong`` lanes as bad, park the lanes, and zero their values."""
        where = np.flatnonzero(wrong)
        self.bad[self.rows(end[where])] = True
        after[where] = self.park
        if values is not None:
            values[where] = 0

    def mark(self, wrong: Bools | npt.NDArray[np.intp], end: Ints) -> None:
        """Mark the rows of the lanes whose values are ``wrong``, a mask or their numbers. Their positions stand."""
        self.bad[self.rows(end[wrong])] = True

    def rows(self, end: Ints) -> npt.NDArray[np.intp]:
        """Return the rows of the lanes with these ends."""
        return np.searchsorted(self.row_ends, end)

    def charge(self, end: Ints, count: Ints | int) -> None:
        """Charge each lane's row with ``count`` values without bytes. A row may have FREE_ITEMS_MAX of them."""
        rows = self.rows(end)
        np.add.at(self.free_items, rows, count)
        self.bad[rows] |= self.free_items[rows] > FREE_ITEMS_MAX

    def advance(self, pos: Ints, size: int, end: Ints) -> Ints:
        """Return the positions ``size`` bytes on."""
        after = pos + size
        over = after > end
        if over.any():
            self.reject(over, after, end)
        return after

    def varint(self, pos: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Read a zigzag varint of up to ten bytes in each lane."""
        first = self.buffer[pos]
        longer = (first >= 0x80).nonzero()[0]
        if not longer.size:
            unsigned = first.astype(np.uint64)
            after = pos + 1
        elif longer.size * 2 < first.size:
            unsigned = first.astype(np.uint64)
            unsigned[longer], sizes = self._long_varint(pos[longer])
            after = pos + 1
            after[longer] = pos[longer] + sizes
        else:
            unsigned, sizes = self._long_varint(pos)
            after = pos + sizes
        values = (unsigned >> _ONE).view(np.int64) ^ -(unsigned & _ONE).view(np.int64)
        over = after > end
        if over.any():
            self.reject(over, after, end, values)
        return values, after

    def branch(self, pos: Ints, end: Ints, branches: int) -> tuple[Ints, Ints]:
        """Read a number below ``branches`` in each lane; 0 for a lane with another number."""
        number, after = self.varint(pos, end)
        over = number.view(np.uint64) >= branches
        if over.any():
            self.reject(over, after, end, number)
        return number, after

    def _long_varint(self, pos: Ints) -> tuple[npt.NDArray[np.uint64], Ints]:
        """Return the unsigned varints at ``pos`` and their sizes; a malformed one's size is past any end."""
        word = self.words[pos]
        stop = ~word & _HIGH_BITS
        stop &= -stop  # the lowest bit: the high bit of the first byte that ends a varint
        value = word & (stop - _ONE)
        for low, high, shift in _SWAR:
            value = (value & low) | ((value & high) >> shift)
        # A power of two's exponent, read from its float64: 8 * size - 1.
        sizes = (((stop.astype(np.float64).view(np.int64) >> 52) - 1023) >> 3) + 1
        endless = (stop == 0).nonzero()[0]
        if endless.size:
            at = pos[endless]
            ninth, tenth = self.buffer[at + 8], self.buffer[at + 9]
            value[endless] |= (ninth & 0x7F).astype(np.uint64) << np.uint64(56)
            value[endless] |= np.where(ninth >= 0x80, tenth, 0).astype(np.uint64) << np.uint64(63)
            never = 2**62  # the sum with a position is past every end, and does not overflow
            sizes[endless] = np.where(ninth < 0x80, 9, np.where(tenth <= 1, 10, never))
        return value, sizes

    def ranges(self, pos: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Read a length and skip that many bytes in each lane: (starts, lengths, positions after)."""
        lengths, starts = self.varint(pos, end)
        # As unsigned, so that a negative length is over the room too. A parked lane's length is zero.
        over = lengths.view(np.uint64) > (end - starts).view(np.uint64)
        if over.any():
            self.reject(over, starts, end, lengths)
        return starts, lengths, starts + lengths

    def gather(self, starts: Ints, lengths: Ints) -> tuple[Bytes, Offsets]:
        """Copy the ranges behind each other: (data, offsets)."""
        offsets = offsets_of(lengths)
        total, widest = int(offsets[-1]), int(lengths.max(initial=0))
        if widest <= WINDOW_BYTES and widest * len(starts) <= 4 * total:
            windows: Bytes = self.view(f"V{widest}")[starts].view(np.uint8) if widest else np.zeros(0, np.uint8)
            if widest * len(starts) == total:
                return windows, offsets
            return windows.reshape(-1, widest)[np.arange(widest) < lengths[:, None]], offsets
        if total > 32 * len(starts):
            raw = memoryview(self.raw)
            pieces = [raw[start : start + n] for start, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
            return np.frombuffer(b"".join(pieces), np.uint8), offsets
        return self.buffer[spread(starts, lengths, offsets)], offsets

    def all_ascii(self, starts: Ints, lengths: Ints) -> bool:
        """Return whether every byte of the ranges is below 0x80, without copying short ranges."""
        widest = int(lengths.max(initial=0))
        if widest > WINDOW_BYTES:
            data, _ = self.gather(starts, lengths)
            return bool(data.max(initial=0) < 0x80)
        for done in range(0, widest, 8):
            word = self.words[starts + done] & _FIRST_BYTES[np.clip(lengths - done, 0, 8)]
            if (word & _HIGH_BITS).any():
                return False
        return True

    def terminators(self) -> Ints:
        """Return the positions of all bytes that can end a varint, the padding's included."""
        if self._terminators is None:
            self._terminators = np.flatnonzero(self.buffer < 0x80)
        return self._terminators


def spread(starts: Ints, lengths: Ints, offsets: Offsets) -> Ints:
    """Return the index of every element of the ranges, range by range. ``offsets`` are the lengths' own."""
    index = np.repeat(starts - offsets[:-1], lengths)
    index += np.arange(int(offsets[-1]))
    return index


def malformed_utf8(data: Bytes, offsets: Offsets) -> npt.NDArray[np.intp] | None:
    """Return the numbers of the ranges that are not UTF-8; None if all are.

    Ranges that begin at character boundaries are all well-formed if and only if the whole is.
    """
    if data.max(initial=0) < 0x80:
        return None
    first = data[np.minimum(offsets[:-1], len(data) - 1)]
    inside = ((first & 0xC0) == 0x80) & (offsets[1:] > offsets[:-1])
    if not inside.any() and _is_utf8(data.tobytes()):
        return None
    raw = data.tobytes()
    bounds = offsets.tolist()
    wrong = [i for i in range(len(bounds) - 1) if not _is_utf8(raw[bounds[i] : bounds[i + 1]])]
    return np.array(wrong, np.intp) if wrong else None


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
