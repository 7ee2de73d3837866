"""Binding: a filter either fits its schema, or says which field and which value do not."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import fastavro
import numpy as np
import pytest

from cortado.errors import InvalidFilter
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.model import Schema
from cortado.schema.parse import parse_document_schema
from cortado.store.filter.bind import compile_filter
from cortado.store.filter.truth import BoundFilter

FLIGHT = """
{"type": "record", "name": "Flight", "fields": [
  {"name": "arr_delay", "type": ["null", "int"]},
  {"name": "dep_delay", "type": ["null", "double"]},
  {"name": "carrier", "type": "string"},
  {"name": "cancelled", "type": "boolean"},
  {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["OPEN", "CLOSED"]}},
  {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "nanos", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
  {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
  {"name": "day", "type": {"type": "int", "logicalType": "date"}},
  {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
  {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
  {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
  {"name": "stops", "type": {"type": "array", "items": "string"}},
  {"name": "extra", "type": {"type": "map", "values": "string"}},
  {"name": "either", "type": ["int", "string", "null"]},
  {"name": "lasted", "type": {"type": "fixed", "name": "Lasted", "size": 12, "logicalType": "duration"}},
  {"name": "origin", "type": ["null", {"type": "record", "name": "Airport", "fields": [
    {"name": "name", "type": "string"},
    {"name": "city", "type": ["null", {"type": "record", "name": "City", "fields": [
      {"name": "name", "type": "string"}]}]}]}]}
]}
"""


@pytest.fixture(scope="module")
def flight() -> Schema:
    return parse_document_schema(FLIGHT)


def bound(text: str, schema: Schema) -> BoundFilter:
    found = compile_filter(text, schema)
    assert found is not None
    return found


def test_no_text_is_no_filter(flight: Schema) -> None:
    assert compile_filter("", flight) is None
    assert compile_filter(" \n", flight) is None


def test_the_fields_that_are_read_are_named_once_and_in_order(flight: Schema) -> None:
    text = "carrier = 'UA' and (origin.name = 'JFK' or origin.name is null) and arr_delay > dep_delay"
    assert bound(text, flight).paths == ("carrier", "origin.name", "arr_delay", "dep_delay")


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("arr_dely > 30", 0, "no field arr_dely (there is arr_delay)"),
        ("carrier = UA", 10, "no field UA in Flight (its fields are arr_delay, dep_delay, "),
        ("cancelled or 1 = 1", 13, "expected a field on one side"),
        ("origin.nam = ''", 0, "no field origin.nam (there is name)"),
        ("carrier.x = ''", 0, "field carrier is of type string: a filter reaches into records only"),
        ("stops.x = ''", 0, "field stops is an array"),
        ("extra.x = ''", 0, "field extra is a map"),
        ("either.x = ''", 0, "field either is a union"),
        ("arr_delay > '30'", 12, "field arr_delay is integer: expected a number, found a string"),
        ("arr_delay = true", 12, "expected a number, found a boolean"),
        ("arr_delay = double 'NaN'", 12, "expected a number, found a double"),
        ("dep_delay > 1e309", 12, "beyond the range of a double"),
        ("carrier = 1", 10, "field carrier is string: expected a string, found a number"),
        ("carrier in ('UA', 1)", 18, "expected a string, found a number"),
        ("cancelled = 1", 12, "expected true or false, found a number"),
        ("status = 'OPN'", 9, "has no symbol 'OPN' (there is OPEN, CLOSED)"),
        ("status in ('OPEN', 'x')", 19, "has no symbol 'x'"),
        ("time_hour > 5", 12, "expected timestamp '2013-01-01T05:00:00Z', found a number"),
        ("time_hour > date '2013-01-01'", 12, "expected timestamp"),
        ("time_hour > timestamp '2013-01-01T05:00:00'", 12, "found a local timestamp"),
        ("time_hour > '2013-01-01T05:00:00'", 12, "needs a zone"),
        ("local > '2013-01-01T05:00:00Z'", 8, "must not have a zone"),
        ("local > timestamp '2013-01-01T05:00:00Z'", 8, "without a zone, found a timestamp"),
        ("day = '2013-02-30'", 6, "is no date"),
        ("clock = 'noon'", 8, "must look like 05:00:00"),
        ("id = 'x'", 5, "must look like 123e4567"),
        ("price = '1.50'", 8, "expected a number, found a string"),
        ("digest = 'abcd'", 9, "expected bytes, such as x'00ff', found a string"),
        ("arr_delay starts with '3'", 22, "starts with needs a string or bytes"),
        ("carrier starts with 3", 20, "expected a string, found a number"),
        ("stops = 'x'", 0, "only 'is null' works on it"),
        ("either = 1", 0, "only 'is null' works on it"),
        ("lasted in (1)", 0, "only 'is null' works on it"),
        ("carrier = stops", 10, "only 'is null' works on it"),
        ("carrier = arr_delay", 10, "field carrier is string, field arr_delay is integer: they do not compare"),
        ("time_hour > day", 12, "they do not compare"),
        ("time_hour > local", 12, "they do not compare"),
        ("price > dep_delay", 8, "they do not compare"),
        ("carrier", 0, "expected a comparison, or a boolean field"),
        ("stops or cancelled", 0, "expected a comparison, or a boolean field"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(text: str, position: int, problem: str, flight: Schema) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_filter(text, flight)
    assert problem in refused.value.problem
    assert refused.value.position == position


AVRO = fastavro.parse_schema(json.loads(FLIGHT))
ZEROS: dict[str, Any] = {
    "carrier": "",
    "cancelled": False,
    "status": "OPEN",
    "time_hour": 0,
    "nanos": 0,
    "local": 0,
    "day": 0,
    "clock": 0,
    "price": b"\0",
    "id": "00000000-0000-0000-0000-000000000000",
    "digest": bytes(4),
    "stops": [],
    "extra": {},
    "lasted": bytes(12),
}


def answer_for(text: str, schema: Schema, fields: dict[str, Any]) -> bool | None:
    """Return a filter's answer about one document: true if it passes, false if its negation does, else unknown."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, AVRO, ZEROS | fields)
    answers = []
    for each in (bound(text, schema), bound(f"not ({text})", schema)):
        lengths = np.array([len(body.getvalue())])
        columns = decode_rows(schema, body.getvalue(), lengths, columns=each.paths).columns
        answers.append(bool(each.mask(columns, 1)[0]))
    return {(True, False): True, (False, True): False, (False, False): None}[tuple(answers)]


@pytest.mark.parametrize(
    ("text", "fields", "answer"),
    [
        ("arr_delay = null", {"arr_delay": 1}, None),
        ("arr_delay in (1, null)", {"arr_delay": 1}, True),
        ("arr_delay in (1, null)", {"arr_delay": 2}, None),
        ("arr_delay not in (1, null)", {"arr_delay": 2}, None),
        ("arr_delay in (null)", {"arr_delay": 2}, None),
        ("arr_delay in (0.5, 1e30)", {"arr_delay": 2}, False),
        ("not arr_delay > 1", {}, None),
        ("arr_delay > 1 or true", {}, True),
        ("arr_delay > 1 and false", {}, False),
        ("arr_delay < 1e100 and arr_delay > -9223372036854775809", {"arr_delay": 5}, True),
        ("arr_delay < 1e100", {}, None),
        ("carrier starts with null", {"carrier": "UA"}, None),
        ("5 is null or null is null", {}, True),
        ("origin is null", {}, True),
        ("origin.name is null", {}, True),
        ("origin.city.name is null", {"origin": {"name": "a", "city": None}}, True),
        ("origin.city.name > origin.name", {"origin": {"name": "a", "city": {"name": "b"}}}, True),
        ("either is null", {"either": 5}, False),
        ("stops is not null", {"stops": []}, True),
        ("nanos = timestamp '1970-01-01T00:00:00.000000001Z'", {"nanos": 1}, True),
        ("nanos < time_hour", {"nanos": 999_999, "time_hour": datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)}, True),
        (
            "time_hour < '2013-01-01T05:00:00.0000001+01:00'",
            {"time_hour": datetime(2013, 1, 1, 4, tzinfo=UTC)},
            True,
        ),
    ],
)
def test_answers_for_one_document(text: str, fields: dict[str, Any], answer: bool | None, flight: Schema) -> None:
    assert answer_for(text, flight, fields) is answer
