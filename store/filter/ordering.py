"""Comparisons of columns, whole arrays at a time: numbers by numpy, text and bytes in blocks of their beginnings.

A null row's answer is arbitrary here; the caller lays the column's validity over it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import Bools, BytesColumn, Ints
from cortado.store.filter.expression import Operator

COMPARE: Final[dict[Operator, Callable[[Any, Any], Any]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
"""For Python values and for arrays alike."""

# Bytes that are compared in one step. Rows that differ before its end are done, so long texts cost little.
BLOCK_BYTES: Final = 32


def compare_reals(op: Operator, left: npt.NDArray[np.float64], right: npt.NDArray[np.float64] | float) -> Bools:
    """``left op right``, where NaN equals itself and is above every number."""
    result: Bools
    match op:
        case Operator.EQ:
            result = (left == right) | (np.isnan(left) & np.isnan(right))
        case Operator.NE:
            result = (left != right) & ~(np.isnan(left) & np.isnan(right))
        case Operator.LT:
            # IEEE finds every comparison with NaN false; so a value that is not "at or above" is below, or has a NaN.
            result = ~(left >= right) & ~np.isnan(left)
        case Operator.LE:
            result = ~(left > right) & (~np.isnan(left) | np.isnan(right))
        case Operator.GT:
            result = ~(left <= right) & ~np.isnan(right)
        case Operator.GE:
            result = ~(left < right) & (np.isnan(left) | ~np.isnan(right))
    return result


def compare_bytes(op: Operator, column: BytesColumn, value: bytes) -> Bools:
    """``column op value``, byte by byte; for UTF-8 that is the order of the code points."""
    if op in (Operator.EQ, Operator.NE):
        equal = _equal_bytes(column, value)
        return equal if op is Operator.EQ else ~equal
    result: Bools = COMPARE[op](_three_way(column, value), 0)
    return result


def starts_with(column: BytesColumn, prefix: bytes) -> Bools:
    """True if a row begins with ``prefix``."""
    starts, lengths = _ranges(column)
    return _same_beginning(column.data, starts, np.flatnonzero(lengths >= len(prefix)), prefix)


def _ranges(column: BytesColumn) -> tuple[Ints, Ints]:
    offsets = column.offsets.astype(np.int64, copy=False)
    return offsets[:-1], np.diff(offsets)


def _equal_bytes(column: BytesColumn, value: bytes) -> Bools:
    starts, lengths = _ranges(column)
    return _same_beginning(column.data, starts, np.flatnonzero(lengths == len(value)), value)


def _same_beginning(data: npt.NDArray[np.uint8], starts: Ints, rows: npt.NDArray[np.intp], value: bytes) -> Bools:
    """True for those of ``rows``, all at least as long as ``value``, that begin with it."""
    wanted = np.frombuffer(value, np.uint8)
    for begin in range(0, len(value), BLOCK_BYTES):
        block = wanted[begin : begin + BLOCK_BYTES]
        index = starts[rows, None] + np.arange(begin, begin + len(block))
        rows = rows[(data[index] == block).all(axis=1)]
    result = np.zeros(len(starts), np.bool_)
    result[rows] = True
    return result


def _three_way(column: BytesColumn, value: bytes) -> npt.NDArray[np.int64]:
    """Negative, zero or positive for each row, as it lies below, at or above ``value``."""
    starts, lengths = _ranges(column)
    # If the common beginning is equal, the shorter one comes first.
    result = lengths - len(value)
    wanted = np.frombuffer(value, np.uint8)
    rows = np.flatnonzero(lengths > 0)
    for begin in range(0, len(value), BLOCK_BYTES):
        rows = rows[lengths[rows] > begin]
        if not rows.size:
            break
        block = wanted[begin : begin + BLOCK_BYTES]
        inside = np.arange(begin, begin + len(block))
        index = starts[rows, None] + inside
        beyond = inside >= lengths[rows, None]
        found = column.data[np.where(beyond, starts[rows, None], index)].astype(np.int16)
        difference = np.where(beyond, 0, found - block)
        first = (difference != 0).argmax(axis=1)
        decided = difference[np.arange(len(rows)), first]
        result[rows[decided != 0]] = decided[decided != 0]
        rows = rows[decided == 0]
    return result
