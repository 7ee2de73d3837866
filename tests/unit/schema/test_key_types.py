"""Which fields may be part of a key, and as what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.schema.field_paths import find_field
from cortado.schema.key_types import key_type_of
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.keys.types import KeyType


def of(avro_type: Any) -> Schema:
    fields = [{"name": "a", "type": avro_type}]
    return parse_schema(json.dumps({"type": "record", "name": "Flight", "fields": fields}))


def logical(base: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


ALLOWED = [
    ("boolean", KeyType.BOOL),
    ("int", KeyType.INT64),
    ("long", KeyType.INT64),
    ("float", KeyType.FLOAT64),
    ("double", KeyType.FLOAT64),
    ("bytes", KeyType.BYTES),
    ("string", KeyType.STRING),
    (fixed(3), KeyType.BYTES),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, KeyType.STRING),
    (logical("bytes", "decimal", precision=4), KeyType.DECIMAL),
    (fixed(4, logicalType="decimal", precision=4), KeyType.DECIMAL),
    (logical("string", "uuid"), KeyType.UUID),
    (fixed(16, logicalType="uuid"), KeyType.UUID),
    (logical("int", "date"), KeyType.DATE),
    (logical("long", "timestamp-millis"), KeyType.TIMESTAMP),
    (logical("long", "timestamp-micros"), KeyType.TIMESTAMP),
    (logical("long", "local-timestamp-millis"), KeyType.TIMESTAMP),
    (logical("long", "local-timestamp-micros"), KeyType.TIMESTAMP),
]

REFUSED = [
    "null",
    ["null"],
    {"type": "array", "items": "int"},
    {"type": "map", "values": "int"},
    {"type": "record", "name": "R", "fields": []},
    ["null", "int", "string"],
    ["int", "string"],
    logical("int", "time-millis"),
    logical("long", "time-micros"),
    logical("long", "timestamp-nanos"),
    logical("long", "local-timestamp-nanos"),
    fixed(12, logicalType="duration"),
]


@pytest.mark.parametrize(("avro_type", "key_type"), ALLOWED)
def test_a_field_of_this_type_may_be_part_of_a_key(avro_type: Any, key_type: KeyType) -> None:
    assert key_type_of(of(avro_type), "a") == (key_type.value, False)
    assert key_type_of(of(["null", avro_type]), "a") == (key_type.value, True)
    assert key_type_of(of([avro_type, "null"]), "a") == (key_type.value, True)


@pytest.mark.parametrize("avro_type", REFUSED)
def test_a_field_of_this_type_may_not(avro_type: Any) -> None:
    with pytest.raises(InvalidArgument, match="cannot be part of a key") as caught:
        key_type_of(of(avro_type), "a")
    assert caught.value.field == "a"


def test_a_path_goes_through_records_and_nullable_records() -> None:
    inner = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}
    assert key_type_of(of(inner), "a.b") == ("int64", False)
    assert key_type_of(of(["null", inner]), "a.b") == ("int64", True)
    assert [field.name for field in find_field(of(inner), "a.b").fields] == ["a", "b"]


@pytest.mark.parametrize(
    ("avro_type", "path", "problem"),
    [
        ("int", "b", "Flight has no field 'b'"),
        ("int", "", "Flight has no field ''"),
        ("int", "a.b", "a is of type int, which has no fields to name"),
        ({"type": "array", "items": "int"}, "a.items", "a is of type array of int"),
        (["null", "int", "string"], "a.b", "a is of type null or int or string"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(avro_type: Any, path: str, problem: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        key_type_of(of(avro_type), path)
    assert (caught.value.field, problem in caught.value.problem) == (path, True), str(caught.value)
