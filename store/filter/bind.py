"""From a syntax tree to a filter that fits a schema: every field exists, every comparison has a meaning."""

from __future__ import annotations

from typing import assert_never

from cortado.schema.model import Schema
from cortado.store.filter import coerce
from cortado.store.filter.expression import (
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    LiteralKind,
    Not,
    Operand,
    Operator,
    Or,
    Path,
    StartsWith,
    Truth,
)
from cortado.store.filter.fields import Family, FieldRef, resolve_field
from cortado.store.filter.leaves import Counted
from cortado.store.filter.parse import parse_filter
from cortado.store.filter.tokens import fail
from cortado.store.filter.truth import (
    BoundFilter,
    Conjunction,
    Constant,
    Disjunction,
    FieldPair,
    FieldTest,
    Negation,
    Node,
    NullTest,
)

_MIXED = ({Family.INTEGER, Family.REAL}, {Family.INTEGER, Family.DECIMAL}, {Family.TEXT, Family.ENUM})


def compile_filter(text: str, schema: Schema) -> BoundFilter | None:
    """Return the filter of a request; None for an empty text, which keeps every row. Raises InvalidFilter."""
    return bind(parse_filter(text), schema) if text.strip() else None


def bind(expression: Expression, schema: Schema) -> BoundFilter:
    """Hold a filter against the schema of the documents it will read. Raises InvalidFilter with the position."""
    binder = _Binder(schema)
    root = binder.bind(expression)
    return BoundFilter(root, tuple(binder.fields))


class _Binder:
    """One walk down the tree; ``fields`` collects the fields that are read, in order of appearance."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.fields: dict[str, FieldRef] = {}

    def bind(self, expression: Expression) -> Node:
        match expression:
            case And(items):
                return Conjunction(tuple(map(self.bind, items)))
            case Or(items):
                return Disjunction(tuple(map(self.bind, items)))
            case Not(item):
                return Negation(self.bind(item))
            case Truth(operand):
                return self._truth(operand)
            case IsNull(operand):
                return self._is_null(operand)
            case In(operand, items):
                return self._in(operand, items)
            case StartsWith(operand, prefix):
                return self._starts_with(operand, prefix)
            case Compare():
                return self._compare(expression)
            case _:
                assert_never(expression)

    def _field(self, path: Path) -> FieldRef:
        field = self.fields.get(path.dotted)
        if field is None:
            field = self.fields[path.dotted] = resolve_field(self._schema, path)
        return field

    def _comparable_field(self, path: Path) -> FieldRef:
        field = self._field(path)
        if field.family is Family.OPAQUE:
            fail(path.position, f"field {field.path} is of a type that does not compare: only 'is null' works on it")
        return field

    def _truth(self, operand: Operand) -> Node:
        if isinstance(operand, Literal):
            assert operand.value is None or isinstance(operand.value, bool)
            return Constant(operand.value)
        field = self._field(operand)
        if field.family is not Family.BOOLEAN:
            fail(operand.position, f"field {field.path} is {field.family}: expected a comparison, or a boolean field")
        return FieldTest(field, Counted(Operator.EQ, 1))

    def _is_null(self, operand: Operand) -> Node:
        if isinstance(operand, Literal):
            return Constant(operand.kind is LiteralKind.NULL)
        return NullTest(self._field(operand))

    def _in(self, path: Path, items: tuple[Literal, ...]) -> Node:
        field = self._comparable_field(path)
        values = [item for item in items if item.kind is not LiteralKind.NULL]
        if not values:
            return Constant(None)
        test = FieldTest(field, coerce.membership(field, values))
        # Not found in a list with null is unknown: null might have been it.
        return test if len(values) == len(items) else Disjunction((test, Constant(None)))

    def _starts_with(self, path: Path, prefix: Literal) -> Node:
        field = self._comparable_field(path)
        if prefix.kind is LiteralKind.NULL:
            return Constant(None)
        return FieldTest(field, coerce.prefix(field, prefix))

    def _compare(self, compare: Compare) -> Node:
        op, left, right = compare.operator, compare.left, compare.right
        if isinstance(left, Path):
            return self._pair(op, left, right) if isinstance(right, Path) else self._against(op, left, right)
        if isinstance(right, Literal):
            fail(compare.position, "expected a field on one side of the comparison")
        return self._against(op.mirrored, right, left)

    def _against(self, op: Operator, path: Path, literal: Literal) -> Node:
        field = self._comparable_field(path)
        if literal.kind is LiteralKind.NULL:
            return Constant(None)
        return FieldTest(field, coerce.comparison(field, op, literal))

    def _pair(self, op: Operator, left: Path, right: Path) -> Node:
        first, second = self._comparable_field(left), self._comparable_field(right)
        families = {first.family, second.family}
        if len(families) == 2 and families not in _MIXED:
            fail(
                right.position,
                f"field {first.path} is {first.family}, field {second.path} is {second.family}: they do not compare",
            )
        return FieldPair(op, first, second)
