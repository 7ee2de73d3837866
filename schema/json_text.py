"""JSON, read strictly: no duplicate keys, no NaN, bounded, and every failure one InvalidSchema.

Python's reader takes the last of two equal keys and accepts ``NaN``; in a declaration that is kept for ever, both are
mistakes that nobody would find again.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from cortado.errors import InvalidSchema
from cortado.schema.limits import SCHEMA_BYTES_MAX


def parse_json(text: str) -> Any:
    """The value of a declaration's ``text``. Raises InvalidSchema with the place (line and column) of a mistake."""
    length = _utf8_length(text)
    if length > SCHEMA_BYTES_MAX:
        raise InvalidSchema("", f"the declaration has {length} bytes, the limit is {SCHEMA_BYTES_MAX}")
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidSchema("", f"not JSON: {error.msg} at {place}", shown(text)) from None
    except RecursionError:
        raise InvalidSchema("", "not a schema: the JSON is nested too deeply") from None
    except ValueError as error:  # Python refuses to read an integer of more than some thousand digits.
        raise InvalidSchema("", f"not a schema: {error}") from None


def shown(value: Any, width: int = 60) -> str:
    """A JSON value as a short text for a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= width else text[: width - 3] + "..."


def _utf8_length(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidSchema("", f"the declaration is not valid Unicode at character {error.start}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidSchema("", "a JSON object has the same key twice", shown(twice))
    return value


def _refuse_constant(name: str) -> Any:
    raise InvalidSchema("", f"{name} is not JSON")
