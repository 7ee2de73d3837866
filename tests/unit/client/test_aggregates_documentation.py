"""Every example of docs/aggregates.md parses, and every error that it shows is the one that is raised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.schema.parse import parse_document_schema
from cortado.store.aggregate.bind import AGGREGATES_MAX, GROUP_FIELDS_MAX, Aggregate, Kind, bind_aggregates
from cortado.store.client.aggregate_text import TEXT_BYTES_MAX, AggregateKind, parse_aggregates

PAGE = (Path(__file__).parents[3] / "docs" / "aggregates.md").read_text()
AGGREGATES, GROUPS = re.findall(r"^```\n(.*?)\n^```", PAGE, re.DOTALL | re.MULTILINE)
ERRORS = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.split("## Limits and errors")[1], re.MULTILINE)
FLIGHT = """
{"type": "record", "name": "Flight", "fields": [
  {"name": "a", "type": "int"}, {"name": "arr_delay", "type": "int"}, {"name": "carrier", "type": "string"}]}
"""


def test_examples_parse() -> None:
    asked = parse_aggregates(AGGREGATES, GROUPS)
    assert asked.names == ("carrier", "hour", "flights", "late", "max(arr_delay)")


@pytest.mark.parametrize("text", re.findall(r"`((?:count|sum|avg|min|max)\([a*]\))`", PAGE.split("## Exactly")[0]))
def test_aggregates_parse(text: str) -> None:
    assert parse_aggregates(text).names == (text,)


def test_every_kind_is_there() -> None:
    shown = set(re.findall(r"`(\w+)\([a*]\)`", PAGE.split("## Exactly")[0]))
    assert shown == set(AggregateKind) == set(Kind)


def test_there_are_errors() -> None:
    assert len(ERRORS) == 6


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors_are_as_shown(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        asked = parse_aggregates(text).aggregates
        bound = [Aggregate(Kind(each.kind), each.field) for each in asked]
        bind_aggregates(parse_document_schema(FLIGHT), (), bound, "air.flights")
    pattern = ".*".join(map(re.escape, message.split("...")))
    assert re.fullmatch(pattern, refused.value.problem)


def test_limits_are_as_shown() -> None:
    assert f"{TEXT_BYTES_MAX // 1024} KiB of text" in PAGE
    assert f"{AGGREGATES_MAX} aggregates and {GROUP_FIELDS_MAX} fields" in PAGE
