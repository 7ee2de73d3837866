"""Avro's types as Arrow's, and columns as record batches. Besides its two halves, the only place that needs pyarrow.

The table of types is ``docs/formats/avro-arrow.md``. In short: a type keeps its meaning, a timestamp is one in
microseconds, and the Arrow schema survives Spark to the letter (``from_arrow_schema``, then ``to_arrow_schema(...,
timezone="UTC")``). Refused, with their paths: records within themselves, which Arrow cannot say, and decimals of more
than 38 digits, which Spark cannot hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from cortado.errors import Internal, InvalidArgument, Unsupported
from cortado.schema.columnar.arrow_read import read_array
from cortado.schema.columnar.arrow_write import write_array
from cortado.schema.columnar.column import Column, logical_of
from cortado.schema.columnar.origin import Origin
from cortado.schema.model import (
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    LogicalKind,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)

DECIMAL_DIGITS_MAX = 38

_OF_KIND = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.BYTES: pa.binary(),
    Kind.STRING: pa.string(),
}
_OF_LOGICAL = {
    LogicalKind.UUID: pa.string(),
    LogicalKind.DATE: pa.date32(),
    # Microseconds since midnight: Spark's TIME is off unless it is configured.
    LogicalKind.TIME_MILLIS: pa.int64(),
    LogicalKind.TIME_MICROS: pa.int64(),
    LogicalKind.TIMESTAMP_MILLIS: pa.timestamp("us", tz="UTC"),
    LogicalKind.TIMESTAMP_MICROS: pa.timestamp("us", tz="UTC"),
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: pa.timestamp("us"),
    LogicalKind.LOCAL_TIMESTAMP_MICROS: pa.timestamp("us"),
    # Spark has no nanoseconds; a number of them loses nothing.
    LogicalKind.TIMESTAMP_NANOS: pa.int64(),
    LogicalKind.LOCAL_TIMESTAMP_NANOS: pa.int64(),
    LogicalKind.DURATION: pa.struct(
        [pa.field(name, pa.int64(), nullable=False) for name in ("months", "days", "milliseconds")]
    ),
}


@lru_cache(maxsize=256)
def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a document's fields, in their order. Raises Unsupported, with the path, as said
    above."""
    return pa.schema([_field(field, (schema.record,), "") for field in schema.record.fields])


def _field(field: Field, around: tuple[Record, ...], path: str) -> pa.Field:
    type_, nullable = _arrow_type(field.type, around, f"{path}.{field.name}" if path else field.name)
    return pa.field(field.name, type_, nullable=nullable)


def _arrow_type(type_: AvroType, around: tuple[Record, ...], path: str) -> tuple[pa.DataType, bool]:
    """(the Arrow type, whether it may be null) of a type inside the records ``around``."""
    match type_:
        case Primitive() | Fixed():
            logical = logical_of(type_)
            if logical is not None:
                return _logical_type(logical, path), False
            return (pa.binary() if isinstance(type_, Fixed) else _OF_KIND[type_.kind]), type_ == NULL
        case Enum():
            return pa.string(), False
        case Array(items=items):
            item, nullable = _arrow_type(items, around, f"{path}[]")
            return pa.list_(pa.field("element", item, nullable=nullable)), False
        case Map(values=values):
            value, nullable = _arrow_type(values, around, f"{path}{{}}")
            return pa.map_(
                pa.field("key", pa.string(), nullable=False), pa.field("value", value, nullable=nullable)
            ), False
        case Union():
            return _union_type(type_, around, path)
        case Record():
            if any(each.name == type_.name for each in around):
                raise Unsupported(
                    f"field {path} in Arrow and Spark", f"{type_.name} holds itself, which they cannot say"
                )
            return pa.struct([_field(field, (*around, type_), path) for field in type_.fields]), False


def _logical_type(logical: Logical, path: str) -> pa.DataType:
    if logical.kind is not LogicalKind.DECIMAL:
        return _OF_LOGICAL[logical.kind]
    if logical.precision > DECIMAL_DIGITS_MAX:
        problem = f"a decimal of {logical.precision} digits, they have at most {DECIMAL_DIGITS_MAX}"
        raise Unsupported(f"field {path} in Arrow and Spark", problem)
    return pa.decimal128(logical.precision, logical.scale)


def _union_type(union: Union, around: tuple[Record, ...], path: str) -> tuple[pa.DataType, bool]:
    """``[null, T]`` is T that may be null; of several branches each is a member of a struct, as in Spark's own Avro."""
    branches = [branch for branch in union.branches if branch != NULL]
    nullable = len(branches) < len(union.branches)
    if not branches:
        return pa.null(), True
    if len(branches) == 1:
        return _arrow_type(branches[0], around, path)[0], nullable
    members = [
        pa.field(f"member{number}", _arrow_type(branch, around, f"{path}.member{number}")[0], nullable=True)
        for number, branch in enumerate(branches)
    ]
    return pa.struct(members), nullable


def to_record_batch(columns: Mapping[str, Column], schema: Schema) -> pa.RecordBatch:
    """Return the batch of ``columns``, which are by field name, in the schema's order; without copies if layouts agree.

    Raises Unsupported as :func:`arrow_schema`.
    """
    target = arrow_schema(schema)
    arrays = []
    for field, arrow_field in zip(schema.record.fields, target, strict=True):
        column = columns[field.name]
        if not arrow_field.nullable and column.validity is not None and not column.validity.all():
            raise Internal(f"a null in {field.name}, of a row that was refused")
        arrays.append(write_array(column, arrow_field.type, nullable=arrow_field.nullable))
    if not arrays:
        rows = max((column.length for column in columns.values()), default=0)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def from_record_batch(batch: pa.RecordBatch, schema: Schema, *, truncates: bool = False) -> dict[str, Column]:
    """Return the columns of a batch that holds the schema's fields, by name and in any order.

    Types are those of :func:`arrow_schema` or ones that go into them without loss (a dictionary of strings, an int8).
    It ``truncates`` times that are finer than their type.

    Raises InvalidArgument for a column that is missing, not in the schema, or of another type; InvalidDocument, with
    path and row, for a value that its type does not admit. Nulls in columns without null, and the ranges of numbers,
    are left to :func:`~cortado.schema.columnar.encode.encode_rows` to check.
    """
    known = {field.name for field in schema.record.fields}
    for name in batch.schema.names:
        if name not in known:
            raise InvalidArgument(f"column {name}", f"{schema.record.name} has no such field")
    if len(set(batch.schema.names)) < len(batch.schema.names):
        raise InvalidArgument("columns", "have the same name twice", ", ".join(batch.schema.names))
    columns, documents = {}, Origin(truncates=truncates)
    for field in schema.record.fields:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            raise InvalidArgument(f"column {field.name}", f"is missing; {schema.record.name} has that field")
        columns[field.name] = read_array(batch.column(place), field.type, documents.field(field.name))
    return columns
