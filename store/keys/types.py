"""The types that a key's parts may have, and how a key is declared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import NewType, TypeAlias
from uuid import UUID

LogicalKey = NewType("LogicalKey", bytes)
"""An encoded key without a version: the name of a row, an index entry or a key-value pair."""

KeyValue: TypeAlias = bool | int | float | bytes | str | Decimal | UUID | date | None
"""One part as a Python value. A timestamp is an ``int``: microseconds since 1970 in UTC. A date is a ``date``."""


class KeyType(StrEnum):
    """Type of one part. Null is not a type: any part may be null if its declaration allows it."""

    BOOL = "bool"
    INT64 = "int64"
    FLOAT64 = "float64"
    BYTES = "bytes"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DATE = "date"
    DECIMAL = "decimal"
    UUID = "uuid"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of a primary key or an index: a field path (``a`` or ``a.b``), its type and its direction."""

    path: str
    type: KeyType
    descending: bool = False
