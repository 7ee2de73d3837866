"""A row's bytes, and the values in its keys.

::

    row key      t <table id> r <primary key parts>
    row payload  <schema id, 4 bytes big-endian> <Avro body>

A payload names the schema that wrote it and is never rewritten when a schema evolves: it is read through the version
that the reader wants. So index entries and keys are always made from a document as the *newest* version of the subject
reads it. A version that would change how a key or indexed field resolves cannot be registered.

Values of a document are Python values (``datetime``, ``Decimal``, ``UUID``, ...); values of a key are
:data:`~cortado.store.keys.types.KeyValue`, in which a timestamp is an integer of microseconds.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import ROW_HEAD_BYTES
from cortado.store.keys.types import KeyPart, KeyType, KeyValue

DOCUMENT_BYTES_MAX: Final = 1 << 20
"""An Avro body may have this many bytes."""

JSON_BYTES_MAX: Final = 4 << 20
"""A document as JSON may have this many characters before it is even read."""

BATCH_ROWS_MAX: Final = 10_000
BATCH_BYTES_MAX: Final = 4 << 20
"""An atomic batch, or one chunk of a bulk stream, may have this many rows and bytes of bodies."""

SCHEMA_ID_BYTES: Final = ROW_HEAD_BYTES
_SCHEMA_ID = struct.Struct(">I")

_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_LOCAL: Final = datetime(1970, 1, 1)  # A local timestamp has no zone: its digits are ordered as they stand.
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A document as it is stored: the schema that wrote it, its Avro body, the commit that did, and the wall time at
    which it expires, 0 for never."""

    schema_id: int
    body: bytes
    ts: Timestamp
    expires_ms: int = 0

    @property
    def etag(self) -> str:
        return str(self.ts)


def encode_payload(schema_id: int, body: bytes) -> bytes:
    return _SCHEMA_ID.pack(schema_id) + body


def decode_payload(payload: bytes) -> tuple[int, bytes]:
    """Return ``(schema_id, body)``. Raises DataLoss if there is not even a schema id."""
    if len(payload) < SCHEMA_ID_BYTES:
        raise DataLoss("row payload", f"{len(payload)} bytes, expected a schema id of {SCHEMA_ID_BYTES} and a body")
    return _SCHEMA_ID.unpack_from(payload)[0], payload[SCHEMA_ID_BYTES:]


@functools.lru_cache(maxsize=4096)
def path_names(path: str) -> tuple[str, ...]:
    """``a.b`` as ``("a", "b")``. Avro's field names hold no dots."""
    return tuple(path.split("."))


def value_at(document: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path through records; None if a record on the way is null."""
    value: Any = document
    for name in path_names(path):
        if value is None:
            return None
        value = value[name]
    return value


def key_value(value: Any, key_type: KeyType) -> KeyValue:
    """Return a document's value as a key's. The schema has been checked when the table was made, so every type fits."""
    if value is None:
        return None
    if key_type is KeyType.TIMESTAMP and isinstance(value, datetime):
        return (value - (_EPOCH_LOCAL if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND
    if key_type is KeyType.FLOAT64:
        return float(value)
    return value  # type: ignore[no-any-return]


def key_values(document: Mapping[str, Any], parts: Sequence[KeyPart]) -> tuple[KeyValue, ...]:
    """Return the values of a key's or an index's parts in a document, in their order."""
    return tuple(key_value(value_at(document, part.path), part.type) for part in parts)


def show_values(values: Sequence[KeyValue], parts: Sequence[KeyPart]) -> str:
    """Return key values as text: ``('UA', 2013-01-01T10:00:00Z, 7)``."""
    return f"({', '.join(_show(value, part.type) for value, part in zip(values, parts, strict=False))})"


def _show(value: KeyValue, key_type: KeyType) -> str:
    if value is None:
        return "null"
    if key_type is KeyType.TIMESTAMP and isinstance(value, int):
        try:
            return (_EPOCH_UTC + value * _MICROSECOND).isoformat().replace("+00:00", "Z")
        except OverflowError:  # Years that Python's datetime lacks.
            return f"{value} µs"
    return repr(value) if isinstance(value, str | bytes) else str(value)
