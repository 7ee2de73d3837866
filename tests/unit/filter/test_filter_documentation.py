"""Every example of docs/filters.md parses, and every error that it shows is the one that is raised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cortado.errors import InvalidFilter
from cortado.schema.parse import parse_document_schema
from cortado.store.filter.bind import compile_filter
from cortado.store.filter.expression import Literal
from cortado.store.filter.literals import TYPED
from cortado.store.filter.parse import _RESERVED, DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX, parse_filter

PAGE = (Path(__file__).parents[3] / "docs" / "filters.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
EXAMPLES = [line for block in BLOCKS for line in block.splitlines()]
VALUES = PAGE.split("## Values")[1].split("```")[0]
ERRORS = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.split("## Limits and errors")[1], re.MULTILINE)
FLIGHT = """
{"type": "record", "name": "Flight", "fields": [
  {"name": "arr_delay", "type": "int"}, {"name": "dep_delay", "type": "int"}, {"name": "carrier", "type": "string"}]}
"""


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10
    assert len(ERRORS) == 5


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_parse(text: str) -> None:
    parse_filter(text)


@pytest.mark.parametrize("text", re.findall(r"^\| (`.+?`(?:, `.+?`)*) \|", VALUES, re.MULTILINE))
def test_values_parse(text: str) -> None:
    for value in re.findall(r"`(.+?)`", text):
        compared = parse_filter(f"a = {value}")
        assert isinstance(getattr(compared, "right"), Literal), value  # noqa: B009


@pytest.mark.parametrize("text", re.findall(r"^\| (`.+?`(?:, `.+?`)*) \|", PAGE.split("## Values")[0], re.MULTILINE))
def test_comparisons_parse(text: str) -> None:
    for value in re.findall(r"`(.+?)`", text):
        parse_filter(value)


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors_are_as_shown(text: str, message: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        compile_filter(text, parse_document_schema(FLIGHT))
    pattern = ".*".join(map(re.escape, message.split("...")))
    assert re.fullmatch(pattern, refused.value.problem)


def test_limits_and_words_are_as_shown() -> None:
    assert f"{TEXT_BYTES_MAX // 1024} KiB" in PAGE
    assert f"{NODES_MAX:,} operators" in PAGE
    assert f"{DEPTH_MAX} parentheses" in PAGE
    for word in [*TYPED, *_RESERVED]:
        assert f'"{word}"' in PAGE.split("## Grammar")[1] or f"`{word}`" in PAGE
