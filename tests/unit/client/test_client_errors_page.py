"""docs/errors.md lists every error that there is, as it is."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from cortado import errors

PAGE = (Path(__file__).parents[3] / "docs" / "errors.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.M))
# Those that stand for a kind are told in the text.
KINDS = {"CortadoError", "DidNotHappen", "Conflict", "TryAgain", "Broken"}
ERRORS = {
    name: each
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, errors.CortadoError) and name not in KINDS
}


def test_the_page_lists_every_error_and_no_other() -> None:
    assert ROWS.keys() == ERRORS.keys()
    assert all(f"`{kind}`" in PAGE or f".{kind}`" in PAGE for kind in KINDS)


@pytest.mark.parametrize("name", ERRORS)
def test_each_says_what_is_wrong_in_words_of_its_own(name: str) -> None:
    assert ERRORS[name].message is not errors.CortadoError.message


@pytest.mark.parametrize("name", ERRORS)
def test_each_is_listed_with_its_reason_its_code_and_its_fields(name: str) -> None:
    error = ERRORS[name]
    reason, code, fields, _ = ROWS[name].split(" | ", 3)
    assert (reason, code) == (f"`{error.reason}`", f"`{error.code}`")
    listed = re.findall(r"`(\w+)`", fields)
    declared = [each.name for each in dataclasses.fields(error)]
    inherited = [each.name for each in dataclasses.fields(error.__mro__[1])] if fields.startswith("those") else []
    assert [*inherited, *listed] == declared
