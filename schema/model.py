"""Avro types as values, which :func:`cortado.schema.parse.parse_schema` returns and all other modules read.

A schema is a tree of these nodes; a recursive named type makes it a graph: a :class:`Record` is reached again through
the same object. Named types compare by identity, so walking code can use them as dictionary keys. Source: Apache Avro
specification 1.12, *Schema Declaration* and *Logical Types*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias


class Kind(StrEnum):
    """The primitive types."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


class LogicalKind(StrEnum):
    """The logical types that Cortado gives a meaning to. Any other is ignored, as the specification asks."""

    DECIMAL = "decimal"
    UUID = "uuid"
    DATE = "date"
    TIME_MILLIS = "time-millis"
    TIME_MICROS = "time-micros"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    TIMESTAMP_NANOS = "timestamp-nanos"
    LOCAL_TIMESTAMP_MILLIS = "local-timestamp-millis"
    LOCAL_TIMESTAMP_MICROS = "local-timestamp-micros"
    LOCAL_TIMESTAMP_NANOS = "local-timestamp-nanos"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type; ``precision`` and ``scale`` belong to decimals."""

    kind: LogicalKind
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Primitive:
    """null, boolean, int, long, float, double, bytes or string, perhaps with a logical type."""

    kind: Kind
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """``size`` bytes under a full name."""

    name: str
    size: int
    aliases: tuple[str, ...] = ()
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """One of ``symbols``; ``default`` stands for a writer's symbol that the reader lacks."""

    name: str
    symbols: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of ``items``."""

    items: AvroType


@dataclass(frozen=True, slots=True)
class Map:
    """Any number of ``values`` by string key."""

    values: AvroType


@dataclass(frozen=True, slots=True)
class Union:
    """One of ``branches``, in the order that gives each its number on the wire."""

    branches: tuple[AvroType, ...]

    @property
    def nullable(self) -> AvroType | None:
        """Return the other branch of ``[null, T]`` or ``[T, null]``; None for any other union."""
        if len(self.branches) == 2:
            first, second = self.branches
            if first == NULL:
                return second
            if second == NULL:
                return first
        return None


class _Missing:
    """The default of a field that has none (``None`` is Avro's null)."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Field:
    """A record's field. ``default`` is the JSON value of the declaration, or NO_DEFAULT."""

    name: str
    type: AvroType
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()
    doc: str = ""


@dataclass(slots=True, eq=False)
class Record:
    """Named fields in order. ``fields`` is filled once, after the name is known, so that types may be recursive."""

    name: str
    aliases: tuple[str, ...] = ()
    doc: str = ""
    fields: tuple[Field, ...] = field(default=(), repr=False)

    def field(self, name: str) -> Field | None:
        return next((each for each in self.fields if each.name == name), None)


AvroType: TypeAlias = "Primitive | Fixed | Enum | Array | Map | Union | Record"

NULL: Final = Primitive(Kind.NULL)


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """A parsed schema: its ``root``, the declaration as ``text`` (JSON), and its identity.

    ``canonical`` is the Parsing Canonical Form extended by all that changes how data is read (logical types, defaults,
    aliases). So two declarations with equal ``fingerprint`` (SHA-256 of it) read and write the same.
    """

    root: AvroType
    text: str
    canonical: str
    fingerprint: bytes

    @property
    def record(self) -> Record:
        """Return the root of a document's schema, which is always a record."""
        assert isinstance(self.root, Record)
        return self.root
