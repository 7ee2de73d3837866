"""A bound filter: the tree that is evaluated, over whole columns, in SQL's three-valued logic.

A verdict holds two masks, *true* and *false*; a row in neither is unknown. So ``not`` exchanges them, and a row passes
a filter only if it is true::

    and    true  false  unknown        or     true  false  unknown
    true   T     F      ?              true   T     T      T
    false  F     F      F              false  T     F      ?
    ?      ?     F      ?              ?      T     ?      ?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from cortado.errors import InvalidArgument
from cortado.schema.columnar.column import Bools, Column, FlatColumn, NullColumn, UnionColumn
from cortado.schema.model import NULL, Union
from cortado.store.filter.expression import Operator
from cortado.store.filter.fields import COUNTED, Family, FieldRef
from cortado.store.filter.leaves import Test, flat_values
from cortado.store.filter.ordering import COMPARE, compare_reals

Columns = Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class Verdict:
    """For each row: ``true``, ``false``, or neither, which is unknown. Never both. A constant's have no dimension."""

    true: Bools
    false: Bools


class Node(Protocol):
    """A condition that is true, false or unknown for each row."""

    def evaluate(self, columns: Columns, /) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same for every row; None is unknown."""

    answer: bool | None

    def evaluate(self, _columns: Columns, /) -> Verdict:
        return Verdict(np.array(self.answer is True), np.array(self.answer is False))


@dataclass(frozen=True, slots=True)
class NullTest:
    """``field is null``."""

    field: FieldRef

    def evaluate(self, columns: Columns, /) -> Verdict:
        present = present_rows(columns[self.field.path])
        return Verdict(~present, present)


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A field against constants; unknown if it is null."""

    field: FieldRef
    test: Test

    def evaluate(self, columns: Columns, /) -> Verdict:
        column = columns[self.field.path]
        return _where_present(self.test.mask(column), column.validity)


@dataclass(frozen=True, slots=True)
class FieldPair:
    """A field against another one; unknown if either is null."""

    op: Operator
    left: FieldRef
    right: FieldRef

    def evaluate(self, columns: Columns, /) -> Verdict:
        left, right = columns[self.left.path], columns[self.right.path]
        valid = _both(left.validity, right.validity)
        return _where_present(self._mask(left, right), valid)

    def _mask(self, left: Column, right: Column) -> Bools:
        families = {self.left.family, self.right.family}
        if families <= {Family.INTEGER, Family.REAL} and Family.REAL in families:
            reals = [flat_values(each).astype(np.float64, copy=False) for each in (left, right)]
            return compare_reals(self.op, reals[0], reals[1])
        if families <= COUNTED | {Family.BOOLEAN} and self.left.unit_ns == self.right.unit_ns:
            result: Bools = COMPARE[self.op](flat_values(left), flat_values(right))
            return result
        pairs = zip(_scaled(left, self.left), _scaled(right, self.right), strict=True)
        compare = COMPARE[self.op]
        return np.fromiter((a is not None and b is not None and compare(a, b) for a, b in pairs), np.bool_, left.length)


@dataclass(frozen=True, slots=True)
class Negation:
    """``not item``."""

    item: Node

    def evaluate(self, columns: Columns, /) -> Verdict:
        verdict = self.item.evaluate(columns)
        return Verdict(verdict.false, verdict.true)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All ``items``."""

    items: tuple[Node, ...]

    def evaluate(self, columns: Columns, /) -> Verdict:
        verdicts = [item.evaluate(columns) for item in self.items]
        return Verdict(
            reduce(np.logical_and, (each.true for each in verdicts)),
            reduce(np.logical_or, (each.false for each in verdicts)),
        )


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Any of ``items``."""

    items: tuple[Node, ...]

    def evaluate(self, columns: Columns, /) -> Verdict:
        verdicts = [item.evaluate(columns) for item in self.items]
        return Verdict(
            reduce(np.logical_or, (each.true for each in verdicts)),
            reduce(np.logical_and, (each.false for each in verdicts)),
        )


@dataclass(frozen=True, slots=True)
class BoundFilter:
    """A filter that fits a schema. ``paths`` are the fields it reads, to be decoded for :meth:`mask`."""

    root: Node
    paths: tuple[str, ...]

    def mask(self, columns: Columns, rows: int | None = None) -> Bools:
        """True for the rows where the filter is true: neither false nor unknown.

        ``columns`` has a column for each of ``paths``, resolved to the schema that the filter was bound to, all of one
        length; ``rows`` is needed only if ``paths`` is empty.
        """
        if rows is None:
            if not self.paths:
                raise InvalidArgument("rows", "is needed for a filter that reads no field")
            rows = columns[self.paths[0]].length
        return np.broadcast_to(self.root.evaluate(columns).true, rows)


def present_rows(column: Column) -> Bools:
    """True if a column is not null."""
    if isinstance(column, NullColumn):
        return np.zeros(column.length, np.bool_)
    present = np.ones(column.length, np.bool_) if column.validity is None else column.validity
    if isinstance(column, UnionColumn) and isinstance(column.type, Union) and NULL in column.type.branches:
        present = present & (column.branches != column.type.branches.index(NULL))
    return present


def _where_present(mask: Bools, validity: Bools | None) -> Verdict:
    if validity is None:
        return Verdict(mask, ~mask)
    return Verdict(mask & validity, ~mask & validity)


def _both(left: Bools | None, right: Bools | None) -> Bools | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _scaled(column: Column, field: FieldRef) -> Sequence[Any]:
    """Return values that compare with those of another field of the family, in any unit; None if null."""
    if isinstance(column, FlatColumn) and field.family in COUNTED:
        # Python's integers: milliseconds as nanoseconds may not fit 64 bits.
        return [each * field.unit_ns for each in column.values.tolist()]
    return [None if each is None else _scale(field.comparable(each), field) for each in column.to_pylist()]


def _scale(value: Any, field: FieldRef) -> Any:
    return value * field.unit_ns if field.family in COUNTED else value
