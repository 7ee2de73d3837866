"""Keys, bounds, assignments and bytes as they are written on a command line."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument
from cortado.schema.json_text import parse_json
from cortado.store.cli.assignments import parse_assignments
from cortado.store.cli.commands.table import parse_index
from cortado.store.cli.numbers import whole
from cortado.store.client import Index
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.transfer import byte_text
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes
from cortado.store.transfer.key_text import key_to_json, parse_bound, parse_key, parse_part

FLIGHTS = (
    KeyPart("time_hour", KeyType.TIMESTAMP),
    KeyPart("carrier", KeyType.STRING),
    KeyPart("flight", KeyType.INT64),
)


@pytest.mark.parametrize(
    ("type", "text", "meant"),
    [
        (KeyType.BOOL, "true", True),
        (KeyType.BOOL, "false", False),
        (KeyType.INT64, "-1545", -1545),
        (KeyType.FLOAT64, "12.5", 12.5),
        (KeyType.FLOAT64, "-Infinity", float("-inf")),
        (KeyType.BYTES, "AP8=", b"\x00\xff"),
        (KeyType.STRING, "null", "null"),
        (KeyType.STRING, "", ""),
        (KeyType.TIMESTAMP, "2013-01-01T05:00:00-05:00", datetime(2013, 1, 1, 10, tzinfo=UTC)),
        (KeyType.TIMESTAMP, "1357034400000000", 1_357_034_400_000_000),
        (KeyType.DATE, "2013-01-31", date(2013, 1, 31)),
        (KeyType.DECIMAL, "-12.50", Decimal("-12.50")),
        (KeyType.UUID, "9f0c6a52-3f6e-4a7b-8f52-4f1e6a1d2c3b", UUID("9f0c6a52-3f6e-4a7b-8f52-4f1e6a1d2c3b")),
    ],
)
def test_a_part_is_read_by_its_declared_type(type: KeyType, text: str, meant: Any) -> None:
    for nullable in (False, True):
        assert parse_part(text, KeyPart("part", type), nullable=nullable) == meant


@pytest.mark.parametrize("type", KeyType)
def test_null_is_written_where_a_part_may_be_null_and_nowhere_else(type: KeyType) -> None:
    part = KeyPart("part", type)
    assert parse_part("\\N", part, nullable=True) is None
    if type is KeyType.STRING:
        assert parse_part("\\N", part) == "\\N"
    else:
        for text, nullable in (("\\N", False), ("\\\\N", True)):
            with pytest.raises(InvalidArgument, match=r"key\.part"):
                parse_part(text, part, nullable=nullable)


def test_each_text_can_be_written_where_a_part_may_be_null() -> None:
    part = KeyPart("part", KeyType.STRING)
    for text in ("\\N", "\\\\N", "\\\\\\N"):
        assert parse_part(f"\\{text}", part, nullable=True) == text
        assert parse_part(text, part) == text
    for text in ("N", "\\", "\\n", "\\NN", " \\N", "a\\N", "\\N\n", "\\x4e"):
        assert parse_part(text, part, nullable=True) == parse_part(text, part) == text


def test_the_first_parts_of_an_entry_may_be_null_and_those_of_its_key_not() -> None:
    parts = [KeyPart("name", KeyType.STRING), KeyPart("id", KeyType.STRING)]
    assert parse_key(["\\N", "\\N"], parts, nullable=1) == (None, "\\N")
    assert parse_bound("\\N", parts, "--start", nullable=1) == (None,)
    assert parse_bound("\\N", parts, "--start") == ("\\N",)
    assert parse_bound('["\\\\N", null]', parts, "--start", nullable=1) == ("\\N", None)
    with pytest.raises(InvalidArgument, match="a whole number"):
        parse_bound('["\\\\N"]', [KeyPart("n", KeyType.INT64)], "--start", nullable=1)


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (KeyType.BOOL, "yes"),
        (KeyType.INT64, "1.5"),
        (KeyType.INT64, "\u0661"),
        (KeyType.FLOAT64, "twelve"),
        (KeyType.FLOAT64, "1e400"),
        (KeyType.FLOAT64, "1_0"),
        (KeyType.FLOAT64, " 1"),
        (KeyType.DECIMAL, "1_0"),
        (KeyType.DECIMAL, "NaN"),
        (KeyType.DATE, "20130131"),
        (KeyType.TIMESTAMP, "2013-01-01T10:00:00.1234567Z"),
        (KeyType.UUID, "{9f0c6a52-3f6e-4a7b-8f52-4f1e6a1d2c3b}"),
        (KeyType.BYTES, "A"),
        (KeyType.BYTES, "not base64!"),
        (KeyType.TIMESTAMP, "2013-01-01T10:00:00"),
        (KeyType.TIMESTAMP, "yesterday"),
        (KeyType.DATE, "31.1.2013"),
        (KeyType.DECIMAL, "1,5"),
        (KeyType.UUID, "9f0c"),
    ],
)
def test_what_is_not_of_the_type_is_refused_by_name(type: KeyType, text: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        parse_part(text, KeyPart("a.b", type))
    assert raised.value.field == "key.a.b"
    assert raised.value.value == repr(text)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("1.5", "-9223372036854775808 or more"),
        ("-9223372036854775809", "-9223372036854775808 or more"),
        ("9223372036854775808", "-9223372036854775808 to 9223372036854775807"),
    ],
)
def test_a_number_is_refused_with_the_bound_that_it_passed(text: str, bound: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(f"must be a whole number, {bound} (got {text!r})")):
        whole("--by", -(2**63))(text)


@pytest.mark.parametrize(
    ("type", "text", "reason"),
    [
        (KeyType.TIMESTAMP, "2021-02-29T00:00:00Z", "day is out of range for month"),
        (KeyType.TIMESTAMP, "2016-12-31T23:59:60Z", "seconds 00 to 59"),
        (KeyType.TIMESTAMP, "9999-12-31T23:59:59-00:01", "beyond the years 1 to 9999"),
        (KeyType.TIMESTAMP, "2013-01-01T10:00:00.1234567Z", "digits behind the microseconds"),
        (KeyType.DATE, "2021-02-29", "day is out of range for month"),
    ],
)
def test_a_time_that_looks_right_is_refused_with_its_reason(type: KeyType, text: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"^key\.a: is no time of the calendar: .*{reason}"):
        parse_part(text, KeyPart("a", type))


def test_a_key_must_have_every_part_and_a_prefix_may_end_early() -> None:
    assert parse_key(["0", "UA", "1545"], FLIGHTS) == (0, "UA", 1545)
    assert parse_key(["0", "UA"], FLIGHTS, prefix=True) == (0, "UA")
    with pytest.raises(
        InvalidArgument, match=r"3 parts: time_hour \(timestamp\), carrier \(string\), flight \(int64\) \(got 2 parts\)"
    ):
        parse_key(["0", "UA"], FLIGHTS)
    with pytest.raises(InvalidArgument, match="at most"):
        parse_key(["0", "UA", "1", "2"], FLIGHTS, prefix=True)


def test_a_bound_is_one_part_or_a_json_array() -> None:
    assert parse_bound(None, FLIGHTS, "--start") is None
    assert parse_bound("0", FLIGHTS, "--start") == (0,)
    assert parse_bound('[0, "UA", 7]', FLIGHTS, "--start") == (0, "UA", 7)
    moment = datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert parse_bound('["2013-01-01T10:00:00Z", null]', FLIGHTS, "--start") == (moment, None)
    for text in ("[0", '[0, "UA", 1, 2]', "[0, 5]", "[0, 'UA']"):
        with pytest.raises(InvalidArgument):
            parse_bound(text, FLIGHTS, "--start")


ALL_TYPES = tuple(KeyPart(str(type), type) for type in KeyType)
VALUES: dict[KeyType, st.SearchStrategy[Any]] = {
    KeyType.BOOL: st.booleans(),
    KeyType.INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    KeyType.FLOAT64: st.floats(allow_nan=False),
    KeyType.BYTES: st.binary(),
    KeyType.STRING: st.text(),
    KeyType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    KeyType.DATE: st.dates(),
    KeyType.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False),
    KeyType.UUID: st.uuids(),
}


@given(st.tuples(*(st.one_of(st.none(), VALUES[part.type]) for part in ALL_TYPES)))
def test_a_key_that_is_shown_can_be_given_back(key: tuple[Any, ...]) -> None:
    assert parse_bound(json.dumps(key_to_json(key)), ALL_TYPES, "--start") == key


@given(st.binary())
def test_bytes_that_are_shown_can_be_given_back(value: bytes) -> None:
    shown = bytes_to_text(value)
    assert shown.isprintable()
    assert parse_bytes(shown, "VALUE") == value


def test_bytes_are_shown_by_what_each_character_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(value: bytes) -> str:
        text = value.decode("utf-8", "surrogateescape").replace("\\", "\\\\")
        return "".join(each if each.isprintable() else escaped(each) for each in text)

    def escaped(char: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))

    every_char = "".join(map(chr, (*range(0x2100), *range(0xD700, 0xD800), *range(0x1F600, 0x1F700)))).encode()
    every_byte = bytes(range(255, -1, -1)) * 3
    for value in (every_char, every_byte, b"a\\b", b"a\\\x00", b"\xed\xa0\x80", b""):
        assert bytes_to_text(value) == one_by_one(value)
    # A value may have a megabyte of them, and the process that shows it serves other callers too: no step of Python for
    # each.
    monkeypatch.setattr(byte_text, "_escaped", None)
    assert bytes_to_text(every_byte) == one_by_one(every_byte)


@pytest.mark.parametrize("text", ["\\", "\\x", "\\xg0", "a\\n", "\\x0"])
def test_an_unknown_escape_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="VALUE"):
        parse_bytes(text, "VALUE")


def test_assignments_are_json_and_say_so() -> None:
    assert parse_assignments(["a=1", 'b.c="x=y"', "d=null"]) == {"a": 1, "b.c": "x=y", "d": None}
    with pytest.raises(InvalidArgument, match="text needs quotes"):
        parse_assignments(["a=x"])
    for wrong in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(InvalidArgument, match="--set"):
            parse_assignments(wrong)


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, "1" * 5_000])
def test_json_is_read_strictly(text: str) -> None:
    with pytest.raises(InvalidArgument, match="DOCUMENT: must be JSON"):
        parse_json(text, "DOCUMENT")


def test_an_index_is_a_name_and_fields() -> None:
    assert parse_index("by_a=a, b desc", "--index", unique=True) == Index("by_a", ["a", "b desc"], True)
    for wrong in ("by_a", "=a", "by_a=", "by_a=a,,b"):
        with pytest.raises(InvalidArgument, match="--index"):
            parse_index(wrong, "--index", unique=False)
