"""Documents as JSON texts, read strictly.

Python's reader takes the last of two equal keys, and ``NaN``; in a document that somebody wants kept, both are
mistakes. What is inside of the object is for :mod:`cortado.schema.json_format` to check.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from cortado.errors import InvalidDocument, TooLarge
from cortado.schema.documents import encode_document
from cortado.schema.json_format import from_json_value
from cortado.schema.model import Schema
from cortado.store.tables.rows import JSON_BYTES_MAX

# Made once: ``json.dumps`` makes an encoder anew for every call that has options.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def encode_json_document(schema: Schema, text: str) -> bytes:
    """The Avro body of a JSON object. Raises InvalidDocument, TooLarge."""
    return encode_document(schema, from_json_value(schema, parse_object(text, "document")))


def parse_object(text: str, what: str) -> dict[str, Any]:
    """The JSON object in ``text``. Raises InvalidDocument whose field is ``what``, TooLarge."""
    if len(text) > JSON_BYTES_MAX:
        problem = f"may have {JSON_BYTES_MAX} characters as JSON"
        raise TooLarge(what, problem, f"{len(text)} characters", len(text), JSON_BYTES_MAX)
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except _Refused as refused:
        raise InvalidDocument(what, str(refused)) from None
    except json.JSONDecodeError as error:
        raise InvalidDocument(what, f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InvalidDocument(what, "is nested too deeply") from None
    except ValueError as error:  # Python refuses to read an integer of more than some thousand digits.
        raise InvalidDocument(what, f"is not JSON that can be read: {error}") from None
    if not isinstance(value, dict):
        raise InvalidDocument(what, "must be a JSON object", type(value).__name__)
    return value


def json_text(value: Any) -> str:
    """A JSON value as text, non-ASCII characters as they are."""
    return _encode(value)


class _Refused(Exception):
    """JSON that Python would read, and that is a mistake."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _Refused(f"has the key {name!r} twice in one object")
    return value


def _refuse_constant(name: str) -> Any:
    raise _Refused(f"holds {name}, which is not JSON: write it as a string where the field is a number")
