"""Comparison of annotations with Avro types: the vocabulary of :mod:`cortado.store.client.document_types`."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from cortado.schema.model import Array, AvroType, Kind, Logical, LogicalKind, Map, Primitive, Record
from cortado.schema.model import Enum as AvroEnum
from cortado.schema.model import Union as AvroUnion
from cortado.schema.names import branch_name, simple_name
from cortado.schema.values import Duration

LISTS: Final = (list, Sequence, Collection, Iterable)
MAPS: Final = (dict, Mapping, MutableMapping)
NONE: Final = type(None)

_PYTHON_OF_KIND: Final[dict[Kind, type]] = {
    Kind.NULL: NONE,
    Kind.BOOLEAN: bool,
    Kind.INT: int,
    Kind.LONG: int,
    Kind.FLOAT: float,
    Kind.DOUBLE: float,
    Kind.BYTES: bytes,
    Kind.STRING: str,
}
_PYTHON_OF_LOGICAL: Final[dict[LogicalKind, type]] = {
    LogicalKind.DECIMAL: Decimal,
    LogicalKind.UUID: UUID,
    LogicalKind.DATE: date,
    LogicalKind.TIME_MILLIS: time,
    LogicalKind.TIME_MICROS: time,
    LogicalKind.TIMESTAMP_MILLIS: datetime,
    LogicalKind.TIMESTAMP_MICROS: datetime,
    LogicalKind.TIMESTAMP_NANOS: int,
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: datetime,
    LogicalKind.LOCAL_TIMESTAMP_MICROS: datetime,
    LogicalKind.LOCAL_TIMESTAMP_NANOS: int,
    LogicalKind.DURATION: Duration,
}


def members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself, without parts that say nothing of values."""
    hint = _bare(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(member for each in typing.get_args(hint) for member in members(each))
    return (NONE,) if hint is None else (hint,)


def _bare(hint: Any) -> Any:
    while True:
        if isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif typing.get_origin(hint) in (typing.Annotated, typing.Required, typing.NotRequired, typing.Final):
            hint = typing.get_args(hint)[0]
        else:
            return hint


def origin(hint: Any) -> Any:
    return typing.get_origin(hint) or hint


def is_class_of_records(hint: Any) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or typing.is_typeddict(hint))


def is_required(typed_dict: Any, name: str, hint: Any) -> bool:
    """Whether a key of a TypedDict must be there."""
    # If annotations are text, the class itself does not know about Required and NotRequired.
    said = typing.get_origin(hint)
    return said is typing.Required or (said is not typing.NotRequired and name in typed_dict.__required_keys__)


def fits(avro: AvroType, hint: Any) -> bool:
    """Whether the annotation, which is no union, is of the kind that ``avro`` needs; its parts are another matter."""
    kind = origin(hint)
    match avro:
        case Array():
            return kind in LISTS or (kind is tuple and _is_any_length(hint))
        case Map():
            return kind in MAPS
        case Record():
            return is_class_of_records(hint) or kind in MAPS
        case AvroEnum(symbols=symbols):
            if kind is typing.Literal:
                return set(symbols) <= set(typing.get_args(hint))
            if isinstance(hint, type) and issubclass(hint, Enum):
                return set(symbols) <= {symbol_of(member) for member in hint}
            return hint is str
        case AvroUnion():
            return True
    python = _python_of(avro)
    return hint is python or (python is int and hint is float)


def _is_any_length(hint: Any) -> bool:
    arguments = typing.get_args(hint)
    return not arguments or (len(arguments) == 2 and arguments[1] is ...)


def _python_of(avro: AvroType) -> type:
    logical: Logical | None = getattr(avro, "logical", None)
    if logical is not None:
        return _PYTHON_OF_LOGICAL[logical.kind]
    return _PYTHON_OF_KIND[avro.kind] if isinstance(avro, Primitive) else bytes


def wanted(avro: AvroType) -> str:
    match avro:
        case Array():
            return "a list"
        case Map():
            return "a dict with str keys"
        case Record(name=name):
            return f"a dataclass or a TypedDict for {simple_name(name)}"
        case AvroEnum(name=name, symbols=symbols):
            return f"an Enum for {simple_name(name)}, a Literal of {', '.join(symbols)}, or str"
    python = _python_of(avro)
    return "None" if python is NONE else python.__name__


def named(avro: AvroType) -> str:
    if isinstance(avro, AvroUnion):
        return f"[{', '.join(map(named, avro.branches))}]"
    logical: Logical | None = getattr(avro, "logical", None)
    return branch_name(avro) if logical is None else str(logical.kind)


def name_of(cls: Any) -> str:
    return str(getattr(cls, "__name__", cls))


def shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


def symbol_of(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name
