"""Defaults: which JSON is one, its meaning, and that no default is a trap."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from cortado.errors import InvalidSchema
from cortado.schema.canonical import canonical_form
from cortado.schema.documents import decode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from support.work import instructions_at_most

MOST = 20_000_000

EMPTY = parse_schema('{"type": "record", "name": "F", "fields": []}')
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}
FIXED = {"type": "fixed", "name": "X", "size": 2}
LEG = {
    "type": "record",
    "name": "Leg",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string", "default": "why"}],
}


def of(avro_type: Any, default: Any) -> Schema:
    fields = [{"name": "a", "type": avro_type, "default": default}]
    return parse_schema(json.dumps({"type": "record", "name": "F", "fields": fields}))


def logical(base: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


@pytest.mark.parametrize(
    ("avro_type", "default", "value"),
    [
        ("null", None, None),
        ("boolean", False, False),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("float", 1, 1.0),
        ("double", 0.1, 0.1),
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        ("string", "héllo", "héllo"),
        (FIXED, "\u0001\u0002", b"\x01\x02"),
        (ENUM, "BLUE", "BLUE"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"x": 1}, {"x": 1}),
        (LEG, {"x": 1}, {"x": 1, "y": "why"}),
        (["null", "int"], None, None),
        (["null", "int"], 5, 5),
        (["int", "null"], None, None),
        (["null", LEG, "string"], {"x": 1, "y": ""}, {"x": 1, "y": ""}),
        (logical("bytes", "decimal", precision=4, scale=2), "\u0001\u0000", 2.56),
        (logical("int", "date"), 1, date(1970, 1, 2)),
    ],
)
def test_a_default_fills_in_what_the_writer_lacks(avro_type: Any, default: Any, value: Any) -> None:
    read = decode_document(EMPTY, b"", of(avro_type, default))["a"]
    assert float(read) == value if isinstance(value, float) else read == value


REFUSED: list[tuple[Any, Any, str, str]] = [
    # type, default, path below Flight.fields[0].default, message
    ("null", 0, "", "must be of type null"),
    ("boolean", 0, "", "must be of type boolean"),
    ("int", True, "", "must be of type int"),
    ("int", 1.0, "", "must be of type int"),
    ("int", 2**31, "", "must be of type int"),
    ("long", 2**63, "", "must be of type long"),
    ("float", 1e39, "", "does not fit into a float"),
    ("double", 10**400, "", "does not fit into a double"),
    ("double", "NaN", "", "must be of type double"),
    ("string", 5, "", "must be of type string"),
    ("string", "\ud800", "", "not Unicode"),
    ("bytes", "\u0100", "", "code points 0 to 255"),
    (FIXED, "abc", "", "must have 2 bytes, has 3"),
    (ENUM, "GREEN", "", "must be of type enum E"),
    ({"type": "array", "items": "int"}, {}, "", "must be of type array of int"),
    ({"type": "array", "items": "int"}, [1, "x"], "[1]", "must be of type int"),
    ({"type": "map", "values": "int"}, {"x": "y"}, "['x']", "must be of type int"),
    (LEG, {}, ".x", "is missing, and has no default of its own"),
    (LEG, {"x": "1"}, ".x", "must be of type int"),
    (LEG, {"x": 1, "z": 1}, ".z", "Leg has no such field"),
    (["null", "int"], "x", "", "must be of type null or int"),
    (["null", LEG], {"x": "1"}, ".x", "must be of type int"),
    (logical("int", "date"), 10**7, "", "in the years 1 to 9999"),
    (logical("string", "uuid"), "x", "", "not a UUID"),
    (logical("bytes", "decimal", precision=2), "d", "", "a decimal of more than 2 digits"),
    ({"type": "array", "items": logical("int", "date")}, [0, 10**7], "[1]", "in the years 1 to 9999"),
]


@pytest.mark.parametrize(("avro_type", "default", "path", "message"), REFUSED)
def test_a_default_of_another_type_is_refused_by_path(avro_type: Any, default: Any, path: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        of(avro_type, default)
    assert (caught.value.field, message in str(caught.value)) == (f"F.fields[0].default{path}", True), caught.value


def test_a_number_that_json_reads_as_infinite_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="does not fit"):
        parse_schema('{"type":"record","name":"F","fields":[{"name":"a","type":"double","default":1e999}]}')


def test_equal_defaults_make_equal_schemas() -> None:
    assert of("double", 1).fingerprint == of("double", 1.0).fingerprint
    assert of(LEG, {"x": 1}).fingerprint == of(LEG, {"y": "why", "x": 1}).fingerprint
    assert of("double", 1).fingerprint != of("double", 2).fingerprint
    assert of(["null", "int"], None).fingerprint != of(["null", "int"], 0).fingerprint


def test_a_default_without_end_is_refused() -> None:
    fields = [{"name": "a", "type": ["F", "null"], "default": {}}]
    with pytest.raises(InvalidSchema, match="has no end"):
        parse_schema(json.dumps({"type": "record", "name": "F", "fields": fields}))


def test_a_default_that_unfolds_is_refused_in_time() -> None:
    # Each record's default is two of the next one's: a billion of the last.
    inner: Any = {"type": "record", "name": "R0", "fields": []}
    for each in range(1, 13):
        fields = [{"name": "x", "type": inner, "default": {}}, {"name": "y", "type": f"R{each - 1}", "default": {}}]
        inner = {"type": "record", "name": f"R{each}", "fields": fields}
    with instructions_at_most(MOST), pytest.raises(InvalidSchema, match=r"too large|expanded"):
        of({"type": "array", "items": inner}, [{}, {}])


def test_trying_branches_of_a_default_is_bounded() -> None:
    # Every branch fails at the bottom, and each level above doubles the ways to get there.
    value: Any = {"z": 1}
    inner: Any = "int"
    for each in range(20):
        branches = [
            {"type": "record", "name": f"{name}{each}", "fields": [{"name": "v", "type": inner}]} for name in "PQ"
        ]
        branches[1]["fields"][0]["type"] = [f"P{each - 1}", f"Q{each - 1}"] if each else "int"
        inner, value = branches, {"v": value}
    with instructions_at_most(MOST), pytest.raises(InvalidSchema):
        of(inner, value)


def test_the_canonical_form_keeps_null_defaults() -> None:
    assert '"default":null' in canonical_form(of(["null", "int"], None).root)


@pytest.mark.parametrize(
    ("avro_type", "default"),
    [
        ({"type": "map", "values": "int"}, {"b": 1, "a": 2, "c": 3}),
        ({"type": "map", "values": {"type": "map", "values": "int"}}, {"z": {"b": 1, "a": 2}, "y": {}}),
        ({"type": "array", "items": {"type": "map", "values": "int"}}, [{"b": 1, "a": 2}]),
        (LEG, {"y": "why", "x": 1}),
    ],
    ids=str,
)
def test_the_order_of_a_defaults_keys_makes_no_other_schema(avro_type: Any, default: Any) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    one, other = of(avro_type, default), of(avro_type, turned(default))
    assert one.text != other.text
    assert one.fingerprint == other.fingerprint
    assert canonical_form(one.root) == canonical_form(other.root)
    assert decode_document(EMPTY, b"", one) == decode_document(EMPTY, b"", other)
