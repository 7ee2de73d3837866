"""From JSON to values, compiled from a type. The format is drawn in :mod:`cortado.schema.json_format`.

Only the form is judged here: that a text is a date, a number a number. Whether a value fits its type, in range, in
digits, with every field there, is the encoder's to say.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from cortado.errors import InvalidDocument
from cortado.schema.json_containers import Containers, Convert
from cortado.schema.json_text import shown
from cortado.schema.logical_values import uuid_of
from cortado.schema.model import NULL, AvroType, Enum, Fixed, Primitive, Union
from cortado.schema.names import branch_name, listed
from cortado.schema.union_branches import class_of_type
from cortado.schema.values import Branch, Duration
from cortado.schema.walk import Walk

_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_PATTERNS: Final = {
    "decimal": re.compile(r"-?\d+(\.\d+)?", re.ASCII),
    "date": re.compile(_DATE, re.ASCII),
    "time": re.compile(_TIME, re.ASCII),
    "timestamp": re.compile(rf"{_DATE}T{_TIME}(Z|[+-]\d{{2}}:\d{{2}})", re.ASCII),
    "local": re.compile(rf"{_DATE}T{_TIME}", re.ASCII),
}
_EXAMPLES: Final = {
    "decimal": '"12.50"',
    "date": '"2013-01-31"',
    "time": '"23:59:59.5"',
    "timestamp": '"2013-01-31T23:59:59.5Z"',
    "local": '"2013-01-31T23:59:59.5"',
}
_FLOAT_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def compile_from_json(root: AvroType) -> Convert:
    """The function from JSON to ``root``'s values."""
    return _Readers(_check_array, _check_object).of(root)


class _Readers(Containers):
    def leaf(self, leaf: Primitive | Fixed | Enum) -> Convert:
        return _LEAF_OF_CLASS[class_of_type(leaf)]

    def union(self, union: Union, branches: list[Convert]) -> Convert:
        if union.nullable is not None:
            return _nullable(branches[union.branches.index(union.nullable)])
        pairs = zip(union.branches, branches, strict=True)
        named = {branch_name(branch): convert for branch, convert in pairs if branch != NULL}
        return _union(named, NULL in union.branches)


def _check_array(value: Any) -> None:
    if not isinstance(value, list):
        raise _wrong("an array", value)


def _check_object(value: Any) -> None:
    if not isinstance(value, dict):
        raise _wrong("an object", value)


def _null(value: Any, _walk: Walk) -> None:
    if value is not None:
        raise _wrong("null", value)


def _boolean(value: Any, _walk: Walk) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def _integer(value: Any, _walk: Walk) -> int:
    if type(value) is not int:
        raise _wrong("an integer", value)
    return value


def _number(value: Any, _walk: Walk) -> float:
    if type(value) is int:
        return value
    # Python reads 1e400 as an infinity that nobody wrote.
    if type(value) is float and isfinite(value):
        return value
    word = _FLOAT_WORDS.get(value) if isinstance(value, str) else None
    if word is None:
        raise _wrong('a number, "NaN", "Infinity" or "-Infinity"', value)
    return word


def _string(value: Any, _walk: Walk) -> str:
    if not isinstance(value, str):
        raise _wrong("a string", value)
    return value


def _bytes(value: Any, _walk: Walk) -> bytes:
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise _wrong("base64 text, with padding", value)


def _text_of(name: str, value: Any) -> str:
    if not isinstance(value, str) or _PATTERNS[name].fullmatch(value) is None:
        raise _wrong(f"text such as {_EXAMPLES[name]}", value)
    return value


def _decimal(value: Any, _walk: Walk) -> Decimal:
    return Decimal(_text_of("decimal", value))


def _uuid(value: Any, _walk: Walk) -> Any:
    return uuid_of(_string(value, _walk))


def _date(value: Any, _walk: Walk) -> date:
    text = _text_of("date", value)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise _wrong("a day of the calendar", value) from None


def _time(value: Any, _walk: Walk) -> time:
    text = _text_of("time", value)
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise _wrong("a time of the day", value) from None


def _timestamp(value: Any, _walk: Walk) -> datetime:
    text = _text_of("timestamp", value)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _wrong("a moment of the years 1 to 9999", value) from None


def _local(value: Any, _walk: Walk) -> datetime:
    text = _text_of("local", value)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _wrong("a moment of the years 1 to 9999", value) from None


def _duration(value: Any, _walk: Walk) -> Duration:
    if not isinstance(value, dict) or value.keys() != set(Duration._fields):
        raise _wrong('an object {"months": .., "days": .., "milliseconds": ..}', value)
    return Duration(**value)


_LEAF_OF_CLASS: Final[dict[str, Convert]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "float": _number,
    "bytes": _bytes,
    "str": _string,
    "decimal": _decimal,
    "uuid": _uuid,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "local": _local,
    "duration": _duration,
}


def _nullable(read_value: Convert) -> Convert:
    def read(value: Any, walk: Walk) -> Any:
        return None if value is None else read_value(value, walk)

    return read


def _union(branches: dict[str, Convert], has_null: bool) -> Convert:
    wanted = ("null or " if has_null else "") + "an object with one member, named " + listed(list(branches), " or ")

    def read(value: Any, walk: Walk) -> Branch | None:
        if value is None and has_null:
            return None
        if not isinstance(value, dict) or len(value) != 1:
            raise _wrong(wanted, value)
        ((name, inner),) = value.items()
        read_branch = branches.get(name)
        if read_branch is None:
            raise _wrong(wanted, value)
        return Branch(name, read_branch(inner, walk))

    return read


def _wrong(wanted: str, value: Any) -> InvalidDocument:
    return InvalidDocument("", f"must be {wanted}", shown(value))
