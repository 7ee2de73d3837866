"""Choose the branch of a union for a Python value.

A value is sorted by its Python type first. If several branches share one (``int`` and ``long``; two records), the
value's range, symbol or keys decide. If two branches with *different meanings* are left, nothing is guessed: the caller
must name one, by a :class:`~cortado.schema.values.Branch`. A reader gets one for such branches, so that a value that
was read can be written again to the same branch.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, assert_never
from uuid import UUID

from cortado.errors import InvalidDocument
from cortado.schema.limits import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from cortado.schema.model import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Fixed,
    Kind,
    LogicalKind,
    Map,
    Primitive,
    Record,
    Union,
)
from cortado.schema.names import branch_name, listed
from cortado.schema.values import Branch, Duration
from cortado.schema.walk import shown

_FLOAT: Final = struct.Struct("<f")

_CLASS_OF_LOGICAL: Final = {
    LogicalKind.DECIMAL: "decimal",
    LogicalKind.UUID: "uuid",
    LogicalKind.DATE: "date",
    LogicalKind.TIME_MILLIS: "time",
    LogicalKind.TIME_MICROS: "time",
    LogicalKind.TIMESTAMP_MILLIS: "timestamp",
    LogicalKind.TIMESTAMP_MICROS: "timestamp",
    LogicalKind.TIMESTAMP_NANOS: "int",
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: "local",
    LogicalKind.LOCAL_TIMESTAMP_MICROS: "local",
    LogicalKind.LOCAL_TIMESTAMP_NANOS: "int",
    LogicalKind.DURATION: "duration",
}

_CLASS_OF_KIND: Final = {
    Kind.NULL: "null",
    Kind.BOOLEAN: "boolean",
    Kind.INT: "int",
    Kind.LONG: "int",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "float",
    Kind.BYTES: "bytes",
    Kind.STRING: "str",
}


def class_of_type(avro_type: AvroType) -> str:
    """Return the class of Python values that the type has."""
    match avro_type:
        case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
            return _CLASS_OF_LOGICAL[logical.kind]
        case Primitive(kind=kind):
            return _CLASS_OF_KIND[kind]
        case Fixed():
            return "bytes"
        case Enum():
            return "str"
        case Array():
            return "list"
        case Map() | Record():
            return "dict"
        case Union():
            return "union"
        case _:
            assert_never(avro_type)


def meaning_of_type(avro_type: AvroType) -> str:
    """Return a text that is equal for branches between which a value may move and keep its meaning, such as int and
    long."""
    match avro_type:
        case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
            nanos = logical.kind in (LogicalKind.TIMESTAMP_NANOS, LogicalKind.LOCAL_TIMESTAMP_NANOS)
            return logical.kind.value if nanos else class_of_type(avro_type)
        case Record(name=name) | Enum(name=name) | Fixed(name=name):
            return f"named {name}"
        case Map():
            return "map"
        case _:
            return class_of_type(avro_type)


def ambiguous_branches(union: Union) -> set[int]:
    """Positions of the branches that share their class of Python values with a branch of another meaning."""
    meanings: dict[str, set[str]] = {}
    for branch in union.branches:
        meanings.setdefault(class_of_type(branch), set()).add(meaning_of_type(branch))
    return {place for place, branch in enumerate(union.branches) if len(meanings[class_of_type(branch)]) > 1}


def class_of_value(value: Any) -> str:
    """Return the class that a Python value belongs to; its type's name for one that no Avro type has."""
    known = _CLASS_OF_PYTHON.get(type(value))
    if known is not None:
        return known
    if isinstance(value, datetime):
        return "local" if value.tzinfo is None else "timestamp"
    for python_type, name in _CLASS_OF_PYTHON.items():
        if isinstance(value, python_type):
            return name
    return "dict" if isinstance(value, Mapping) else type(value).__name__


# In this order: bool is a kind of int, Duration a kind of tuple.
_CLASS_OF_PYTHON: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    bytearray: "bytes",
    memoryview: "bytes",
    Decimal: "decimal",
    UUID: "uuid",
    date: "date",
    time: "time",
    Duration: "duration",
    dict: "dict",
    list: "list",
    tuple: "list",
}


class Chooser:
    """Finds the branch of one union for a value."""

    def __init__(self, union: Union) -> None:
        self._branches = union.branches
        self._index_of_name = {branch_name(branch): index for index, branch in enumerate(union.branches)}
        self._of_class: dict[str, list[int]] = {}
        for index, branch in enumerate(union.branches):
            self._of_class.setdefault(class_of_type(branch), []).append(index)
        self._names = listed(list(self._index_of_name))

    def choose(self, value: Any) -> tuple[int, Any]:
        """Return (the branch's position, the value that it takes). Raises InvalidDocument if none or several take
        it."""
        if isinstance(value, Branch):
            chosen = self._index_of_name.get(value.name)
            if chosen is None:
                raise InvalidDocument("", f"the union has no branch {value.name}; it has {self._names}")
            return chosen, value.value
        value_class = class_of_value(value)
        of_class = self._of_class.get(value_class, [])
        if not of_class and value_class == "int":
            of_class = self._of_class.get("float", [])
        fitting = [index for index in of_class if fits_at_sight(self._branches[index], value)]
        meanings = {meaning_of_type(self._branches[index]) for index in fitting or of_class}
        if len(meanings) == 1:
            # If none fits, the last one says why: it tends to be the wider of int and long, or of float and double.
            return (fitting[0] if fitting else of_class[-1]), value
        if not fitting:
            raise InvalidDocument("", f"must be one of {self._names}", shown(value))
        which = listed([branch_name(self._branches[index]) for index in fitting], " or ")
        raise InvalidDocument("", f"could be {which}: say which with Branch(name, value)", shown(value))


def fits_at_sight(avro_type: AvroType, value: Any) -> bool:
    """Return whether a value of the type's class may be one of it, judged without looking inside it."""
    match avro_type:
        case Primitive(kind=Kind.INT, logical=None):
            return bool(INT_MIN <= value <= INT_MAX)
        case Primitive(kind=Kind.LONG, logical=None):
            return bool(LONG_MIN <= value <= LONG_MAX)
        case Primitive(kind=Kind.FLOAT):
            return _is_exact_float(value)
        case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
            return _fits_logical(logical.kind, value)
        case Fixed(size=size):
            return len(value) == size
        case Enum(symbols=symbols):
            return value in symbols
        case Record(fields=fields):
            needed = sum(field.default is NO_DEFAULT for field in fields)
            present = sum(field.default is NO_DEFAULT and field.name in value for field in fields)
            return present == needed and value.keys() <= {field.name for field in fields}
        case _:
            return True


def _fits_logical(kind: LogicalKind, value: Any) -> bool:
    if kind in (LogicalKind.TIME_MILLIS, LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS):
        return bool(value.microsecond % 1000 == 0)
    return True


def _is_exact_float(value: float) -> bool:
    try:
        return math.isnan(value) or _FLOAT.unpack(_FLOAT.pack(value))[0] == value
    except OverflowError:
        return False
