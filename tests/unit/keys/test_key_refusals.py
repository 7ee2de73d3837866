"""A value that cannot be in a key is refused with its path, the value and the limit; nothing is coerced or cut."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from cortado.errors import DataLoss, InvalidArgument, InvalidDocument, KeyTooLong
from cortado.store.keys.codec import (
    INVERTED,
    decode_part,
    decode_parts,
    encode_part,
    encode_parts,
    successor_of_prefix,
)
from cortado.store.keys.columns import encode_columns
from cortado.store.keys.keyspace import (
    LOGICAL_KEY_BYTES_MAX,
    NUMBER_MAX,
    index_key,
    index_prefix,
    index_range,
    kv_key,
    kv_range,
    meta_key,
    names_of,
    primary_key_of_entry,
    row_key,
    row_prefix,
    row_range,
    table_id_of,
    user_key_of,
)
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey

PARTS = [KeyPart("origin", KeyType.STRING), KeyPart("stamp.at", KeyType.TIMESTAMP, descending=True)]


@pytest.mark.parametrize(
    ("key_type", "value", "message"),
    [
        (KeyType.BOOL, 1, "p: must be a bool (got int 1)"),
        (KeyType.INT64, True, "p: must be an int (got bool True)"),
        (KeyType.INT64, 1.0, "p: must be an int (got float 1.0)"),
        (KeyType.INT64, "1", "p: must be an int (got str '1')"),
        (KeyType.INT64, 1 << 63, "between -9223372036854775808 and 9223372036854775807 (got 9223372036854775808)"),
        (KeyType.INT64, 10**5000, "(got of thousands of digits)"),
        (KeyType.TIMESTAMP, -(1 << 63) - 1, "p: must be between -9223372036854775808"),
        (KeyType.TIMESTAMP, datetime(2013, 1, 1, tzinfo=UTC), "p: must be a timestamp, as an int of microseconds"),
        (KeyType.FLOAT64, "1.5", "p: must be a float (got str '1.5')"),
        (KeyType.FLOAT64, True, "p: must be a float (got bool True)"),
        (KeyType.FLOAT64, (1 << 53) + 1, "p: must be a float (got int 9007199254740993)"),
        (KeyType.FLOAT64, 1 << 2000, "p: must be a float"),
        (KeyType.FLOAT64, Decimal("1.5"), "p: must be a float"),
        (KeyType.DECIMAL, 1.5, "p: must be a Decimal (got float 1.5)"),
        (KeyType.DECIMAL, False, "p: must be a Decimal (got bool False)"),
        (KeyType.DECIMAL, Decimal("NaN"), "p: must be a finite decimal (got NaN)"),
        (KeyType.DECIMAL, Decimal("-Infinity"), "p: must be a finite decimal (got -Infinity)"),
        (KeyType.DECIMAL, Decimal("1" * 257), "at most 256 significant digits in a key (got 257 digits)"),
        (KeyType.DECIMAL, Decimal("1E+1000"), "below 1E+1000 in magnitude (got 1.000E+1000)"),
        (KeyType.DECIMAL, Decimal("1E+999999999"), "below 1E+1000 in magnitude"),
        (KeyType.DECIMAL, Decimal("1E-1002"), "at least 1E-1001"),
        (KeyType.DECIMAL, 10**5000, "p: must be a Decimal"),
        (KeyType.DATE, datetime(2013, 1, 1), "p: must be a date (got datetime"),
        (KeyType.DATE, 15706, "p: must be a date (got int 15706)"),
        (KeyType.UUID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "p: must be a UUID (got str"),
        (KeyType.BYTES, "text", "p: must be bytes (got str 'text')"),
        (KeyType.STRING, b"text", "p: must be a string (got bytes b'text')"),
        (KeyType.STRING, "\ud800", "p: must be valid Unicode, without lone surrogates (got '\\ud800')"),
        (KeyType.STRING, ["a" * 100], "(104 characters)"),
    ],
    ids=lambda value: type(value).__name__,  # pytest cannot print an int of 5000 digits
)
def test_a_value_that_is_not_of_the_type_is_refused(key_type: KeyType, value: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        encode_parts([value], [KeyPart("p", key_type)])
    assert message in str(refused.value)
    with pytest.raises(InvalidDocument) as in_a_column:
        encode_columns(b"", [[None, value]], [KeyPart("p", key_type)])
    assert in_a_column.value.row == 1
    assert message in str(in_a_column.value)


def test_an_int_that_a_float_or_a_decimal_holds_exactly_is_accepted() -> None:
    assert encode_part(3, KeyType.FLOAT64) == encode_part(3.0, KeyType.FLOAT64)
    assert encode_part(3, KeyType.DECIMAL) == encode_part(Decimal("3.00"), KeyType.DECIMAL)
    assert encode_part(np.int16(3), KeyType.INT64) == encode_part(3, KeyType.INT64)  # type: ignore[arg-type]


def test_negative_zero_is_zero_and_every_nan_is_one() -> None:
    assert encode_part(-0.0, KeyType.FLOAT64) == encode_part(0.0, KeyType.FLOAT64)
    assert encode_part(-math.nan, KeyType.FLOAT64) == encode_part(math.nan, KeyType.FLOAT64)
    assert encode_part(math.inf, KeyType.FLOAT64) < encode_part(math.nan, KeyType.FLOAT64)
    assert encode_part(Decimal("-0.00"), KeyType.DECIMAL) == encode_part(Decimal(0), KeyType.DECIMAL)


def test_a_whole_decimal_reads_back_without_an_exponent() -> None:
    [value] = decode_parts(encode_part(Decimal("1.20E+5"), KeyType.DECIMAL), [KeyPart("d", KeyType.DECIMAL)])
    assert str(value) == "120000"


@pytest.mark.parametrize("values", [(), ("EWR",), ("EWR", 1, 2)])
def test_a_key_needs_a_value_for_each_part(values: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgument, match=r"key: must have 2 parts: origin, stamp\.at"):
        row_key(7, PARTS, values)


def test_a_primary_key_may_not_be_null() -> None:
    with pytest.raises(InvalidArgument, match=r"stamp\.at: must not be null in a primary key"):
        row_key(7, PARTS, ("EWR", None))


def test_the_path_of_the_bad_part_is_named() -> None:
    with pytest.raises(InvalidArgument) as refused:
        row_key(7, PARTS, ("EWR", "noon"))
    assert refused.value.field == "stamp.at"


@pytest.mark.parametrize(("side", "field"), [("lower", "start"), ("upper", "end")])
def test_a_bound_may_have_fewer_parts_but_not_more(side: str, field: str) -> None:
    row_range(7, PARTS, **{side: ("EWR",)})
    with pytest.raises(InvalidArgument, match=f"{field}: must have at most 2 parts"):
        row_range(7, PARTS, **{side: ("EWR", 1, 2)})


def test_the_longest_key_is_accepted_and_one_byte_more_is_refused() -> None:
    name = [KeyPart("name", KeyType.STRING)]
    longest = "a" * (LOGICAL_KEY_BYTES_MAX - len(row_key(7, name, ("",))))
    assert len(row_key(7, name, (longest,))) == LOGICAL_KEY_BYTES_MAX
    with pytest.raises(KeyTooLong) as refused:
        row_key(7, name, (longest + "a",), what="the primary key of shop.orders")
    assert (refused.value.length, refused.value.limit) == (500, 499)
    assert str(refused.value) == "the primary key of shop.orders: the encoded key has 500 bytes, the limit is 499"


def test_an_entry_counts_its_primary_key_where_it_holds_one() -> None:
    value, primary_key = ("v" * 300,), b"p" * 250
    name = [KeyPart("name", KeyType.STRING)]
    with pytest.raises(KeyTooLong, match="index by_name: the encoded key has 563 bytes"):
        index_key(7, 2, name, value, primary_key, unique=False, what="index by_name")
    index_key(7, 2, name, value, primary_key, unique=True)


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: kv_key("n", b"k" * 600), "key"),
        (lambda: kv_key("n" * 600, b""), "namespace"),
        (lambda: kv_range("n", b"k" * 600), "key"),
        (lambda: meta_key("table", "t" * 600), "table/"),
        (lambda: row_range(7, PARTS, ("a" * 600,)), "start of the primary key"),
        (lambda: index_range(7, 2, PARTS, None, ("a" * 600,)), "end of the index"),
    ],
)
def test_no_key_or_bound_that_the_engine_would_refuse_leaves_the_keyspace(build: Any, field: str) -> None:
    with pytest.raises(KeyTooLong) as refused:
        build()
    assert refused.value.field.startswith(field)


def test_namespaces_have_names_and_a_prefix_comes_alone() -> None:
    with pytest.raises(InvalidArgument, match="namespace: must not be empty"):
        kv_key("", b"a")
    for bounds in ({"start": b"a"}, {"end": b"a"}):
        with pytest.raises(InvalidArgument, match=r"range\.prefix: excludes start and end"):
            kv_range("n", prefix=b"p", **bounds)


@pytest.mark.parametrize("bad_id", [-1, 1 << 32])
def test_ids_have_32_bits(bad_id: int) -> None:
    with pytest.raises(InvalidArgument, match="table id: must be between 0 and 4294967295"):
        row_prefix(bad_id)
    with pytest.raises(InvalidArgument, match="index id"):
        index_prefix(7, bad_id)


@pytest.mark.parametrize("bad_number", [-1, 0, 1 << 16])
def test_both_numbers_of_a_table_id_have_16_bits_and_begin_at_one(bad_number: int) -> None:
    with pytest.raises(InvalidArgument, match="database number: must be between 1 and 65535"):
        table_id_of(bad_number, 1)
    with pytest.raises(InvalidArgument, match="table number: must be between 1 and 65535"):
        table_id_of(1, bad_number)
    assert (table_id_of(1, 1), table_id_of(NUMBER_MAX, NUMBER_MAX)) == (0x10001, 0xFFFFFFFF)


def test_columns_must_be_as_many_as_the_parts_and_of_one_length() -> None:
    with pytest.raises(InvalidArgument, match="must have 2 columns"):
        encode_columns(b"", [["EWR"]], PARTS)
    with pytest.raises(InvalidArgument, match=r"stamp\.at: must have 1 rows, as the first column has \(got 2 rows"):
        encode_columns(b"", [["EWR"], [1, 2]], PARTS)
    with pytest.raises(InvalidArgument, match="suffixes: must have 1 rows"):
        encode_columns(b"", [["EWR"], [1]], PARTS, suffixes=[])
    assert encode_columns(b"", [[], []], PARTS) == []


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "timedelta64[s]", "U3", "S3", "complex128"])
def test_arrays_that_are_no_plain_numbers_are_refused(dtype: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot be a key's column"):
        encode_columns(b"", [np.zeros(2, dtype)], [KeyPart("t", KeyType.TIMESTAMP)])


def test_days_outside_of_the_calendar_are_refused_with_their_row() -> None:
    with pytest.raises(InvalidDocument, match="must be between -719162 and 2932896 days from 1970") as refused:
        encode_columns(b"", [np.array([0, 2932897])], [KeyPart("d", KeyType.DATE)])
    assert refused.value.row == 1


@pytest.mark.parametrize("empty", [b"", b"\xff", b"\xff\xff"])
def test_what_has_no_successor_is_refused(empty: bytes) -> None:
    with pytest.raises(InvalidArgument, match="no bytes sort above"):
        successor_of_prefix(empty)


@pytest.mark.parametrize(
    ("read", "key"),
    [
        (user_key_of, meta_key("a")),
        (user_key_of, LogicalKey(b"k")),
        (user_key_of, LogicalKey(kv_key("n", b"u") + bytes(12))),
        (names_of, kv_key("n", b"u")),
        (names_of, LogicalKey(meta_key("a")[:-1])),
        (names_of, LogicalKey(meta_key("a") + b"\x01")),
        (names_of, LogicalKey(b"")),
        (lambda key: primary_key_of_entry(key, b"", 1, unique=False), LogicalKey(index_prefix(7, 2) + b"\x05")),
        (lambda key: primary_key_of_entry(key, b"", 2, unique=False), LogicalKey(index_prefix(7, 2) + b"\x05")),
    ],
)
def test_a_key_of_another_kind_reads_as_damage(read: Any, key: LogicalKey) -> None:
    with pytest.raises(DataLoss):
        read(key)


def test_a_part_of_another_declaration_reads_as_damage() -> None:
    encoded = encode_part(5, KeyType.INT64)
    for part in (KeyPart("p", KeyType.TIMESTAMP), KeyPart("p", KeyType.INT64, descending=True)):
        with pytest.raises(DataLoss, match="p is not "):
            decode_parts(encoded, [part])
    with pytest.raises(DataLoss, match="9 bytes after the last part"):
        decode_parts(encoded + encoded, [KeyPart("p", KeyType.INT64)])
    with pytest.raises(DataLoss, match="cut off"):
        decode_parts(b"", [KeyPart("p", KeyType.INT64)])


@pytest.mark.parametrize(
    "malformed",
    [
        pytest.param("", id="nothing"),
        pytest.param("40", id="an unknown tag"),
        pytest.param("1002", id="a bool of 2"),
        pytest.param("14800000000000", id="an int64 of 6 bytes"),
        pytest.param("187fffffffffffffff", id="negative zero"),
        pytest.param("18fff8000000000001", id="another NaN"),
        pytest.param("247ff506c5", id="the day before the calendar"),
        pytest.param("30000200ff0001", id="a zero that is not escaped"),
        pytest.param("30ff0001", id="not UTF-8"),
        pytest.param("30eda0800001", id="a surrogate"),
        pytest.param("306100", id="a string without its end"),
        pytest.param("1c", id="a decimal of nothing"),
        pytest.param("1c04", id="a decimal of no sign"),
        pytest.param("1c03800100", id="a decimal of no digits"),
        pytest.param("1c0380016600", id="a pair of digits above 99"),
        pytest.param("1c0380010200", id="a decimal that begins with a zero"),
        pytest.param("1c0380010b0100", id="a decimal that ends with zeros"),
        pytest.param("1c0390000b00", id="a decimal beyond the exponent"),
        pytest.param("1c03" + "8001" + "0b" * 129 + "00", id="a decimal of too many digits"),
        pytest.param("1c0380010b", id="a decimal without its end"),
    ],
)
def test_bytes_that_encoding_never_makes_read_as_damage(malformed: str) -> None:
    for key_type in KeyType:
        for descending in (False, True):
            raw = bytes.fromhex(malformed)
            encoded = raw.translate(INVERTED) if descending else raw
            with pytest.raises(DataLoss):
                decode_parts(encoded, [KeyPart("p", key_type, descending)])
            with pytest.raises(DataLoss):
                decode_part(encoded)
