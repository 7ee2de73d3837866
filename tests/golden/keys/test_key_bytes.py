"""The bytes of keys are on disk: ``keys.txt`` pins them, decoded and raw side by side.

A change there is a change of format: raise the data directory's version and say so in ``docs/formats/keys.md``. Then
``python tests/golden/keys/test_key_bytes.py > tests/golden/keys/keys.txt`` writes the file anew.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import INVERTED, encode_part, successor_of_prefix
from cortado.store.keys.dump import dump, show_value
from cortado.store.keys.keyspace import (
    index_key,
    index_range,
    kv_key,
    kv_range,
    meta_key,
    meta_range,
    primary_key_of,
    row_key,
    row_range,
    table_id_of,
)
from cortado.store.keys.types import KeyPart, KeyType, KeyValue

GOLDEN = Path(__file__).with_name("keys.txt")

# In their order: each column of the file must ascend, or descend.
VALUES: dict[KeyType, list[KeyValue]] = {
    KeyType.BOOL: [None, False, True],
    KeyType.INT64: [None, -(1 << 63), -256, -1, 0, 1, 1545, (1 << 63) - 1],
    KeyType.FLOAT64: [None, -math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.0, 1.5, 1e308, math.inf, math.nan],
    KeyType.DECIMAL: [
        None,
        *map(Decimal, ("-9E+999", "-100", "-12.5", "-12.05", "-1", "-0.001", "0", "1E-1001", "0.001", "0.01")),
        *map(Decimal, ("0.99", "1", "1.5", "9.99", "10", "12.05", "12.5", "99", "100", "12345678901234567890.123")),
    ],
    KeyType.TIMESTAMP: [None, -(1 << 63), -1, 0, 1_357_034_400_000_000, 253_402_300_799_999_999, (1 << 63) - 1],
    KeyType.DATE: [None, date.min, date(1969, 12, 31), date(1970, 1, 1), date(2013, 1, 1), date.max],
    KeyType.UUID: [None, UUID(int=0), UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), UUID(int=(1 << 128) - 1)],
    KeyType.BYTES: [
        None,
        b"",
        b"\0",
        b"\0\0",
        b"\0\1",
        b"\0\xff",
        b"\1",
        b"a",
        b"a\0",
        b"a\0b",
        b"ab",
        b"\xff",
        b"\xff\xff",
    ],
    KeyType.STRING: [None, "", "\0", "\1", "UA", "UA\0", "UA\0B", "UAL", "é", "\uffff", "\U0001f680"],
}

TABLE = [KeyPart("time_hour", KeyType.TIMESTAMP), KeyPart("carrier", KeyType.STRING), KeyPart("flight", KeyType.INT64)]
LATEST_FIRST = [KeyPart("sensor", KeyType.STRING), KeyPart("at", KeyType.TIMESTAMP, descending=True)]
BY_PLANE = [KeyPart("tailnum", KeyType.STRING), KeyPart("distance", KeyType.FLOAT64, descending=True)]
TABLE_ID = table_id_of(3, 7)
FLIGHT = row_key(TABLE_ID, TABLE, (1_357_034_400_000_000, "UA", 1545))
FLIGHT_KEY = primary_key_of(FLIGHT)
VERSIONS = [Timestamp(1, 1_763_643_600_000, 0), Timestamp(0, 1_763_643_600_000, 2), Timestamp(0, 0, 0)]

KEYS: list[bytes] = [
    *kv_range("sessions"),
    *kv_range("sessions", b"user/1", b"user/2"),
    *kv_range("sessions", prefix=b"user/"),
    kv_key("sessions", b""),
    kv_key("sessions", b"user/1\0\xff"),
    *meta_range("table"),
    meta_key("table"),
    meta_key("table", 7),
    meta_key("table", "flights", -1),
    *row_range(TABLE_ID, TABLE),
    *row_range(TABLE_ID, TABLE, (0,), (0, "UA")),
    FLIGHT,
    *(FLIGHT + bytes(ts).translate(INVERTED) for ts in VERSIONS),
    row_key(0xFFFFFFFF, LATEST_FIRST, ("roof", 1_357_034_400_000_000)),
    *index_range(TABLE_ID, 2, BY_PLANE, ("N14228",), ("N14229",)),
    index_key(TABLE_ID, 2, BY_PLANE, ("N14228", 1400.0), FLIGHT_KEY, unique=False),
    index_key(TABLE_ID, 3, BY_PLANE, ("N14228", 1400.0), FLIGHT_KEY, unique=True),
    index_key(TABLE_ID, 3, BY_PLANE, (None, 1400.0), FLIGHT_KEY, unique=True),
    index_key(TABLE_ID, 3, BY_PLANE, ("N14228", None), FLIGHT_KEY, unique=True),
    successor_of_prefix(FLIGHT),
]


def lines() -> Iterator[str]:
    for key_type, values in VALUES.items():
        yield f"{key_type.value}: value, ascending, descending"
        for value in values:
            both = [encode_part(value, key_type, descending).hex() for descending in (False, True)]
            yield f"  {show_value(value, key_type):<38}  {both[0]:<40}  {both[1]}"
        yield ""
    yield "keys"
    for key in KEYS:
        yield f"  {dump(key)}"
        yield f"    {key.hex()}"


def test_every_key_has_the_bytes_that_the_golden_file_shows() -> None:
    assert list(lines()) == GOLDEN.read_text().splitlines()


def test_the_golden_values_stand_in_their_order() -> None:
    for key_type, values in VALUES.items():
        ascending = [encode_part(value, key_type) for value in values]
        assert ascending == sorted(set(ascending))
        descending = [encode_part(value, key_type, True) for value in values]
        assert descending == sorted(set(descending), reverse=True)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
