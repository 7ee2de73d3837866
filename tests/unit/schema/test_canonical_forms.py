"""Which declarations are the same, and fingerprints that other Avro tools agree with."""

from __future__ import annotations

import copy
import json
from typing import Any

import avro.schema
import fastavro.schema
import pytest

from cortado.schema.canonical import crc64_avro, crc64_fingerprint, parsing_canonical_form, sha256_fingerprint
from cortado.schema.parse import parse_schema

FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "namespace": "org.air",
    "doc": "One flight",
    "aliases": ["Trip", "com.Voyage"],
    "fields": [
        {"name": "id", "type": {"type": "string"}, "doc": "its id", "order": "ignore"},
        {"name": "delay", "type": ["null", {"type": "int"}], "default": None, "aliases": ["late"]},
        {"name": "cause", "type": {"type": "enum", "name": "Cause", "symbols": ["NONE", "SNOW"], "default": "NONE"}},
        {"name": "other", "type": "Cause"},
        {"name": "hash", "type": {"type": "fixed", "name": "com.Hash", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": {"type": "map", "values": "long"}}},
        {"name": "next", "type": ["null", "Flight"]},
    ],
}


def fingerprint(declaration: Any) -> bytes:
    return parse_schema(json.dumps(declaration)).fingerprint


def changed(**changes: Any) -> dict[str, Any]:
    declaration = copy.deepcopy(FLIGHT)
    declaration.update(changes)
    return declaration


def with_field(position: int, **changes: Any) -> dict[str, Any]:
    declaration = copy.deepcopy(FLIGHT)
    declaration["fields"][position].update(changes)
    return declaration


@pytest.mark.parametrize(
    "same",
    [
        json.loads(json.dumps(FLIGHT, indent=4, sort_keys=True)),
        changed(doc="Another comment", owner="x"),
        changed(name="org.air.Flight", namespace="ignored"),
        changed(aliases=["com.Voyage", "org.air.Trip", "Trip", "Flight"]),
        with_field(0, type="string", doc="", order="descending"),
        with_field(3, type={"type": "org.air.Cause"}),
        with_field(1, aliases=["late", "late", "delay"]),
    ],
)
def test_a_declaration_that_reads_and_writes_the_same_is_the_same(same: Any) -> None:
    assert fingerprint(same) == fingerprint(FLIGHT)


@pytest.mark.parametrize(
    "other",
    [
        json.loads(json.dumps(FLIGHT).replace("Flight", "Flights")),
        changed(namespace="org.ship"),
        changed(aliases=["Trip"]),
        changed(fields=[FLIGHT["fields"][1], FLIGHT["fields"][0], *FLIGHT["fields"][2:]]),
        with_field(0, name="key"),
        with_field(0, type={"type": "string", "logicalType": "uuid"}),
        with_field(0, default=""),
        with_field(1, default=0),
        with_field(1, type=["int", "null"]),
        with_field(1, aliases=[]),
        with_field(1, aliases=["later", "late"]),
        with_field(2, type={"type": "enum", "name": "Cause", "symbols": ["SNOW", "NONE"], "default": "NONE"}),
        with_field(2, type={"type": "enum", "name": "Cause", "symbols": ["NONE", "SNOW"]}),
        with_field(4, type={"type": "fixed", "name": "com.Hash", "size": 5}),
    ],
)
def test_a_declaration_that_reads_or_writes_otherwise_is_another(other: Any) -> None:
    assert fingerprint(other) != fingerprint(FLIGHT)


DECLARATIONS: list[Any] = [
    "null",
    {"type": "int"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
    ["null", "string"],
    {"type": "array", "items": {"type": "map", "values": {"type": "bytes"}}},
    {"type": "fixed", "name": "MD5", "namespace": "org", "size": 16, "doc": "x"},
    {"type": "enum", "name": "a.b.E", "symbols": ["A", "B"], "default": "A"},
    FLIGHT,
]


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_the_parsing_canonical_form_is_fastavros(declaration: Any) -> None:
    form = parsing_canonical_form(parse_schema(json.dumps(declaration)))
    assert form == fastavro.schema.to_parsing_canonical_form(declaration)


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_fingerprints_are_fastavros_and_apaches(declaration: Any) -> None:
    schema = parse_schema(json.dumps(declaration))
    form = parsing_canonical_form(schema)
    # Both print the number's bytes, the lowest first, as Avro's single-object encoding stores them.
    assert crc64_fingerprint(schema).to_bytes(8, "little").hex() == fastavro.schema.fingerprint(form, "CRC-64-AVRO")
    assert sha256_fingerprint(schema).hex() == fastavro.schema.fingerprint(form, "SHA-256")
    # The fingerprint is of the form: given the declaration, Apache's package leaves logical types in, which the
    # specification strips.
    theirs = avro.schema.parse(form)
    assert sha256_fingerprint(schema) == theirs.fingerprint("sha256")
    assert crc64_fingerprint(schema).to_bytes(8, "little") == theirs.fingerprint("CRC-64-AVRO")


def test_the_crc_of_the_specification() -> None:
    # From the test data of the Avro distribution (schema-tests.txt).
    assert crc64_avro(b'"null"') == 7195948357588979594
    assert crc64_avro(b'"string"') == -8142146995180207161 % 2**64
