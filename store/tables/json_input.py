"""Documents as JSON texts, bounded. :mod:`cortado.schema.json_format` checks the content of the object."""

from __future__ import annotations

from typing import Any

from cortado.errors import InvalidDocument, TooLarge
from cortado.schema.documents import encode_document
from cortado.schema.json_format import from_json_value
from cortado.schema.json_text import parse_json
from cortado.schema.model import Schema
from cortado.store.tables.rows import JSON_BYTES_MAX


def encode_json_document(schema: Schema, text: str) -> bytes:
    """Return the Avro body of a JSON object. Raises InvalidDocument, TooLarge."""
    return encode_document(schema, from_json_value(schema, parse_object(text, "document")))


def parse_object(text: str, what: str) -> dict[str, Any]:
    """Return the JSON object in ``text``. Raises InvalidDocument with the field ``what``, TooLarge."""
    if len(text) > JSON_BYTES_MAX:
        problem = f"may have {JSON_BYTES_MAX} characters as JSON"
        raise TooLarge(what, problem, f"{len(text)} characters", len(text), JSON_BYTES_MAX)
    value = parse_json(text, what, InvalidDocument)
    if not isinstance(value, dict):
        raise InvalidDocument(what, "must be a JSON object", type(value).__name__)
    return value
