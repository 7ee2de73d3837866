"""Bytes from outside: refused by the field's path, in bounded time and memory, for any bytes."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from cortado.errors import InvalidDocument
from cortado.schema.documents import decode_document, encode_document, validate_body
from cortado.schema.limits import DEPTH_MAX, FREE_ITEMS_MAX
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.varint import encoded_long


def of(avro_type: Any) -> Schema:
    fields = [{"name": "a", "type": avro_type}]
    return parse_schema(json.dumps({"type": "record", "name": "F", "fields": fields}))


def logical(base: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


ARRAY = {"type": "array", "items": "string"}
MAP = {"type": "map", "values": "int"}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}
FIXED = {"type": "fixed", "name": "X", "size": 4}
EMPTY = {"type": "record", "name": "Empty", "fields": []}
HUGE = encoded_long(2**62)
LEAST = encoded_long(-(2**63))
TEN_BYTES = b"\xff" * 9 + b"\x01"

REFUSED: list[tuple[Any, bytes, str, str]] = [
    # type, body, path, message
    ("int", b"", "a", "ends in the middle"),
    ("int", b"\x80", "a", "ends in the middle"),
    ("int", b"\x02\x00", "", "the document ends at byte 1 of 2"),
    ("int", encoded_long(2**31), "a", "an int has 32 bits (got 2147483648)"),
    ("int", encoded_long(-(2**31) - 1), "a", "an int has 32 bits"),
    ("long", b"\xff" * 10 + b"\x01", "a", "more than ten bytes"),
    ("long", b"\xff" * 9 + b"\x02", "a", "a long has 64 bits"),
    ("boolean", b"\x02", "a", "a boolean is the byte 0 or 1 (got 2)"),
    ("float", b"\x00" * 3, "a", "ends in the middle"),
    ("double", b"\x00" * 7, "a", "ends in the middle"),
    ("bytes", b"\x04a", "a", "a length of 2 with 1 bytes left"),
    ("bytes", b"\x01", "a", "a length of -1 with 0 bytes left"),
    ("bytes", HUGE, "a", "a length of 4611686018427387904"),
    ("bytes", LEAST, "a", "a length of -9223372036854775808"),
    ("string", b"\x02\xff", "a", "not valid UTF-8 at byte 0"),
    ("string", b"\x06\xed\xa0\x80", "a", "not valid UTF-8"),  # a surrogate
    ("string", b"\x04\xc0\x80", "a", "not valid UTF-8"),  # an overlong zero
    (FIXED, b"abc", "a", "a fixed of 4 bytes with 3 bytes left"),
    (ENUM, b"\x04", "a", "symbol 2 of an enum of 2 symbols"),
    (ENUM, b"\x01", "a", "symbol -1 of an enum"),
    (["null", "int"], b"\x04", "a", "branch 2 of a union of 2 branches"),
    (["null", "int"], b"\x01", "a", "branch -1 of a union"),
    (["null", "int", "string"], b"\x06", "a", "branch 3 of a union of 3 branches"),
    (["null", "int", "string"], HUGE, "a", "branch 4611686018427387904"),
    # counts
    (ARRAY, HUGE, "a[0]", "4611686018427387904 items of at least 1 bytes with 0 bytes left"),
    (ARRAY, b"\x06\x02a", "a[0]", "3 items of at least 1 bytes with 2 bytes left"),
    (ARRAY, b"\x06\x02a\x02b", "a[2]", "ends in the middle"),
    (ARRAY, b"\x02\x02a\x02", "a[1]", "1 items of at least 1 bytes with 0 bytes left"),
    (ARRAY, b"\x02\x02a", "a[1]", "ends in the middle"),
    (ARRAY, b"\x04\x02a\x04b", "a[1]", "a length of 2 with 1 bytes left"),
    (ARRAY, LEAST, "a[0]", "ends in the middle"),
    (ARRAY, LEAST + b"\x00", "a[0]", "9223372036854775808 items of at least 1 bytes"),
    (ARRAY, b"\x01\x01\x02a\x00", "a[0]", "a length of -1"),
    (ARRAY, b"\x01" + HUGE, "a[0]", "a length of 4611686018427387904"),
    (ARRAY, b"\x01\x06\x02a\x00", "a[1]", "a block's size is wrong by -1 bytes"),
    (ARRAY, b"\x01\x02\x02a\x00", "a[1]", "a block's size is wrong by 1 bytes"),
    ({"type": "array", "items": "null"}, HUGE, "a[0]", f"more than {FREE_ITEMS_MAX} values that take no bytes"),
    ({"type": "array", "items": EMPTY}, HUGE, f"a[{FREE_ITEMS_MAX}]", f"more than {FREE_ITEMS_MAX} values"),
    ({"type": "map", "values": "null"}, HUGE, "a[0]", "items of at least 1 bytes"),
    (MAP, b"\x04\x02x\x00", "a[0]", "2 items of at least 2 bytes with 3 bytes left"),
    (MAP, b"\x02\x02x", "a['x']", "ends in the middle"),
    (MAP, b"\x02\x02x\x80", "a['x']", "ends in the middle"),
    (MAP, b"\x02\x02\xff\x00", "a[0]", "not valid UTF-8"),
    (MAP, b"\x04\x02x\x00\x02\xff\x00", "a[1]", "not valid UTF-8"),
    # logical types
    (logical("int", "date"), encoded_long(2_932_897), "a", "a date must be in the years 1 to 9999"),
    (logical("int", "date"), encoded_long(-719_163), "a", "a date must be in the years 1 to 9999"),
    (logical("int", "time-millis"), encoded_long(86_400_000), "a", "from 0 to 24 hours"),
    (logical("long", "time-micros"), b"\x01", "a", "from 0 to 24 hours"),
    (logical("long", "timestamp-micros"), encoded_long(253_402_300_800_000_000), "a", "in the years 1 to 9999"),
    (logical("long", "timestamp-millis"), TEN_BYTES, "a", "in the years 1 to 9999"),
    (logical("long", "local-timestamp-millis"), LEAST, "a", "in the years 1 to 9999"),
    (logical("long", "local-timestamp-micros"), LEAST, "a", "in the years 1 to 9999"),
    (logical("bytes", "decimal", precision=2), b"\x02\x64", "a", "a decimal of more than 2 digits"),
    (logical("bytes", "decimal", precision=2), b"\x02\x9c", "a", "a decimal of more than 2 digits"),
    (logical("bytes", "decimal", precision=2), b"\x00", "a", "at least one byte"),
    (logical("string", "uuid"), b"\x02x", "a", "not a UUID"),
    (logical("string", "uuid"), b"\x4c{" + b"0" * 36 + b"}", "a", "not a UUID"),
]


@pytest.mark.parametrize(("avro_type", "body", "path", "message"), REFUSED)
def test_a_bad_body_is_refused_by_path(avro_type: Any, body: bytes, path: str, message: str) -> None:
    schema = of(avro_type)
    for read in (validate_body, decode_document):
        with pytest.raises(InvalidDocument) as caught:
            read(schema, body)
        assert (caught.value.field, message in str(caught.value)) == (path, True), str(caught.value)


def test_a_body_is_checked_with_a_reader_too_even_where_the_reader_skips() -> None:
    writer, reader = of("string"), parse_schema('{"type": "record", "name": "F", "fields": []}')
    assert decode_document(writer, b"\x02x", reader) == {}
    with pytest.raises(InvalidDocument, match="a: not valid UTF-8"):
        decode_document(writer, b"\x02\xff", reader)
    with pytest.raises(InvalidDocument, match="the document ends at byte 2 of 3"):
        decode_document(writer, b"\x02x!", reader)


@pytest.mark.parametrize(
    ("avro_type", "body", "value"),
    [
        ("int", b"\x82\x80\x00", 1),  # longer than it need be
        ("long", TEN_BYTES, -(2**63)),
        (ARRAY, b"\x02\x02a\x01\x04\x02b\x00", ["a", "b"]),  # two blocks, one with its size
        (MAP, b"\x04\x02x\x02\x02x\x04\x00", {"x": 2}),  # a key twice: the last one counts
        (["null", "int"], b"\x80\x00", None),
        (["null", "int"], b"\x82\x00\x04", 2),
        (logical("bytes", "decimal", precision=2), b"\x06\x00\x00\x63", 99),
    ],
)
def test_what_every_avro_reader_takes_is_taken(avro_type: Any, body: bytes, value: Any) -> None:
    assert decode_document(of(avro_type), body) == {"a": value}


def test_recursion_is_bounded() -> None:
    schema = parse_schema('{"type": "record", "name": "F", "fields": [{"name": "a", "type": ["null", "F"]}]}')
    validate_body(schema, b"\x02" * (DEPTH_MAX - 1) + b"\x00")
    with pytest.raises(InvalidDocument, match=f"nested deeper than {DEPTH_MAX}"):
        validate_body(schema, b"\x02" * DEPTH_MAX + b"\x00")
    with pytest.raises(InvalidDocument, match="nested deeper"):
        validate_body(schema, b"\x02" * 1_000_000)


def test_recursion_through_arrays_and_maps_counts_them_too() -> None:
    node = {"type": "record", "name": "F", "fields": [{"name": "a", "type": {"type": "array", "items": "F"}}]}
    schema = parse_schema(json.dumps(node))
    validate_body(schema, b"\x02" * 31 + b"\x00" * 32)
    with pytest.raises(InvalidDocument, match="nested deeper"):
        validate_body(schema, b"\x02" * 32 + b"\x00" * 33)


def test_values_without_bytes_are_counted_over_the_whole_body() -> None:
    nulls = {"type": "array", "items": {"type": "array", "items": "null"}}
    schema = of(nulls)
    block = encoded_long(FREE_ITEMS_MAX // 10) + b"\x00"
    validate_body(schema, encoded_long(10) + block * 10 + b"\x00")
    with pytest.raises(InvalidDocument, match=rf"a\[10\].*more than {FREE_ITEMS_MAX}"):
        validate_body(schema, encoded_long(11) + block * 11 + b"\x00")
    with pytest.raises(InvalidDocument, match="values that take no bytes"):
        encode_document(schema, {"a": [[None] * FREE_ITEMS_MAX, [None]]})


@pytest.mark.parametrize("avro_type", [ARRAY, MAP, "bytes", "string", {"type": "array", "items": "null"}])
def test_five_bytes_do_not_ask_for_memory(avro_type: Any) -> None:
    schema = of(avro_type)
    body = encoded_long(2**31)
    with pytest.raises(InvalidDocument):
        validate_body(schema, body)
    tracemalloc.start()
    with pytest.raises(InvalidDocument):
        validate_body(schema, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_a_body_of_another_buffer_type_is_read() -> None:
    assert decode_document(of("string"), memoryview(b"\x02x")) == {"a": "x"}  # type: ignore[arg-type]
    assert decode_document(of("string"), bytearray(b"\x02x")) == {"a": "x"}
