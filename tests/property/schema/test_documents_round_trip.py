"""Any document of any schema survives: through bytes, through JSON, and to and from fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.documents import decode_document, encode_document, validate_body
from cortado.schema.json_format import from_json_value, to_json_value
from cortado.schema.parse import parse_document_schema
from support.avro_strategies import declaration_text, document_declarations, unions_of, values_of


@given(st.data())
def test_what_is_written_is_read_again(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    document = data.draw(values_of(schema.root))
    body = encode_document(schema, document)
    assert decode_document(schema, body) == document
    assert decode_document(schema, body, parse_document_schema(schema.text)) == document


@given(st.data())
def test_json_and_back_gives_the_same_body(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    document = data.draw(values_of(schema.root))
    body = encode_document(schema, document)
    text = json.dumps(to_json_value(schema, document), allow_nan=False)
    assert encode_document(schema, from_json_value(schema, json.loads(text))) == body


@given(st.data())
def test_fastavro_writes_the_same_bytes_and_reads_ours(data: st.DataObject) -> None:
    # Plain types alone: fastavro has other values for some logical types, and chooses union branches its own way. It
    # takes a reference to a type called record for a declaration.
    declaration = data.draw(document_declarations(logical=False, complex_names=False))
    schema = parse_document_schema(declaration_text(declaration))
    document = data.draw(values_of(schema.root))
    body = encode_document(schema, document)
    theirs = fastavro.parse_schema(declaration)
    if all(union.nullable is not None for union in unions_of(schema.root)):
        written = io.BytesIO()
        fastavro.schemaless_writer(written, theirs, document)
        assert written.getvalue() == body
    assert fastavro.schemaless_reader(io.BytesIO(body), theirs) == _without_branches(document)


@given(st.data())
def test_a_damaged_body_is_refused_or_read_but_never_breaks_the_reader(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    body = bytearray(encode_document(schema, data.draw(values_of(schema.root))))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body)))
        body[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        validate_body(schema, bytes(body))
    except InvalidDocument:
        with pytest.raises(InvalidDocument):
            decode_document(schema, bytes(body))
        return
    again = encode_document(schema, decode_document(schema, bytes(body)))
    assert encode_document(schema, decode_document(schema, again)) == again


@given(st.data())
def test_a_random_body_is_refused_or_read(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    try:
        validate_body(schema, data.draw(st.binary(max_size=40)))
    except InvalidArgument:
        return


def _without_branches(value: Any) -> Any:
    if isinstance(value, tuple):
        return _without_branches(value[1])
    if isinstance(value, list):
        return [_without_branches(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_branches(each) for name, each in value.items()}
    return value
