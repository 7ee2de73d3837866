"""Spark's types for a table's columns, and the checks that a job's columns must pass.

The mapping itself is the Avro to Arrow one (``docs/formats/avro-arrow.md``): Spark's types are what Spark makes of that
Arrow schema, so the batches that a read yields match what Spark expects to the letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, cast
from uuid import UUID

from pyspark.sql.types import StructField, StructType

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.model import Schema
from cortado.store.keys.types import KeyPart, KeyType


def spark_schema(schema: Schema) -> StructType:
    """Raises Unsupported, with the path, for what Spark has no type for."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from cortado.schema.columnar.arrow import arrow_schema

    return cast(StructType, from_arrow_schema(arrow_schema(schema)))


def select(schema: StructType, columns: Sequence[str] | None, table: str) -> StructType:
    """The fields named, in that order; all of them for None."""
    if columns is None:
        return schema
    return StructType([_field(schema, name, table) for name in columns])


def check_columns(wanted: StructType, whole: StructType, table: str) -> None:
    """A schema that ``spark.read.schema(...)`` named must be a subset of the table's, with its types."""
    for field in wanted.fields:
        own = _field(whole, field.name, table)
        if own.dataType != field.dataType:
            raise InvalidArgument(
                f"column {field.name}", f"is {own.dataType.simpleString()} in {table}", field.dataType.simpleString()
            )
        if own.nullable and not field.nullable:
            raise InvalidArgument(f"column {field.name}", f"may be null in {table}", "NOT NULL")


def _field(schema: StructType, name: str, table: str) -> StructField:
    if name not in schema.fieldNames():
        raise NotFound("field", f"{name} in {table}; there are {', '.join(schema.fieldNames())}")
    return schema[name]


def key_part(value: Any, part: KeyPart, what: str) -> Any:
    """One part of a key bound from JSON. Raises InvalidArgument that names ``what`` and the part."""
    field = f"{what}, part {part.path}"
    match part.type:
        case KeyType.INT64 if isinstance(value, int) and not isinstance(value, bool):
            return value
        case KeyType.FLOAT64 if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case KeyType.BOOL if isinstance(value, bool):
            return value
        case KeyType.STRING if isinstance(value, str):
            return value
    if isinstance(value, str):
        try:
            return _from_text(value, part.type)
        except (ValueError, InvalidOperation):
            pass
    raise InvalidArgument(field, f"must be a {part.type} as JSON carries it", repr(value))


def _from_text(text: str, kind: KeyType) -> Any:
    match kind:
        case KeyType.TIMESTAMP:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                raise ValueError("a timestamp needs its zone")
            return moment
        case KeyType.DATE:
            return date.fromisoformat(text)
        case KeyType.DECIMAL:
            return Decimal(text)
        case KeyType.UUID:
            return UUID(text)
        case KeyType.BYTES:
            return bytes.fromhex(text)
    raise ValueError(kind)
