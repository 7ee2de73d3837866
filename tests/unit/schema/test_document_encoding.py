"""Nothing is coerced on the way into a body, and every refusal names the field."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from cortado.errors import InvalidDocument, TooLarge
from cortado.schema.documents import decode_document, encode_document, truncated_value, validate_body
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.values import Branch, Duration


def of(avro_type: Any, **more: Any) -> Schema:
    fields = [{"name": "a", "type": avro_type, **more}]
    return parse_schema(json.dumps({"type": "record", "name": "F", "fields": fields}))


def logical(base: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


FIXED = {"type": "fixed", "name": "X", "size": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}
MOMENT = datetime(2013, 1, 31, 12, 30, 15, 123456, tzinfo=UTC)


class Colour(StrEnum):
    RED = "RED"


class Number(IntEnum):
    SEVEN = 7


REFUSED: list[tuple[Any, Any, str]] = [
    # type, value, message
    ("null", 0, "must be null"),
    ("boolean", 1, "must be a bool"),
    ("boolean", None, "must be a bool"),
    ("int", True, "must be an int"),
    ("int", 1.0, "must be an int"),
    ("int", "1", "must be an int"),
    ("int", Decimal(1), "must be an int"),
    ("int", 2**31, "an int is from -2147483648 to 2147483647"),
    ("int", -(2**31) - 1, "an int is from"),
    ("long", False, "must be an int"),
    ("long", 1.5, "must be an int"),
    ("long", 2**63, "a long is from"),
    ("long", -(2**63) - 1, "a long is from"),
    ("long", np.int64(5), "must be an int"),
    ("float", "1.5", "must be a float"),
    ("float", True, "must be a float"),
    ("float", 1e39, "does not fit into a float of 32 bits"),
    ("double", Decimal("1.5"), "must be a float"),
    ("double", 2**53 + 1, "no float has exactly this value"),
    ("double", 10**400, "no float has exactly this value"),
    ("bytes", "abc", "must be bytes"),
    ("bytes", [1], "must be bytes"),
    ("string", b"abc", "must be a str"),
    ("string", 5, "must be a str"),
    ("string", "\ud800", "not valid Unicode at character 0"),
    (FIXED, b"abc", "must have 2 bytes, has 3"),
    (FIXED, "ab", "must be bytes"),
    (ENUM, "GREEN", "not a symbol of E"),
    (ENUM, 0, "must be a str"),
    ({"type": "array", "items": "int"}, "12", "must be a list"),
    ({"type": "array", "items": "int"}, {1, 2}, "must be a list"),
    ({"type": "array", "items": "int"}, (each for each in (1,)), "must be a list"),
    ({"type": "map", "values": "int"}, [("a", 1)], "must be a dict"),
    (record("R"), [], "must be a dict"),
    # logical types
    (decimal(4, 2), 1.5, "must be a Decimal"),
    (decimal(4, 2), 1, "must be a Decimal"),
    (decimal(4, 2), Decimal("1.555"), "more than 2 digits after the point"),
    (decimal(4, 2), Decimal("0.001"), "more than 2 digits after the point"),
    (decimal(4, 2), Decimal("100"), "more than 2 digits before the point"),
    (decimal(4, 2), Decimal("1E+1000000"), "more than 2 digits before the point"),
    (decimal(4, 2), Decimal("1E-1000000"), "more than 2 digits after the point"),
    (decimal(4, 2), Decimal("NaN"), "a finite number"),
    (decimal(4, 2), Decimal("-Infinity"), "a finite number"),
    (logical("string", "uuid"), "6f0c0000-0000-0000-0000-000000000000", "must be a UUID"),
    ({**FIXED, "size": 16, "logicalType": "uuid"}, b"0" * 16, "must be a UUID"),
    (logical("int", "date"), MOMENT, "must be a date"),
    (logical("int", "date"), 5, "must be a date"),
    (logical("int", "date"), "2013-01-31", "must be a date"),
    (logical("int", "time-millis"), time(1, 2, 3, 4), "has microseconds, the type keeps milliseconds"),
    (logical("long", "time-micros"), time(1, 2, 3, tzinfo=UTC), "has no zone"),
    (logical("long", "time-micros"), 5, "must be a time"),
    (logical("long", "timestamp-micros"), MOMENT.replace(tzinfo=None), "with a time zone"),
    (logical("long", "timestamp-micros"), date(2013, 1, 1), "must be a datetime"),
    (logical("long", "timestamp-micros"), 5, "must be a datetime"),
    (logical("long", "timestamp-micros"), "2013-01-31T00:00:00Z", "must be a datetime"),
    (logical("long", "timestamp-millis"), MOMENT, "has microseconds, the type keeps milliseconds"),
    (
        logical("long", "timestamp-micros"),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        "in the years 1 to 9999",
    ),
    (logical("long", "timestamp-micros"), pd.Timestamp("2013-01-31T00:00:00.000000001Z"), "has nanoseconds"),
    (logical("long", "timestamp-micros"), pd.NaT, "must be a datetime"),
    (logical("long", "local-timestamp-micros"), MOMENT, "without a time zone"),
    (logical("long", "local-timestamp-micros"), pd.NaT, "must be a datetime"),
    (logical("long", "timestamp-nanos"), MOMENT, "an int of nanoseconds"),
    (logical("long", "timestamp-nanos"), True, "an int of nanoseconds"),
    (logical("long", "timestamp-nanos"), 2**63, "64 bits"),
    ({**FIXED, "size": 12, "logicalType": "duration"}, (1, 2, 3), "must be a Duration"),
    # unions
    (["null", "int"], "x", "must be an int"),
    (["null", "int"], Branch("long", 5), "no branch long; it has null, int"),
    (["int", "string"], None, "must be one of int, string"),
    (["int", "string"], 1.5, "must be one of int, string"),
    (["int", "long"], 2**63, "a long is from"),
    (["string", ENUM], "RED", "could be string or E: say which with Branch(name, value)"),
    (["bytes", FIXED], b"ab", "could be bytes or X"),
    ([record("P", ("x", "int")), record("Q", ("x", "int"))], {"x": 1}, "could be P or Q"),
    ([record("P", ("x", "int")), record("Q", ("y", "int"))], {"z": 1}, "must be one of P, Q"),
    (["null", record("P"), {"type": "map", "values": "int"}], {}, "could be P or map"),
    (["long", logical("int", "date"), "string"], Branch("int", 5), "must be a date"),
]


@pytest.mark.parametrize(("avro_type", "value", "message"), REFUSED)
def test_a_value_of_the_wrong_kind_is_refused_by_field(avro_type: Any, value: Any, message: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        encode_document(of(avro_type), {"a": value})
    assert (caught.value.field, message in str(caught.value)) == ("a", True), str(caught.value)


TAKEN: list[tuple[Any, Any, Any]] = [
    # type, value, as it is read again
    ("int", Number.SEVEN, 7),
    ("double", 5, 5.0),
    ("double", 2**53, 2.0**53),
    ("double", np.float64(1.5), 1.5),
    ("float", 16777216, 16777216.0),
    ("float", 0.1, 0.10000000149011612),
    ("double", float("inf"), float("inf")),
    ("bytes", bytearray(b"ab"), b"ab"),
    ("bytes", memoryview(b"ab"), b"ab"),
    ("string", Colour.RED, "RED"),
    (ENUM, Colour.RED, "RED"),
    ({"type": "array", "items": "int"}, (1, 2), [1, 2]),
    ({"type": "map", "values": "int"}, OrderedDict(x=1), {"x": 1}),
    (record("R", ("x", "int")), MappingProxyType({"x": 1}), {"x": 1}),
    (decimal(4, 2), Decimal("1.500"), Decimal("1.50")),
    (decimal(4, 2), Decimal("-99.99"), Decimal("-99.99")),
    (decimal(4, 2), Decimal("0E-999999"), Decimal("0.00")),
    (decimal(4, 2), Decimal("1E+1"), Decimal("10.00")),
    (decimal(40, 0), Decimal("9" * 40), Decimal("9" * 40)),
    (logical("long", "timestamp-millis"), MOMENT.replace(microsecond=123000), MOMENT.replace(microsecond=123000)),
    (
        logical("long", "timestamp-micros"),
        MOMENT.astimezone(timezone(timedelta(hours=-5))),
        MOMENT,
    ),
    (logical("long", "timestamp-micros"), pd.Timestamp(MOMENT), MOMENT),
    (logical("long", "timestamp-nanos"), -(2**63), -(2**63)),
    ({**FIXED, "size": 12, "logicalType": "duration"}, Duration(1, 2, 2**32 - 1), Duration(1, 2, 2**32 - 1)),
    (["null", "int"], Branch("int", 5), 5),
    (["null", "int"], Branch("null", None), None),
    (["int", "long", "null"], 2**40, 2**40),
    (["float", "double"], 0.1, 0.1),
    (["string", "long", "double"], 5, 5),
    (["string", "double"], 5, 5.0),
    (["int", "string", ENUM], Branch("E", "RED"), Branch("E", "RED")),
    (["int", "string", ENUM], "GREEN", Branch("string", "GREEN")),
    ([record("P", ("x", "int")), record("Q", ("y", "int"))], {"y": 1}, Branch("Q", {"y": 1})),
    (["null", logical("long", "timestamp-micros"), logical("int", "date")], date(2013, 1, 1), date(2013, 1, 1)),
]


@pytest.mark.parametrize(("avro_type", "value", "expected"), TAKEN)
def test_a_value_that_loses_nothing_is_taken(avro_type: Any, value: Any, expected: Any) -> None:
    schema = of(avro_type)
    read = decode_document(schema, encode_document(schema, {"a": value}))["a"]
    assert (read, type(read)) == (expected, type(expected))


def test_a_path_leads_through_records_arrays_and_maps() -> None:
    leg = record("Leg", ("stops", {"type": "array", "items": {"type": "map", "values": "int"}}))
    schema = of({"type": "array", "items": leg})
    with pytest.raises(InvalidDocument) as caught:
        encode_document(schema, {"a": [{"stops": []}, {"stops": [{}, {"x y": 1, "z": "2"}]}]})
    assert caught.value.field == "a[1].stops[1]['z']"


def test_missing_and_unknown_fields_are_named() -> None:
    schema = of("int")
    with pytest.raises(InvalidDocument, match="a: is missing, and the schema has no default for it"):
        encode_document(schema, {})
    with pytest.raises(InvalidDocument, match="b: the schema has no such field"):
        encode_document(schema, {"a": 1, "b": 2})
    with pytest.raises(InvalidDocument, match="a field's name must be a str"):
        encode_document(schema, {"a": 1, 2: 2})  # type: ignore[dict-item]
    with pytest.raises(InvalidDocument, match="must be a dict"):
        encode_document(schema, [1])  # type: ignore[arg-type]
    # A misspelt field beside a missing one with a default is still unknown, not filled in over.
    with pytest.raises(InvalidDocument, match="A: the schema has no such field"):
        encode_document(of("int", default=5), {"A": 1})


def test_a_missing_field_takes_its_default() -> None:
    assert decode_document(of("int", default=5), encode_document(of("int", default=5), {})) == {"a": 5}
    schema = of(["null", "int"], default=None)
    assert decode_document(schema, encode_document(schema, {})) == {"a": None}


def test_a_mapping_that_fails_by_itself_is_not_taken_for_a_missing_field() -> None:
    class Failing(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise ZeroDivisionError

        def __iter__(self) -> Any:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    with pytest.raises(ZeroDivisionError):
        encode_document(of("int"), Failing())


def test_a_document_over_the_limit_is_too_large() -> None:
    schema = of("bytes")
    with pytest.raises(TooLarge, match="the limit is 1048576"):
        encode_document(schema, {"a": bytes(1 << 20)})
    validate_body(schema, encode_document(schema, {"a": bytes((1 << 20) - 3)}))


def test_a_document_that_is_read_may_be_longer_than_one_that_is_stored() -> None:
    schema = of("bytes")
    longer = encode_document(schema, {"a": bytes((8 << 20) - 5)}, bytes_max=8 << 20)
    validate_body(schema, longer)
    with pytest.raises(TooLarge, match="the limit is 8388608"):
        encode_document(schema, {"a": bytes(8 << 20)}, bytes_max=8 << 20)
    with pytest.raises(TooLarge, match="the limit is 8388608"):
        validate_body(schema, bytes((8 << 20) + 1))


def test_a_document_that_holds_itself_is_refused() -> None:
    node = {"type": "record", "name": "F", "fields": [{"name": "a", "type": ["null", "F"]}]}
    schema = parse_schema(json.dumps(node))
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(InvalidDocument, match="nested deeper than 64"):
        encode_document(schema, loop)


def test_a_value_that_cannot_show_itself_still_gives_a_clear_error() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(InvalidDocument, match=r"a: must be an int \(got Shy"):
        encode_document(of("int"), {"a": Shy()})
    with pytest.raises(InvalidDocument) as caught:
        encode_document(of("int"), {"a": "x" * 10_000_000})
    assert len(str(caught.value)) < 200


def test_uuids_are_written_as_text_or_as_sixteen_bytes() -> None:
    value = UUID("6F0C0000-0000-0000-0000-0000000000FF")
    assert encode_document(of(logical("string", "uuid")), {"a": value}) == b"\x48" + str(value).encode()
    assert encode_document(of({**FIXED, "size": 16, "logicalType": "uuid"}), {"a": value}) == value.bytes


@pytest.mark.parametrize("kind", ["timestamp-millis", "timestamp-micros", "local-timestamp-millis"])
@pytest.mark.parametrize("truncates", [False, True])
def test_a_moment_of_pandas_that_is_none_is_refused_by_its_field(kind: str, truncates: bool) -> None:
    with pytest.raises(InvalidDocument, match=r"^a: must be a datetime"):
        encode_document(of(logical("long", kind)), {"a": pd.NaT}, truncates=truncates)


FINE = datetime(1969, 1, 1, 0, 0, 0, 999_999, UTC)
NANOS = pd.Timestamp("2026-01-01T00:00:00.000001999Z")
TRUNCATED: list[tuple[Any, Any, Any]] = [
    (logical("int", "time-millis"), time(1, 2, 3, 4_999), time(1, 2, 3, 4_000)),
    (logical("long", "timestamp-millis"), FINE, FINE.replace(microsecond=999_000)),
    (logical("long", "local-timestamp-millis"), datetime(2026, 1, 1, 0, 0, 0, 1), datetime(2026, 1, 1)),
    (logical("long", "timestamp-micros"), NANOS, datetime(2026, 1, 1, 0, 0, 0, 1, UTC)),
    (["null", logical("int", "time-millis")], time(1, 2, 3, 4_999), time(1, 2, 3, 4_000)),
]


@pytest.mark.parametrize(("avro_type", "value", "kept"), TRUNCATED)
def test_a_time_that_is_finer_than_its_type_is_truncated_towards_the_past_where_asked(
    avro_type: Any, value: Any, kept: Any
) -> None:
    schema = of(avro_type)
    with pytest.raises(InvalidDocument, match="seconds"):
        encode_document(schema, {"a": value})
    body = encode_document(schema, {"a": value}, truncates=True)
    assert decode_document(schema, body) == {"a": kept}
    assert truncated_value(schema.root, {"a": value}) == {"a": kept}
