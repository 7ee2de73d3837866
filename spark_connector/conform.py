"""Between the Arrow types of a table and those that Spark takes and gives.

Spark takes a record batch only if its schema is the expected one to the letter, and lays the batch's memory out by it.
Most types are the same on both sides, and their arrays pass through as they are; where something inside of a list,
map or struct differs, what is around it is put together anew from the same memory. What differs:

==========================  =========================  ==========================================================
table                       Spark                      why
==========================  =========================  ==========================================================
``time32``, ``time64``      ``interval day to second``  Spark's own TIME is refused by its analyser (``count()``
                                                       fails) unless ``spark.sql.timeType.enabled`` is set
``fixed_size_binary``       ``binary``                 Spark has no binary of a fixed size
``timestamp[ms]``           ``timestamp``              Spark's are in microseconds
not null inside, or not     as Spark says              Spark says "may be null" of much that never is
==========================  =========================  ==========================================================
"""

from __future__ import annotations

from typing import cast

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cortado.errors import Unsupported
from cortado.schema.columnar.arrow import arrow_schema
from cortado.schema.model import Schema
from cortado.store.client.arrow import select_fields

DECIMAL_DIGITS_MAX = 38
_TIME = pa.duration("us")


# --- types ---------------------------------------------------------------------------------------------------------


def to_spark(schema: pa.Schema) -> pa.Schema:
    """The types that Spark has for a table's. Raises Unsupported, with the path, where it has none."""
    return pa.schema([_field(each, each.name) for each in schema])


def spark_arrow_schema(schema: StructType) -> pa.Schema:
    """What the record batches of these Spark columns must look like."""
    return to_arrow_schema(schema, timezone="UTC")


def _field(field: pa.Field, path: str) -> pa.Field:
    return pa.field(field.name, _spark_type(field.type, path), field.nullable)


def _spark_type(kind: pa.DataType, path: str) -> pa.DataType:
    is_ = pa.types
    if is_.is_struct(kind):
        return pa.struct([_field(each, f"{path}.{each.name}") for each in kind])
    if is_.is_list(kind) or is_.is_large_list(kind):
        return pa.list_(_field(kind.value_field, f"{path}[]"))
    if is_.is_map(kind):
        return pa.map_(kind.key_type, _field(kind.item_field, f"{path}[]"))
    if is_.is_time(kind):
        return _TIME
    if is_.is_fixed_size_binary(kind) or is_.is_large_binary(kind):
        return pa.binary()
    if is_.is_large_string(kind):
        return pa.string()
    if is_.is_timestamp(kind) and kind.unit == "ns":
        raise _unsupported(path, "nanoseconds are more than Spark's timestamps hold")
    if is_.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if is_.is_decimal(kind) and kind.precision > DECIMAL_DIGITS_MAX:
        raise _unsupported(path, f"{kind.precision} digits are over Spark's limit of {DECIMAL_DIGITS_MAX}")
    return kind


def _unsupported(path: str, problem: str) -> Unsupported:
    return Unsupported(f"column {path} in Spark", f"{problem}; name the other columns in the option columns")


# --- arrays --------------------------------------------------------------------------------------------------------


def conform(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The same rows with the schema ``target``, which has the batch's columns."""
    if batch.schema.equals(target):
        return batch
    arrays = [_conform(batch.column(each.name), each.type) for each in target]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def from_spark(batch: pa.RecordBatch, schema: Schema, table: str) -> pa.RecordBatch:
    """Spark's rows with the table's types. Whether a null may be where it is, is checked where they are encoded."""
    return conform(batch, arrow_schema(select_fields(schema, tuple(batch.schema.names), table)))


def _conform(array: pa.Array, target: pa.DataType) -> pa.Array:
    kind = array.type
    if kind.equals(target):
        return array
    if pa.types.is_null(kind):
        return pa.nulls(len(array), target)
    if pa.types.is_struct(target):
        children = [_conform(array.field(each.name), each.type) for each in target]
        return _around(array, target, 1, children)
    if pa.types.is_map(target):
        entries = [_conform(array.keys, target.key_type), _conform(array.items, target.item_type)]
        inner = pa.StructArray.from_arrays(entries, fields=[target.key_field, target.item_field])
        return _around(array, target, 2, [inner])
    if pa.types.is_list(target) and pa.types.is_list(kind):
        return _around(array, target, 2, [_conform(array.values, target.value_type)])
    if pa.types.is_time(kind) or pa.types.is_time(target):
        return _time(array, target)
    return array.cast(target)


def _around(array: pa.Array, target: pa.DataType, buffers: int, children: list[pa.Array]) -> pa.Array:
    """The nested array ``array`` around other children, with its own validity and offsets."""
    if array.offset:
        # Its children would have to be cut, too. Arrays come whole from Spark and from the codec.
        raise NotImplementedError("a slice of a nested array")
    return pa.Array.from_buffers(target, len(array), array.buffers()[:buffers], children=children)


def _time(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A time of the day as the time since midnight, or back."""
    middle = pa.time64("us") if pa.types.is_time(array.type) else _TIME
    return cast("pa.Array", array.cast(middle).view(pa.int64()).view(target))
