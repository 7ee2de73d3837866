"""Writing columns: a value that does not fit is refused with its path and row. And columns as parts of keys."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.columnar.arrow import from_record_batch
from cortado.schema.columnar.column import FlatColumn
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}
UUID_TEXT = {"type": "string", "logicalType": "uuid"}
UUID_FIXED = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
DURATION = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
DATE = {"type": "int", "logicalType": "date"}
POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def document(type_: Any) -> Schema:
    return parse_schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}))


def written(schema: Schema, array: pa.Array) -> list[dict[str, Any]]:
    """Return the documents that an Arrow array is written as."""
    batch = pa.RecordBatch.from_arrays([array], ["f"])
    bodies, lengths = encode_rows(schema, from_record_batch(batch, schema), len(array))
    ends = np.cumsum(lengths).tolist()
    return [decode_document(schema, bodies[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def struct(**members: Any) -> pa.DataType:
    return pa.struct(list(members.items()))


# (type, array, the first value as a document has it)
TAKEN: list[tuple[Any, pa.Array, Any]] = [
    ("int", pa.array([5, 1], pa.int64()), 5),
    ("int", pa.array([5, 1], pa.uint8()), 5),
    ("long", pa.array([5, 1], pa.uint64()), 5),
    ("double", pa.array([5, 1], pa.int32()), 5.0),
    ("double", pa.array([0.5, 1], pa.float32()), 0.5),
    ("float", pa.array([0.5, 1], pa.float32()), 0.5),
    ("string", pa.array(["a", "b"]).dictionary_encode(), "a"),
    ("string", pa.array(["a", "b"], pa.string_view()), "a"),
    ("bytes", pa.array([b"ab", b"cd"], pa.binary(2)), b"ab"),
    ("bytes", pa.array([b"ab", b"cd"], pa.large_binary()), b"ab"),
    ({"type": "array", "items": "int"}, pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)), [1, 2]),
    (MILLIS, pa.array([NOON, NOON], pa.timestamp("s", "Europe/Rome")), NOON),
    (MICROS, pa.array([NOON, NOON], pa.timestamp("ns", "UTC")), NOON),
    (LOCAL, pa.array([0, 1], pa.int64()).cast(pa.timestamp("ms")), datetime(1970, 1, 1)),
    (TIME_MILLIS, pa.array([1000, 2000], pa.int64()), datetime(1970, 1, 1, 0, 0, 0, 1000).time()),
    (TIME_MILLIS, pa.array([1, 2], pa.int32()).cast(pa.time32("ms")), datetime(1970, 1, 1, 0, 0, 0, 1000).time()),
    (DECIMAL, pa.array([Decimal("1.5"), Decimal("-2")], pa.decimal128(20, 10)), Decimal("1.50")),
    (DECIMAL, pa.array([7, -1], pa.int32()), Decimal("7.00")),
    (WIDE, pa.array([Decimal(10**27), Decimal(-(10**27))], pa.decimal128(38, 0)), Decimal(10**27)),
    (UUID_FIXED, pa.array([str(UUID(int=7)), str(UUID(int=8))]), UUID(int=7)),
    (UUID_FIXED, pa.array([UUID(int=7).bytes, UUID(int=8).bytes], pa.binary(16)), UUID(int=7)),
    (["null", "long"], pa.nulls(2), None),
    (["null", "long", "string"], pa.nulls(2), None),
]


@pytest.mark.parametrize(("type_", "array", "first"), TAKEN, ids=[f"{case[0]}-{case[1].type}" for case in TAKEN])
def test_a_type_that_goes_in_without_loss_is_taken(type_: Any, array: pa.Array, first: Any) -> None:
    assert written(document(type_), array)[0]["f"] == first
    # A slice has its values elsewhere in the same memory.
    assert written(document(type_), pa.concat_arrays([array[1:], array])[1:])[0]["f"] == first


# (type, array, path, row, words of the message)
REFUSED: list[tuple[Any, pa.Array, str, int, str]] = [
    ("int", pa.array([1, 2**31], pa.int64()), "f", 1, "2147483648"),
    ("int", pa.array([1, 1, -(2**31) - 1], pa.int64()), "f", 2, "range of int"),
    ("long", pa.array([1, 2**63], pa.uint64()), "f", 1, "9223372036854775808"),
    ("long", pa.array([1, None], pa.int64()), "f", 1, "is null"),
    ("string", pa.nulls(1), "f", 0, "is null"),
    (ENUM, pa.array(["A", "B", "C"]), "f", 2, "'C'"),
    (MILLIS, pa.array([0, 1001], pa.int64()).cast(pa.timestamp("us", "UTC")), "f", 1, "finer"),
    (MICROS, pa.array([0, 2**40], pa.int64()).cast(pa.timestamp("s", "UTC")), "f", 1, "range"),
    (MICROS, pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("us", "UTC")), "f", 1, "range"),
    (TIME_MILLIS, pa.array([0, 86_400_000_000]), "f", 1, "range"),
    (DECIMAL, pa.array([Decimal("1.00"), Decimal("100.00")]), "f", 1, "more than 4 digits"),
    (DECIMAL, pa.array([Decimal("1.000"), Decimal("1.001")]), "f", 1, "does not fit"),
    (WIDE, pa.array([Decimal(1), Decimal(-(10**28))], pa.decimal128(38, 0)), "f", 1, "more than 30 digits"),
    (UUID_TEXT, pa.array([str(UUID(int=7)), "7"]), "f", 1, "not a UUID"),
    (UUID_FIXED, pa.array([str(UUID(int=7)), str(UUID(int=7)).replace("-", "+")]), "f", 1, "not a UUID"),
    ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab", b"abc"]), "f", 1, "2 bytes"),
    (
        DURATION,
        pa.array(
            [{"months": 1, "days": -1, "milliseconds": 0}],
            struct(months=pa.int64(), days=pa.int64(), milliseconds=pa.int64()),
        ),
        "f.days",
        0,
        "from 0",
    ),
    (["int", "string"], pa.array([{"member0": 1, "member1": "a"}]), "f", 0, "one member"),
    (
        ["int", "string"],
        pa.array([{"member0": None, "member1": None}, {"member0": 1, "member1": "a"}]),
        "f",
        0,
        "one member",
    ),
    ({"type": "array", "items": "int"}, pa.array([[1], [], [1, None]]), "f[1]", 2, "is null"),
    (
        {"type": "array", "items": ["null", POINT]},
        pa.array([[], [None, {"x": 1}, {"x": None}]]),
        "f[2].x",
        1,
        "is null",
    ),
    (
        {"type": "map", "values": ENUM},
        pa.array([[], [("k", "A"), ("l", "Z")]], pa.map_(pa.string(), pa.string())),
        "f[1]",
        1,
        "'Z'",
    ),
    (["null", POINT, "string"], pa.array([None, {"member0": {"x": 2**40}, "member1": None}]), "f.x", 1, "range of int"),
    (
        "string",
        pa.Array.from_buffers(pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]),
        "f",
        0,
        "UTF-8",
    ),
    ("bytes", pa.array([b"", bytes(1 << 20)]), "", 1, "1048576"),
]


@pytest.mark.parametrize(
    ("type_", "array", "path", "row", "words"), REFUSED, ids=[f"{case[0]}-{case[4]}" for case in REFUSED]
)
def test_a_value_that_does_not_fit_is_refused_with_path_and_row(
    type_: Any, array: pa.Array, path: str, row: int, words: str
) -> None:
    with pytest.raises(InvalidDocument) as refused:
        written(document(type_), array)
    assert (refused.value.field, refused.value.row) == (path, row)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("type_", "array"),
    [
        ("float", pa.array([0.1])),
        ("int", pa.array([1.0])),
        ("double", pa.array([1], pa.int64())),
        ("string", pa.array([b"a"])),
        ("bytes", pa.array(["a"])),
        ("boolean", pa.array([1])),
        (MICROS, pa.array([0]).cast(pa.timestamp("us"))),
        (LOCAL, pa.array([0]).cast(pa.timestamp("us", "UTC"))),
        (MICROS, pa.array([0])),
        (DATE, pa.array([0])),
        (DECIMAL, pa.array([1.5])),
        (ENUM, pa.array([0])),
        (POINT, pa.array([[1]])),
        (["int", "string"], pa.array([1])),
        (["int", "string"], pa.array([{"member0": 1}])),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(type_: Any, array: pa.Array) -> None:
    with pytest.raises(InvalidArgument, match="column f"):
        written(document(type_), array)


def test_columns_and_fields_must_be_the_same() -> None:
    schema = document(POINT)
    point = pa.array([{"x": 1}], struct(x=pa.int32()))
    for columns, names in [([], []), ([point, point], ["f", "g"]), ([point, point], ["f", "f"])]:
        with pytest.raises(InvalidArgument):
            from_record_batch(pa.RecordBatch.from_arrays(columns, names), schema)
    for other, path in [([{"x": 1, "y": 2}], "f.y"), ([{"y": 2}], "f.y")]:
        with pytest.raises(InvalidArgument, match=path):
            from_record_batch(pa.RecordBatch.from_arrays([pa.array(other)], ["f"]), schema)


def test_what_lies_under_a_null_in_arrow_is_not_looked_at() -> None:
    offsets, data = pa.array([0, 1, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff\xffb")
    array = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(bytes([0b101])), offsets, data])
    assert written(document(["null", "string"]), array) == [{"f": "a"}, {"f": None}, {"f": "b"}]


def test_a_key_twice_in_a_map_counts_once_in_arrow() -> None:
    from cortado.schema.columnar.arrow import to_record_batch

    schema = document({"type": "map", "values": "int"})
    bodies = [b"\x06\x02a\x02\x02b\x04\x02a\x06\x00", b"\x02\x02a\x08\x00", b"\x00"]
    decoded = decode_rows(schema, b"".join(bodies), [len(body) for body in bodies])
    assert decoded.columns["f"].to_pylist() == [{"a": 3, "b": 2}, {"a": 4}, {}]
    assert to_record_batch(decoded.columns, schema).column(0).to_pylist() == [[("b", 2), ("a", 3)], [("a", 4)], []]


def test_no_rows_are_written_as_no_bytes() -> None:
    assert (
        encode_rows(
            document("long"), {"f": FlatColumn(document("long").record.fields[0].type, 0, np.zeros(0, np.int64))}, 0
        )[0]
        == b""
    )


# --- parts of keys ---------------------------------------------------------------------------------------------

KEYS: list[tuple[Any, Any, Any]] = [
    ("boolean", True, True),
    ("int", 7, 7),
    ("long", 2**40, 2**40),
    ("float", 0.5, 0.5),
    ("double", 0.5, 0.5),
    ("string", "ä", "ä"),
    ("bytes", b"a", b"a"),
    (ENUM, "B", "B"),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
    (MILLIS, NOON, 1_704_110_400_000_000),
    (MICROS, NOON, 1_704_110_400_000_000),
    (LOCAL, NOON.replace(tzinfo=None), 1_704_110_400_000_000),
    (DATE, date(2024, 1, 1), date(2024, 1, 1)),
    (DECIMAL, Decimal("1.50"), Decimal("1.50")),
    (UUID_TEXT, UUID(int=7), UUID(int=7)),
    (UUID_FIXED, UUID(int=7), UUID(int=7)),
]


@pytest.mark.parametrize(("type_", "value", "part"), KEYS, ids=[str(case[0]) for case in KEYS])
def test_a_column_gives_parts_of_keys(type_: Any, value: Any, part: Any) -> None:
    schema, nullable = document(type_), document(["null", type_])
    bodies = [encode_document(schema, {"f": value})] * 2
    parts = decode_rows(schema, b"".join(bodies), list(map(len, bodies))).columns["f"].key_values()
    assert list(parts) == [part, part]
    if type_ in ("int", "long", MILLIS, MICROS, LOCAL):
        assert isinstance(parts, np.ndarray)
        assert parts.dtype == np.int64
    bodies = [encode_document(nullable, {"f": each}) for each in (value, None)]
    parts = decode_rows(nullable, b"".join(bodies), list(map(len, bodies))).columns["f"].key_values()
    assert parts == [part, None]
    assert [type(each) for each in parts] == [type(part), type(None)]


@pytest.mark.parametrize(
    "type_", [TIME_MILLIS, DURATION, POINT, {"type": "array", "items": "int"}, ["int", "string"], "null"]
)
def test_what_has_no_order_is_no_part_of_a_key(type_: Any) -> None:
    column = decode_rows(document(type_), b"", []).columns["f"]
    with pytest.raises(InvalidArgument, match="cannot be part of a key"):
        column.key_values()
