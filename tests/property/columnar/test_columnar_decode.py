"""Reading many bodies at once gives the same as reading each by itself, for good bodies and for damaged ones."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import CortadoError
from cortado.schema.columnar.decode import DecodedRows, decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from support.avro_random import SchemaMaker, ValueMaker, damaged

SEEDS = st.integers(0, 2**32 - 1)


def made(seed: int, rows: int, *, exotic: bool = True) -> tuple[random.Random, Schema, list[bytes]]:
    rng = random.Random(seed)
    schema = parse_schema(json.dumps(SchemaMaker(rng, exotic=exotic).document()))
    values = ValueMaker(rng)
    return rng, schema, [encode_document(schema, values.value(schema.record)) for _ in range(rows)]


def decode(schema: Schema, bodies: list[bytes], columns: list[str] | None = None) -> DecodedRows:
    lengths = np.fromiter(map(len, bodies), np.int64, len(bodies))
    return decode_rows(schema, b"".join(bodies), lengths, columns=columns)


def documents(decoded: DecodedRows) -> list[dict[str, Any]]:
    lists = [column.to_pylist() for column in decoded.columns.values()]
    return [dict(zip(decoded.columns, row, strict=True)) for row in zip(*lists, strict=True)]


@given(SEEDS, st.sampled_from([1, 2, 7, 60]))
@settings(max_examples=120)
def test_rows_read_together_are_the_rows_read_alone(seed: int, rows: int) -> None:
    _, schema, bodies = made(seed, rows)
    decoded = decode(schema, bodies)
    assert decoded.errors == {}
    assert repr(documents(decoded)) == repr([decode_document(schema, body) for body in bodies])


@given(SEEDS, st.sampled_from([1, 2, 7, 60]))
@settings(max_examples=120)
def test_columns_written_are_the_bodies_they_were_read_from(seed: int, rows: int) -> None:
    _, schema, bodies = made(seed, rows)
    written, lengths = encode_rows(schema, decode(schema, bodies).columns, rows)
    assert written == b"".join(bodies)
    assert lengths.tolist() == [len(body) for body in bodies]


@given(SEEDS)
@settings(max_examples=120)
def test_bodies_are_those_that_fastavro_writes(seed: int) -> None:
    rng = random.Random(seed)
    declaration = SchemaMaker(rng, exotic=False).document()
    schema = parse_schema(json.dumps(declaration))
    parsed = fastavro.parse_schema(json.loads(json.dumps(declaration)))
    bodies = []
    for _ in range(10):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, ValueMaker(rng, plain=True).value(schema.record))
        bodies.append(out.getvalue())
    decoded = decode(schema, bodies)
    assert decoded.errors == {}
    assert encode_rows(schema, decoded.columns, 10)[0] == b"".join(bodies)


@given(SEEDS, st.sampled_from([1, 3, 70]))
@settings(max_examples=150)
def test_a_damaged_body_is_refused_if_and_only_if_it_is_refused_alone(seed: int, rows: int) -> None:
    rng, schema, bodies = made(seed, rows)
    bodies = [damaged(rng, body) if rng.random() < 0.6 else body for body in bodies]
    expected: list[Any] = []
    for body in bodies:
        try:
            expected.append(decode_document(schema, body))
        except CortadoError as error:
            expected.append(str(error))
    decoded = decode(schema, bodies)
    found = documents(decoded)
    for row, want in enumerate(expected):
        if isinstance(want, str):
            # A crowd of nulls is not walked again to find another error.
            assert str(decoded.errors[row]) == want or "values that take no bytes" in str(decoded.errors[row])
            assert decoded.errors[row].row == row
            assert all(value is None for value in found[row].values())
        else:
            assert row not in decoded.errors
            assert repr(found[row]) == repr(want)
    assert set(decode(schema, bodies, []).errors) == set(decoded.errors)


@given(SEEDS)
@settings(max_examples=120)
def test_what_is_accepted_is_what_fastavro_reads(seed: int) -> None:
    rng = random.Random(seed)
    declaration = SchemaMaker(rng, exotic=False).document()
    schema = parse_schema(json.dumps(declaration))
    parsed = fastavro.parse_schema(json.loads(json.dumps(declaration)))
    values = ValueMaker(rng)
    bodies = [damaged(rng, encode_document(schema, values.value(schema.record))) for _ in range(20)]
    decoded = decode(schema, bodies)
    accepted = [body for row, body in enumerate(bodies) if row not in decoded.errors]
    if not accepted:
        return
    written, lengths = encode_rows(schema, decode(schema, accepted).columns, len(accepted))
    ends = np.cumsum(lengths).tolist()
    for body, start, end in zip(accepted, [0, *ends], ends, strict=False):
        # A body that was read and written again in the shortest form is the same value to fastavro as before.
        ours, theirs = (
            fastavro.schemaless_reader(io.BytesIO(each), parsed, return_record_name=True)
            for each in (written[start:end], body)
        )
        assert repr(ours) == repr(theirs)


@given(SEEDS)
def test_a_projection_is_the_column_of_the_whole(seed: int) -> None:
    rng, schema, bodies = made(seed, 20)
    bodies = [damaged(rng, body) if rng.random() < 0.2 else body for body in bodies]
    names = [field.name for field in schema.record.fields]
    chosen = rng.sample(names, rng.randint(0, len(names)))
    whole, part = decode(schema, bodies), decode(schema, bodies, chosen)
    assert list(part.columns) == chosen
    assert repr({name: part.columns[name].to_pylist() for name in chosen}) == repr(
        {name: whole.columns[name].to_pylist() for name in chosen}
    )


@pytest.mark.parametrize("rows", [1, 40])
def test_random_bytes_are_read_or_refused_in_time(rows: int) -> None:
    rng = random.Random(7)
    for seed in range(60):
        _, schema, _ = made(seed, 0)
        decode(schema, [rng.randbytes(rng.choice([1, 10, 300, 3000])) for _ in range(rows)])
