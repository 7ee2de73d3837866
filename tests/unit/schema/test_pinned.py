"""Fields that keys rest on, in nested places and corner cases beyond the page's examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.pinned import check_pinned


def of(*fields: Any) -> Schema:
    declared = [{"name": name, "type": avro_type, **more} for name, avro_type, more in fields]
    return parse_schema(json.dumps({"type": "record", "name": "Flight", "fields": declared}))


def address(*fields: Any) -> dict[str, Any]:
    declared = [{"name": name, "type": avro_type, **more} for name, avro_type, more in fields]
    return {"type": "record", "name": "Address", "fields": declared}


CITY = ("city", "string", {"default": "Newark"})


def found(new: Schema, old: Schema, path: str) -> list[str]:
    return [f"{each.kind} {each.path}" for each in check_pinned(new, old, [path])]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("int", "long"),
        ("float", "double"),
        ("int", ["null", "int"]),
        (["null", "int"], ["long", "null"]),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            {"type": "enum", "name": "E", "symbols": ["B", "A", "C"]},
        ),
    ],
)
def test_what_keeps_the_keys_is_fine(was: Any, now: Any) -> None:
    assert found(of(("a", now, {})), of(("a", was, {})), "a") == []


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("int", "double"),
        ("int", "float"),
        ("string", "bytes"),
        ("int", "string"),
        (["null", "int"], "int"),
        ("int", ["null", "int", "string"]),
        ("string", {"type": "array", "items": "string"}),
        ("long", {"type": "long", "logicalType": "timestamp-micros"}),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            {"type": "long", "logicalType": "local-timestamp-micros"},
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 3},
        ),
    ],
)
def test_what_changes_the_keys_is_refused(was: Any, now: Any) -> None:
    assert found(of(("a", now, {})), of(("a", was, {})), "a") == ["PINNED_FIELD_RETYPED a"]


def test_a_nested_field_is_pinned_with_the_records_around_it() -> None:
    old = of(("home", address(CITY), {}))
    assert found(of(("home", ["null", address(CITY)], {})), old, "home.city") == []
    assert found(of(("home", address(), {})), old, "home.city") == ["PINNED_FIELD_REMOVED home.city"]
    assert found(of(("house", address(CITY), {"aliases": ["home"]})), old, "home.city") == [
        "PINNED_FIELD_REMOVED home.city"
    ]
    assert found(of(("home", "string", {})), old, "home.city") == ["PINNED_FIELD_REMOVED home.city"]


def test_a_default_around_a_pinned_field_counts_where_it_sets_the_field() -> None:
    two = address(CITY, ("street", "string", {"default": ""}))
    old = of(("home", two, {"default": {"city": "Boston"}}))
    assert found(of(("home", two, {"default": {"city": "Boston", "street": "Elm"}})), old, "home.city") == []
    assert found(of(("home", two, {"default": {}})), old, "home.city") == ["PINNED_DEFAULT_CHANGED home"]
    boston = address(("city", "string", {"default": "Boston"}), ("street", "string", {"default": ""}))
    assert found(of(("home", boston, {"default": {}})), old, "home.city") == ["PINNED_DEFAULT_CHANGED home.city"]


def test_a_default_may_come_but_not_go() -> None:
    with_default, without = of(("a", "int", {"default": 1})), of(("a", "int", {}))
    assert found(with_default, without, "a") == []
    assert found(without, with_default, "a") == ["PINNED_DEFAULT_CHANGED a"]
    assert found(of(("a", "long", {"default": 1})), with_default, "a") == []


def test_null_as_a_default_is_a_default() -> None:
    old = of(("a", ["null", "int"], {"default": None}))
    assert found(of(("a", ["int", "null"], {"default": 0})), old, "a") == ["PINNED_DEFAULT_CHANGED a"]
    assert found(of(("a", ["int", "null"], {"default": None})), old, "a") == []


def test_a_path_that_the_old_schema_lacks_pins_nothing() -> None:
    assert found(of(("a", "int", {})), of(("b", "int", {})), "a") == []
