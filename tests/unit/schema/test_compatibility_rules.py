"""Reading one schema's documents with another: paths, unions, names and recursion, beyond the page's examples."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cortado.errors import InvalidDocument, InvalidSchema
from cortado.schema.compatibility import CompatibilityMode, check_against, check_reader_writer
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Enum, Schema
from cortado.schema.parse import parse_schema
from cortado.schema.reader_writer import ReaderWriter


def record(*fields: Any, name: str = "Flight", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, avro_type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": avro_type, **more}


def schema(declaration: Any) -> Schema:
    return parse_schema(json.dumps(declaration))


def of(*fields: Any, **more: Any) -> Schema:
    return schema(record(*fields, **more))


def found(reader: Schema, writer: Schema) -> list[str]:
    return [f"{each.kind} {each.path}" for each in check_reader_writer(reader, writer)]


def test_every_incompatibility_is_reported_each_with_its_path() -> None:
    leg = record(field("from", "string"), field("at", {"type": "long", "logicalType": "timestamp-millis"}), name="Leg")
    new_leg = record(field("from", "int"), field("at", "long"), field("gate", "string"), name="Leg")
    old = of(field("legs", {"type": "array", "items": leg}), field("tags", {"type": "map", "values": "long"}))
    new = of(
        field("legs", {"type": "array", "items": ["null", new_leg]}), field("tags", {"type": "map", "values": "int"})
    )
    assert found(new, old) == [
        "TYPE_MISMATCH Flight.legs[].from",
        "LOGICAL_TYPE_CHANGED Flight.legs[].at",
        "READER_FIELD_MISSING_DEFAULT_VALUE Flight.legs[].gate",
        "TYPE_MISMATCH Flight.tags{}",
    ]


def test_a_version_is_checked_against_the_versions_that_its_mode_names() -> None:
    first = of(field("a", "string"), field("b", "int"))
    second = of(field("b", "int"))
    third = of(field("a", "int", default=0), field("b", "int"))
    versions = [(1, first), (2, second)]
    assert check_against(third, versions, CompatibilityMode.BACKWARD) == []
    refused = check_against(third, versions, CompatibilityMode.BACKWARD_TRANSITIVE)
    assert [(each.version, each.path, each.kind) for each in refused] == [(1, "Flight.a", "TYPE_MISMATCH")]
    assert check_against(third, versions, CompatibilityMode.FORWARD) == []
    refused = check_against(third, versions, CompatibilityMode.FORWARD_TRANSITIVE)
    assert [(each.version, each.message) for each in refused] == [(1, "int cannot be read as string")]
    refused = check_against(third, versions, CompatibilityMode.FULL_TRANSITIVE)
    assert [each.message for each in refused] == [
        "reading older documents: string cannot be read as int",
        "older readers of new documents: int cannot be read as string",
    ]
    assert check_against(third, versions, CompatibilityMode.NONE) == []
    assert check_against(third, [], CompatibilityMode.FULL_TRANSITIVE) == []


def test_the_newest_version_is_reported_first() -> None:
    versions = [(number, of(field("a", "string"))) for number in (1, 2, 3)]
    refused = check_against(of(field("a", "int")), versions, CompatibilityMode.BACKWARD_TRANSITIVE)
    assert [each.version for each in refused] == [3, 2, 1]


def test_a_union_prefers_the_same_type_over_the_first_that_would_do() -> None:
    old, new = of(field("a", "int")), of(field("a", ["null", "double", "long", "int"]))
    assert decode_document(old, encode_document(old, {"a": 7}), new) == {"a": 7}
    new = of(field("a", ["double", "long"]))
    value = decode_document(old, encode_document(old, {"a": 7}), new)["a"]
    assert (value, type(value)) == (7.0, float)


def test_a_record_in_a_union_is_matched_by_its_full_name_first() -> None:
    other = record(field("x", "int", default=1), name="Leg", namespace="old")
    same = record(field("x", "int", default=2), name="Leg", namespace="new")
    old = of(field("a", record(name="Leg", namespace="new")))
    new = of(field("a", [other, same]))
    assert decode_document(old, encode_document(old, {"a": {}}), new)["a"].value == {"x": 2}


def test_what_is_wrong_inside_a_branch_is_reported_there() -> None:
    old = of(field("a", ["null", record(name="Leg")]))
    new = of(field("a", ["null", record(field("gate", "int"), name="Leg")]))
    assert found(new, old) == ["READER_FIELD_MISSING_DEFAULT_VALUE Flight.a.gate"]


def test_names_go_together_by_their_last_part_or_by_an_alias() -> None:
    old = of(name="org.old.Flight")
    assert found(of(name="org.new.Flight"), old) == []
    assert found(of(name="Trip", aliases=["org.old.Flight"]), old) == []
    assert found(of(name="Trip", aliases=["Flight"]), old) == ["NAME_MISMATCH Trip"]


def test_a_field_is_found_by_its_name_before_its_aliases() -> None:
    old = of(field("a", "int"), field("b", "int"))
    new = of(field("c", "int", aliases=["x", "b"]), field("a", "long"))
    assert found(new, old) == []
    assert decode_document(old, encode_document(old, {"a": 1, "b": 2}), new) == {"c": 2, "a": 1}


def test_recursive_records_are_compared_to_the_end() -> None:
    def tree(value: Any) -> Schema:
        children = field("children", {"type": "array", "items": "Node"})
        return schema(record(field("value", value), children, field("next", ["null", "Node"]), name="Node"))

    assert found(tree("long"), tree("int")) == []
    assert found(tree("int"), tree("long")) == ["TYPE_MISMATCH Node.value"]


def test_an_assumption_that_fails_takes_back_what_was_built_on_it() -> None:
    # Inner fits if Outer does, which is assumed while Outer is compared, and then refuted by its tail. Alt takes
    # Outer's place in the union; nothing takes it inside Inner.
    inner = record(field("back", ["null", "Outer"]), name="Inner")
    old_outer = record(field("inner", ["null", inner]), field("tail", "string"), name="Outer")
    new_outer = record(field("inner", ["null", inner]), field("tail", "int"), name="Outer")
    other = record(name="Alt", aliases=["Outer"])
    old_pair = record(field("o", old_outer), field("i", "Inner"), name="Pair")
    new_pair = record(field("o", [new_outer, other]), field("i", "Inner"), name="Pair")
    old, new = of(field("a", ["null", old_pair])), of(field("a", ["null", new_pair]))
    assert not ReaderWriter().fits(new.root, old.root)
    assert found(new, old) == ["TYPE_MISMATCH Flight.a.i.back.tail"]
    harmless = {"inner": None, "tail": "x"}
    body = encode_document(old, {"a": {"o": harmless, "i": {"back": harmless}}})
    with pytest.raises(InvalidDocument, match=r"a\.i\.back\.tail"):
        decode_document(old, body, new)


def test_a_pair_that_would_take_for_ever_to_compare_is_refused() -> None:
    def many(avro_type: str) -> Schema:
        branches = [record(field("x", avro_type), name="R", namespace=f"n{each}") for each in range(500)]
        return of(field("a", branches))

    with pytest.raises(InvalidSchema, match="comparisons"):
        check_reader_writer(many("int"), many("string"))


def test_a_large_and_deep_schema_is_compared_in_full() -> None:
    def chain(avro_type: str) -> Schema:
        inner: Any = avro_type
        for depth in range(60):
            leaves = [field(f"f{each}", ["null", avro_type]) for each in range(32)]
            inner = record(field("inner", ["null", inner]), *leaves, name=f"R{depth}")
        return schema(inner)

    assert found(chain("long"), chain("int")) == []
    assert len(found(chain("int"), chain("long"))) == 60 * 32 + 1
    assert decode_document(chain("int"), bytes(33), chain("long"))["f31"] is None


def test_a_long_list_of_names_is_cut_short_in_a_message() -> None:
    old = of(field("c", {"type": "enum", "name": "E", "symbols": [f"S{each}" for each in range(3000)]}))
    new = of(field("c", {"type": "enum", "name": "E", "symbols": ["S0"]}))
    (only,) = check_reader_writer(new, old)
    assert only.message.startswith("E lacks S1, S2, S3, S4, S5, S6, S7, S8, S9, S10 and 2989 more, and has no default")


def test_an_incompatible_reader_reads_what_it_can() -> None:
    symbols = ["NONE", "SNOW"]
    old = of(field("a", ["null", "string"]), field("c", {"type": "enum", "name": "Cause", "symbols": symbols}))
    new = of(field("a", ["null", "int"]), field("c", {"type": "enum", "name": "Cause", "symbols": symbols[:1]}))
    assert decode_document(old, encode_document(old, {"a": None, "c": "NONE"}), new) == {"a": None, "c": "NONE"}
    with pytest.raises(InvalidDocument, match="a: string cannot be read as null or int"):
        decode_document(old, encode_document(old, {"a": "x", "c": "NONE"}), new)
    with pytest.raises(InvalidDocument, match="c: the reader's Cause has no such symbol"):
        decode_document(old, encode_document(old, {"a": None, "c": "SNOW"}), new)
    later = of(field("b", "int"))
    with pytest.raises(InvalidDocument, match="b: the document has no such field"):
        decode_document(old, encode_document(old, {"a": None, "c": "NONE"}), later)


def test_defaults_are_not_shared_between_documents() -> None:
    old, new = of(), of(field("tags", {"type": "array", "items": "string"}, default=["x"]))
    first, second = (decode_document(old, b"", new) for _ in range(2))
    first["tags"].append("y")
    assert second == {"tags": ["x"]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**24 + 1, 2.0**24),  # halfway: to the even one
        (2**24 + 3, 2.0**24 + 4),
        (-(2**24) - 1, -(2.0**24)),
        (2**63 - 1, 2.0**63),
        # By way of a double it would round up twice.
        (2**60 + 2**36 + 1, 2.0**60 + 2**37),
        (0, 0.0),
        (-7, -7.0),
    ],
)
def test_a_long_becomes_the_nearest_float(value: int, expected: float) -> None:
    old, new = of(field("a", "long")), of(field("a", "float"))
    assert decode_document(old, encode_document(old, {"a": value}), new) == {"a": expected}


def test_enums_of_thousands_of_symbols_are_compared_in_one_pass() -> None:
    compared = 0

    class Symbol(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    def counting(letter: str) -> Schema:
        made = schema({"type": "enum", "name": "E", "symbols": [f"{letter}{n}" for n in range(2_000)]})
        assert isinstance(made.root, Enum)
        return replace(made, root=replace(made.root, symbols=tuple(map(Symbol, made.root.symbols))))

    (found,) = check_reader_writer(counting("T"), counting("S"))
    assert found.kind == "MISSING_ENUM_SYMBOLS"
    assert compared < 10_000, "each symbol is looked up in a set that is made once"
