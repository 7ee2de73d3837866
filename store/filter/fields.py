"""The field of a filter: its family of comparable types, its unit, and its values from documents.

Fields compare within their family. Each family has one *comparable* form, exact and ordered as keys are:

===============  =======================================  ===============================================
family           Avro types                               comparable
===============  =======================================  ===============================================
BOOLEAN          boolean                                  bool
INTEGER          int, long                                int
REAL             float, double                            (is NaN, value): NaN equals itself, above all
DECIMAL          decimal                                  Decimal
TEXT             string                                   bytes, UTF-8: the order of code points
ENUM             enum                                     bytes of the symbol
BYTES            bytes, fixed                             bytes
UUID             uuid                                     UUID
DATE             date                                     int, days
TIME             time-millis, time-micros                 int, in the field's unit
TIMESTAMP        timestamp-millis, -micros, -nanos        int, in the field's unit
LOCAL_TIMESTAMP  local-timestamp-*                        int, in the field's unit
OPAQUE           arrays, maps, records, unions, duration  none: only ``is null``
===============  =======================================  ===============================================
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

from cortado.schema.model import Array, AvroType, Enum, Fixed, Kind, LogicalKind, Map, Primitive, Record, Schema, Union
from cortado.schema.shape import records_of, recursive_names
from cortado.store.filter.expression import Path
from cortado.store.filter.tokens import fail

Comparable: TypeAlias = bool | int | Decimal | bytes | UUID | tuple[bool, float]


class Family(StrEnum):
    """The value is how an error names the field's type."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "floating point"
    DECIMAL = "decimal"
    TEXT = "string"
    ENUM = "enum"
    BYTES = "bytes"
    UUID = "uuid"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    LOCAL_TIMESTAMP = "local timestamp"
    OPAQUE = "not comparable"


COUNTED: Final = frozenset({Family.INTEGER, Family.DATE, Family.TIME, Family.TIMESTAMP, Family.LOCAL_TIMESTAMP})
"""Families with a 64-bit integer as comparable."""

_MILLIS: Final = 1_000_000
_MICROS: Final = 1_000
_LOGICAL: Final[dict[LogicalKind, tuple[Family, int]]] = {
    LogicalKind.DECIMAL: (Family.DECIMAL, 1),
    LogicalKind.UUID: (Family.UUID, 1),
    LogicalKind.DATE: (Family.DATE, 1),
    LogicalKind.TIME_MILLIS: (Family.TIME, _MILLIS),
    LogicalKind.TIME_MICROS: (Family.TIME, _MICROS),
    LogicalKind.TIMESTAMP_MILLIS: (Family.TIMESTAMP, _MILLIS),
    LogicalKind.TIMESTAMP_MICROS: (Family.TIMESTAMP, _MICROS),
    LogicalKind.TIMESTAMP_NANOS: (Family.TIMESTAMP, 1),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: (Family.LOCAL_TIMESTAMP, _MILLIS),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: (Family.LOCAL_TIMESTAMP, _MICROS),
    LogicalKind.LOCAL_TIMESTAMP_NANOS: (Family.LOCAL_TIMESTAMP, 1),
    LogicalKind.DURATION: (Family.OPAQUE, 1),
}
_PRIMITIVE: Final = {
    Kind.BOOLEAN: Family.BOOLEAN,
    Kind.INT: Family.INTEGER,
    Kind.LONG: Family.INTEGER,
    Kind.FLOAT: Family.REAL,
    Kind.DOUBLE: Family.REAL,
    Kind.BYTES: Family.BYTES,
    Kind.STRING: Family.TEXT,
    Kind.NULL: Family.OPAQUE,
}
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_ORDINAL: Final = _EPOCH.toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of the schema. ``unit_ns`` is the length of a time's or timestamp's unit, and 1 for other types."""

    names: tuple[str, ...]
    type: AvroType
    family: Family
    unit_ns: int = 1

    @property
    def path(self) -> str:
        return ".".join(self.names)

    def comparable(self, value: Any) -> Comparable:
        """Return the comparable form of a document's value that is not null."""
        match value:
            case str():
                return value.encode()
            case float():
                return (True, 0.0) if math.isnan(value) else (False, value)
            case int() if self.family is Family.REAL:
                return False, float(value)
            case datetime():
                return self._units(value)
            case date():
                return value.toordinal() - _EPOCH_ORDINAL
            case time():
                seconds = (value.hour * 60 + value.minute) * 60 + value.second
                return (seconds * 1_000_000 + value.microsecond) * _MICROS // self.unit_ns
            case _:
                comparable: Comparable = value
                return comparable

    def _units(self, value: datetime) -> int:
        if value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return (value - _EPOCH) // _MICROSECOND * _MICROS // self.unit_ns


def resolve_field(schema: Schema, path: Path) -> FieldRef:
    """Return the field that ``path`` names, through records and nullable records. Raises InvalidFilter at its position.

    Not through a record that may hold itself: it has no finite set of columns, and stays in one piece.
    """
    container: AvroType = schema.record
    for i, name in enumerate(path.names):
        container = _not_null(container)
        if not isinstance(container, Record):
            parent = ".".join(path.names[:i])
            fail(path.position, f"field {parent} is {_article(container)}: a filter reaches into records only")
        if i and container.name in recursive_names(records_of(container)):
            parent = ".".join(path.names[:i])
            fail(path.position, f"field {parent} is of type {container.name}, which may hold itself: no way in")
        field = container.field(name)
        if field is None:
            fail(path.position, f"no field {'.'.join(path.names[: i + 1])}{_suggestion(name, container)}")
        container = field.type
    found = _not_null(container)
    family, unit_ns = family_of(found)
    return FieldRef(path.names, found, family, unit_ns)


def family_of(type_: AvroType) -> tuple[Family, int]:
    """Return the family of a type that is not ``[null, T]``, and its unit in nanoseconds if it is a time."""
    if isinstance(type_, Enum):
        return Family.ENUM, 1
    if isinstance(type_, Primitive | Fixed) and type_.logical is not None:
        return _LOGICAL[type_.logical.kind]
    if isinstance(type_, Primitive):
        return _PRIMITIVE[type_.kind], 1
    return (Family.BYTES if isinstance(type_, Fixed) else Family.OPAQUE), 1


def _not_null(type_: AvroType) -> AvroType:
    inner = type_.nullable if isinstance(type_, Union) else None
    return type_ if inner is None else inner


def _suggestion(name: str, record: Record) -> str:
    known = [field.name for field in record.fields]
    close = difflib.get_close_matches(name[:100], known, n=3)
    if close:
        return f" (there is {', '.join(close)})"
    listed = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    return f" in {record.name} (its fields are {listed})"


def _article(type_: AvroType) -> str:
    match type_:
        case Array():
            return "an array"
        case Map():
            return "a map"
        case Union():
            return "a union"
        case _:
            return f"of type {family_of(type_)[0]}"
