r"""Pairs of the key-value API outside of it: one JSON object a line, or a record of two byte strings.

In JSON a key and a value are the text of :mod:`cortado.store.transfer.byte_text`::

    {"key": "user:1", "value": "\\x00\\xff"}

An ``etag`` beside them, as ``kv scan -o json`` shows it, is left aside when pairs are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.documents import encode_document
from cortado.schema.limits import READ_BYTES_MAX
from cortado.schema.model import Schema
from cortado.schema.parse import parse_document_schema
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes
from cortado.store.transfer.rows import Target

PAIR_SCHEMA_TEXT: Final = (
    '{"type": "record", "name": "Pair", "fields": [{"name": "key", "type": "bytes"}, '
    '{"name": "value", "type": "bytes"}]}'
)
PAIR_SCHEMA: Final = parse_document_schema(PAIR_SCHEMA_TEXT)
_MEMBERS: Final = frozenset({"key", "value", "etag"})


def pair_to_json(key: bytes, value: bytes) -> dict[str, Any]:
    """Return a pair as JSON."""
    return {"key": bytes_to_text(key), "value": bytes_to_text(value)}


def pair_from_json(value: Any) -> tuple[bytes, bytes]:
    """Return key and value of JSON that :func:`pair_to_json` made. Raises InvalidDocument, InvalidArgument naming the
    member."""
    if not isinstance(value, dict):
        raise InvalidDocument("", 'must be an object such as {"key": "a", "value": "1"}', type(value).__name__)
    for name in value:
        if name not in _MEMBERS:
            raise InvalidDocument(name, "is no member of a pair: there are key, value and etag")
    return _bytes(value, "key"), _bytes(value, "value")


def pair_body(key: bytes, value: bytes) -> bytes:
    """Return a pair as a row of :data:`PAIR_SCHEMA`. The value alone may be as large as a document."""
    return encode_document(PAIR_SCHEMA, {"key": key, "value": value}, bytes_max=READ_BYTES_MAX)


def _bytes(value: dict[str, Any], name: str) -> bytes:
    text = value.get(name)
    if not isinstance(text, str):
        found = type(text).__name__ if name in value else "nothing"
        raise InvalidDocument(name, "must be text", found)
    try:
        return parse_bytes(text, name)
    except UnicodeEncodeError as error:
        raise InvalidArgument(name, f"must be valid Unicode: {error.reason}") from None


@dataclass(frozen=True, slots=True)
class PairTarget(Target):
    """A namespace: its pairs are rows of :data:`PAIR_SCHEMA`, and have a form of their own in JSON."""

    def body_of(self, value: Any) -> bytes:
        key, held = pair_from_json(value)
        return pair_body(key, held)

    def body_of_texts(self, texts: Mapping[str, str | None]) -> bytes:
        return self.body_of(dict(texts))

    def json_of_texts(self, texts: Mapping[str, str | None]) -> Any:
        return dict(texts)

    def json_of(self, row: dict[str, Any], _schema: Schema, /) -> Any:
        return pair_to_json(row["key"], row["value"])


def pair_target(namespace: str) -> PairTarget:
    """Return the target of a namespace's pairs."""
    return PairTarget(f"kv:{namespace}", 1, PAIR_SCHEMA, {PAIR_SCHEMA.fingerprint: 1})
