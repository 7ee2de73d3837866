"""The state that an aggregate keeps of a group: some numbers or a value, as columns with a row for each group.

A row of the table is a group of one row to begin with. So one way merges groups of rows, of one slice, or of many:
:func:`cortado.store.aggregate.reduce.reduce_column`, column by column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from cortado.schema.columnar.column import Column, FlatColumn, Ints
from cortado.schema.model import Kind, Primitive
from cortado.store.aggregate.reduce import Merge
from cortado.store.aggregate.values import SUM_BYTES, limbs, of_limbs, ordered, travelling
from cortado.store.filter.fields import Family, FieldRef
from cortado.store.filter.truth import present_rows

_LONG: Final = Primitive(Kind.LONG)
_DOUBLE: Final = Primitive(Kind.DOUBLE)
INTEGER_BYTES: Final = 16
"""The size of a partial sum of int or long."""

Columns = Mapping[str, Column]


class Measure(Protocol):
    """One aggregate of a field."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that it reads."""

    def begin(self, columns: Columns, rows: int, /) -> list[tuple[Merge, Column]]:
        """Return the state of each of the rows, and how several of them merge."""

    def travelling(self, kept: Sequence[Column], /) -> list[Column]:
        """Return its fields in the groups' schema."""


@dataclass(frozen=True, slots=True)
class CountRows:
    """``count(*)``."""

    @property
    def paths(self) -> tuple[str, ...]:
        return ()

    def begin(self, _columns: Columns, rows: int) -> list[tuple[Merge, Column]]:
        return [(Merge.ADD, _longs(np.ones(rows, np.int64)))]

    def travelling(self, kept: Sequence[Column]) -> list[Column]:
        return list(kept)


@dataclass(frozen=True, slots=True)
class CountValues:
    """``count(field)``: the rows with a value."""

    field: FieldRef

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.field.path,)

    def begin(self, columns: Columns, _rows: int) -> list[tuple[Merge, Column]]:
        return [(Merge.ADD, _count(columns[self.field.path]))]

    def travelling(self, kept: Sequence[Column]) -> list[Column]:
        return list(kept)


@dataclass(frozen=True, slots=True)
class RealSum:
    """The sum of floats and doubles, a double; ``with_count``: for an average."""

    field: FieldRef
    with_count: bool

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.field.path,)

    def begin(self, columns: Columns, _rows: int) -> list[tuple[Merge, Column]]:
        column = columns[self.field.path]
        assert isinstance(column, FlatColumn)
        values = column.values.astype(np.float64, copy=False)
        return [(Merge.ADD, _count(column)), (Merge.ADD, FlatColumn(_DOUBLE, column.length, values))]

    def travelling(self, kept: Sequence[Column]) -> list[Column]:
        count, total = kept
        assert isinstance(total, FlatColumn)
        some = _some(count)
        summed = FlatColumn(_DOUBLE, total.length, np.where(some, total.values, 0.0), validity=some)
        return [summed, count] if self.with_count else [summed]


@dataclass(frozen=True, slots=True)
class ExactSum:
    """The sum of whole numbers or decimals, exact at any size; ``with_count``: for an average."""

    field: FieldRef
    with_count: bool

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.field.path,)

    def begin(self, columns: Columns, _rows: int) -> list[tuple[Merge, Column]]:
        column = columns[self.field.path]
        digits = limbs(ordered(column, self.field))
        return [(Merge.ADD, _count(column)), *((Merge.ADD, _longs(each)) for each in digits)]

    def travelling(self, kept: Sequence[Column]) -> list[Column]:
        count, *digits = kept
        size = INTEGER_BYTES if self.field.family is Family.INTEGER else SUM_BYTES
        summed = of_limbs([_values(each) for each in digits], size)
        # For a group without values the digits are zeros, and the null is to hold nothing.
        some = _some(count)
        if not some.all():
            offsets = np.zeros(count.length + 1, np.int64)
            np.cumsum(some * size, out=offsets[1:])
            summed.data = summed.data.reshape(-1, size)[some].reshape(-1)
            summed.offsets, summed.validity = offsets, some
        return [summed, count] if self.with_count else [summed]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The least or the greatest value."""

    field: FieldRef
    merge: Merge

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.field.path,)

    def begin(self, columns: Columns, _rows: int) -> list[tuple[Merge, Column]]:
        return [(self.merge, ordered(columns[self.field.path], self.field))]

    def travelling(self, kept: Sequence[Column]) -> list[Column]:
        return [travelling(kept[0], self.field)]


def _longs(values: Ints) -> FlatColumn:
    return FlatColumn(_LONG, len(values), values)


def _count(column: Column) -> FlatColumn:
    return _longs(present_rows(column).astype(np.int64))


def _values(column: Column) -> Ints:
    assert isinstance(column, FlatColumn)
    return column.values


def _some(count: Column) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return _values(count) > 0
