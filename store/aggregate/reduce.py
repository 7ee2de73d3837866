"""Rows put together by group, whole columns at a time.

::

    rows       UA 3    AA 5    UA 4        codes of equal values, numbered within these rows
    places     0       1       0           the group of each row
    groups     UA 7    AA 5                each column reduced by place: added, or the least, or the greatest

Nothing here is kept: the same function puts rows together, and what other rows came to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn, Ints
from cortado.schema.columnar.columns import expand, present_rows, take

_WORD_BYTES: Final = 8
_WORDS_MAX: Final = 8
"""Longer equal beginnings are compared row by row."""
_TABLE_MAX: Final = 1 << 18
"""Up to so many codes are numbered by a table, which costs less than to sort them."""
# The first n bytes of a word: the lowest of a little-endian one, the highest of a big-endian one.
_LOWEST: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
_HIGHEST: Final = np.array([((1 << 8 * n) - 1) << 8 * (8 - n) for n in range(9)], np.uint64)


class Merge(Enum):
    """How the values of a group become one."""

    ADD = "add"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Groups:
    """For each row its group's place, and for each group one of its rows. ``places`` is None where all are one."""

    places: Ints | None
    first_rows: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.first_rows)


def group_rows(columns: Sequence[Column], rows: int) -> Groups:
    """The groups of equal values in ``columns``, which are in ordered form (``values.py``); of one row at least."""
    if not columns:
        return Groups(None, np.zeros(1, np.intp))
    codes, count = _codes(columns[0])
    for column in columns[1:]:
        if count > _TABLE_MAX:
            codes, count = _renumbered(codes)
        more, more_count = _codes(column)
        if more_count > _TABLE_MAX:
            more, more_count = _renumbered(more)
        codes, count = codes * more_count + more, count * more_count
    places, count = _renumbered(codes) if count > _TABLE_MAX else _by_table(codes, count)
    first_rows = np.empty(count, np.intp)
    first_rows[places] = np.arange(rows)
    return Groups(places, first_rows)


def _by_table(codes: Ints, count: int) -> tuple[Ints, int]:
    seen = np.zeros(count, np.bool_)
    seen[codes] = True
    found = np.flatnonzero(seen)
    numbers = np.empty(count, np.int64)
    numbers[found] = np.arange(len(found))
    return numbers[codes], len(found)


def _renumbered(codes: npt.NDArray[Any]) -> tuple[Ints, int]:
    found, places = np.unique(codes, return_inverse=True)
    return places.reshape(-1).astype(np.int64, copy=False), len(found)


def _codes(column: Column) -> tuple[Ints, int]:
    """A number below the second result for each row, the same for equal values alone; null has one of its own."""
    if isinstance(column, FlatColumn):
        codes, count = _number_codes(column.values)
    else:
        assert isinstance(column, BytesColumn)
        codes, count = _byte_codes(column)
    if column.validity is None:
        return codes, count
    return np.where(column.validity, codes, count), count + 1


def _number_codes(values: npt.NDArray[Any]) -> tuple[Ints, int]:
    if values.dtype.kind == "f":
        return _renumbered(values.view(f"i{values.dtype.itemsize}"))
    if values.dtype.kind == "b":
        return values.astype(np.int64), 2
    low, high = int(values.min()), int(values.max())
    if high - low < _TABLE_MAX:
        return values.astype(np.int64) - low, high - low + 1
    return _renumbered(values)


def _byte_codes(column: BytesColumn) -> tuple[Ints, int]:
    starts, lengths = _starts(column), np.diff(column.offsets)
    if lengths.max() < _WORD_BYTES:
        words = _words(column, "<u8")[starts] & _LOWEST[lengths]
        return _renumbered(words | (lengths.astype(np.uint64) << np.uint64(56)))
    raw, numbers = column.data.tobytes(), dict[bytes, int]()
    numbered = [numbers.setdefault(raw[start:end], len(numbers)) for start, end in pairwise(column.offsets.tolist())]
    return np.array(numbered, np.int64), len(numbers)


def _starts(column: BytesColumn) -> Ints:
    return column.offsets[:-1].astype(np.int64, copy=False)


def _words(column: BytesColumn, dtype: str) -> npt.NDArray[np.uint64]:
    """The eight bytes from each place of the column's data on; behind the end there are zeros."""
    padded = np.concatenate([column.data, np.zeros(_WORD_BYTES, np.uint8)])
    return np.ndarray((len(padded) - _WORD_BYTES + 1,), dtype, padded.data, strides=(1,))


# --- values of one group ---------------------------------------------------------------------------------------------


def reduce_column(merge: Merge, column: Column, groups: Groups) -> Column:
    """One row for each group. Nulls count for nothing; a group of nulls is null, or zero where they are added."""
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
    """What finds it, and a value that any other takes the place of. NaN is above all."""
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
    """The row of each group's extreme, word by word: those that are behind in one leave the race."""
    starts, lengths = _starts(column), np.diff(column.offsets).astype(np.int64)
    words = _words(column, ">u8")
    for word in range(_WORDS_MAX):
        left = np.clip(lengths[rows] - word * _WORD_BYTES, 0, _WORD_BYTES)
        at = np.where(left > 0, starts[rows] + word * _WORD_BYTES, 0)
        rows = _best(merge, words[at] & _HIGHEST[left], places, rows, len(winners))
        if lengths[rows].max() <= (word + 1) * _WORD_BYTES:
            # What is left of a group differs in zeros at its end: the shorter one comes first.
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


def _best(
    merge: Merge, words: npt.NDArray[np.uint64], places: Ints, rows: npt.NDArray[np.intp], count: int
) -> npt.NDArray[np.intp]:
    """Those of ``rows`` whose word is its group's extreme."""
    least, worst = _extreme_of(merge, np.dtype(np.uint64))
    best = np.full(count, worst, np.uint64)
    least.at(best, places[rows], words)
    ahead: npt.NDArray[np.intp] = rows[words == best[places[rows]]]
    return ahead
