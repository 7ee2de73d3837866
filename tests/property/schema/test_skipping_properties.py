"""The ends of adjacent bodies are found as the decoder finds them, and damage leads nowhere."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidDocument
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_document_schema, parse_schema
from cortado.schema.skipping import ends_of
from support.avro_strategies import declaration_text, document_declarations, values_of


@given(st.data())
def test_every_document_ends_where_it_was_written_to(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    bodies = [encode_document(schema, each) for each in data.draw(st.lists(values_of(schema.root), max_size=4))]
    assert ends_of(schema, b"x" + b"".join(bodies), 1, len(bodies)) == [1 + n for n in accumulate(map(len, bodies))]


@given(st.data())
def test_damage_is_refused_or_ends_inside_of_the_data(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    damaged = bytearray(encode_document(schema, data.draw(values_of(schema.root))))
    place = data.draw(st.integers(0, len(damaged)))
    damaged[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        ends = ends_of(schema, bytes(damaged), 0, 2)
    except InvalidDocument as error:
        assert error.row in (0, 1)
        return
    assert 0 <= ends[0] <= ends[1] <= len(damaged)


@pytest.mark.parametrize(
    ("declaration", "data"),
    [
        ('{"type": "array", "items": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ('{"type": "array", "items": "long"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ('{"type": "map", "values": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ('"long"', b"\xff" * 9 + b"\x02"),
        ('"long"', b"\xff" * 10 + b"\x01"),
        ('"long"', b"\xff" * 3),
        ('"string"', b"\x09abcd"),
        ('"bytes"', b"\x80\x80\x80\x10"),
        ('["null", "long"]', b"\x04\x00"),
        ('["null", "long", "string"]', b"\x06\x00"),
    ],
)
def test_what_would_take_for_ever_or_lead_back_is_refused(declaration: str, data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        ends_of(parse_schema(declaration), data, 0, 1)


def test_billions_of_documents_without_bytes_are_refused() -> None:
    empty = parse_schema('{"type": "record", "name": "E", "fields": []}')
    assert ends_of(empty, b"", 0, 3) == [0, 0, 0]
    with pytest.raises(InvalidDocument, match="documents"):
        ends_of(empty, b"", 0, 1 << 32)


def test_endless_depth_is_refused() -> None:
    fields = '[{"name": "next", "type": ["null", "L"]}]'
    chain = parse_schema(f'{{"type": "record", "name": "L", "fields": {fields}}}')
    assert ends_of(chain, b"\x02\x02\x00", 0, 1) == [3]
    with pytest.raises(InvalidDocument, match="nested deeper"):
        ends_of(chain, b"\x02" * 100_000, 0, 1)
