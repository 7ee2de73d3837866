"""Declarations as other libraries have them: their fingerprints, and what fastavro adds to its own."""

from __future__ import annotations

import json
from typing import Any, Final

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from cortado.store.client.schemas import SchemaVersion, schema_text

DECLARATION: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "to", "type": ["null", {"type": "record", "name": "To", "fields": []}], "default": None},
    ],
}


def test_a_versions_fingerprints_are_those_that_fastavro_has() -> None:
    found = SchemaVersion(1, "d.t", 1, json.dumps(DECLARATION), "ours").avro_fingerprints()
    form = to_parsing_canonical_form(DECLARATION)
    assert found == {"sha256": fingerprint(form, "SHA-256"), "crc64": fingerprint(form, "CRC-64-AVRO")}


def test_what_fastavro_adds_to_a_declaration_is_not_registered() -> None:
    parsed = fastavro.parse_schema(json.loads(json.dumps(DECLARATION)))
    assert isinstance(parsed, dict)
    assert "__named_schemas" in parsed
    assert json.loads(schema_text(parsed)) == json.loads(schema_text(DECLARATION)) == DECLARATION
