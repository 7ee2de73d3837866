"""Checks of logical types over whole columns: which rows hold text that is no UUID, or a decimal of too many digits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import Bools, Bytes, Ints, Offsets
from cortado.schema.columnar.lanes import spread

UUID_TEXT_BYTES = 36
_HYPHENS = [8, 13, 18, 23]
_DIGITS = [at for at in range(UUID_TEXT_BYTES) if at not in _HYPHENS]

_HEX_VALUE = np.full(256, 255, np.uint8)
_HEX_VALUE[np.frombuffer(b"0123456789", np.uint8)] = np.arange(10)
_HEX_VALUE[np.frombuffer(b"abcdef", np.uint8)] = np.arange(10, 16)
_HEX_VALUE[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def wrong_uuids(data: Bytes, offsets: Offsets) -> Bools:
    """Return a mask of the rows that are not 8-4-4-4-12 hexadecimal digits."""
    wrong: Bools = np.diff(offsets) != UUID_TEXT_BYTES
    right = np.flatnonzero(~wrong)
    text = data[offsets[:-1][right][:, None] + np.arange(UUID_TEXT_BYTES)]
    malformed = (text[:, _HYPHENS] != ord("-")).any(axis=1) | (_HEX_VALUE[text[:, _DIGITS]] > 15).any(axis=1)
    wrong[right[malformed]] = True
    return wrong


def uuid_bytes(text: Bytes) -> Bytes:
    """Return the 16 bytes each of texts that are UUIDs."""
    digits = _HEX_VALUE[text.reshape(-1, UUID_TEXT_BYTES)[:, _DIGITS]]
    values: Bytes = np.bitwise_or(digits[:, 0::2] << 4, digits[:, 1::2]).astype(np.uint8).reshape(-1)
    return values


def wrong_decimals(data: Bytes, offsets: Offsets, bound: int) -> Bools:
    """Return a mask of the big-endian two's complement numbers without bytes, or not within ``-bound < number <
    bound``."""
    lengths = np.diff(offsets)
    wrong: Bools = lengths == 0
    # No number of this many bytes can reach the bound: the usual case.
    safe_bytes = (bound.bit_length() - 1) // 8
    if lengths.max(initial=0) <= safe_bytes:
        return wrong
    rows = np.flatnonzero(lengths > safe_bytes)
    if bound <= 2**62:
        wrong[rows] = _beyond(data, offsets, rows, bound)
        return wrong
    raw = data.tobytes()
    for row in rows.tolist():
        unscaled = int.from_bytes(raw[offsets[row] : offsets[row + 1]], "big", signed=True)
        wrong[row] = not -bound < unscaled < bound
    return wrong


def _beyond(data: Bytes, offsets: Offsets, rows: npt.NDArray[np.intp], bound: int) -> Bools:
    """Return the check for bounds of 64 bits: longer numbers are within if their leading bytes only extend the sign."""
    low, sound = low_words(data, offsets, rows)
    return ~sound | (low <= -bound) | (low >= bound)


def low_words(data: Bytes, offsets: Offsets, rows: npt.NDArray[np.intp] | Ints) -> tuple[Ints, Bools]:
    """Return the numbers of these rows, none empty, as int64: (values, a mask of the values that fit)."""
    starts = offsets[:-1][rows].astype(np.int64)
    ends = offsets[1:][rows].astype(np.int64)
    at = ends[:, None] - np.arange(8, 0, -1)
    negative = data[starts] >= 0x80
    fill = np.where(negative, 0xFF, 0).astype(np.uint8)
    word = np.where(at >= starts[:, None], data[np.maximum(at, 0)], fill[:, None])
    values = np.ascontiguousarray(word).view(">i8")[:, 0].astype(np.int64)
    fits = (values < 0) == negative
    longer = np.flatnonzero(ends - starts > 8)
    if longer.size:
        extra = (ends - starts)[longer] - 8
        ranges = np.zeros(len(longer) + 1, np.int64)
        np.cumsum(extra, out=ranges[1:])
        index = spread(starts[longer], extra, ranges)
        same = data[index] == np.repeat(fill[longer], extra)
        fits[longer] &= np.logical_and.reduceat(same, ranges[:-1])
    return values, fits
