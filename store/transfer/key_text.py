r"""Keys as text that a person can write: on a command line, in a URL, in JSON.

A part of a key is read by its declared type, so nothing needs quotes of its own:

=============  ==================================================================================
type           written as
=============  ==================================================================================
bool           ``true`` or ``false``
int64          ``1545``
float64        ``12.5``, ``NaN``, ``Infinity``, ``-Infinity``
bytes          base64
string         as it is
timestamp      RFC 3339 with a zone, such as ``2013-01-01T10:00:00Z``, or microseconds since 1970
date           ``2013-01-01``
decimal        ``12.50``
uuid           ``9f0c6a52-3f6e-4a7b-8f52-4f1e6a1d2c3b``
=============  ==================================================================================

A part of an index may be null, and null is ``\N`` there. So the text ``\N`` is ``\\N`` there, the text ``\\N`` is
``\\\N``, and so on: the first backslash is an escape. No part of a primary key is null, so there ``\N`` is the text
itself. JSON has a null of its own, and no other escapes.

A bound is one part written so, or a JSON array of several: ``["2013-01-01T10:00:00Z", "UA"]``. The form of the
key-value API's bytes is :mod:`cortado.store.transfer.byte_text`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cortado.errors import InvalidArgument
from cortado.rfc3339 import Impossible, exact_instant, parse_date
from cortado.schema.json_text import parse_json
from cortado.store.keys.types import KeyPart, KeyType

if TYPE_CHECKING:
    from cortado.store.client.values import Key, Part

_NULL_TEXT: Final = "\\N"
_ESCAPED: Final = re.compile(r"\\+N")

_WANTED: Final = {
    KeyType.BOOL: "true or false",
    KeyType.INT64: "a whole number",
    KeyType.FLOAT64: "a number",
    KeyType.BYTES: "base64",
    KeyType.TIMESTAMP: "a time with a zone, such as 2013-01-01T10:00:00Z, or microseconds since 1970",
    KeyType.DATE: "a date, such as 2013-01-01",
    KeyType.DECIMAL: "a decimal, such as 12.50",
    KeyType.UUID: "a UUID",
}
WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")

_NUMBER: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?"
# Python takes more: underscores, spaces, forms without dashes.
_FORMS: Final = {
    KeyType.FLOAT64: re.compile(rf"{_NUMBER}|NaN|[+-]?Infinity"),
    KeyType.DECIMAL: re.compile(_NUMBER),
    KeyType.UUID: re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
}


def parse_key(texts: Sequence[str], parts: Sequence[KeyPart], *, prefix: bool = False, nullable: int = 0) -> Key:
    """Return a key of the arguments of a command. The first ``nullable`` parts may be null: those of an index. Raises
    InvalidArgument naming the part, or how many parts there are."""
    if len(texts) > len(parts) or (len(texts) < len(parts) and not prefix):
        declared = ", ".join(f"{part.path} ({part.type})" for part in parts)
        wanted = f"{'at most ' if prefix else ''}{_parts(len(parts))}: {declared}"
        raise InvalidArgument("key", f"must have {wanted}", _parts(len(texts)))
    found = enumerate(zip(texts, parts, strict=False))
    return tuple(parse_part(text, part, nullable=place < nullable) for place, (text, part) in found)


def parse_bound(text: str | None, parts: Sequence[KeyPart], option: str, *, nullable: int = 0) -> Key | None:
    """Return a bound of a range: one part, or a JSON array of parts; ``nullable`` as of :func:`parse_key`. Raises
    InvalidArgument."""
    if text is None:
        return None
    if not text.startswith("["):
        return parse_key([text], parts, prefix=True, nullable=nullable)
    values = parse_json(text, option)
    if len(values) > len(parts):
        raise InvalidArgument(option, f"must have at most {_parts(len(parts))}", _parts(len(values)))
    return tuple(_part_of_json(value, part) for value, part in zip(values, parts, strict=False))


def key_of_json(value: Any, parts: Sequence[KeyPart], field: str) -> Key:
    """Return a whole key out of a JSON array of parts. Raises InvalidArgument naming ``field``, or the part."""
    if not isinstance(value, list) or len(value) != len(parts):
        declared = ", ".join(f"{part.path} ({part.type})" for part in parts)
        raise InvalidArgument(field, f"must be a list of {_parts(len(parts))}: {declared}", f"{value!r:.80}")
    return tuple(_part_of_json(each, part) for each, part in zip(value, parts, strict=True))


def parse_part(text: str, part: KeyPart, *, nullable: bool = False) -> Part:
    """One part by its declared type. Raises InvalidArgument naming it."""
    if nullable and text == _NULL_TEXT:
        return None
    is_escaped = nullable and _ESCAPED.fullmatch(text) is not None
    try:
        return _parse_typed(text[1:] if is_escaped else text, part.type)
    except Impossible as impossible:
        raise InvalidArgument(f"key.{part.path}", f"is no time of the calendar: {impossible}", repr(text)) from None
    except (ValueError, InvalidOperation, OverflowError, binascii.Error):
        raise InvalidArgument(f"key.{part.path}", f"must be {_WANTED[part.type]}", repr(text)) from None


def _parse_typed(text: str, type: KeyType) -> Part:
    form = _FORMS.get(type)
    if form is not None and form.fullmatch(text) is None:
        raise ValueError
    match type:
        case KeyType.STRING:
            return text
        case KeyType.BOOL:
            return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse()
        case KeyType.INT64:
            return int(text) if WHOLE.fullmatch(text) else _refuse()
        case KeyType.FLOAT64:
            return _float(text)
        case KeyType.BYTES:
            return base64.b64decode(text, validate=True)
        case KeyType.TIMESTAMP:
            return int(text) if WHOLE.fullmatch(text) else exact_instant(text)
        case KeyType.DATE:
            return parse_date(text)
        case KeyType.DECIMAL:
            return Decimal(text)
        case KeyType.UUID:
            return UUID(text)


def _refuse() -> Any:
    raise ValueError


def _float(text: str) -> float:
    number = float(text)
    # 1e400 is no name of infinity.
    return number if not math.isinf(number) or text.endswith("Infinity") else _refuse()


def _part_of_json(value: Any, part: KeyPart) -> Part:
    if value is None or (isinstance(value, str) and part.type is KeyType.STRING):
        return value
    if isinstance(value, str):
        return parse_part(value, part)
    return parse_part(json.dumps(value), part) if part.type is not KeyType.STRING else _not_text(value, part)


def _not_text(value: Any, part: KeyPart) -> Part:
    raise InvalidArgument(f"key.{part.path}", "must be text", json.dumps(value))


def key_to_json(key: Key | None) -> list[Any] | None:
    """Return a key as JSON, which :func:`parse_bound` reads back."""
    return None if key is None else [_part_to_json(part) for part in key]


def _part_to_json(part: Part) -> Any:
    match part:
        case datetime():
            return part.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return part.isoformat()
        case bytes():
            return base64.b64encode(part).decode()
        case Decimal() | UUID():
            return str(part)
        case float() if part != part or part in (float("inf"), float("-inf")):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(part)]
        case _:
            return part


def _parts(number: int) -> str:
    return "1 part" if number == 1 else f"{number} parts"
