"""Which conditions of a Spark query the node may evaluate, too: they are written in the filter language.

Spark evaluates each of them again. So the node's filter is a hint that saves the transfer of rows, and it must be true
of every row for which Spark's condition is. Only conditions with the same meaning in both languages are taken, to the
last value:

==================  ==================================================================================================
column              compared with
==================  ==================================================================================================
int, long           whole numbers that the column's type holds
double              numbers of up to 15 digits, by ``<``, ``<=``, ``>``, ``>=`` and ``between``
decimal             numbers that the column's type holds
string              texts without escapes; also ``like 'x%'``
boolean             ``true``, ``false``, and by itself
date                ``DATE '2013-01-01'``
timestamp           ``TIMESTAMP '...'``, as the moment that Spark makes of it, in the session's time zone
==================  ==================================================================================================

``in`` and ``between`` are of such comparisons, ``is [not] null`` is of any of these columns, ``and``, ``or`` and
``not`` are of such conditions. All others are Spark's alone: casts, arithmetic, functions, collations, parameters,
columns against columns, equality of doubles, times of day, bytes. So are floats (each side rounds their literals by its
own rule), and enums and UUIDs (strings in Spark, in any case of letters).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlglot import exp

from cortado.errors import InvalidFilter
from cortado.rfc3339 import parse_date, parse_moment
from cortado.schema.model import AvroType, Kind, Primitive, Record, Schema, Union
from cortado.store.filter.bind import compile_filter
from cortado.store.filter.expression import Path
from cortado.store.filter.fields import Family, FieldRef, resolve_field

Node: TypeAlias = Any
"""A node of sqlglot's tree."""

_COMPARISONS: Final = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_OF_ORDER: Final = ("<", "<=", ">", ">=")
_DOUBLE_DIGITS_MAX: Final = 15
"""With so many digits, every number is the nearest double to itself, by any computation."""
_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_COMPARABLE: Final = frozenset(
    {
        Family.INTEGER,
        Family.REAL,
        Family.DECIMAL,
        Family.TEXT,
        Family.ENUM,
        Family.UUID,
        Family.BOOLEAN,
        Family.DATE,
        Family.TIMESTAMP,
        Family.LOCAL_TIMESTAMP,
    }
)
"""Families with the same nulls as Spark's."""


@dataclass(frozen=True, slots=True)
class Literals:
    """Spark's reading of the literals of one query: ``text`` is the query's, ``moment`` turns the text of ``TIMESTAMP
    '...'`` into RFC 3339 in UTC, or None."""

    text: str
    moment: Callable[[str], str | None]


class Hints:
    """Conditions on the rows of one table. ``field`` says which field a column node is, None for another table's."""

    def __init__(self, schema: Schema, literals: Literals, field: Callable[[Node], Sequence[str] | None]) -> None:
        self._schema = schema
        self._literals = literals
        self._field = field

    def of(self, conditions: Sequence[Node]) -> str | None:
        """Return the filter of those ``conditions`` that are safe; None if none is."""
        texts = (self._condition(condition) for condition in conditions)
        kept = [text for text in texts if text is not None and self._fits(text)]
        while kept and not self._fits(" and ".join(kept)):
            # Each spares rows by itself; which ones do it best is unknown.
            kept = kept[: len(kept) // 2]
        return " and ".join(kept) or None

    def _fits(self, text: str) -> bool:
        """Within the bounds of a filter, which a query of Spark's may exceed."""
        try:
            return compile_filter(text, self._schema) is not None
        except InvalidFilter:
            return False

    def _condition(self, node: Node) -> str | None:
        kind = type(node)
        if kind is exp.Paren:
            return self._condition(node.this)
        if kind in (exp.And, exp.Or):
            # Flat: a thousand of them are no thousand levels, of Python's stack or of parentheses.
            parts = [self._condition(each) for each in node.flatten()]
            word = " and " if kind is exp.And else " or "
            return None if None in parts else f"({word.join(filter(None, parts))})"
        if kind is exp.Not:
            inner = self._condition(node.this)
            return None if inner is None else f"(not {inner})"
        if kind is exp.Column:
            found = self._found(node)
            return _path(found) if found is not None and found.family is Family.BOOLEAN else None
        return self._predicate(node)

    def _predicate(self, node: Node) -> str | None:
        kind = type(node)
        if kind in _COMPARISONS and _has_only(node, "this", "expression"):
            return self._comparison(node, _COMPARISONS[kind])
        if kind is exp.In and _has_only(node, "this", "expressions"):
            return self._listed(node.this, node.expressions)
        if kind is exp.Between and _has_only(node, "this", "low", "high"):
            bounds = [self._test(node.this, ">=", node.args["low"]), self._test(node.this, "<=", node.args["high"])]
            return None if None in bounds else f"({' and '.join(filter(None, bounds))})"
        if kind is exp.Is and type(node.expression) is exp.Null:
            found = self._found(node.this)
            return None if found is None or found.family not in _COMPARABLE else f"({_path(found)} is null)"
        if kind is exp.Like and _has_only(node, "this", "expression"):
            return self._prefix(node.this, node.expression)
        return None

    def _comparison(self, node: Node, operator: str) -> str | None:
        if type(node.this) is exp.Column:
            return self._test(node.this, operator, node.expression)
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        return self._test(node.expression, mirrored, node.this)

    def _test(self, column: Node, operator: str, literal: Node) -> str | None:
        found = self._found(column)
        value = None if found is None else self._value(found, literal, operator)
        return None if found is None or value is None else f"({_path(found)} {operator} {value})"

    def _listed(self, column: Node, items: Sequence[Node]) -> str | None:
        found = self._found(column)
        if found is None or not items:
            return None
        values = [self._value(found, each, "=") for each in items]
        return None if None in values else f"({_path(found)} in ({', '.join(filter(None, values))}))"

    def _prefix(self, column: Node, pattern: Node) -> str | None:
        found = self._found(column)
        text = self._string(pattern)
        if found is None or found.family is not Family.TEXT or text is None or text[-1:] != "%":
            return None
        prefix = text[:-1]
        return None if set("%_") & set(prefix) else f"({_path(found)} starts with '{prefix}')"

    # --- columns and literals --------------------------------------------------------------------------------

    def _found(self, node: Node) -> FieldRef | None:
        names = self._field(node) if type(node) is exp.Column else None
        exact = None if names is None else _exact(self._schema.record, names)
        if exact is None:
            return None
        try:
            return resolve_field(self._schema, Path(exact))
        except InvalidFilter:
            return None

    def _value(self, field: FieldRef, node: Node, operator: str) -> str | None:
        """Return the literal in the filter language, if both languages compare it alike with the field."""
        match field.family:
            case Family.INTEGER:
                return _whole(node, 31 if _kind(field.type) is Kind.INT else 63)
            case Family.REAL if _kind(field.type) is Kind.DOUBLE and operator in _OF_ORDER:
                return _double(node)
            case Family.DECIMAL:
                return _decimal(node, field.type)
            case Family.TEXT:
                text = self._string(node)
                return None if text is None else f"'{text}'"
            case Family.BOOLEAN if type(node) is exp.Boolean:
                return "true" if node.this else "false"
            case Family.DATE:
                text = self._typed(node, exp.DType.DATE)
                return None if text is None or not _is_date(text) else f"date '{text}'"
            case Family.TIMESTAMP if field.unit_ns > 1:
                text = self._typed(node, exp.DType.TIMESTAMPTZ)
                moment = None if text is None or not _is_moment(text) else self._literals.moment(text)
                return None if moment is None else f"timestamp '{moment}'"
            case _:
                return None

    def _string(self, node: Node) -> str | None:
        """Return a text that stands in the query letter by letter."""
        if type(node) is not exp.Literal or not node.is_string or set("'\"\\") & set(node.this):
            return None
        text: str = node.this
        return text if f"'{text}'" in self._literals.text or f'"{text}"' in self._literals.text else None

    def _typed(self, node: Node, kind: Any) -> str | None:
        """Return the text behind ``DATE`` or ``TIMESTAMP``."""
        is_literal = type(node) is exp.Cast and _has_only(node, "this", "to") and node.to.this == kind
        return self._string(node.this) if is_literal else None


def _has_only(node: Node, *names: str) -> bool:
    return all(name in names or not value for name, value in node.args.items())


def _path(field: FieldRef) -> str:
    return ".".join(f"`{name}`" for name in field.names)


def _exact(record: Record, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names as the schema has them: Spark finds them in any case. None if there is no such field, or more
    than one."""
    found: list[str] = []
    container: AvroType | None = record
    for name in names:
        inner = container.nullable if isinstance(container, Union) else container
        if not isinstance(inner, Record):
            return None
        alike = [each for each in inner.fields if each.name.lower() == name.lower()]
        if len(alike) != 1:
            return None
        found.append(alike[0].name)
        container = alike[0].type
    return tuple(found)


def _kind(kind: AvroType) -> Kind | None:
    return kind.kind if isinstance(kind, Primitive) else None


def _signed(node: Node) -> tuple[str, str, str] | None:
    """Sign, whole digits and fraction of a number that is written without an exponent or a type."""
    sign = ""
    if type(node) is exp.Neg:
        sign, node = "-", node.this
    match = _NUMBER.fullmatch(node.this) if type(node) is exp.Literal and not node.is_string else None
    return None if match is None else (sign, match[1], match[2] or "")


def _whole(node: Node, bits: int) -> str | None:
    number = _signed(node)
    if number is None or number[2]:
        return None
    value = int(number[0] + number[1]) if len(number[1]) < 20 else 1 << 64
    return str(value) if -(1 << bits) < value < 1 << bits else None


def _double(node: Node) -> str | None:
    number = _signed(node)
    if number is None or len(number[1]) + len(number[2]) > _DOUBLE_DIGITS_MAX:
        return None
    sign, whole, fraction = number
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _decimal(node: Node, kind: AvroType) -> str | None:
    number = _signed(node)
    logical = getattr(kind, "logical", None)
    if number is None or logical is None or logical.precision > 38:
        return None
    sign, whole, fraction = number
    if len(fraction) > logical.scale or len(whole.lstrip("0")) > logical.precision - logical.scale or len(whole) > 38:
        return None
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _is_date(text: str) -> bool:
    try:
        return parse_date(text) is not None
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    """To the microsecond, as Spark has them."""
    try:
        return parse_moment(text).below_ns == 0
    except ValueError:
        return False
