"""The contents of a declaration, and the name of each mistake in one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.errors import InvalidSchema
from cortado.schema.json_bounds import is_too_deep
from cortado.schema.limits import DEPTH_MAX, EXPANDED_FIELDS_MAX, SCHEMA_BYTES_MAX, SCHEMA_FIELDS_MAX
from cortado.schema.model import NO_DEFAULT, Array, Enum, Fixed, Kind, LogicalKind, Map, Primitive, Record, Union
from cortado.schema.parse import parse_document_schema, parse_schema


def record(*fields: Any, name: str = "Flight", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def one(avro_type: Any, **more: Any) -> dict[str, Any]:
    return record({"name": "a", "type": avro_type, **more})


def refusal(declaration: Any) -> InvalidSchema:
    text = declaration if isinstance(declaration, str) else json.dumps(declaration)
    with pytest.raises(InvalidSchema) as caught:
        parse_schema(text)
    return caught.value


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}

REFUSED: list[tuple[Any, str, str]] = [
    # declaration, path, part of the message
    ("", "", "must be JSON: Expecting value at column 1"),
    ("{", "", "at column 2"),
    ("{\n", "", "at line 2, column 1"),
    ('{"type": NaN}', "", "must be JSON: NaN is no JSON number"),
    ('{"type": "int", "type": "long"}', "", '"type"'),
    ("5", "schema", "a type is a name, a union (an array) or an object"),
    ("null", "schema", "a type is a name"),
    ('"Flihgt"', "schema", 'unknown type "Flihgt": no type of that name was declared before'),
    ('"record"', "schema", "it needs an object with its attributes"),
    ({"name": "a"}, "a.type", "the object has no type"),
    ({"type": {"type": "int"}}, "schema.type", "write the type without a shell"),
    # names
    (record({"name": "2a", "type": "int"}), "Flight.fields[0].name", "begins with no digit"),
    (record({"type": "int"}), "Flight.fields[0].name", "is missing"),
    (record({"name": "a-b", "type": "int"}), "Flight.fields[0].name", "letters, digits and _"),
    (record({"name": "ä", "type": "int"}), "Flight.fields[0].name", "letters, digits and _"),
    (record({"name": "a.b", "type": "int"}), "Flight.fields[0].name", "letters, digits and _"),
    (record({"name": "a" * 256, "type": "int"}), "Flight.fields[0].name", "at most 255 characters"),
    (record(name="a." * 128 + "b"), "schema.name", "at most 255 characters"),
    (record(name="a..b"), "schema.name", "letters, digits and _"),
    (record(namespace="a-b"), "Flight.namespace", "joined by dots"),
    (record(name="int"), "int.name", "one of Avro's primitive types"),
    (record(name="org.string"), "string.name", "one of Avro's primitive types"),
    (record({"name": "a", "type": ENUM}, {"name": "b", "type": ENUM}), "Flight.fields[1].type.name", "declared before"),
    # records
    ({"type": "record", "name": "R"}, "R.fields", "is missing"),
    ({"type": "record", "name": "R", "fields": {}}, "R.fields", "must be an array"),
    (record("a"), "Flight.fields[0]", "a field is an object"),
    (record({"name": "a"}), "Flight.fields[0].type", "is missing"),
    (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "Flight.fields[1].name", "twice"),
    (one("flaot"), "Flight.fields[0].type", 'unknown type "flaot"'),
    (one("int", order="up"), "Flight.fields[0].order", "ascending, descending, ignore"),
    (one("int", doc=5), "Flight.fields[0].doc", "must be a string"),
    (one("int", doc="\ud800"), "Flight.fields[0].doc", "not Unicode"),
    (one("int", aliases="b"), "Flight.fields[0].aliases", "must be an array of names"),
    (one("int", aliases=["b.c"]), "Flight.fields[0].aliases[0]", "letters, digits and _"),
    (one("int", logicalType="date"), "Flight.fields[0].logicalType", "belongs inside the type"),
    (
        record({"name": "a", "type": "int"}, {"name": "b", "type": "int", "aliases": ["a"]}),
        "Flight.fields[1].aliases",
        '"a" names another field',
    ),
    (
        record({"name": "a", "type": "int", "aliases": ["x"]}, {"name": "b", "type": "int", "aliases": ["x"]}),
        "Flight.fields[1].aliases",
        '"x" names another field',
    ),
    (record(aliases=["a-b"]), "Flight.aliases[0]", "letters, digits and _"),
    # enums and fixed
    (one({"type": "enum", "name": "E"}), "Flight.fields[0].type.symbols", "is missing"),
    (one({"type": "enum", "name": "E", "symbols": []}), "Flight.fields[0].type.symbols", "at least one symbol"),
    (one({"type": "enum", "name": "E", "symbols": ["A", "A"]}), "Flight.fields[0].type.symbols[1]", "twice"),
    (one({"type": "enum", "name": "E", "symbols": ["a b"]}), "Flight.fields[0].type.symbols[0]", "letters, digits"),
    (one({**ENUM, "default": "C"}), "Flight.fields[0].type.default", "one of the symbols"),
    (one({"type": "fixed", "name": "X", "size": 0}), "Flight.fields[0].type.size", "an integer from 1 to"),
    (one({"type": "fixed", "name": "X", "size": True}), "Flight.fields[0].type.size", "an integer from 1 to"),
    (one({"type": "fixed", "name": "X", "size": 2**31}), "Flight.fields[0].type.size", "an integer from 1 to"),
    (one({"type": "fixed", "name": "X"}), "Flight.fields[0].type.size", "is missing"),
    # arrays, maps, unions
    (one({"type": "array"}), "Flight.fields[0].type.items", "is missing"),
    (one({"type": "array", "items": "x"}), "Flight.fields[0].type.items", "unknown type"),
    (one({"type": "map", "values": {"type": "map"}}), "Flight.fields[0].type.values.values", "is missing"),
    (one([]), "Flight.fields[0].type", "a union needs a branch"),
    (one(["int", "int"]), "Flight.fields[0].type[1]", "the union has int twice"),
    (one(["int", {"type": "int", "logicalType": "date"}]), "Flight.fields[0].type[1]", "the union has int twice"),
    (one(["int", ["long"]]), "Flight.fields[0].type[1]", "may not hold a union directly"),
    (one([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}]), "Flight.fields[0].type[1]", "array"),
    # logical types
    (one({"type": "string", "logicalType": "date"}), "Flight.fields[0].type.logicalType", "date stands on int, not on"),
    (one({"type": "int", "logicalType": "timestamp-millis"}), "Flight.fields[0].type.logicalType", "stands on long"),
    (one({**ENUM, "logicalType": "uuid"}), "Flight.fields[0].type.logicalType", "not on enum"),
    (one({"type": "bytes", "logicalType": "decimal"}), "Flight.fields[0].type", "a decimal needs a precision"),
    (
        one({"type": "bytes", "logicalType": "decimal", "precision": 0}),
        "Flight.fields[0].type.precision",
        "must be from 1 to 1000",
    ),
    (
        one({"type": "bytes", "logicalType": "decimal", "precision": "9"}),
        "Flight.fields[0].type.precision",
        "must be an integer",
    ),
    (
        one({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}),
        "Flight.fields[0].type.scale",
        "from 0 to the precision, 2",
    ),
    (
        one({"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 5}),
        "Flight.fields[0].type.precision",
        "5 digits do not fit into 2 bytes",
    ),
    (
        one({"type": "fixed", "name": "D", "size": 12, "logicalType": "uuid"}),
        "Flight.fields[0].type.size",
        "a uuid takes 16 bytes",
    ),
    (
        one({"type": "fixed", "name": "D", "size": 16, "logicalType": "duration"}),
        "Flight.fields[0].type.size",
        "a duration takes 12 bytes",
    ),
    (
        record({"name": "a", "type": ENUM}, {"name": "b", "type": {"type": "E", "logicalType": "date"}}),
        "Flight.fields[1].type.logicalType",
        "belongs where E is declared",
    ),
    # recursion without end
    (one("Flight"), "Flight.fields[0].type", "would never end: make a a union with null"),
    (one(["Flight"]), "Flight.fields[0].type", "would never end"),
    (one(record({"name": "b", "type": "Flight"}, name="Leg")), "Leg.fields[0].type", "would never end"),
]


@pytest.mark.parametrize(("declaration", "path", "message"), REFUSED)
def test_a_mistake_is_refused_with_its_path(declaration: Any, path: str, message: str) -> None:
    error = refusal(declaration)
    assert (error.field, message in str(error)) == (path, True), str(error)


def test_a_schema_for_documents_is_a_record() -> None:
    with pytest.raises(InvalidSchema, match="must be a record"):
        parse_document_schema('"string"')


def test_every_type_is_understood() -> None:
    declaration = record(
        {"name": "n", "type": ["null", "long"], "default": None, "doc": "a number", "aliases": ["m2", "n"]},
        {"name": "e", "type": {**ENUM, "default": "A"}},
        {"name": "f", "type": {"type": "fixed", "name": "MD5", "size": 16}},
        {"name": "a", "type": {"type": "array", "items": "E"}},
        {"name": "m", "type": {"type": "map", "values": "double"}, "order": "ignore", "custom": [1]},
        namespace="org.flights",
        aliases=["Old", "other.Older"],
        doc="flights",
    )
    schema = parse_schema(json.dumps(declaration))
    root = schema.record
    assert (root.name, root.aliases, root.doc) == ("org.flights.Flight", ("org.flights.Old", "other.Older"), "flights")
    n, e, f, a, m = root.fields
    assert n.type == Union((Primitive(Kind.NULL), Primitive(Kind.LONG)))
    assert (n.default, n.aliases, n.doc) == (None, ("m2",), "a number")
    assert isinstance(e.type, Enum)
    assert (e.type.name, e.type.symbols, e.type.default, e.default) == ("org.flights.E", ("A", "B"), "A", NO_DEFAULT)
    assert isinstance(f.type, Fixed)
    assert (f.type.name, f.type.size) == ("org.flights.MD5", 16)
    assert a.type == Array(e.type)
    assert m.type == Map(Primitive(Kind.DOUBLE))


@pytest.mark.parametrize("kind", [kind for kind in LogicalKind if kind is not LogicalKind.DECIMAL])
def test_every_logical_type_is_understood_where_it_may_stand(kind: LogicalKind) -> None:
    on = {
        LogicalKind.UUID: "string",
        LogicalKind.DATE: "int",
        LogicalKind.TIME_MILLIS: "int",
        LogicalKind.DURATION: {"type": "fixed", "name": "D", "size": 12},
    }.get(kind, "long")
    declaration = {**on, "logicalType": kind.value} if isinstance(on, dict) else {"type": on, "logicalType": kind.value}
    root = parse_schema(json.dumps(declaration)).root
    assert isinstance(root, Primitive | Fixed)
    assert root.logical is not None
    assert root.logical.kind is kind


def test_a_fixed_of_exactly_enough_bytes_holds_a_decimal() -> None:
    for size, digits in ((1, 2), (2, 4), (4, 9), (8, 18), (16, 38)):
        fixed = {"type": "fixed", "name": "D", "size": size, "logicalType": "decimal", "precision": digits}
        parse_schema(json.dumps(fixed))
        assert f"{digits + 1} digits do not fit" in refusal({**fixed, "precision": digits + 1}).problem


def test_an_unknown_logical_type_is_ignored() -> None:
    assert parse_schema('{"type": "string", "logicalType": "colour"}').root == Primitive(Kind.STRING)
    assert parse_schema('{"type": "string", "logicalType": 5}').root == Primitive(Kind.STRING)


def test_a_reference_is_looked_up_in_the_namespace_around_it() -> None:
    inner = {"type": "fixed", "name": "X", "size": 1}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "X"}, {"name": "c", "type": "org.X"}]
    schema = parse_schema(json.dumps(record(*fields, namespace="org")))
    first, second, third = (field.type for field in schema.record.fields)
    assert first is second is third
    fields[0]["type"] = {**inner, "namespace": "com"}
    error = refusal(record(*fields, namespace="org"))
    assert (error.field, 'unknown type "org.X"' in error.problem) == ("Flight.fields[1].type", True)


def test_a_full_name_ignores_the_namespace_beside_it() -> None:
    assert parse_schema(json.dumps(record(name="com.F", namespace="org"))).record.name == "com.F"


@pytest.mark.parametrize(
    "held", [["null", "Flight"], {"type": "array", "items": "Flight"}, {"type": "map", "values": ["Flight"]}]
)
def test_a_record_may_hold_itself_where_that_can_end(held: Any) -> None:
    schema = parse_schema(json.dumps(one(held)))
    assert isinstance(schema.root, Record)


# --- limits ----------------------------------------------------------------------------------------------------


def test_the_limits_of_a_declaration_are_named() -> None:
    assert str(SCHEMA_BYTES_MAX) in refusal('"' + "x" * SCHEMA_BYTES_MAX + '"').problem
    fields = [{"name": f"f{each}", "type": "int"} for each in range(SCHEMA_FIELDS_MAX)]
    parse_schema(json.dumps(record(*fields)))
    assert f"more than {SCHEMA_FIELDS_MAX} fields" in refusal(record(*fields, {"name": "g", "type": "int"})).problem


def test_depth_is_bounded_where_types_are_nested() -> None:
    declaration: Any = "int"
    for _ in range(DEPTH_MAX - 1):
        declaration = {"type": "array", "items": declaration}
    parse_schema(json.dumps(one(declaration)))
    assert "nested deeper than 64" in refusal(one({"type": "array", "items": declaration})).problem


def test_depth_is_bounded_where_names_are_expanded() -> None:
    fields = [{"name": "f0", "type": record(name="R0")}]
    fields += [
        {"name": f"f{each}", "type": record({"name": "x", "type": f"R{each - 1}"}, name=f"R{each}")}
        for each in range(1, DEPTH_MAX - 1)
    ]
    parse_schema(json.dumps(record(*fields)))
    last = record({"name": "x", "type": f"R{DEPTH_MAX - 2}"}, name=f"R{DEPTH_MAX - 1}")
    assert "nested deeper than 64" in refusal(record(*fields, {"name": "g", "type": last})).problem


def test_deep_json_is_refused_and_not_a_crash() -> None:
    for text in ("[" * 100_000, '{"type":' * 30_000, '{"type": "array", "items": ' * 5_000, "[" * 513 + "]" * 513):
        assert "at most 512 objects and arrays in one another" in refusal(text).problem


def test_the_deepest_schema_is_not_too_deep_a_text() -> None:
    declaration: Any = ["null", {"type": "long", "logicalType": "timestamp-micros"}]
    for number in range(DEPTH_MAX):
        declaration = ["null", record({"name": "x", "type": declaration}, name=f"R{number}")]
    text = json.dumps(declaration[1])
    assert not is_too_deep(text.encode())
    parse_schema(text)


def test_what_is_too_deep_is_the_same_on_each_python() -> None:
    """Python 3.13 parses ten thousand arrays in one another, and 3.11 a thousand."""
    for depth, is_refused in ((511, False), (512, True)):
        deep: Any = []
        for _ in range(depth - 1):
            deep = [deep]
        text = json.dumps({**record({"name": "x", "type": "int"}), "aside": deep})
        if is_refused:
            assert "at most 512" in refusal(text).problem
        else:
            parse_schema(text)


def test_a_schema_that_spreads_is_refused_before_anything_walks_it() -> None:
    fields = [{"name": "f0", "type": record({"name": "x", "type": "null"}, name="R0")}]
    fields += [
        {
            "name": f"f{each}",
            "type": record(
                {"name": "x", "type": f"R{each - 1}"}, {"name": "y", "type": f"R{each - 1}"}, name=f"R{each}"
            ),
        }
        for each in range(1, 40)
    ]
    assert f"more than {EXPANDED_FIELDS_MAX} fields" in refusal(record(*fields)).problem


def test_many_mutually_recursive_records_are_welcome() -> None:
    names = [f"N{each}" for each in range(20)]
    inner: Any = ["null", *[record(name=name) for name in names]]
    for place, name in enumerate(names):
        later = ["null", *names[: place + 1]]
        inner[place + 1] = record({"name": "x", "type": ["null", name]}, {"name": "y", "type": later}, name=name)
    parse_schema(json.dumps(one(inner)))


def test_hostile_declarations_are_refused_in_time() -> None:
    # 2,000 records in a chain of references, each declared after the one that it refers to.
    fields = [{"name": "f0", "type": record(name="R0")}]
    fields += [
        {"name": f"f{each}", "type": record({"name": "x", "type": ["null", f"R{each - 1}"]}, name=f"R{each}")}
        for each in range(1, 900)
    ]
    assert "nested deeper" in refusal(record(*fields)).problem
    assert refusal('{"type": "record", "name": "R", "fields": [' + "1" * 10_000 + "]}").problem
