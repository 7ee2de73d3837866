"""Which fields a key or an index may rest on, and as what type of key part."""

from __future__ import annotations

from typing import Final

from cortado.errors import InvalidArgument
from cortado.schema.field_paths import find_field
from cortado.schema.model import AvroType, Enum, Fixed, Kind, LogicalKind, Primitive, Schema
from cortado.schema.names import describe_type

_KEY_TYPE_OF_LOGICAL: Final = {
    LogicalKind.DECIMAL: "decimal",
    LogicalKind.UUID: "uuid",
    LogicalKind.DATE: "date",
    LogicalKind.TIMESTAMP_MILLIS: "timestamp",
    LogicalKind.TIMESTAMP_MICROS: "timestamp",
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: "timestamp",
    LogicalKind.LOCAL_TIMESTAMP_MICROS: "timestamp",
}

_KEY_TYPE_OF_KIND: Final = {
    Kind.BOOLEAN: "bool",
    Kind.INT: "int64",
    Kind.LONG: "int64",
    Kind.FLOAT: "float64",
    Kind.DOUBLE: "float64",
    Kind.BYTES: "bytes",
    Kind.STRING: "string",
}


def key_type_of(schema: Schema, path: str) -> tuple[str, bool]:
    """(the key type's name, whether the value may be null) of the field at ``path`` (``a`` or ``a.b``).

    The name is a value of ``cortado.store.keys.types.KeyType``. Raises InvalidArgument, naming the path, for a field
    that does not exist, and for one of a type that has no order or no key encoding: arrays, maps, records, unions of
    more than null and one type, times of day, nanoseconds and durations.
    """
    found = find_field(schema, path)
    return _key_type(found.type, path), found.nullable


def _key_type(avro_type: AvroType, path: str) -> str:
    match avro_type:
        case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
            name = _KEY_TYPE_OF_LOGICAL.get(logical.kind)
            if name is not None:
                return name
        case Primitive(kind=kind) if kind is not Kind.NULL:
            return _KEY_TYPE_OF_KIND[kind]
        case Fixed():
            return "bytes"
        case Enum():
            return "string"
        case _:
            pass
    raise InvalidArgument(path, f"a field of type {describe_type(avro_type)} cannot be part of a key")
