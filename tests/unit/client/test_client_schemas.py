"""Declarations as other libraries have them: their fingerprints, and fastavro's additions to its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

from cortado.errors import NotFound
from cortado.schema.documents import encode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.client.documents import AsyncDocumentCodec
from cortado.store.client.known_schemas import SchemaVersion
from cortado.store.client.schemas import schema_text

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


class Registry:
    """Knows a schema by its id, which no version of the subject has."""

    def __init__(self, *texts: str) -> None:
        self.schemas = [parse_schema(text) for text in texts]

    async def newest(self, subject: str) -> tuple[SchemaVersion, Schema]:
        return SchemaVersion(1, subject, 1, self.schemas[0].text, ""), self.schemas[0]

    async def version_with_id(self, subject: str, schema_id: int) -> tuple[SchemaVersion, Schema]:
        raise NotFound("schema", f"with id {schema_id} in subject {subject}")

    async def by_id(self, schema_id: int) -> Schema:
        return self.schemas[schema_id - 1]


def test_a_document_is_read_by_the_id_that_it_holds_whichever_subject_has_it() -> None:
    async def subject() -> str:
        return "d.t"

    later = {**DECLARATION, "fields": [*DECLARATION["fields"], {"name": "note", "type": "string", "default": "?"}]}
    registry = Registry(json.dumps(later), json.dumps(DECLARATION))
    codec = AsyncDocumentCodec(registry, subject, None)  # type: ignore[arg-type]
    body = encode_document(registry.schemas[1], {"id": 7, "to": None})
    document, shape = asyncio.run(codec.decode(2, body))
    assert (document, shape) == ({"id": 7, "to": None, "note": "?"}, registry.schemas[0])
