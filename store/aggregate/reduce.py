"""Rows put together by group, whole columns at a time.

::

    rows       UA 3    AA 5    UA 4        codes of equal values, numbered within these rows
    places     0       1       0           the group of each row
    groups     UA 7    AA 5                each column reduced by place: added, or the least, or the greatest

Nothing here is kept: the same function merges rows, and the results of other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn, Ints
from cortado.schema.columnar.columns import expand, present_rows, take
from cortado.store.mvcc.walks import ColumnKernel, Walked

_WORD_BYTES: Final = 8
_WORDS_MAX: Final = 8
"""Longer equal beginnings are compared row by row."""
_TABLE_MAX: Final = 1 << 18
"""Whole numbers that lie so near each other are their own codes."""
_SPARE_BITS: Final = 2
"""A table of hashes has four to eight places for each row."""
_FACTORS: Final = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)))
# The first n bytes of a word: the lowest of a little-endian one, the highest of a big-endian one.
_LOWEST: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
_HIGHEST: Final = np.array([((1 << 8 * n) - 1) << 8 * (8 - n) for n in range(9)], np.uint64)


Words: TypeAlias = npt.NDArray[np.uint64]


class Merge(Enum):
    """How the values of a group become one."""

    ADD = "add"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Groups:
    """For each row its group's place, and for each group one of its rows. ``places`` is None if all rows are one
    group."""

    places: Ints | None
    first_rows: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.first_rows)


def group_rows(columns: Sequence[Column], rows: int, kernel: ColumnKernel | None = None) -> Groups:
    """Return the groups of equal values in ``columns``, which are in ordered form (``values.py``); there is at least
    one row. If there is a ``kernel``, and values are not their own codes, it finds them."""
    if not columns:
        return Groups(None, np.zeros(1, np.intp))
    codes, count = _small_codes(columns[0]) if len(columns) == 1 else (None, 0)
    if codes is None:
        grouped = None if kernel is None else kernel.group(list(map(_arrays, columns)), rows)
        if grouped is not None:
            return Groups(grouped.places, grouped.first_rows)
        codes, count = _numbered([word for column in columns for word in _words_of(column)])
    seen = np.zeros(count, np.bool_)
    seen[codes] = True
    found = np.flatnonzero(seen)
    places = np.empty(count, np.int64)
    places[found] = np.arange(len(found))
    first_rows = np.empty(count, np.intp)
    first_rows[codes] = np.arange(rows)
    return Groups(places[codes], first_rows[found])


def _arrays(column: Column) -> Walked:
    if isinstance(column, FlatColumn):
        return Walked(column.values, None, column.validity)
    assert isinstance(column, BytesColumn)
    # No 64-bit offset is beyond 32 bits: so many bytes are not grouped at once.
    return Walked(column.data, column.offsets.astype(np.int32, copy=False), column.validity)


def _small_codes(column: Column) -> tuple[Ints | None, int]:
    """Codes of whole numbers that lie near each other: the numbers. None of any other values."""
    if not isinstance(column, FlatColumn) or column.values.dtype.kind == "f":
        return None, 0
    low, high = int(column.values.min()), int(column.values.max())
    count = high - low + 1
    if count > _TABLE_MAX:
        return None, 0
    codes = column.values.astype(np.int64) - low
    return (codes, count) if column.validity is None else (np.where(column.validity, codes, count), count + 1)


def _numbered(words: Sequence[Words]) -> tuple[Ints, int]:
    """Return a code below the second result for each row, the same only for rows with the same ``words``.

    By a table of one row for each hash: rows that equal that one have its place for a code. The others, of values that
    share a hash with another, try again with another one, and at last are sorted: a caller that knows the hashes gains
    nothing.
    """
    codes = np.empty(len(words[0]), np.int64)
    rows, count = np.arange(len(codes)), 0
    for factor in _FACTORS:
        bits = len(rows).bit_length() + _SPARE_BITS
        own = [word[rows] for word in words]
        slots = _hashes(own, factor, bits)
        table = np.empty(1 << bits, np.int64)
        table[slots] = rows
        chosen = table[slots]
        same = np.logical_and.reduce([word[chosen] == mine for word, mine in zip(words, own, strict=True)])
        codes[rows[same]] = slots[same] + count
        rows, count = rows[~same], count + (1 << bits)
        if not len(rows):
            return codes, count
    found, places = np.unique(np.stack([word[rows] for word in words], axis=1), axis=0, return_inverse=True)
    codes[rows] = places.reshape(-1) + count
    return codes, count + len(found)


def _hashes(words: Sequence[Words], factor: np.uint64, bits: int) -> Ints:
    mixed = np.zeros(len(words[0]), np.uint64)
    for word in words:
        mixed = (mixed ^ word) * factor
        mixed ^= mixed >> np.uint64(32)
    return (mixed * factor >> np.uint64(64 - bits)).astype(np.int64)


def _words_of(column: Column) -> list[Words]:
    """Return the 64-bit words that tell the column's values apart, null too."""
    if isinstance(column, FlatColumn):
        values = column.values
        wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
        words = [wide.view(np.uint64)]
    else:
        assert isinstance(column, BytesColumn)
        words = _words_of_bytes(column)
    return words if column.validity is None else [*words, column.validity.astype(np.uint64)]


def _words_of_bytes(column: BytesColumn) -> list[Words]:
    starts, lengths = _starts(column), np.diff(column.offsets).astype(np.int64)
    longest = int(lengths.max())
    if longest > _WORDS_MAX * _WORD_BYTES:
        raw, numbers = column.data.tobytes(), dict[bytes, int]()
        ranges = pairwise(column.offsets.tolist())
        numbered = [numbers.setdefault(raw[start:end], len(numbers)) for start, end in ranges]
        return [np.array(numbered, np.uint64)]
    every = _words(column, "<u8")
    words = [lengths.astype(np.uint64)]
    for begin in range(0, longest, _WORD_BYTES):
        left = np.clip(lengths - begin, 0, _WORD_BYTES)
        words.append(every[np.where(left > 0, starts + begin, 0)] & _LOWEST[left])
    return words


def _starts(column: BytesColumn) -> Ints:
    return column.offsets[:-1].astype(np.int64, copy=False)


def _words(column: BytesColumn, dtype: str) -> Words:
    """Return the eight bytes from each place of the column's data on; behind the end there are zeros."""
    padded = np.concatenate([column.data, np.zeros(_WORD_BYTES, np.uint8)])
    return np.ndarray((len(padded) - _WORD_BYTES + 1,), dtype, padded.data, strides=(1,))


# --- values of one group ---------------------------------------------------------------------------------------------


def reduce_column(merge: Merge, column: Column, groups: Groups) -> Column:
    """One row for each group. Nulls count for nothing; a group of nulls is null, or zero if they are added."""
    if merge is Merge.ADD:
        assert isinstance(column, FlatColumn)
        return FlatColumn(column.type, len(groups), _added(column.values, groups))
    if isinstance(column, FlatColumn):
        return _extreme(merge, column, groups)
    assert isinstance(column, BytesColumn)
    return _extreme_bytes(merge, column, groups)


def _added(values: npt.NDArray[Any], groups: Groups) -> npt.NDArray[Any]:
    # Infinities of both signs make a NaN, and large doubles an infinity: no reason to warn.
    with np.errstate(all="ignore"):
        if groups.places is None:
            return np.array([values.sum()], values.dtype)
        sums: npt.NDArray[Any] = np.zeros(len(groups), values.dtype)
        np.add.at(sums, groups.places, values)
    return sums


def _extreme(merge: Merge, column: FlatColumn, groups: Groups) -> Column:
    values, places, present = column.values, groups.places, np.ones(len(groups), np.bool_)
    if places is None:
        places = np.zeros(column.length, np.int64)
    if column.validity is not None:
        values, places = values[column.validity], places[column.validity]
        present = np.zeros(len(groups), np.bool_)
        present[places] = True
    is_boolean = values.dtype.kind == "b"
    if is_boolean:
        values = values.view(np.uint8)
    least, worst = _extreme_of(merge, values.dtype)
    found = np.full(len(groups), worst, values.dtype)
    # A NaN is a value here: no reason to warn.
    with np.errstate(all="ignore"):
        if len(groups) == 1 and len(values):
            found[0] = least.reduce(values)
        else:
            least.at(found, places, values)
    found[~present] = 0
    kept = found.view(np.bool_) if is_boolean else found
    return FlatColumn(column.type, len(groups), kept, validity=None if present.all() else present)


def _extreme_of(merge: Merge, dtype: np.dtype[Any]) -> tuple[np.ufunc, Any]:
    """Return the function that finds the extreme, and a value that any other replaces. NaN is above all."""
    if dtype.kind == "f":
        return (np.fmin, np.nan) if merge is Merge.MIN else (np.maximum, -np.inf)
    bounds = np.iinfo(dtype)
    return (np.minimum, bounds.max) if merge is Merge.MIN else (np.maximum, bounds.min)


def _extreme_bytes(merge: Merge, column: BytesColumn, groups: Groups) -> Column:
    rows = present_rows(column)
    winners = np.full(len(groups), -1, np.intp)
    if len(rows):
        places = np.zeros(column.length, np.int64) if groups.places is None else groups.places
        winners = _winners(merge, column, rows, places, winners)
    present = winners >= 0
    found = take(column, winners[present])
    return found if present.all() else expand(found, present)


def _winners(
    merge: Merge, column: BytesColumn, rows: npt.NDArray[np.intp], places: Ints, winners: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the row of each group's extreme, word by word: those that are behind in one leave the race."""
    starts, lengths = _starts(column), np.diff(column.offsets).astype(np.int64)
    words = _words(column, ">u8")
    for word in range(_WORDS_MAX):
        left = np.clip(lengths[rows] - word * _WORD_BYTES, 0, _WORD_BYTES)
        at = np.where(left > 0, starts[rows] + word * _WORD_BYTES, 0)
        rows = _best(merge, words[at] & _HIGHEST[left], places, rows, len(winners))
        if lengths[rows].max() <= (word + 1) * _WORD_BYTES:
            # The remaining rows of a group differ in zeros at their ends: the shorter one comes first.
            rows = _best(merge, lengths[rows].astype(np.uint64), places, rows, len(winners))
            winners[places[rows]] = rows
            return winners
    raw, bounds = column.data.tobytes(), column.offsets.tolist()
    found: dict[int, bytes] = {}
    for row, place in zip(rows.tolist(), places[rows].tolist(), strict=True):
        value, before = raw[bounds[row] : bounds[row + 1]], found.get(place)
        if before is None or (value < before if merge is Merge.MIN else value > before):
            found[place], winners[place] = value, row
    return winners


def _best(merge: Merge, words: Words, places: Ints, rows: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    """Return the ``rows`` with a word that is their group's extreme."""
    least, worst = _extreme_of(merge, np.dtype(np.uint64))
    best = np.full(count, worst, np.uint64)
    least.at(best, places[rows], words)
    ahead: npt.NDArray[np.intp] = rows[words == best[places[rows]]]
    return ahead
