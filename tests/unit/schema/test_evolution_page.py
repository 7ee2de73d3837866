"""docs/schema-evolution.md is true: each of its examples is checked, and each rule has one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cortado.schema.compatibility import CompatibilityMode, IncompatibilityKind, check_reader_writer
from cortado.schema.parse import parse_schema
from cortado.schema.pinned import check_pinned

PAGE = (Path(__file__).parents[3] / "docs" / "schema-evolution.md").read_text()
EXAMPLES = re.findall(r"```\nwas (.+)\nnow (.+)\n((?:[A-Z_]+ .+\n)*)```", PAGE)


def flight(field: Any) -> str:
    return json.dumps({"type": "record", "name": "Flight", "fields": [field]})


@pytest.mark.parametrize(("was", "now", "refusals"), EXAMPLES)
def test_an_example_is_refused_as_the_page_says_or_is_fine(was: str, now: str, refusals: str) -> None:
    old, new = parse_schema(flight(json.loads(was))), parse_schema(flight(json.loads(now)))
    if refusals.startswith("PINNED"):
        found = check_pinned(new, old, [json.loads(was)["name"]])
    else:
        found = check_reader_writer(new, old)
    assert [f"{each.kind} {each.path}: {each.message}" for each in found] == refusals.splitlines()


def test_every_rule_has_an_example() -> None:
    shown = {line.split(" ")[0] for _, _, refusals in EXAMPLES for line in refusals.splitlines()}
    assert shown == {kind.value for kind in IncompatibilityKind}
    assert all(f"### {kind}\n" in PAGE for kind in IncompatibilityKind)


def test_every_mode_is_on_the_page() -> None:
    assert all(f"| `{mode}`" in PAGE for mode in CompatibilityMode)
