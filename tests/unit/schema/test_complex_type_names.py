"""Avro reserves the names of its primitive types. Records, enums and fixed types may have those of its complex ones."""

from __future__ import annotations

import io
import json
from typing import Any

import avro.io
import avro.schema
import fastavro
import numpy as np
import pytest
from pyspark.sql import types as t

from cortado.errors import InvalidSchema
from cortado.schema.canonical import parsing_canonical_form
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.compatibility import check_reader_writer
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.json_format import from_json_value, to_json_value
from cortado.schema.parse import parse_document_schema, parse_schema
from pyspark_cortado import spark_schema_of

WORDS = ("record", "array", "map", "enum", "fixed")
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "record": ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, {"a": 7}),
    "enum": ({"type": "enum", "symbols": ["A", "B"]}, "B"),
    "fixed": ({"type": "fixed", "size": 2}, b"ab"),
}


def declared(word: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a record that declares a type of that name, and refers to it three times; and a document."""
    declaration, value = KINDS[kind]
    fields = [
        {"name": "first", "type": {**declaration, "name": word}},
        {"name": "second", "type": word},
        {"name": "perhaps", "type": ["null", word]},
        {"name": "many", "type": {"type": "array", "items": word}},
        {"name": "named", "type": {"type": "map", "values": word}},
    ]
    document = {"first": value, "second": value, "perhaps": value, "many": [value, value], "named": {"k": value}}
    return {"type": "record", "name": "Outer", "fields": fields}, document


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", WORDS)
def test_documents_are_those_of_apache_avro(word: str, kind: str) -> None:
    declaration, document = declared(word, kind)
    schema = parse_document_schema(json.dumps(declaration))
    body = encode_document(schema, document)
    theirs = avro.schema.parse(json.dumps(declaration))
    written = io.BytesIO()
    avro.io.DatumWriter(theirs).write(document, avro.io.BinaryEncoder(written))
    assert written.getvalue() == body
    assert avro.io.DatumReader(theirs).read(avro.io.BinaryDecoder(io.BytesIO(body))) == document
    assert decode_document(schema, body) == document
    assert from_json_value(schema, to_json_value(schema, document)) == document


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", WORDS)
def test_columns_canonical_forms_and_spark_take_them(word: str, kind: str) -> None:
    declaration, document = declared(word, kind)
    schema = parse_document_schema(json.dumps(declaration))
    body = encode_document(schema, document)
    rows = decode_rows(schema, body, np.array([len(body)], np.uint32))
    assert {name: column.to_pylist()[0] for name, column in rows.columns.items()} == document
    again, _ = encode_rows(schema, rows.columns, 1)
    assert again == body
    canonical = parsing_canonical_form(schema)
    assert parsing_canonical_form(parse_schema(canonical)) == canonical
    assert parse_schema(schema.canonical).fingerprint == schema.fingerprint
    columns, _ = spark_schema_of(declaration)
    assert columns["second"].dataType == columns["first"].dataType
    assert columns["many"].dataType == t.ArrayType(columns["first"].dataType, False)


@pytest.mark.parametrize("word", WORDS)
def test_a_root_that_holds_itself_is_declared_read_and_compared(word: str) -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "next", "type": ["null", word], "default": None}]
    declaration = {"type": "record", "name": word, "fields": fields}
    fastavro.parse_schema(declaration)
    schema = parse_document_schema(json.dumps(declaration))
    document = {"a": 1, "next": {"a": 2, "next": None}}
    assert decode_document(schema, encode_document(schema, document)) == document
    longer = {**declaration, "fields": [*fields, {"name": "b", "type": "string", "default": ""}]}
    newer = parse_document_schema(json.dumps(longer))
    assert check_reader_writer(newer, schema) == check_reader_writer(schema, newer) == []
    assert decode_document(schema, encode_document(schema, document), newer)["next"]["b"] == ""


@pytest.mark.parametrize("name", ["string", "a.string", "null", "org.long"])
def test_the_names_of_primitive_types_stay_refused(name: str) -> None:
    with pytest.raises(InvalidSchema, match="is the name of one of Avro's primitive types"):
        parse_schema(json.dumps({"type": "record", "name": name, "fields": []}))


@pytest.mark.parametrize(
    "branches",
    [
        [{"type": "array", "items": "int"}, {"type": "record", "name": "array", "fields": []}],
        [{"type": "fixed", "name": "map", "size": 2}, {"type": "map", "values": "int"}],
    ],
)
def test_a_union_whose_branches_would_have_one_name_is_refused(branches: list[Any]) -> None:
    """A value of it says which branch it belongs to by that name."""
    with pytest.raises(InvalidSchema, match=r"\[1\]: the union has (array|map) twice"):
        parse_schema(json.dumps(branches))
