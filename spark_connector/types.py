"""Spark's types for a table's columns, and the checks that a job's columns must pass.

``docs/formats/avro-arrow.md`` has the Arrow type of each Avro type. Those are types that Spark has, too, and makes of
its own the same again: so the batches that a read yields match what Spark expects to the letter.

Spark says "may be null" of much that never is: every column that went through an aggregate or a file, and the types
inside it. So a DataFrame that is written need not say "not null": its types are compared without that, and nulls are
refused by value. A schema that is read with may say "may be null" where the table does not, and not the other way.

A written column may be of a smaller type, if the table's type has all its values, as in Spark's own tables. A larger
type is refused before the job, though its values may fit: half of a job is worse than none, and a cast is explicit.
Names are found as Spark finds them, in any case of their letters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructField,
    StructType,
)

from cortado.errors import InvalidArgument, NotFound
from cortado.extras import needing
from cortado.schema.fields import select_fields
from cortado.schema.model import NO_DEFAULT, Schema

_DIGITS: Final = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


def spark_schema(schema: Schema, columns: Sequence[str] | None, table: str) -> StructType:
    """Return all columns, or those named, in that order.

    Raises NotFound for a field that the schema lacks, Unsupported, with the path, for what Spark has no type for.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    with needing("spark", "Spark"):
        from cortado.schema.columnar.arrow import arrow_schema

    chosen = schema if columns is None else select_fields(schema, tuple(columns), table)
    return loosened_schema(from_arrow_schema(arrow_schema(chosen)))


def loosened_schema(exact: StructType) -> StructType:
    """Return the schema as Spark has it: if a column may be null, so may the types inside it."""
    return StructType(
        [StructField(each.name, _loosened(each.dataType, each.nullable), each.nullable) for each in exact]
    )


def _loosened(kind: DataType, nullable: bool) -> DataType:
    """Return the type with the fields of a null struct nullable, too: Spark has it so, and pyarrow refuses another
    type."""
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


def field_names(columns: Sequence[str], schema: Schema, table: str) -> tuple[str, ...]:
    """Return the field of each column: the one of that name, or else of that name in other letters, capital or small.

    Raises NotFound if there is no such field, InvalidArgument if there are several, or two columns are one field.
    """
    known = [each.name for each in schema.record.fields]
    found: list[str] = []
    for column in columns:
        alike = [column] if column in known else [name for name in known if name.lower() == column.lower()]
        if not alike:
            raise NotFound("field", f"{column} in {table}; there are {', '.join(known)}")
        if len(alike) > 1:
            raise InvalidArgument(f"column {column}", f"may be any of {', '.join(alike)} in {table}")
        if alike[0] in found:
            raise InvalidArgument(f"column {column}", f"is another column for the field {alike[0]} of {table}")
        found += alike
    return tuple(found)


def check_columns(wanted: StructType, whole: StructType, table: str) -> None:
    """Check the columns named by ``spark.read.schema(...)`` against the table's own. Raises InvalidArgument."""
    for field, own in zip(wanted.fields, whole.fields, strict=True):
        if _nullable(field.dataType) != _nullable(own.dataType):
            raise _other_type(field, own, table)
        if not _admits(field.dataType, own.dataType) or (own.nullable and not field.nullable):
            raise InvalidArgument(f"column {field.name}", f"may be null in {table}", "NOT NULL")


def check_frame(
    frame: StructType,
    schema: Schema,
    key_fields: Sequence[str],
    table: str,
    operation: str = "upsert",
    *,
    beside: Collection[str] = (),
) -> dict[int, str]:
    """Return which columns of a DataFrame are to be written, by their places, and the fields that they are.

    Those of a "delete" are the key's alone; those that are called as one of ``beside`` are left out. Raises NotFound
    for one that the table lacks, InvalidArgument for one that is missing or of another type.
    """
    places = [place for place, name in enumerate(frame.names) if name.lower() not in beside]
    if operation == "delete":
        of_key = {name.lower() for name in key_fields}
        places = [place for place in places if frame.names[place].lower() in of_key]
    names = field_names([frame.names[place] for place in places], schema, table)
    if operation == "delete":
        # A field with the name of a key field in other letters is not part of the key.
        chosen = [(place, name) for place, name in zip(places, names, strict=True) if name in key_fields]
        places, names = [place for place, _ in chosen], tuple(name for _, name in chosen)
    for name in key_fields:
        if name not in names:
            raise InvalidArgument(
                f"column {name}", f"is required: it is part of the primary key of {table}", "no column"
            )
    if operation == "update" and set(names) <= set(key_fields):
        raise InvalidArgument(
            "option operation", f"has nothing to update in {table}: all columns are the key's", operation
        )
    if operation in ("upsert", "insert"):
        for name in [each.name for each in schema.record.fields if each.default is NO_DEFAULT]:
            if name not in names:
                raise InvalidArgument(f"column {name}", f"is required: it has no default in {table}", "no column")
    chosen_fields = [frame.fields[place] for place in places]
    for field, own in zip(chosen_fields, spark_schema(schema, names, table).fields, strict=True):
        if not (isinstance(field.dataType, NullType) and own.nullable) and not widens(field.dataType, own.dataType):
            raise _other_type(field, own, table)
    return dict(zip(places, names, strict=True))


def _other_type(field: StructField, own: StructField, table: str) -> InvalidArgument:
    found = field.dataType.simpleString()
    return InvalidArgument(f"column {field.name}", f"must be {own.dataType.simpleString()} as in {table}", found)


def widens(found: DataType, own: DataType) -> bool:
    """Return whether every value of ``found`` is one of ``own``, nulls aside."""
    match found, own:
        case ArrayType(), ArrayType():
            return widens(found.elementType, own.elementType)
        case MapType(), MapType():
            return widens(found.keyType, own.keyType) and widens(found.valueType, own.valueType)
        case StructType(), StructType():
            pairs = zip(found.fields, own.fields, strict=False)
            return found.names == own.names and all(widens(mine.dataType, its.dataType) for mine, its in pairs)
        case IntegralType(), LongType():
            return True
        case ((ByteType() | ShortType()), IntegerType()):
            return True
        case ((ByteType() | ShortType() | IntegerType() | FloatType()), DoubleType()):
            return True
        case IntegralType(), DecimalType():
            return own.precision - own.scale >= _DIGITS[type(found)]
        case DecimalType(), DecimalType():
            return own.scale >= found.scale and own.precision - own.scale >= found.precision - found.scale
        case _:
            return found == own


def _nullable(kind: DataType) -> DataType:
    """Return the type with nulls allowed wherever a type can say so, and without metadata."""
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
    """Return whether each part of ``own`` that may be null may be so in ``wanted``, a type that is the same
    otherwise."""
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
