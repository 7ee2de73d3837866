"""Rows with equal values in some columns, numbered: compiled.

A table of open addressing, by a hash that begins with a number that the process has drawn: a caller that chooses the
values does not know which of them collide. Each row is compared with the first one of the group that its place in the
table names::

    rows      UA 7   AA 7   UA 7        table     - 1 - - 0 -       the group whose hash begins there, or next to it
    places    0      1      0           firsts    0 1               the first row of each group
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cortado.store.mvcc.kernel.machine import (
    compiled,
    first_difference,
    in_place,
    load1,
    load4,
    load8,
    number_at,
    set_number,
    store4,
)

# A column's numbers: addresses of arrays, as of a slot (bodies.py), and the bytes of a value, 0 for ranges of bytes.
VALUES: Final = 0
OFFSETS: Final = 1
VALIDITY: Final = 2
WIDTH: Final = 3
COLUMN_NUMBERS: Final = 4

CROWDED: Final = -1

_STEPS_PER_ROW: Final = 16
"""The steps past other groups, on average: a good hash takes one or two."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_ABSENT: Final = np.uint64(0xC2B2AE3D27D4EB4F)


@in_place
def _mixed(hashed: Any, word: Any) -> Any:
    hashed = (hashed ^ word) * _FACTOR
    return hashed ^ (hashed >> np.uint64(32))


@in_place
def _value(values: Any, width: Any, row: Any) -> Any:
    if width == 8:
        return load8(values + 8 * row)
    return np.uint64(load4(values + 4 * row) if width == 4 else load1(values + row))


@in_place
def _mixed_bytes(hashed: Any, place: Any, end: Any) -> Any:
    hashed = _mixed(hashed, np.uint64(end - place))
    while place + 8 <= end:
        hashed = _mixed(hashed, load8(place))
        place += 8
    word = np.uint64(0)
    if place + 4 <= end:
        word = np.uint64(load4(place))
        place += 4
    while place < end:
        word = (word << np.uint64(8)) | np.uint64(load1(place))
        place += 1
    return _mixed(hashed, word)


@in_place
def _hash(columns: Any, count: Any, row: Any, seed: Any) -> Any:
    hashed = seed
    for each in range(count):
        column = columns + 8 * COLUMN_NUMBERS * each
        values, width, validity = number_at(column, VALUES), number_at(column, WIDTH), number_at(column, VALIDITY)
        if validity != 0 and load1(validity + row) == 0:
            hashed = _mixed(hashed, _ABSENT)
        elif width != 0:
            hashed = _mixed(hashed, _value(values, width, row))
        else:
            offsets = number_at(column, OFFSETS) + 4 * row
            hashed = _mixed_bytes(hashed, values + load4(offsets), values + load4(offsets + 4))
    return _mixed(hashed, _ABSENT)


@in_place
def _is_same(columns: Any, count: Any, row: Any, other: Any) -> Any:
    for each in range(count):
        column = columns + 8 * COLUMN_NUMBERS * each
        values, width, validity = number_at(column, VALUES), number_at(column, WIDTH), number_at(column, VALIDITY)
        if validity != 0 and load1(validity + row) != load1(validity + other):
            return False
        if width != 0:
            if _value(values, width, row) != _value(values, width, other):
                return False
            continue
        offsets, others = number_at(column, OFFSETS) + 4 * row, number_at(column, OFFSETS) + 4 * other
        start, there = load4(offsets), load4(others)
        size_bytes = load4(offsets + 4) - start
        if load4(others + 4) - there != size_bytes:
            return False
        if first_difference(values + start, values + there, size_bytes) != size_bytes:
            return False
    return True


@compiled
def group(columns: Any, count: Any, rows: Any, table: Any, out: Any) -> Any:
    """Number the groups; return how many there are, or CROWDED if the table fills too unevenly.

    ``columns`` is the address of ``count`` columns. ``table`` is the address of zeros of 32 bits (a power of two of
    them, more than rows), the highest place, and the seed. ``out`` has two addresses: for each row's group, and for
    each group's first row.
    """
    slots, highest, seed = table
    places, firsts = out
    groups = np.int64(0)
    steps_left = _STEPS_PER_ROW * rows
    for row in range(rows):
        slot = np.int64(_hash(columns, count, row, np.uint64(seed)) >> np.uint64(32)) & highest
        found = load4(slots + 4 * slot)
        while found != 0 and not _is_same(columns, count, row, number_at(firsts, found - 1)):
            slot = (slot + 1) & highest
            found = load4(slots + 4 * slot)
            steps_left -= 1
            if steps_left < 0:
                return np.int64(CROWDED)
        if found == 0:
            set_number(firsts, groups, row)
            groups += 1
            found = groups
            store4(slots + 4 * slot, found)
        set_number(places, row, found - 1)
    return groups
