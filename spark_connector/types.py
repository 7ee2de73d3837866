"""Spark's types for a table's columns, and the checks that a job's columns must pass.

What Avro's types are in Arrow is told by ``docs/formats/avro-arrow.md``. Those are types that Spark has, too, and makes
of its own the same again: so the batches that a read yields match what Spark expects to the letter.

Spark says "may be null" of much that never is: of every column that went through an aggregate or a file, and of what is
inside of it. So a DataFrame that is written need not say "not null": its types are compared without that, and nulls are
refused by value. A schema that is read with may say "may be null" where the table does not, and not the other way.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from cortado.errors import InvalidArgument
from cortado.schema.model import NO_DEFAULT, Schema


def spark_schema(schema: Schema, columns: Sequence[str] | None, table: str) -> StructType:
    """All columns, or those named, in that order.

    Raises NotFound for a field that the schema lacks, Unsupported, with the path, for what Spark has no type for.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from cortado.schema.columnar.arrow import arrow_schema
    from cortado.store.client.arrow import select_fields

    chosen = schema if columns is None else select_fields(schema, tuple(columns), table)
    exact = from_arrow_schema(arrow_schema(chosen))
    return StructType(
        [StructField(each.name, _loosened(each.dataType, each.nullable), each.nullable) for each in exact]
    )


def _loosened(kind: DataType, nullable: bool) -> DataType:
    """The type with what is inside of a null struct null, too: Spark has it so, and pyarrow refuses what it says."""
    match kind:
        case StructType():
            fields = [(each, nullable or each.nullable) for each in kind.fields]
            return StructType([StructField(each.name, _loosened(each.dataType, null), null) for each, null in fields])
        case ArrayType():
            return ArrayType(_loosened(kind.elementType, kind.containsNull), kind.containsNull)
        case MapType():
            return MapType(kind.keyType, _loosened(kind.valueType, kind.valueContainsNull), kind.valueContainsNull)
        case _:
            return kind


def check_columns(wanted: StructType, whole: StructType, table: str) -> None:
    """What ``spark.read.schema(...)`` named, against the same columns as they are. Raises InvalidArgument."""
    for field in wanted.fields:
        own = whole[field.name]
        _check_type(field, own, table)
        if not _admits(field.dataType, own.dataType) or (own.nullable and not field.nullable):
            raise InvalidArgument(f"column {field.name}", f"may be null in {table}", "NOT NULL")


def check_frame(frame: StructType, schema: Schema, key_fields: Sequence[str], table: str) -> None:
    """The columns of a DataFrame that is to be written.

    Raises NotFound for one that the table lacks, InvalidArgument for one that is missing or of another type.
    """
    required = [each.name for each in schema.record.fields if each.default is NO_DEFAULT]
    for name in key_fields:
        if name not in frame.names:
            raise InvalidArgument(
                f"column {name}", f"is required: it is part of the primary key of {table}", "no column"
            )
    for name in required:
        if name not in frame.names:
            raise InvalidArgument(f"column {name}", f"is required: it has no default in {table}", "no column")
    whole = spark_schema(schema, frame.names, table)
    for field in frame.fields:
        own = whole[field.name]
        if not (isinstance(field.dataType, NullType) and own.nullable):
            _check_type(field, own, table)


def _check_type(field: StructField, own: StructField, table: str) -> None:
    if _nullable(field.dataType) != _nullable(own.dataType):
        found = field.dataType.simpleString()
        raise InvalidArgument(f"column {field.name}", f"must be {own.dataType.simpleString()} as in {table}", found)


def _nullable(kind: DataType) -> DataType:
    """The type with nulls allowed wherever a type can say so, and without metadata."""
    match kind:
        case ArrayType():
            return ArrayType(_nullable(kind.elementType), True)
        case MapType():
            return MapType(_nullable(kind.keyType), _nullable(kind.valueType), True)
        case StructType():
            return StructType([StructField(each.name, _nullable(each.dataType), True) for each in kind.fields])
        case _:
            return kind


def _admits(wanted: DataType, own: DataType) -> bool:
    """Whether what may be null inside of ``own`` may be so in ``wanted``, a type that is the same otherwise."""
    match wanted, own:
        case ArrayType(), ArrayType():
            return wanted.containsNull >= own.containsNull and _admits(wanted.elementType, own.elementType)
        case MapType(), MapType():
            keys = _admits(wanted.keyType, own.keyType)
            return (
                keys and wanted.valueContainsNull >= own.valueContainsNull and _admits(wanted.valueType, own.valueType)
            )
        case StructType(), StructType():
            pairs = zip(wanted.fields, own.fields, strict=True)
            return all(mine.nullable >= its.nullable and _admits(mine.dataType, its.dataType) for mine, its in pairs)
        case _:
            return True
