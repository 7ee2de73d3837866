"""Any rows of any schema survive a file: as JSON lines and as Avro, and any bytes survive as pairs."""

from __future__ import annotations

import io
import json
from typing import Any, BinaryIO, cast

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import IncompatibleSchema
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.json_format import to_json_value
from cortado.schema.json_text import json_text, parse_json
from cortado.schema.model import Schema
from cortado.schema.parse import parse_document_schema
from cortado.store.cli.render import Renderer
from cortado.store.transfer.avro_file import ContainerWriter
from cortado.store.transfer.avro_source import avro_chunks
from cortado.store.transfer.formats import Compression
from cortado.store.transfer.json_source import json_chunks
from cortado.store.transfer.pairs import pair_from_json, pair_to_json
from cortado.store.transfer.rows import RowChunk, Target
from support.avro_strategies import declaration_text, document_declarations, values_of


def target(schema: Schema, known: bool = False) -> Target:
    return Target("a.b", 7, schema, {schema.fingerprint: 9} if known else {})


def rows_of(data: st.DataObject, schema: Schema) -> list[bytes]:
    return [encode_document(schema, each) for each in data.draw(st.lists(values_of(schema.root), max_size=4))]


def bodies_of(chunks: list[RowChunk]) -> list[bytes]:
    assert not [bad for chunk in chunks for bad in chunk.refused]
    return [body for chunk in chunks for body in chunk.bodies()]


def container_of(schema: Schema, bodies: list[bytes]) -> io.BytesIO:
    sink = io.BytesIO()
    writer = ContainerWriter(sink, schema.text, Compression.DEFLATE, name="n", metadata={})
    for body in bodies:
        writer.add(body, 1)
    writer.close()
    return io.BytesIO(sink.getvalue())


@given(st.data())
def test_what_the_command_line_shows_as_json_it_takes_again(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    bodies = rows_of(data, schema)
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", shown)
        for body in bodies:
            Renderer().json(to_json_value(schema, decode_document(schema, body)))
    lines = io.BytesIO(shown.getvalue().encode())
    assert bodies_of(list(json_chunks(cast(BinaryIO, lines), "f", target(schema)))) == bodies


@given(st.data())
def test_json_lines_that_are_kept_aside_are_the_same_rows(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    bodies = rows_of(data, schema)
    to = target(schema)
    texts = [to.text_of(schema, body) for body in bodies]
    assert [to.body_of(parse_json(text, "line")) for text in texts] == bodies


@given(st.data(), st.booleans())
def test_an_avro_file_gives_the_bodies_that_went_into_it(data: st.DataObject, known: bool) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    bodies = rows_of(data, schema)
    chunks = list(avro_chunks(cast(BinaryIO, container_of(schema, bodies)), "f", target(schema, known)))
    assert bodies_of(chunks) == bodies
    assert {chunk.schema_id for chunk in chunks} <= {9 if known else 7}
    assert [place for chunk in chunks for place in chunk.places] == list(range(1, len(bodies) + 1))
    skipped = data.draw(st.integers(0, len(bodies)))
    rest = list(avro_chunks(cast(BinaryIO, container_of(schema, bodies)), "f", target(schema, known), skipped))
    assert bodies_of(rest) == bodies[skipped:]


@given(st.data())
@settings(max_examples=50)
def test_fastavro_reads_our_files_and_we_read_its(data: st.DataObject) -> None:
    # Plain types alone: fastavro has other values for some logical types.
    schema = parse_document_schema(
        declaration_text(data.draw(document_declarations(logical=False, complex_names=False)))
    )
    bodies = rows_of(data, schema)
    parsed = fastavro.parse_schema(json.loads(schema.text))

    def values(of: list[bytes]) -> list[str]:
        # As text: a NaN is itself then.
        return [repr(fastavro.schemaless_reader(io.BytesIO(body), parsed, None)) for body in of]

    theirs = list(fastavro.reader(container_of(schema, bodies)))
    assert list(map(repr, theirs)) == values(bodies)
    # Bodies of fastavro's own: fastavro may choose another branch of a union than we, so each row is taken as it wrote
    # it.
    written = []
    for row in theirs:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, parsed, row)
        written.append(body.getvalue())
    out = io.BytesIO()
    fastavro.writer(out, parsed, theirs)
    chunks = avro_chunks(cast(BinaryIO, io.BytesIO(out.getvalue())), "f", target(schema))
    assert bodies_of(list(chunks)) == written


@given(st.data())
def test_a_file_of_another_schema_is_resolved_or_refused_as_a_whole(data: st.DataObject) -> None:
    text = declaration_text(data.draw(document_declarations()))
    writer = parse_document_schema(text)
    # Mostly the same one a version later: two that were drawn for themselves seldom fit.
    other = _later(text, data.draw(st.booleans()))
    if data.draw(st.integers(0, 3)) == 0:
        other = declaration_text(data.draw(document_declarations()))
    reader = parse_document_schema(other)
    bodies = rows_of(data, writer)
    file = cast(BinaryIO, container_of(writer, bodies))
    try:
        chunks = list(avro_chunks(file, "f", target(reader)))
    except IncompatibleSchema as error:
        assert error.incompatibilities
        return
    found: list[Any] = bodies_of(chunks)
    expected = [decode_document(writer, body, reader) for body in bodies]
    assert [repr(decode_document(reader, body)) for body in found] == list(map(repr, expected))


def _later(text: str, drops: bool) -> str:
    """Return a version that has a field more, and one less if it ``drops``."""
    declaration = json.loads(text)
    fields = declaration["fields"][:-1] if drops and len(declaration["fields"]) > 1 else declaration["fields"]
    added = {"name": "added_later", "type": "string", "default": "as it was"}
    return json.dumps({**declaration, "fields": [*fields, added]})


@given(st.lists(st.tuples(st.binary(), st.binary())))
def test_any_pair_survives_json(pairs: list[tuple[bytes, bytes]]) -> None:
    lines = [json_text(pair_to_json(*pair)) for pair in pairs]
    assert [pair_from_json(parse_json(line, "line")) for line in lines] == pairs
