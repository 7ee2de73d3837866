"""Compatible means readable, for every document; and Apache's checker agrees wherever it is right.

Known differences from Apache's ``avro.compatibility``, all of them stricter here:

- bytes are not read as a string, since they need not be UTF-8;
- a logical type may not come, go or change, but for a decimal's precision that grows;
- a schema that its own parser accepts may be refused by ours before it is compared (see test_schema_parse).
"""

from __future__ import annotations

import warnings
from typing import Any

import avro.errors
import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cortado.errors import InvalidDocument, InvalidSchema
from cortado.schema.compatibility import CompatibilityMode, check_against, check_reader_writer
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from support.avro_strategies import declaration_text, document_declarations, evolutions, values_of

NO_BYTES = ("boolean", "int", "long", "float", "double", "string")


@st.composite
def _pairs(draw: st.DrawFn, **options: Any) -> tuple[Schema, Schema]:
    """Draw (writer, reader): the reader is an evolution of the writer."""
    declaration = draw(document_declarations(**options))
    evolved = draw(evolutions(declaration, **options))
    try:
        return parse_schema(declaration_text(declaration)), parse_schema(declaration_text(evolved))
    except InvalidSchema:
        assume(False)
        raise


def _apache_accepts(reader: Schema, writer: Schema) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It knows fewer logical types, and says so.
        try:
            pair = avro.schema.parse(reader.text), avro.schema.parse(writer.text)
        except avro.errors.AvroException:
            assume(False)
    verdict = ReaderWriterCompatibilityChecker().get_compatibility(*pair)
    return verdict.compatibility is SchemaCompatibilityType.compatible


@given(_pairs(logical=False, plain=NO_BYTES))
def test_the_verdict_is_apaches_where_both_have_the_same_rules(pair: tuple[Schema, Schema]) -> None:
    writer, reader = pair
    compatible = not check_reader_writer(reader, writer)
    event(f"compatible: {compatible}")
    assert compatible == _apache_accepts(reader, writer), (reader.canonical, writer.canonical)


@given(_pairs())
def test_what_apache_refuses_is_refused(pair: tuple[Schema, Schema]) -> None:
    writer, reader = pair
    if not _apache_accepts(reader, writer):
        assert check_reader_writer(reader, writer)


@given(_pairs(), st.data())
def test_a_compatible_reader_reads_every_document(pair: tuple[Schema, Schema], data: st.DataObject) -> None:
    writer, reader = pair
    compatible = not check_reader_writer(reader, writer)
    event(f"compatible: {compatible}, changed: {writer.canonical != reader.canonical}")
    body = encode_document(writer, data.draw(values_of(writer.root)))
    try:
        document = decode_document(writer, body, reader)
    except InvalidDocument:
        assert not compatible
        return
    # A document that was read is one of the reader's, so that it can be updated and written again.
    again = encode_document(reader, document)
    assert encode_document(reader, decode_document(reader, again)) == again


@given(_pairs())
def test_every_mode_is_made_of_the_two_directions(pair: tuple[Schema, Schema]) -> None:
    old, new = pair
    backward, forward = not check_reader_writer(new, old), not check_reader_writer(old, new)
    verdicts = {mode: not check_against(new, [(1, old)], mode) for mode in CompatibilityMode}
    assert verdicts == {
        CompatibilityMode.NONE: True,
        CompatibilityMode.BACKWARD: backward,
        CompatibilityMode.BACKWARD_TRANSITIVE: backward,
        CompatibilityMode.FORWARD: forward,
        CompatibilityMode.FORWARD_TRANSITIVE: forward,
        CompatibilityMode.FULL: backward and forward,
        CompatibilityMode.FULL_TRANSITIVE: backward and forward,
    }


@given(document_declarations())
def test_a_schema_is_compatible_with_itself_in_every_mode(declaration: dict[str, Any]) -> None:
    first, second = (parse_schema(declaration_text(declaration)) for _ in range(2))
    assert check_reader_writer(second, first) == []
    assert all(check_against(second, [(1, first)], mode) == [] for mode in CompatibilityMode)


@given(document_declarations())
def test_a_canonical_form_declares_the_same_schema(declaration: dict[str, Any]) -> None:
    schema = parse_schema(declaration_text(declaration))
    again = parse_schema(schema.canonical)
    assert again.canonical == schema.canonical
    assert again.fingerprint == schema.fingerprint
