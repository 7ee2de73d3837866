"""A literal held against a field: either a constant of the field's comparable form, or a refusal that says why.

Nothing is rounded in silence. An integer field against ``3.5``, or a field of milliseconds against a timestamp with
nanoseconds, becomes the exact threshold between two of its values; a float or double field takes the nearest double. A
plain string is read as a date, time, timestamp or UUID if it is compared with one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from cortado.schema.columnar.column import logical_of
from cortado.schema.columnar.exact import UNIT_DIGITS_MAX, decimal_units, uuid_column
from cortado.schema.model import Enum
from cortado.store.filter import literals
from cortado.store.filter.expression import Literal, LiteralKind, Operator
from cortado.store.filter.fields import COUNTED, Comparable, Family, FieldRef
from cortado.store.filter.leaves import Always, Counted, Exact, Form, Formed, OneOf, Prefix, Real, Test, Text
from cortado.store.filter.tokens import fail

_LONG_MIN: Final = -(1 << 63)
_LONG_MAX: Final = (1 << 63) - 1

_EXPECTED: Final = {
    Family.BOOLEAN: "true or false",
    Family.INTEGER: "a number",
    Family.REAL: "a number, or double 'NaN'",
    Family.DECIMAL: "a number",
    Family.TEXT: "a string",
    Family.ENUM: "a string",
    Family.BYTES: "bytes, such as x'00ff'",
    Family.UUID: "uuid '...'",
    Family.DATE: "date '2013-01-01'",
    Family.TIME: "time '05:00:00'",
    Family.TIMESTAMP: "timestamp '2013-01-01T05:00:00Z'",
    Family.LOCAL_TIMESTAMP: "timestamp '2013-01-01T05:00:00', without a zone",
}
_KINDS: Final = {
    Family.BOOLEAN: {LiteralKind.BOOLEAN},
    Family.INTEGER: {LiteralKind.NUMBER},
    Family.REAL: {LiteralKind.NUMBER, LiteralKind.DOUBLE},
    Family.DECIMAL: {LiteralKind.NUMBER},
    Family.TEXT: {LiteralKind.STRING},
    Family.ENUM: {LiteralKind.STRING},
    Family.BYTES: {LiteralKind.BYTES},
    Family.UUID: {LiteralKind.UUID},
    Family.DATE: {LiteralKind.DATE},
    Family.TIME: {LiteralKind.TIME},
    Family.TIMESTAMP: {LiteralKind.TIMESTAMP},
    Family.LOCAL_TIMESTAMP: {LiteralKind.LOCAL_TIMESTAMP},
}


def _instant_ns(text: str, *, zoned: bool) -> int:
    value, has_zone = literals.timestamp_ns(text)
    if has_zone is not zoned:
        raise literals.Malformed("needs a zone, such as Z" if zoned else "must not have a zone: the field is local")
    return value


_FROM_STRING: Final[dict[Family, Callable[[str], Any]]] = {
    Family.UUID: literals.uuid,
    Family.DATE: literals.days,
    Family.TIME: literals.time_of_day_ns,
    Family.TIMESTAMP: lambda text: _instant_ns(text, zoned=True),
    Family.LOCAL_TIMESTAMP: lambda text: _instant_ns(text, zoned=False),
}


def comparison(field: FieldRef, op: Operator, literal: Literal) -> Test:
    """``field op literal``, of a literal that is not null. Raises InvalidFilter at the literal."""
    value = _value(field, literal)
    match field.family:
        case Family.BOOLEAN:
            return Counted(op, int(value))
        case Family.REAL:
            return Real(op, value)
        case Family.TEXT | Family.BYTES:
            return Text(op, value)
        case Family.ENUM:
            if op in (Operator.EQ, Operator.NE):
                _check_symbol(field, literal)
            return Text(op, value)
        case Family.UUID:
            return Formed(uuid_column, Text(op, value.bytes))
        case Family.DECIMAL:
            if _form(field) is None:
                return Exact(op, value)
            return Formed(decimal_units, _counted(op, _units(field, value)))
        case _:
            return _counted(op, value)


def membership(field: FieldRef, items: list[Literal]) -> Test:
    """``field in (items)``, none of them null. Raises InvalidFilter at the first that does not fit."""
    values: set[Comparable] = set()
    form = _form(field)
    for literal in items:
        if field.family is Family.ENUM:
            _check_symbol(field, literal)
        value = _value(field, literal)
        if field.family in COUNTED or form is decimal_units:
            counted = _units(field, value) if form is decimal_units else value
            if counted.denominator == 1 and _LONG_MIN <= counted <= _LONG_MAX:
                values.add(int(counted))
        else:
            values.add(value.bytes if form is uuid_column else field.comparable(value))
    if not values:
        return Always(False)
    test = OneOf(frozenset(values))
    return test if form is None else Formed(form, test)


def _form(field: FieldRef) -> Form | None:
    """Return the form in which a column of the field compares; None for its own, at any cost."""
    logical = logical_of(field.type)
    if field.family is Family.UUID:
        return uuid_column
    if field.family is not Family.DECIMAL or logical is None:
        return None
    return decimal_units if logical.precision <= UNIT_DIGITS_MAX else None


def _units(field: FieldRef, value: Any) -> Fraction:
    """Return a number as a count of a decimal's smallest unit."""
    logical = logical_of(field.type)
    assert logical is not None
    unit: int = 10**logical.scale
    return Fraction(value) * unit


def prefix(field: FieldRef, literal: Literal) -> Test:
    """``field starts with literal``. Raises InvalidFilter at the literal."""
    if field.family not in (Family.TEXT, Family.ENUM, Family.BYTES):
        fail(literal.position, f"field {field.path} is {field.family}: starts with needs a string or bytes")
    return Prefix(_value(field, literal))


def _value(field: FieldRef, literal: Literal) -> Any:
    """Return the literal as the field's family has it; a Fraction in the field's unit if the family is counted."""
    kind, value = literal.kind, literal.value
    if kind is LiteralKind.STRING and field.family in _FROM_STRING:
        try:
            value = _FROM_STRING[field.family](str(value))
        except literals.Malformed as malformed:
            fail(literal.position, f"{str(value)[:60]!r} {malformed} (field {field.path} is {field.family})")
    elif kind not in _KINDS[field.family]:
        fail(
            literal.position, f"field {field.path} is {field.family}: expected {_EXPECTED[field.family]}, found {kind}"
        )
    if field.family in COUNTED:
        assert isinstance(value, int | Decimal)
        return Fraction(value) / field.unit_ns
    if field.family is Family.REAL:
        return _double(field, literal)
    return value.encode() if isinstance(value, str) else value


def _double(field: FieldRef, literal: Literal) -> float:
    assert isinstance(literal.value, Decimal | float)
    value = float(literal.value)
    if math.isinf(value) and literal.kind is LiteralKind.NUMBER:
        fail(literal.position, f"the number is beyond the range of a double, which field {field.path} is")
    return value


def _counted(op: Operator, bound: Fraction) -> Test:
    """Return an integer against an exact bound that may lie between two integers, or beyond all of 64 bits."""
    if bound.denominator != 1:
        if op in (Operator.EQ, Operator.NE):
            return Always(op is Operator.NE)
        # Below 3.5 is below 4; above 3.5 is above 3.
        below = op in (Operator.LT, Operator.LE)
        bound = Fraction(math.ceil(bound) if below else math.floor(bound))
        op = Operator.LT if below else Operator.GT
    if bound > _LONG_MAX:
        return Always(op in (Operator.NE, Operator.LT, Operator.LE))
    if bound < _LONG_MIN:
        return Always(op in (Operator.NE, Operator.GT, Operator.GE))
    return Counted(op, int(bound))


def _check_symbol(field: FieldRef, literal: Literal) -> None:
    assert isinstance(field.type, Enum)
    if literal.kind is LiteralKind.STRING and literal.value not in field.type.symbols:
        symbols = ", ".join(field.type.symbols[:10]) + (", ..." if len(field.type.symbols) > 10 else "")
        fail(literal.position, f"field {field.path} has no symbol {str(literal.value)[:60]!r} (there is {symbols})")
