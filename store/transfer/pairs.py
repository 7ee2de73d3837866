r"""Pairs of the key-value API outside of it: one JSON object a line, or a record of two byte strings.

In JSON a key and a value are the text of :mod:`cortado.store.transfer.byte_text`::

    {"key": "user:1", "value": "\\x00\\xff"}

An ``etag`` beside them, as ``kv scan -o json`` shows it, is left aside when pairs are read.
"""

from __future__ import annotations

from typing import Any, Final

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.parse import parse_document_schema
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes

PAIR_SCHEMA_TEXT: Final = (
    '{"type": "record", "name": "Pair", "fields": [{"name": "key", "type": "bytes"}, '
    '{"name": "value", "type": "bytes"}]}'
)
PAIR_SCHEMA: Final = parse_document_schema(PAIR_SCHEMA_TEXT)
_MEMBERS: Final = frozenset({"key", "value", "etag"})


def pair_to_json(key: bytes, value: bytes) -> dict[str, Any]:
    """A pair as JSON."""
    return {"key": bytes_to_text(key), "value": bytes_to_text(value)}


def pair_from_json(value: Any) -> tuple[bytes, bytes]:
    """Key and value of what :func:`pair_to_json` made. Raises InvalidDocument, InvalidArgument naming the member."""
    if not isinstance(value, dict):
        raise InvalidDocument("", 'must be an object such as {"key": "a", "value": "1"}', type(value).__name__)
    for name in value:
        if name not in _MEMBERS:
            raise InvalidDocument(name, "is no member of a pair: there are key, value and etag")
    return _bytes(value, "key"), _bytes(value, "value")


def _bytes(value: dict[str, Any], name: str) -> bytes:
    text = value.get(name)
    if not isinstance(text, str):
        found = type(text).__name__ if name in value else "nothing"
        raise InvalidDocument(name, "must be text", found)
    try:
        return parse_bytes(text, name)
    except UnicodeEncodeError as error:
        raise InvalidArgument(name, f"must be valid Unicode: {error.reason}") from None
