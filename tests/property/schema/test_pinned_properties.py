"""If a version passes both checks, the values that keys were computed from stay as they were."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument, InvalidSchema
from cortado.schema.compatibility import check_reader_writer
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.key_types import key_type_of
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.pinned import check_pinned
from support.avro_strategies import (
    declaration_text,
    default_of,
    document_declarations,
    evolutions,
    values_of,
)

KEY = "a"


@st.composite
def _key_fields(draw: st.DrawFn) -> dict[str, Any]:
    avro_type = draw(
        st.sampled_from(["int", "long", "float", "string", "bytes", ["null", "int"], ["string", "null"]])
        | st.just({"type": "enum", "name": "E9", "symbols": ["RED", "GREEN"]})
        | st.just({"type": "long", "logicalType": "timestamp-millis"})
        | st.just({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
    )
    default = default_of(avro_type)
    assert default is not None
    return {"name": KEY, "type": avro_type, "default": default[0]}


def _parse(declaration: dict[str, Any]) -> Schema:
    try:
        return parse_schema(declaration_text(declaration))
    except InvalidSchema:
        assume(False)
        raise


def _passes(new: Schema, *older: Schema) -> bool:
    if any(check_reader_writer(new, old) for old in older):
        return False
    return not check_pinned(new, older[-1], [KEY])


def _is_key(schema: Schema) -> bool:
    try:
        key_type_of(schema, KEY)
    except InvalidArgument:
        return False
    return True


@given(st.data())
def test_a_pinned_field_reads_as_it_was_written(data: st.DataObject) -> None:
    declaration = data.draw(document_declarations())
    kept = [field for field in declaration["fields"] if field["name"] != KEY]
    declaration["fields"] = [data.draw(_key_fields()), *kept]
    old, new = _parse(declaration), _parse(data.draw(evolutions(declaration)))
    assume(_is_key(old))
    passes = _passes(new, old)
    event(f"passes: {passes}")
    if passes:
        body = encode_document(old, data.draw(values_of(old.root)))
        assert decode_document(old, body, new)[KEY] == decode_document(old, body)[KEY]


@given(st.data())
def test_a_document_without_a_pinned_field_keeps_the_default_that_it_is_keyed_by(data: st.DataObject) -> None:
    field = data.draw(_key_fields())
    changed = {**field, "type": data.draw(st.sampled_from([field["type"], "long", "double", ["null", "long"]]))}
    changed["default"] = data.draw(st.sampled_from([field["default"], 7, -9, None, "RED"]))
    first, second, third = (
        _parse({"type": "record", "name": "R", "fields": fields}) for fields in ([], [field], [changed])
    )
    passes = _passes(third, first, second)
    event(f"passes: {passes}")
    if passes:
        assert decode_document(first, b"", third)[KEY] == decode_document(first, b"", second)[KEY]
