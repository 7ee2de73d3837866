"""Key bounds in options: JSON values, given the types that the table's key declares.

=====================  ===============================================================
key part               JSON
=====================  ===============================================================
int64, float64, bool   a number, a number, true or false
string                 text
timestamp              text, RFC 3339 with a zone: ``"2013-01-01T00:00:00Z"``
date                   text: ``"2013-01-01"``
decimal                text, or a whole number: ``"12.50"``
uuid                   text
bytes                  text, hexadecimal
=====================  ===============================================================
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from cortado.errors import InvalidArgument
from cortado.rfc3339 import Impossible, exact_instant, parse_date
from cortado.store.keys.types import KeyPart, KeyType


def key_part(value: Any, part: KeyPart, what: str) -> Any:
    """One part of a key bound from JSON. Raises InvalidArgument that names ``what`` and the part."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match part.type:
        case KeyType.INT64 if is_number and isinstance(value, int) and -(2**63) <= value < 2**63:
            return value
        case KeyType.FLOAT64 if is_number:
            return float(value)
        case KeyType.DECIMAL if is_number and isinstance(value, int):
            return Decimal(value)
        case KeyType.BOOL if isinstance(value, bool):
            return value
        case KeyType.STRING if isinstance(value, str):
            return value
    if isinstance(value, str):
        try:
            return _from_text(value, part.type)
        except Impossible as impossible:
            problem = f"is no time of the calendar: {impossible}"
            raise InvalidArgument(f"{what}, part {part.path}", problem, repr(value)) from None
        except (ValueError, InvalidOperation):
            pass
    raise InvalidArgument(f"{what}, part {part.path}", f"must be of type {part.type}, as JSON carries it", repr(value))


def _from_text(text: str, kind: KeyType) -> Any:
    match kind:
        case KeyType.TIMESTAMP:
            return exact_instant(text)
        case KeyType.DATE:
            return parse_date(text)
        case KeyType.DECIMAL:
            return Decimal(text)
        case KeyType.UUID:
            return UUID(text)
        case KeyType.BYTES:
            return bytes.fromhex(text)
    raise ValueError(kind)
