"""Filters over columns that have a shape of their own: unions, records, rows that were refused, no rows."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pytest

from cortado.errors import InvalidArgument, InvalidFilter
from cortado.schema.columnar.decode import DecodedRows, decode_rows
from cortado.schema.parse import parse_document_schema
from cortado.store.filter.bind import compile_filter
from cortado.store.filter.truth import BoundFilter

SCHEMA = """
{"type": "record", "name": "Thing", "fields": [
  {"name": "either", "type": ["int", "null", "string"]},
  {"name": "nothing", "type": "null"},
  {"name": "tags", "type": ["null", {"type": "array", "items": "int"}]},
  {"name": "labels", "type": {"type": "map", "values": "int"}},
  {"name": "at", "type": ["null", {"type": "record", "name": "Place", "fields": [
    {"name": "city", "type": ["null", "string"]},
    {"name": "zip", "type": "int"},
    {"name": "within", "type": ["null", {"type": "record", "name": "Area", "fields": [
      {"name": "name", "type": "string"}]}]}]}]},
  {"name": "chain", "type": ["null", {"type": "record", "name": "Link", "fields": [
    {"name": "next", "type": ["null", "Link"]}]}]}
]}
"""
PARSED = parse_document_schema(SCHEMA)
PARIS = {"city": "Paris", "zip": 75, "within": None}
NOWHERE = {"city": None, "zip": 0, "within": {"name": "France"}}
LINK = {"next": {"next": None}}
DOCUMENTS: list[dict[str, Any]] = [
    {"either": 1, "nothing": None, "tags": [], "labels": {}, "at": PARIS, "chain": LINK},
    {"either": None, "nothing": None, "tags": None, "labels": {"a": 1}, "at": None, "chain": None},
    {"either": "x", "nothing": None, "tags": [1], "labels": {}, "at": NOWHERE, "chain": LINK},
]


def encode(documents: list[dict[str, Any]]) -> list[bytes]:
    avro = fastavro.parse_schema(json.loads(SCHEMA))
    bodies = []
    for document in documents:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, avro, document)
        bodies.append(out.getvalue())
    return bodies


def decode(bodies: list[bytes], bound: BoundFilter) -> DecodedRows:
    return decode_rows(PARSED, b"".join(bodies), np.array(list(map(len, bodies))), columns=bound.paths)


def compiled(text: str) -> BoundFilter:
    bound = compile_filter(text, PARSED)
    assert bound is not None
    return bound


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("either is null", [False, True, False]),
        ("nothing is null", [True, True, True]),
        ("tags is null", [False, True, False]),
        ("labels is null", [False, False, False]),
        ("at is null", [False, True, False]),
        ("chain is null", [False, True, False]),
        ("at.within.name = 'France'", [False, False, True]),
        ("at.within.name is null", [True, True, False]),
        ("at.city is null", [False, True, True]),
        ("at is not null and at.city is null", [False, False, True]),
        ("at.zip >= 0", [True, False, True]),
        ("not at.zip > 0", [False, False, True]),
        ("at.city = 'Paris'", [True, False, False]),
        ("at.within is null", [True, True, False]),
        ("at.zip in (75, 76) or either is null", [True, True, False]),
    ],
)
def test_null_is_found_wherever_it_comes_from(text: str, expected: list[bool]) -> None:
    bound = compiled(text)
    assert bound.mask(decode(encode(DOCUMENTS), bound).columns).tolist() == expected


def test_there_is_no_way_into_a_record_that_may_hold_itself() -> None:
    with pytest.raises(InvalidFilter, match=r"field chain is of type Link, which may hold itself"):
        compiled("chain.next is null")


def test_a_row_that_does_not_decode_passes_no_comparison() -> None:
    bound = compiled("at.zip = 75 or not at.zip = 75")
    bodies = encode(DOCUMENTS)
    bodies[0] = b"\xff"
    decoded = decode(bodies, bound)
    assert list(decoded.errors) == [0]
    assert bound.mask(decoded.columns).tolist() == [False, False, True]


def test_no_rows_are_no_rows() -> None:
    for text in ("at.zip = 75", "at.city in ('a', 'b')", "at.city < 'a'", "at.city starts with 'a'", "either is null"):
        bound = compiled(text)
        assert bound.mask(decode([], bound).columns).tolist() == []


def test_a_filter_of_constants_needs_to_be_told_how_many_rows() -> None:
    bound = compiled("true and not false")
    assert bound.paths == ()
    assert bound.mask({}, 3).tolist() == [True, True, True]
    assert compiled("null or false").mask({}, 2).tolist() == [False, False]
    with pytest.raises(InvalidArgument):
        bound.mask({})


def test_many_texts_and_few_are_looked_up_alike() -> None:
    few, many = "at.city in ('Paris', 'Rome')", f"at.city in ({', '.join(repr(str(i)) for i in range(40))}, 'Paris')"
    for text in (few, many):
        bound = compiled(text)
        assert bound.mask(decode(encode(DOCUMENTS), bound).columns).tolist() == [True, False, False]
