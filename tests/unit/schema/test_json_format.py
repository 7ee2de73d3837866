"""Documents as JSON: one text for each value, and the same value back."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from cortado.errors import InvalidDocument
from cortado.schema.documents import encode_document
from cortado.schema.json_format import from_json_value, to_json_value
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.values import Branch, Duration


def of(avro_type: Any) -> Schema:
    fields = [{"name": "a", "type": avro_type}]
    return parse_schema(json.dumps({"type": "record", "name": "F", "fields": fields}))


def logical(base: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


FIXED = {"type": "fixed", "name": "X", "size": 2}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}
DECIMAL = logical("bytes", "decimal", precision=6, scale=2)
MOMENT = datetime(2013, 1, 31, 12, 30, 15, 120000, tzinfo=UTC)
LEG = {"type": "record", "name": "org.Leg", "fields": [{"name": "x", "type": "int"}]}

SAME: list[tuple[Any, Any, Any]] = [
    # type, value, JSON
    ("null", None, None),
    ("boolean", True, True),
    ("int", -5, -5),
    ("long", 2**63 - 1, 9223372036854775807),
    ("double", 1.5, 1.5),
    ("double", math.inf, "Infinity"),
    ("double", -math.inf, "-Infinity"),
    ("float", 0.10000000149011612, 0.1),
    ("float", 3.4028234663852886e38, 3.4028234663852886e38),
    ("float", -0.0, -0.0),
    ("float", math.inf, "Infinity"),
    ("bytes", b"\x00\xff", "AP8="),
    ("string", "héllo", "héllo"),
    (FIXED, b"ab", "YWI="),
    (ENUM, "RED", "RED"),
    ({"type": "array", "items": "bytes"}, [b"", b"a"], ["", "YQ=="]),
    ({"type": "map", "values": "bytes"}, {"x": b"a"}, {"x": "YQ=="}),
    (LEG, {"x": 1}, {"x": 1}),
    (DECIMAL, Decimal("12.50"), "12.50"),
    (DECIMAL, Decimal("-0.01"), "-0.01"),
    (logical("string", "uuid"), UUID(int=255), "00000000-0000-0000-0000-0000000000ff"),
    (logical("int", "date"), date(13, 1, 31), "0013-01-31"),
    (logical("int", "time-millis"), time(23, 59, 59), "23:59:59"),
    (logical("long", "time-micros"), time(0, 0, 0, 1), "00:00:00.000001"),
    (logical("long", "timestamp-millis"), MOMENT, "2013-01-31T12:30:15.120000Z"),
    (logical("long", "timestamp-micros"), MOMENT.replace(microsecond=0), "2013-01-31T12:30:15Z"),
    (logical("long", "timestamp-nanos"), 10**18, 10**18),
    (logical("long", "local-timestamp-micros"), datetime(2013, 1, 31, 1), "2013-01-31T01:00:00"),
    (logical("long", "local-timestamp-nanos"), -1, -1),
    ({**FIXED, "size": 12, "logicalType": "duration"}, Duration(1, 2, 3), {"months": 1, "days": 2, "milliseconds": 3}),
    (["null", "int"], None, None),
    (["null", "int"], 5, 5),
    (["bytes", "null"], b"a", "YQ=="),
    (["null", LEG, "string"], None, None),
    (["null", LEG, "string"], Branch("org.Leg", {"x": 1}), {"org.Leg": {"x": 1}}),
    (["null", "int", DECIMAL], Branch("bytes", Decimal("1.00")), {"bytes": "1.00"}),
    (["string", ENUM], Branch("E", "RED"), {"E": "RED"}),
    (["int"], Branch("int", 5), {"int": 5}),
]


@pytest.mark.parametrize(("avro_type", "value", "json_value"), SAME)
def test_a_value_has_this_json_and_comes_back_from_it(avro_type: Any, value: Any, json_value: Any) -> None:
    schema = of(avro_type)
    made = to_json_value(schema, {"a": value})
    assert json.loads(json.dumps(made, allow_nan=False)) == {"a": json_value}
    again = from_json_value(schema, {"a": json_value})
    assert encode_document(schema, again) == encode_document(schema, {"a": value})


def test_not_a_number_is_text() -> None:
    assert to_json_value(of("double"), {"a": math.nan}) == {"a": "NaN"}
    assert math.isnan(from_json_value(of("double"), {"a": "NaN"})["a"])


def test_a_plain_value_of_a_union_is_named_in_json() -> None:
    assert to_json_value(of(["null", "int", "string"]), {"a": 5}) == {"a": {"int": 5}}


def test_any_offset_is_read_and_utc_is_written() -> None:
    schema = of(logical("long", "timestamp-micros"))
    value = from_json_value(schema, {"a": "2013-01-31T07:30:15.12-05:00"})
    assert value == {"a": MOMENT}
    away = {"a": MOMENT.astimezone(timezone(timedelta(hours=-5)))}
    assert to_json_value(schema, away) == {"a": "2013-01-31T12:30:15.120000Z"}


def test_a_type_serves_as_well_as_a_schema_and_the_path_is_put_in_front() -> None:
    field = of({"type": "array", "items": "int"}).record.fields[0]
    assert to_json_value(field.type, [1]) == [1]
    assert from_json_value(field.type, [1]) == [1]
    with pytest.raises(InvalidDocument) as caught:
        from_json_value(field.type, [1, "x"], "legs.a")
    assert caught.value.field == "legs.a[1]"
    with pytest.raises(InvalidDocument) as caught:
        from_json_value(field.type, "x", "legs.a")
    assert caught.value.field == "legs.a"


def test_fields_that_are_not_there_are_left_out() -> None:
    schema = parse_schema(
        '{"type": "record", "name": "F", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}'
    )
    assert to_json_value(schema, {"b": 1}) == {"b": 1}
    assert from_json_value(schema, {"b": 1}) == {"b": 1}


REFUSED: list[tuple[Any, Any, str]] = [
    # type, JSON, message
    ("null", 0, "must be null"),
    ("boolean", 1, "true or false"),
    ("int", True, "must be an integer"),
    ("int", 1.0, "must be an integer"),
    ("long", "5", "must be an integer"),
    ("double", True, "must be a number"),
    ("double", "1.5", "must be a number"),
    ("double", "nan", "must be a number"),
    ("string", 5, "must be a string"),
    ("bytes", "a", "base64"),
    ("bytes", "YQ", "base64"),
    ("bytes", "Y Q==", "base64"),
    ("bytes", "YQ==\n", "base64"),
    ("bytes", "é", "base64"),
    ("bytes", [1], "base64"),
    ({"type": "array", "items": "int"}, {}, "must be an array"),
    ({"type": "map", "values": "int"}, [], "must be an object"),
    (LEG, [], "must be an object"),
    (DECIMAL, 1.5, 'text such as "12.50"'),
    (DECIMAL, "1_0", "text such as"),
    (DECIMAL, "1e5", "text such as"),
    (DECIMAL, "NaN", "text such as"),
    (DECIMAL, " 1", "text such as"),
    (DECIMAL, "\u0661", "text such as"),
    (logical("string", "uuid"), "{00000000-0000-0000-0000-0000000000ff}", "not a UUID"),
    (logical("string", "uuid"), 5, "must be a string"),
    (logical("int", "date"), "2013-02-30", "a day of the calendar"),
    (logical("int", "date"), "20130131", "text such as"),
    (logical("int", "date"), "2013-W05-4", "text such as"),
    (logical("int", "date"), 5, "text such as"),
    (logical("int", "time-millis"), "24:00:00", "a time of the day"),
    (logical("int", "time-millis"), "12", "text such as"),
    (logical("long", "timestamp-micros"), "2013-01-31T12:30:15", "text such as"),
    (logical("long", "timestamp-micros"), "2013-01-31_12:30:15Z", "text such as"),
    (logical("long", "timestamp-micros"), "2013-01-31T12:30:15.1234567Z", "digits behind the microseconds"),
    (logical("int", "time-millis"), "12:30:15.1234567", "digits behind the microseconds"),
    (logical("long", "timestamp-micros"), "2013-01-31T12:30:60Z", "a moment of the years"),
    (logical("long", "timestamp-micros"), "0001-01-01T00:00:00+05:00", "a moment of the years"),
    (logical("long", "timestamp-micros"), 5, "text such as"),
    (logical("long", "local-timestamp-micros"), "2013-01-31T12:30:15Z", "text such as"),
    (logical("long", "local-timestamp-micros"), "2013-13-31T12:30:15", "a moment of the years"),
    (logical("long", "timestamp-nanos"), "5", "must be an integer"),
    ({**FIXED, "size": 12, "logicalType": "duration"}, {"months": 1}, "must be an object"),
    (["null", "int", "string"], 5, "null or an object with one member, named int or string"),
    (["null", "int", "string"], {"long": 5}, "named int or string"),
    (["null", "int", "string"], {"int": 5, "string": ""}, "with one member"),
    (["int", "string"], None, "must be an object"),
]


@pytest.mark.parametrize(("avro_type", "json_value", "message"), REFUSED)
def test_json_of_the_wrong_form_is_refused_by_path(avro_type: Any, json_value: Any, message: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        from_json_value(of(avro_type), {"a": json_value})
    assert (caught.value.field, message in str(caught.value)) == ("a", True), str(caught.value)


def test_unknown_fields_and_deep_json_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="b: the schema has no such field"):
        from_json_value(of("int"), {"a": 1, "b": 2})
    with pytest.raises(InvalidDocument, match="b: the schema has no such field"):
        to_json_value(of("int"), {"a": 1, "b": 2})
    schema = parse_schema('{"type": "record", "name": "F", "fields": [{"name": "a", "type": ["null", "F"]}]}')
    deep: Any = None
    for _ in range(900):
        deep = {"a": deep}
    with pytest.raises(InvalidDocument, match="nested deeper than 64"):
        from_json_value(schema, deep)
    with pytest.raises(InvalidDocument, match="nested deeper than 64"):
        to_json_value(schema, deep)


@pytest.mark.parametrize(
    ("avro_type", "value"),
    [("int", "x"), ("int", True), ("string", b"x"), ("bytes", "x"), (ENUM, 5), ({"type": "array", "items": "int"}, 5)],
)
def test_a_value_of_another_type_has_no_json(avro_type: Any, value: Any) -> None:
    with pytest.raises(InvalidDocument, match="a: must be"):
        to_json_value(of(avro_type), {"a": value})


def test_a_number_that_no_double_holds_is_refused() -> None:
    schema = parse_schema('{"type": "record", "name": "R", "fields": [{"name": "x", "type": "double"}]}')
    with pytest.raises(InvalidDocument) as caught:
        from_json_value(schema, json.loads('{"x": 1e400}'))
    assert caught.value.field == "x"
