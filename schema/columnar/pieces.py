"""Values to be written, many side by side: first the length of each, then its place.

A piece stands for one value in each of many rows. Its ``lengths`` are known before anything is written, so the place of
every piece of every row follows by addition; then each piece writes all its rows' bytes at once, exactly, leaving the
bytes between to the others::

    row 0   [varint][bytes......][8]        lengths of the pieces      2 11 8    1 9 8
    row 1   [varint][bytes....][8]          places in the output       0 2 13   21 22 31
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import Bytes, Ints, Offsets, offsets_of
from cortado.schema.columnar.lanes import spread

_PADDING_BYTES = 8
_SHORT_BYTES = 64
_ONE = np.uint64(1)


class Output:
    """The bytes being written."""

    __slots__ = ("_raw", "buffer", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self._raw = bytearray(length + _PADDING_BYTES)
        self.buffer: Bytes = np.frombuffer(self._raw, np.uint8)

    def view(self, dtype: str) -> npt.NDArray[Any]:
        """Return the output as an array with a (mostly unaligned) value at each byte's position."""
        size = np.dtype(dtype).itemsize
        return np.ndarray((len(self._raw) - size + 1,), dtype, self._raw, strides=(1,))

    def memory(self) -> memoryview:
        return memoryview(self._raw)

    def bytes(self) -> bytes:
        return bytes(memoryview(self._raw)[: self.length])


class Piece(Protocol):
    """One value in each of many rows."""

    lengths: Ints
    """Bytes of each value."""

    def write(self, out: Output, pos: Ints) -> None:
        """Write each value at its position."""


class Nothing:
    """Values of no bytes."""

    def __init__(self, count: int) -> None:
        self.lengths: Ints = np.zeros(count, np.int64)

    def write(self, out: Output, pos: Ints) -> None:
        pass


class Sized:
    """Values of one size each, which lie in an array as they are written: booleans and floats."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values
        self.lengths: Ints = np.full(len(values), values.dtype.itemsize, np.int64)

    def write(self, out: Output, pos: Ints) -> None:
        out.view(self.values.dtype.str)[pos] = self.values


class Varint:
    """Zigzag varints."""

    def __init__(self, values: Ints) -> None:
        values = values.astype(np.int64, copy=False)
        self._zigzag: npt.NDArray[np.uint64] = ((values << 1) ^ (values >> 63)).view(np.uint64)
        self._widest = 1
        if self._zigzag.max(initial=0) < 0x80:
            self.lengths: Ints = np.ones(len(values), np.int64)
            return
        # The place of the highest bit, read from the exponent of the float64. Clearing the bit below it keeps the
        # conversion from rounding up to the next power of two.
        highest = (self._zigzag & ~(self._zigzag >> _ONE)) | _ONE
        exponent = (highest.astype(np.float64).view(np.int64) >> 52) - 1023
        self.lengths = ((exponent * 37) >> 8) + 1  # exponent // 7 + 1, for 0 to 63
        self._widest = int(self.lengths.max())

    def write(self, out: Output, pos: Ints) -> None:
        if self._widest == 1:
            out.buffer[pos] = self._zigzag
            return
        left, lengths = self._zigzag, self.lengths
        for at in range(self._widest):
            more = lengths > at + 1
            low = (left & np.uint64(0x7F)).astype(np.uint8)
            out.buffer[pos + at] = low | (more.view(np.uint8) << 7)
            left = left >> np.uint64(7)
            if at + 1 < self._widest and not more.all():
                where = np.flatnonzero(more)
                pos, left, lengths = pos[where], left[where], lengths[where]


class Ranges:
    """Ranges of bytes, as they are."""

    def __init__(self, offsets: Offsets, data: Bytes) -> None:
        self._starts = offsets[:-1].astype(np.int64)
        self._data = data
        self.lengths: Ints = np.diff(offsets).astype(np.int64)

    def write(self, out: Output, pos: Ints) -> None:
        widest = int(self.lengths.max(initial=0))
        if widest == 0:
            return
        if widest <= _SHORT_BYTES:
            self._write_words(out, pos, widest)
        elif len(self._data) > 32 * len(pos):
            target, source = out.memory(), np.ascontiguousarray(self._data).data
            for at, start, n in zip(pos.tolist(), self._starts.tolist(), self.lengths.tolist(), strict=True):
                target[at : at + n] = source[start : start + n]
        else:
            lengths = offsets_of(self.lengths)
            out.buffer[spread(pos, self.lengths, lengths)] = self._data[spread(self._starts, self.lengths, lengths)]

    def _write_words(self, out: Output, pos: Ints, widest: int) -> None:
        """Copy short ranges in words; the last word of each ends with the range, over the one before it."""
        padded = np.concatenate((self._data, np.zeros(_PADDING_BYTES, np.uint8)))
        lengths, starts = self.lengths, self._starts
        for size in (8, 4, 2, 1):
            target = out.view(f"<u{size}")
            source: npt.NDArray[Any] = np.ndarray((len(padded) - size + 1,), f"<u{size}", padded, strides=(1,))
            fit = np.flatnonzero(lengths >= size)
            for done in range(0, widest - size + 1 if size == 8 else 1, size):
                whole = fit if done == 0 else fit[lengths[fit] >= done + size]
                target[pos[whole] + done] = source[starts[whole] + done]
            last = lengths[fit] - size
            target[pos[fit] + last] = source[starts[fit] + last]
            if len(fit) == len(lengths):
                return
            rest = np.flatnonzero(lengths < size)
            lengths, starts, pos = lengths[rest], starts[rest], pos[rest]


class Sequence:
    """Pieces behind each other: a record's fields, a length and its bytes."""

    def __init__(self, pieces: list[Piece], count: int) -> None:
        self._pieces = pieces
        self.lengths: Ints = np.zeros(count, np.int64)
        for piece in pieces:
            self.lengths += piece.lengths

    def write(self, out: Output, pos: Ints) -> None:
        for piece in self._pieces:
            piece.write(out, pos)
            pos = pos + piece.lengths


class Choice:
    """A union: each row's branch, and behind it the value of the one piece that the row has."""

    def __init__(self, branches: Ints, pieces: list[tuple[npt.NDArray[np.intp], Piece]]) -> None:
        self._branch = Varint(branches)
        self._pieces = pieces
        self.lengths: Ints = self._branch.lengths.copy()
        for rows, piece in pieces:
            self.lengths[rows] += piece.lengths

    def write(self, out: Output, pos: Ints) -> None:
        self._branch.write(out, pos)
        pos = pos + self._branch.lengths
        for rows, piece in self._pieces:
            piece.write(out, pos[rows])


class Blocks:
    """Arrays and maps: a block of all items if there are any, and the empty block that ends them."""

    def __init__(self, offsets: Offsets, items: Piece) -> None:
        self._counts: Ints = np.diff(offsets).astype(np.int64)
        self._some = np.flatnonzero(self._counts)
        self._head = Varint(self._counts[self._some])
        self._items = items
        before = np.zeros(len(items.lengths) + 1, np.int64)
        np.cumsum(items.lengths, out=before[1:])
        self._before = before[:-1]
        item_bytes = before[offsets[1:]] - before[offsets[:-1]]
        self.lengths: Ints = item_bytes + 1
        self.lengths[self._some] += self._head.lengths
        self._first = before[offsets[:-1]]

    def write(self, out: Output, pos: Ints) -> None:
        out.buffer[pos + self.lengths - 1] = 0
        self._head.write(out, pos[self._some])
        begin = pos.copy()
        begin[self._some] += self._head.lengths
        self._items.write(out, np.repeat(begin - self._first, self._counts) + self._before)
