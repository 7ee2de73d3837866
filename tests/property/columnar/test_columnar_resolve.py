"""Columns resolved to another schema hold the same values as each document resolved by itself."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import CortadoError, InvalidDocument, InvalidSchema
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.columnar.resolve import resolve_columns, writer_columns
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from support.avro_random import Evolution, SchemaMaker, ValueMaker

ROWS = 12


def pair(rng: random.Random) -> tuple[Schema, Schema] | None:
    declaration = SchemaMaker(rng).document()
    changed = {**declaration, "fields": Evolution(rng).fields(declaration["fields"])}
    try:
        return parse_schema(json.dumps(declaration)), parse_schema(json.dumps(changed))
    except InvalidSchema:
        return None  # a type that later fields refer to went away, or a union took the same type twice


def resolved_alone(writer: Schema, body: bytes, reader: Schema) -> Any:
    try:
        return decode_document(writer, body, reader)
    except CortadoError as error:
        return error


def lengths_of(bodies: list[bytes]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.fromiter(map(len, bodies), np.int64, len(bodies))


def loosely(value: Any) -> str:
    """Return a value's text, with fastavro's differences made equal.

    It has a record's fields in the writer's order, and does not narrow a number to the reader's float. Of a union it
    takes the first branch that a value can be promoted to; the rules here prefer the branch of its own type.
    """
    match value:
        case dict():
            return "{" + ", ".join(f"{key!r}: {loosely(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ", ".join(map(loosely, value)) + "]"
        case str():
            return repr(value.encode())
        case int() | float() if not isinstance(value, bool):
            with np.errstate(over="ignore"):
                return repr(np.float32(value))
        case _:
            return repr(value)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=120)
def test_columns_resolve_as_documents_do(seed: int) -> None:
    rng = random.Random(seed)
    schemas = pair(rng)
    if schemas is None:
        return
    writer, reader = schemas
    values = ValueMaker(rng)
    bodies = [encode_document(writer, values.value(writer.record)) for _ in range(ROWS)]
    alone = [resolved_alone(writer, body, reader) for body in bodies]
    needed = writer_columns(writer, reader)
    columns = decode_rows(writer, b"".join(bodies), lengths_of(bodies), columns=needed).columns
    refused = [row for row, one in enumerate(alone) if isinstance(one, CortadoError)]
    try:
        resolved = resolve_columns(columns, writer, reader)
    except InvalidDocument as error:
        assert error.row in refused
        return
    # A reader without fields asks for no column, and so sees no mistake in one.
    assert not refused or not reader.record.fields
    if reader.record.fields and not refused:
        rows = zip(*(column.to_pylist() for column in resolved.values()), strict=True)
        assert repr([dict(zip(resolved, row, strict=True)) for row in rows]) == repr(alone)
        # A reader's value that would be another branch's too may be written as that one: compare the values read.
        written, lengths = encode_rows(reader, resolved, ROWS)
        again = decode_rows(reader, written, lengths)
        assert again.errors == {}
        assert repr([column.to_pylist() for column in again.columns.values()]) == repr(
            [column.to_pylist() for column in resolved.values()]
        )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_what_is_resolved_is_what_fastavro_resolves(seed: int) -> None:
    rng = random.Random(seed)
    declaration = SchemaMaker(rng, exotic=False, recursive=False).document()
    changed = {**declaration, "fields": Evolution(rng).fields(declaration["fields"])}
    try:
        writer, reader = parse_schema(json.dumps(declaration)), parse_schema(json.dumps(changed))
    except InvalidSchema:
        return
    theirs = [fastavro.parse_schema(json.loads(schema.text)) for schema in (writer, reader)]
    values = ValueMaker(rng)
    bodies = [encode_document(writer, values.value(writer.record)) for _ in range(ROWS)]
    columns = decode_rows(writer, b"".join(bodies), lengths_of(bodies)).columns
    try:
        written, lengths = encode_rows(reader, resolve_columns(columns, writer, reader), ROWS)
    except InvalidDocument:
        return  # the rules here are stricter, see docs/schema-evolution.md
    ends = np.cumsum(lengths).tolist()
    for body, start, end in zip(bodies, [0, *ends], ends, strict=False):
        try:
            expected = fastavro.schemaless_reader(io.BytesIO(body), *theirs)
        except Exception:  # fastavro resolves less: a default inside a union's record, a renamed field
            continue
        found = fastavro.schemaless_reader(io.BytesIO(written[start:end]), theirs[1])
        assert loosely(found) == loosely(expected)
