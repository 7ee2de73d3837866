"""Typed key parts as bytes: the order of the bytes is the order of the values.

A key is a sequence of parts. Each part is a tag and a payload, and tells its own end. So no key is a prefix of another
with the same parts, and comparing two keys byte by byte compares their parts one after the other::

    ("UA", 1545), the second descending     30 55 41 00 01   eb 7f ff ff ff ff ff f9 f6
                                            │  └ UTF-8 │     └ all bytes of the part inverted
                                            tag     the end

    null        05                  below every value, and the last one if the part is descending
    bool        10  00 or 01
    int64       14  8 bytes big-endian, the sign bit flipped
    float64     18  8 bytes: IEEE 754 with the sign bit flipped if positive, all bits if negative
    decimal     1c  see cortado.store.keys.decimals
    timestamp   20  microseconds since 1970 in UTC, as int64
    date        24  days since 1970-01-01: 4 bytes big-endian, the sign bit flipped
    uuid        28  16 bytes
    bytes       2c  the bytes, each 00 as 00 ff, then 00 01
    string      30  UTF-8 likewise; its order is that of the code points

Invariants, each held by a property test:

- Byte order equals value order, part by part, also for keys that are followed by an inverted timestamp.
- One value has one encoding, and every other sequence of bytes is refused: decode and encode are inverses.
- No tag is 00 or ff, and ascending tags lie below 0x80, so that an inverted one tells that its part is descending.

Decisions: NaN equals itself and sorts above +Infinity, as in Spark and PostgreSQL; -0.0 is the same key as 0.0. The end
of a string takes two bytes, because the inverted timestamp that follows a key begins with ff: after a single 00 it
would read like an escaped zero.

Source: the escape and the tags follow FoundationDB's tuple layer (``design/tuple.md``) and toyDB's keycode.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final, NoReturn
from uuid import UUID

from cortado.errors import DataLoss, InvalidArgument
from cortado.store.keys.decimals import decode_decimal, encode_decimal, end_of_decimal
from cortado.store.keys.types import KeyPart, KeyType, KeyValue

NULL_TAG: Final = 0x05
TAGS: Final[dict[KeyType, int]] = {
    KeyType.BOOL: 0x10,
    KeyType.INT64: 0x14,
    KeyType.FLOAT64: 0x18,
    KeyType.DECIMAL: 0x1C,
    KeyType.TIMESTAMP: 0x20,
    KeyType.DATE: 0x24,
    KeyType.UUID: 0x28,
    KeyType.BYTES: 0x2C,
    KeyType.STRING: 0x30,
}
TYPES_BY_TAG: Final = {tag: key_type for key_type, tag in TAGS.items()}
DESCENDING_BIT: Final = 0x80

ESCAPED_ZERO: Final = b"\x00\xff"
END_OF_TEXT: Final = b"\x00\x01"
INVERTED: Final = bytes(range(255, -1, -1))
"""For ``bytes.translate``: each byte becomes its complement."""

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
DAYS_MIN: Final = date.min.toordinal() - EPOCH_ORDINAL
DAYS_MAX: Final = date.max.toordinal() - EPOCH_ORDINAL

_SIGN64: Final = 1 << 63
_SIGN32: Final = 1 << 31
_ALL64: Final = (1 << 64) - 1
_NAN_BITS: Final = 0x7FF8_0000_0000_0000
_NULL_PART: Final = bytes((NULL_TAG,))
_PART64 = struct.Struct(">BQ")
_PART32 = struct.Struct(">BI")
_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
_DOUBLE = struct.Struct(">d")

_FIXED_PART_BYTES: Final[dict[int, int]] = {
    NULL_TAG: 1,
    TAGS[KeyType.BOOL]: 2,
    TAGS[KeyType.INT64]: 9,
    TAGS[KeyType.FLOAT64]: 9,
    TAGS[KeyType.TIMESTAMP]: 9,
    TAGS[KeyType.DATE]: 5,
    TAGS[KeyType.UUID]: 17,
}


# --- encoding --------------------------------------------------------------------------------------------------


def encode_parts(values: Sequence[KeyValue], parts: Sequence[KeyPart]) -> bytes:
    """Return the encoding of ``values``, one for each of ``parts``. Raises InvalidArgument naming the path of a bad
    part."""
    if len(values) != len(parts):
        names = ", ".join(part.path for part in parts)
        raise InvalidArgument("key", f"must have {len(parts)} parts: {names}", f"{len(values)} parts")
    return b"".join(
        [
            encode_part(value, part.type, part.descending, path=part.path)
            for value, part in zip(values, parts, strict=True)
        ]
    )


def encode_part(value: KeyValue, key_type: KeyType, descending: bool = False, *, path: str = "key") -> bytes:
    """Encode one part. Raises InvalidArgument for a value of another type or out of range; ``path`` names it there."""
    encoded = _NULL_PART if value is None else _ENCODERS[key_type](value, path)
    return encoded.translate(INVERTED) if descending else encoded


def successor_of_prefix(encoded: bytes) -> bytes:
    """Return the smallest bytes above all keys that begin with ``encoded``: its last byte below ff, counted up.

    Raises InvalidArgument if there are none (empty, or only ff), which no prefix of the keyspace is.
    """
    kept = encoded.rstrip(b"\xff")
    if not kept:
        raise InvalidArgument("key", "no bytes sort above everything with this prefix", encoded.hex() or "empty")
    return kept[:-1] + bytes((kept[-1] + 1,))


def _encode_bool(value: KeyValue, path: str) -> bytes:
    if not isinstance(value, bool):
        _refuse(path, KeyType.BOOL, value)
    return b"\x10\x01" if value else b"\x10\x00"


def _encode_int64(value: KeyValue, path: str, key_type: KeyType = KeyType.INT64) -> bytes:
    number = value if type(value) is int else _as_int(value)
    if number is None:
        _refuse(path, key_type, value)
    if not INT64_MIN <= number <= INT64_MAX:
        raise InvalidArgument(path, f"must be between {INT64_MIN} and {INT64_MAX}", shown(number))
    return _PART64.pack(TAGS[key_type], number + _SIGN64)


def _encode_timestamp(value: KeyValue, path: str) -> bytes:
    return _encode_int64(value, path, KeyType.TIMESTAMP)


def _encode_float64(value: KeyValue, path: str) -> bytes:
    number = value if isinstance(value, float) else _exact_float(value)
    if number is None:
        _refuse(path, KeyType.FLOAT64, value)
    if math.isnan(number):
        bits = _NAN_BITS
    else:
        bits = int(_U64.unpack(_DOUBLE.pack(number + 0.0))[0])  # -0.0 + 0.0 is 0.0
    return _PART64.pack(TAGS[KeyType.FLOAT64], bits ^ _ALL64 if bits & _SIGN64 else bits | _SIGN64)


def _encode_decimal(value: KeyValue, path: str) -> bytes:
    number = value
    if isinstance(number, int) and not isinstance(number, bool) and number.bit_length() < 1 << 12:
        number = Decimal(number)
    if not isinstance(number, Decimal):
        _refuse(path, KeyType.DECIMAL, value)
    return b"\x1c" + encode_decimal(number, path)


def _encode_date(value: KeyValue, path: str) -> bytes:
    if not isinstance(value, date) or isinstance(value, datetime):
        _refuse(path, KeyType.DATE, value)
    return _PART32.pack(TAGS[KeyType.DATE], value.toordinal() - EPOCH_ORDINAL + _SIGN32)


def _encode_uuid(value: KeyValue, path: str) -> bytes:
    if not isinstance(value, UUID):
        _refuse(path, KeyType.UUID, value)
    return b"\x28" + value.bytes


def _encode_bytes(value: KeyValue, path: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        _refuse(path, KeyType.BYTES, value)
    return b"\x2c" + bytes(value).replace(b"\0", ESCAPED_ZERO) + END_OF_TEXT


def _encode_string(value: KeyValue, path: str) -> bytes:
    if not isinstance(value, str):
        _refuse(path, KeyType.STRING, value)
    try:
        return b"\x30" + value.encode().replace(b"\0", ESCAPED_ZERO) + END_OF_TEXT
    except UnicodeEncodeError:
        raise InvalidArgument(path, "must be valid Unicode, without lone surrogates", shown(value)) from None


_ENCODERS: Final[dict[KeyType, Callable[[KeyValue, str], bytes]]] = {
    KeyType.BOOL: _encode_bool,
    KeyType.INT64: _encode_int64,
    KeyType.FLOAT64: _encode_float64,
    KeyType.DECIMAL: _encode_decimal,
    KeyType.TIMESTAMP: _encode_timestamp,
    KeyType.DATE: _encode_date,
    KeyType.UUID: _encode_uuid,
    KeyType.BYTES: _encode_bytes,
    KeyType.STRING: _encode_string,
}

_EXPECTED: Final[dict[KeyType, str]] = {
    KeyType.BOOL: "a bool",
    KeyType.INT64: "an int",
    KeyType.FLOAT64: "a float",
    KeyType.DECIMAL: "a Decimal",
    KeyType.TIMESTAMP: "a timestamp, as an int of microseconds since 1970 in UTC",
    KeyType.DATE: "a date",
    KeyType.UUID: "a UUID",
    KeyType.BYTES: "bytes",
    KeyType.STRING: "a string",
}


def _refuse(path: str, key_type: KeyType, value: object) -> NoReturn:
    raise InvalidArgument(path, f"must be {_EXPECTED[key_type]}", typed(value))


def _as_int(value: object) -> int | None:
    """Return an integer of another library (numpy's), which is no ``int``. A bool counts as none."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _exact_float(value: object) -> float | None:
    """Return an int as a float, unless that would change it."""
    number = _as_int(value)
    if number is None or abs(number) > 1 << 1023 or int(float(number)) != number:
        return None
    return float(number)


def shown(value: object) -> str:
    """Return a value for an error message, bounded in length."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an int of more than 4300 digits.
        text = "of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def typed(value: object) -> str:
    """Return a value for an error message, with its type; the form of many names it: Decimal('1.5')."""
    name, text = type(value).__name__, shown(value)
    return text if text.startswith(f"{name}(") else f"{name} {text}"


# --- decoding --------------------------------------------------------------------------------------------------


def decode_parts(encoded: bytes, parts: Sequence[KeyPart]) -> tuple[KeyValue, ...]:
    """Return the values of ``parts``, which must fill ``encoded``. Raises DataLoss for bytes that encoding never
    makes."""
    values: list[KeyValue] = []
    start = 0
    for part in parts:
        end = end_of_parts(encoded, 1, start)
        found, descending, value = decode_part(encoded[start:end])
        if descending != part.descending or (found is not None and found is not part.type):
            raise DataLoss("key", f"{part.path} is not {part.type.value} at byte {start} of {encoded.hex()}")
        values.append(value)
        start = end
    if start != len(encoded):
        raise DataLoss("key", f"{len(encoded) - start} bytes after the last part of {encoded.hex()}")
    return tuple(values)


def decode_part(encoded: bytes) -> tuple[KeyType | None, bool, KeyValue]:
    """Return the type of exactly one part by its tag, whether it is descending, and its value; the type of null is
    None.

    Raises DataLoss for bytes that encoding never makes.
    """
    if not encoded or end_of_parts(encoded, 1) != len(encoded):
        raise DataLoss("key", f"not one part: {encoded.hex()}")
    descending = bool(encoded[0] & DESCENDING_BIT)
    ascending = encoded.translate(INVERTED) if descending else encoded
    if ascending == _NULL_PART:
        return None, descending, None
    key_type = TYPES_BY_TAG[ascending[0]]
    return key_type, descending, _DECODERS[key_type](ascending[1:])


def end_of_parts(encoded: bytes, count: int, start: int = 0) -> int:
    """Return the end of the ``count`` parts that begin at byte ``start``, of any types. Raises DataLoss."""
    end = start
    for _ in range(count):
        end = _end_of_part(encoded, end)
        if not 0 <= end <= len(encoded):
            raise DataLoss("key", f"a part is cut off in {encoded.hex()}")
    return end


def _end_of_part(encoded: bytes, start: int) -> int:
    if start >= len(encoded):
        return -1
    tag = encoded[start]
    descending = tag >= DESCENDING_BIT
    ascending_tag = tag ^ 0xFF if descending else tag
    fixed = _FIXED_PART_BYTES.get(ascending_tag)
    if fixed is not None:
        return start + fixed
    key_type = TYPES_BY_TAG.get(ascending_tag)
    if key_type is KeyType.STRING or key_type is KeyType.BYTES:
        # Every other 00 is followed by ff, so the pair can stand nowhere else.
        found = encoded.find(b"\xff\xfe" if descending else END_OF_TEXT, start + 1)
        return found + 2 if found >= 0 else -1
    if key_type is KeyType.DECIMAL:
        return end_of_decimal(encoded, start + 1, inverted=descending)
    raise DataLoss("key", f"unknown tag {tag:02x} at byte {start} of {encoded.hex()}")


def _decode_bool(payload: bytes) -> bool:
    if payload not in (b"\x00", b"\x01"):
        raise DataLoss("key", f"not a bool: {payload.hex()}")
    return payload == b"\x01"


def _decode_int64(payload: bytes) -> int:
    return int(_U64.unpack(payload)[0]) - _SIGN64


def _decode_float64(payload: bytes) -> float:
    flipped = _U64.unpack(payload)[0]
    bits = flipped ^ _SIGN64 if flipped & _SIGN64 else flipped ^ _ALL64
    number = float(_DOUBLE.unpack(_U64.pack(bits))[0])
    if (math.isnan(number) and bits != _NAN_BITS) or bits == _SIGN64:
        raise DataLoss("key", f"not a float64 as it is encoded: {payload.hex()}")
    return number


def _decode_date(payload: bytes) -> date:
    days = _U32.unpack(payload)[0] - _SIGN32
    if not DAYS_MIN <= days <= DAYS_MAX:
        raise DataLoss("key", f"a date {days} days from 1970")
    return date.fromordinal(days + EPOCH_ORDINAL)


def _decode_bytes(payload: bytes) -> bytes:
    escaped = payload[:-2]
    if escaped.count(b"\0") != escaped.count(ESCAPED_ZERO):
        raise DataLoss("key", f"a zero that is not escaped: {payload.hex()}")
    return escaped.replace(ESCAPED_ZERO, b"\0")


def _decode_string(payload: bytes) -> str:
    try:
        return _decode_bytes(payload).decode()
    except UnicodeDecodeError:
        raise DataLoss("key", f"a string that is not UTF-8: {payload.hex()}") from None


_DECODERS: Final[dict[KeyType, Callable[[bytes], KeyValue]]] = {
    KeyType.BOOL: _decode_bool,
    KeyType.INT64: _decode_int64,
    KeyType.FLOAT64: _decode_float64,
    KeyType.DECIMAL: decode_decimal,
    KeyType.TIMESTAMP: _decode_int64,
    KeyType.DATE: _decode_date,
    KeyType.UUID: lambda payload: UUID(bytes=payload),
    KeyType.BYTES: _decode_bytes,
    KeyType.STRING: _decode_string,
}
