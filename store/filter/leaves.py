"""One field against constants: the leaves of a bound filter, each for a whole column.

No test is asked about null: that is the tree's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np

from cortado.schema.columnar.column import Bools, BytesColumn, Column, FlatColumn
from cortado.schema.model import Enum
from cortado.store.filter.expression import Operator
from cortado.store.filter.fields import Comparable
from cortado.store.filter.ordering import COMPARE, compare_bytes, compare_reals, starts_with

# Up to so many texts of an `in` are compared as arrays; more are looked up, row by row, in a set.
_FEW_TEXTS = 16


Form: TypeAlias = Callable[[BytesColumn], Column]


class Test(Protocol):
    """A question about one field's values that are not null."""

    def mask(self, column: Column, /) -> Bools:
        """Return the answer for each row; arbitrary if a row is null."""


@dataclass(frozen=True, slots=True)
class Always:
    """A comparison with the same answer for every value, such as an int below 2^70."""

    answer: bool

    def mask(self, column: Column) -> Bools:
        return np.full(column.length, self.answer)


@dataclass(frozen=True, slots=True)
class Counted:
    """Integers, dates, times and booleans against one of them that fits 64 bits."""

    op: Operator
    threshold: int

    def mask(self, column: Column) -> Bools:
        result: Bools = COMPARE[self.op](flat_values(column).astype(np.int64, copy=False), self.threshold)
        return result


@dataclass(frozen=True, slots=True)
class Real:
    """Floats and doubles against a double."""

    op: Operator
    threshold: float

    def mask(self, column: Column) -> Bools:
        return compare_reals(self.op, flat_values(column).astype(np.float64, copy=False), self.threshold)


@dataclass(frozen=True, slots=True)
class Text:
    """Strings, enums, bytes and fixed against bytes."""

    op: Operator
    value: bytes

    def mask(self, column: Column) -> Bools:
        if isinstance(column, BytesColumn):
            return compare_bytes(self.op, column, self.value)
        return _by_symbol(self, column)

    def holds(self, value: Comparable) -> bool:
        return bool(COMPARE[self.op](value, self.value))


@dataclass(frozen=True, slots=True)
class Prefix:
    """Strings, enums, bytes and fixed that begin with ``prefix``."""

    prefix: bytes

    def mask(self, column: Column) -> Bools:
        if isinstance(column, BytesColumn):
            return starts_with(column, self.prefix)
        return _by_symbol(self, column)

    def holds(self, value: Comparable) -> bool:
        return isinstance(value, bytes) and value.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class Formed:
    """A test of the values in another ``form``: decimals in units, UUIDs as bytes."""

    form: Form
    test: Test

    def mask(self, column: Column) -> Bools:
        assert isinstance(column, BytesColumn)
        return self.test.mask(self.form(column))


@dataclass(frozen=True, slots=True)
class Exact:
    """Decimals that do not fit 64 bits against one, as Python values."""

    op: Operator
    value: Any

    def mask(self, column: Column) -> Bools:
        compare, value = COMPARE[self.op], self.value
        return np.fromiter((each is not None and compare(each, value) for each in column.to_pylist()), np.bool_)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Equal to any of ``values``, all of the field's comparable form."""

    values: frozenset[Comparable]

    def mask(self, column: Column) -> Bools:
        if isinstance(column, BytesColumn) and all(isinstance(each, bytes) for each in self.values):
            return self._texts(column)
        if not isinstance(column, FlatColumn):
            values = self.values
            return np.fromiter((each in values for each in column.to_pylist()), np.bool_, column.length)
        if isinstance(column.type, Enum):
            return _by_symbol(self, column)
        if column.values.dtype.kind == "f":
            numbers = [each[1] for each in self.values if isinstance(each, tuple) and not each[0]]
            found = np.isin(column.values.astype(np.float64, copy=False), np.array(numbers, np.float64))
            return found | np.isnan(column.values) if (True, 0.0) in self.values else found
        return np.isin(column.values.astype(np.int64, copy=False), np.array(list(self.values), np.int64))

    def holds(self, value: Comparable) -> bool:
        return value in self.values

    def _texts(self, column: BytesColumn) -> Bools:
        if len(self.values) <= _FEW_TEXTS:
            result = np.zeros(column.length, np.bool_)
            for value in self.values:
                assert isinstance(value, bytes)
                result |= compare_bytes(Operator.EQ, column, value)
            return result
        raw, bounds, values = column.data.tobytes(), column.offsets.tolist(), self.values
        return np.fromiter(
            (raw[start:end] in values for start, end in pairwise(bounds)),
            np.bool_,
            column.length,
        )


def flat_values(column: Column) -> Any:
    """Return the array of a column of plain numbers."""
    if not isinstance(column, FlatColumn):
        raise TypeError(f"expected a column of numbers, found {type(column).__name__}")
    return column.values


def _by_symbol(test: Text | Prefix | OneOf, column: Column) -> Bools:
    """An enum's column holds the symbols' numbers: ask once for each symbol."""
    assert isinstance(column.type, Enum)
    answers = np.array([test.holds(symbol.encode()) for symbol in column.type.symbols], np.bool_)
    result: Bools = answers[flat_values(column)]
    return result
