"""From JSON to values, compiled from a type. The format is drawn in :mod:`cortado.schema.json_format`.

Only the form is judged here: that a text is a date, a number a number. Whether a value fits its type, in range, in
digits, with every field there, is the encoder's to say.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeVar

from cortado.errors import InvalidDocument
from cortado.rfc3339 import Impossible, WrongForm, exact_instant, exact_local, exact_time, parse_date
from cortado.schema.json_containers import Containers, Convert
from cortado.schema.json_text import shown
from cortado.schema.logical_values import uuid_of
from cortado.schema.model import NULL, AvroType, Enum, Fixed, Primitive, Union
from cortado.schema.names import branch_name, listed
from cortado.schema.union_branches import class_of_type
from cortado.schema.values import Branch, Duration
from cortado.schema.walk import Walk

T = TypeVar("T")

_MOMENT: Final = "a moment of the years 1 to 9999"
_DECIMAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_FLOAT_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def compile_from_json(root: AvroType) -> Convert:
    """Return the function from JSON to ``root``'s values."""
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
    # Python reads 1e400 as an infinity that the text does not have.
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


def _decimal(value: Any, _walk: Walk) -> Decimal:
    if not isinstance(value, str) or _DECIMAL.fullmatch(value) is None:
        raise _wrong('text such as "12.50"', value)
    return Decimal(value)


def _uuid(value: Any, _walk: Walk) -> Any:
    return uuid_of(_string(value, _walk))


def _read(parse: Callable[[str], T], value: Any, example: str, kind: str) -> T:
    """Return the value of a date's or a time's text. Raises InvalidDocument."""
    try:
        if isinstance(value, str):
            return parse(value)
    except WrongForm:
        pass
    except Impossible as impossible:
        raise _wrong(f"{kind}: {impossible}", value) from None
    raise _wrong(f'text such as "{example}"', value)


def _date(value: Any, _walk: Walk) -> date:
    return _read(parse_date, value, "2013-01-31", "a day of the calendar")


def _time(value: Any, _walk: Walk) -> time:
    return _read(exact_time, value, "23:59:59.5", "a time of the day")


def _timestamp(value: Any, _walk: Walk) -> datetime:
    return _read(exact_instant, value, "2013-01-31T23:59:59.5Z", _MOMENT)


def _local(value: Any, _walk: Walk) -> datetime:
    return _read(exact_local, value, "2013-01-31T23:59:59.5", _MOMENT)


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
