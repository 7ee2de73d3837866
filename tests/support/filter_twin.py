"""A dumb interpreter of filters: one document at a time, Python's own values, SQL's logic spelled out.

A twin's expression is nested tuples, such as ``("and", [("compare", "<", ("field", "a.b"), ("value", 3))])``.
:func:`write` gives its text in the filter grammar, :func:`answer` its truth for a document: True, False or None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

SCHEMA = """
{"type": "record", "name": "Thing", "fields": [
  {"name": "flag", "type": ["null", "boolean"]},
  {"name": "count", "type": "int"},
  {"name": "total", "type": ["null", "long"]},
  {"name": "small", "type": "float"},
  {"name": "ratio", "type": ["null", "double"]},
  {"name": "name", "type": ["null", "string"]},
  {"name": "other", "type": "string"},
  {"name": "colour", "type": ["null", {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}]},
  {"name": "raw", "type": ["null", "bytes"]},
  {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
  {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
  {"name": "most", "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}},
  {"name": "worth", "type": ["null", {"type": "fixed", "name": "Worth", "size": 16, "logicalType": "decimal",
    "precision": 30, "scale": 2}]},
  {"name": "id", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
  {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
  {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
  {"name": "at_ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "local", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]},
  {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
  {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
  {"name": "address", "type": ["null", {"type": "record", "name": "Address", "fields": [
    {"name": "city", "type": ["null", "string"]},
    {"name": "zip", "type": "int"}]}]}
]}
"""

_COMPARE = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def write(expression: Any) -> str:
    """Return the expression in the filter grammar, every part of it in parentheses."""
    match expression:
        case ("and" | "or" as word, items):
            return f" {word} ".join(f"({write(item)})" for item in items)
        case ("not", item):
            return f"not ({write(item)})"
        case ("field", path):
            return str(path)
        case ("value", value):
            return write_value(value)
        case ("truth", operand):
            return write(operand)
        case ("null", operand):
            return f"{write(operand)} is null"
        case ("compare", op, left, right):
            return f"{write(left)} {op} {write(right)}"
        case ("between", operand, lower, upper):
            return f"{write(operand)} between {write(lower)} and {write(upper)}"
        case ("in", operand, values):
            return f"{write(operand)} in ({', '.join(map(write, values))})"
        case ("starts", operand, prefix):
            return f"{write(operand)} starts with {write(prefix)}"
    raise AssertionError(expression)


def write_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return f"double '{value}'" if math.isnan(value) else f"double '{'-' if value < 0 else ''}Infinity'"
        case int() | float() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"x'{value.hex()}'"
        case UUID():
            return f"uuid '{value}'"
        case datetime():
            return f"timestamp '{value.isoformat().replace('+00:00', 'Z')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case time():
            return f"time '{value.isoformat()}'"
    raise AssertionError(value)


def answer(expression: Any, document: Mapping[str, Any]) -> bool | None:
    """Return True, False or, for unknown, None."""
    match expression:
        case ("and", items):
            answers = [answer(item, document) for item in items]
            return False if False in answers else None if None in answers else True
        case ("or", items):
            answers = [answer(item, document) for item in items]
            return True if True in answers else None if None in answers else False
        case ("not", item):
            known = answer(item, document)
            return None if known is None else not known
        case ("truth", operand):
            truth: bool | None = value_of(operand, document)
            return truth
        case ("null", operand):
            return value_of(operand, document) is None
        case ("compare", op, left, right):
            return compare(op, value_of(left, document), value_of(right, document))
        case ("between", operand, lower, upper):
            both = [("compare", ">=", operand, lower), ("compare", "<=", operand, upper)]
            return answer(("and", both), document)
        case ("in", operand, values):
            return answer(("or", [("compare", "=", operand, value) for value in values]), document)
        case ("starts", operand, prefix):
            value, beginning = value_of(operand, document), value_of(prefix, document)
            return None if value is None or beginning is None else bool(value.startswith(beginning))
    raise AssertionError(expression)


def value_of(operand: Any, document: Mapping[str, Any]) -> Any:
    match operand:
        case ("value", value):
            return value
        case ("field", path):
            found: Any = document
            for name in path.split("."):
                found = None if found is None else found[name]
            return found
    raise AssertionError(operand)


def compare(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = _nan_last(float(left)), _nan_last(float(right))
    return bool(_COMPARE[op](left, right))


def _nan_last(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)


INSTANTS = [
    datetime(2013, 1, 1, 5, tzinfo=UTC),
    datetime(2013, 1, 1, 5, 0, 0, 1000, tzinfo=UTC),
    datetime(2013, 1, 1, 5, 0, 0, 1001, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
]
"""Moments on, and just off, a millisecond, before and after 1970."""
