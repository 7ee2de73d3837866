"""Arrow batches hold the values of the documents, in the types that Spark expects, and give the same bodies back."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, time
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.schema.columnar.arrow import arrow_schema, from_record_batch, to_record_batch
from cortado.schema.columnar.decode import DecodedRows, decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import NULL, Array, AvroType, LogicalKind, Map, Primitive, Record, Schema, Union
from cortado.schema.names import branch_name
from cortado.schema.parse import parse_schema
from cortado.schema.values import Branch, Duration, micros_of
from support.avro_random import SchemaMaker, ValueMaker

SEEDS = st.integers(0, 2**32 - 1)


def made(seed: int, rows: int) -> tuple[Schema, list[bytes], DecodedRows]:
    rng = random.Random(seed)
    schema = parse_schema(json.dumps(SchemaMaker(rng, recursive=False).document()))
    values = ValueMaker(rng)
    bodies = [encode_document(schema, values.value(schema.record)) for _ in range(rows)]
    lengths = np.fromiter(map(len, bodies), np.int64, len(bodies))
    return schema, bodies, decode_rows(schema, b"".join(bodies), lengths)


def in_arrow(type_: AvroType, value: Any) -> Any:
    """Return a document's value in Arrow, by the table of types."""
    match type_:
        case Union():
            branches = [branch for branch in type_.branches if branch != NULL]
            if value is None:
                return None
            if len(branches) == 1:
                return in_arrow(branches[0], value.value if isinstance(value, Branch) else value)
            members: dict[str, Any] = {f"member{place}": None for place in range(len(branches))}
            assert isinstance(value, Branch)
            names = [branch_name(branch) for branch in branches]
            place = names.index(value.name)
            members[f"member{place}"] = in_arrow(branches[place], value.value)
            return members
        case Array(items=items):
            return [in_arrow(items, each) for each in value]
        case Map(values=values):
            return [(key, in_arrow(values, each)) for key, each in value.items()]
        case Record():
            return {field.name: in_arrow(field.type, value[field.name]) for field in type_.fields}
        case Primitive(logical=logical) if logical is not None and logical.kind in (
            LogicalKind.TIME_MILLIS,
            LogicalKind.TIME_MICROS,
        ):
            assert isinstance(value, time)
            return micros_of(datetime.combine(date(1970, 1, 1), value))
    match value:
        case UUID():
            return str(value)
        case Duration():
            return value._asdict()
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case _:
            return value


@given(SEEDS, st.sampled_from([1, 9, 60]))
@settings(max_examples=120)
def test_a_batch_holds_the_documents_and_gives_their_bodies_back(seed: int, rows: int) -> None:
    schema, bodies, decoded = made(seed, rows)
    batch = to_record_batch(decoded.columns, schema)
    batch.validate(full=True)
    assert batch.schema.equals(arrow_schema(schema), check_metadata=True)
    written, lengths = encode_rows(schema, from_record_batch(batch, schema), rows)
    assert written == b"".join(bodies)
    assert lengths.tolist() == [len(body) for body in bodies]


@given(SEEDS)
@settings(max_examples=120)
def test_values_in_arrow_are_those_of_the_table_of_types(seed: int) -> None:
    rng = random.Random(seed)
    maker = SchemaMaker(rng, recursive=False)
    maker.union = maker.nullable  # type: ignore[method-assign]  # a document's value does not say which branch it is
    schema = parse_schema(json.dumps(maker.document()))
    values = ValueMaker(rng)
    bodies = [encode_document(schema, values.value(schema.record)) for _ in range(8)]
    lengths = np.fromiter(map(len, bodies), np.int64, len(bodies))
    batch = to_record_batch(decode_rows(schema, b"".join(bodies), lengths).columns, schema)
    expected = [in_arrow(schema.record, decode_document(schema, body)) for body in bodies]
    assert batch.to_pylist() == expected


@given(SEEDS)
@settings(max_examples=100)
def test_slices_of_batches_are_read_as_slices(seed: int) -> None:
    schema, bodies, decoded = made(seed, 30)
    batch = to_record_batch(decoded.columns, schema).slice(7, 15)
    assert encode_rows(schema, from_record_batch(batch, schema), 15)[0] == b"".join(bodies[7:22])


@given(SEEDS)
@settings(max_examples=100)
def test_the_arrow_schema_is_the_one_that_spark_makes_of_it(seed: int) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    schema, _, _ = made(seed, 0)
    ours = arrow_schema(schema)
    assert to_arrow_schema(from_arrow_schema(ours), timezone="UTC").equals(ours, check_metadata=True)


@given(SEEDS)
@settings(max_examples=60)
def test_large_types_and_dictionaries_are_read_too(seed: int) -> None:
    schema, bodies, decoded = made(seed, 12)
    batch = to_record_batch(decoded.columns, schema)
    columns = []
    for column in batch.columns:
        if pa.types.is_string(column.type):
            column = column.cast(pa.large_string()) if seed % 2 else column.dictionary_encode()
        elif pa.types.is_binary(column.type):
            column = column.cast(pa.large_binary())
        elif pa.types.is_list(column.type):
            column = column.cast(pa.large_list(column.type.value_field))
        columns.append(column)
    other = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    assert encode_rows(schema, from_record_batch(other, schema), 12)[0] == b"".join(bodies)
