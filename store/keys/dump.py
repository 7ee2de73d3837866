"""Any key as one line of text: for logs, error messages, ``cortado`` and the golden files.

::

    row 3.7 ("UA", 1545 desc) @0.1763643600000.2      a version of a row of table 7 of database 3, and its timestamp
    index 3.7/2 ("a.b", null, "UA", 1545 desc)        indexed values, then perhaps the primary key
    kv ("sessions", b'user/1')                        with another generation than 0: kv 7 ("sessions", b'user/1')
    meta ("table", 7)
    raw 74ff                                          any other bytes

A key is told from a key with a timestamp by whether it can be read to its end; the tags make that unambiguous in all
epochs below 256.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from cortado.errors import DataLoss, InvalidArgument
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.codec import INVERTED, decode_part, end_of_parts
from cortado.store.keys.keyspace import (
    INDEX_PREFIX_BYTES,
    KV_SPACE,
    META_SPACE,
    ROW_PREFIX_BYTES,
    STAGED_SPACE,
    key_of_staged,
    names_of,
    pair_of,
    show_table_id,
)
from cortado.store.keys.types import KeyType, KeyValue, LogicalKey

_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)


def dump(key: bytes) -> str:
    """Return one line for any logical or engine key, or for any bytes: never raises."""
    logical, version = key[:-TIMESTAMP_BYTES], key[-TIMESTAMP_BYTES:]
    try:
        return _dump_logical(key)
    except DataLoss:
        pass
    try:
        return f"{_dump_logical(logical)} @{Timestamp.from_bytes(version.translate(INVERTED))}"
    except (DataLoss, InvalidArgument):  # shorter than a timestamp
        return f"raw {key.hex()}"


def dump_parts(encoded: bytes) -> str:
    """Return parts in brackets, such as ``("UA", 1545 desc)``. Raises DataLoss for any other bytes."""
    shown = []
    start = 0
    while start < len(encoded):
        end = end_of_parts(encoded, 1, start)
        key_type, descending, value = decode_part(encoded[start:end])
        shown.append(show_value(value, key_type) + (" desc" if descending else ""))
        start = end
    return f"({', '.join(shown)})"


def show_values(values: Sequence[KeyValue], types: Sequence[KeyType]) -> str:
    """Values before they are encoded, as :func:`dump_parts` shows them."""
    return f"({', '.join(show_value(value, key_type) for value, key_type in zip(values, types, strict=True))})"


def show_pair(namespace: str, generation: int, user_key: bytes) -> str:
    """Return a pair's key, such as ``kv ("sessions", b'user/1')``."""
    of_generation = f" {generation}" if generation else ""
    return f"kv{of_generation} {show_values((namespace, user_key), (KeyType.STRING, KeyType.BYTES))}"


def show_value(value: KeyValue, key_type: KeyType | None) -> str:
    """Return one value as text: strings and numbers as in JSON, bytes as in Python, timestamps and dates as in RFC
    3339."""
    if key_type is KeyType.TIMESTAMP and isinstance(value, int):
        return _show_micros(value)
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=not value.isprintable())
        case Decimal():
            return f"decimal {value}"
        case UUID():
            return f"uuid {value}"
        case date():
            return value.isoformat()
        case float():
            return json.dumps(value)
        case _:
            return repr(value)


def _show_micros(micros: int) -> str:
    try:
        moment = _1970 + timedelta(microseconds=micros)
    except OverflowError:
        return f"timestamp {micros} us"
    return moment.isoformat().replace("+00:00", "Z")


def _dump_logical(key: bytes) -> str:
    space = key[:1]
    if space == META_SPACE:
        names = names_of(LogicalKey(key))
        return f"meta ({', '.join(json.dumps(name) for name in names)})"
    if space == KV_SPACE:
        return show_pair(*pair_of(key))
    if key[5:6] == b"r" and space == b"t":
        return f"row {show_table_id(int.from_bytes(key[1:5]))} {dump_parts(key[ROW_PREFIX_BYTES:])}"
    if key[5:6] == b"i" and space == b"t" and len(key) >= INDEX_PREFIX_BYTES:
        ids = f"{show_table_id(int.from_bytes(key[1:5]))}/{int.from_bytes(key[6:INDEX_PREFIX_BYTES])}"
        return f"index {ids} {dump_parts(key[INDEX_PREFIX_BYTES:])}"
    if space == STAGED_SPACE:
        return f"staged {_dump_logical(key_of_staged(key))}"
    raise DataLoss("key", f"of no known space: {key.hex()}")
