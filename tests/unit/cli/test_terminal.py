"""Stored data on a terminal: it is shown, and not obeyed."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pytest

from cortado.errors import CortadoError, InvalidArgument, InvalidDocument
from cortado.schema.json_text import json_text
from cortado.store.cli import asking, failures
from cortado.store.cli.node_table import problem_lines
from cortado.store.cli.render import Renderer
from cortado.store.cli.samples import not_reached

DIRECTIONS: Final = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
EVIL: Final = "a\x9b31m\x1b]0;owned\x07\x7f\u202egnp\u2066\u2028\x85z"
KEPT: Final = "Zoë 日本語　\u200d👩\u200d👧 عربي"


@cache
def obeyed() -> frozenset[str]:
    """Return the characters that a terminal obeys. Not at import: it takes 0.3 s."""
    return frozenset(
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(char) in DIRECTIONS
        or char in "\u061c\u200e\u200f"
    )


def is_harmless(text: str) -> bool:
    return not [char for char in text if char in obeyed() and char not in "\n\t"]


def test_json_on_a_terminal_is_harmless_and_lossless_for_every_character() -> None:
    for char in sorted(obeyed()):
        value = {char: [f"a{char}b"]}
        text = json_text(value)
        assert is_harmless(text), hex(ord(char))
        assert "\n" not in text
        assert json.loads(text) == value


def test_json_keeps_what_people_write_as_it_is() -> None:
    assert json_text([KEPT]) == f'["{KEPT}"]'


SHOWN: Final[dict[str, Callable[[Renderer], None]]] = {
    "json": lambda show: show.json({"x": EVIL}),
    "indented json": lambda show: show.json({EVIL: EVIL}, indent=2),
    "line": lambda show: show.line(EVIL),
    "note": lambda show: show.note(EVIL),
    "table": lambda show: show.table([EVIL], [[EVIL], [[EVIL]], [{EVIL: EVIL}]], title=EVIL),
    "record": lambda show: show.record({EVIL: EVIL, "b": [EVIL]}),
}


@pytest.mark.parametrize("name", SHOWN)
def test_whatever_shows_stored_data_makes_it_harmless(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    SHOWN[name](Renderer())
    shown = "".join(capsys.readouterr())
    assert "owned" in shown
    assert is_harmless(shown)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("more", [{}, {"file": EVIL}])
def test_an_error_that_names_stored_data_is_harmless(
    as_json: bool, more: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    error: CortadoError = InvalidArgument(EVIL, EVIL, EVIL)
    failures.report(error, as_json=as_json, **more)
    failures.report_usage(EVIL, as_json=as_json)
    shown = capsys.readouterr().err
    assert shown.count("owned") >= 4
    assert is_harmless(shown)
    if as_json:
        assert json.loads(shown.splitlines()[0])["error"]["value"] == EVIL


def test_an_error_names_a_row_where_there_were_rows(capsys: pytest.CaptureFixture[str]) -> None:
    error: CortadoError = InvalidDocument("v", "is missing")
    failures.report(error, as_json=True)
    failures.report(error, as_json=True, file="a.jsonl", row=7)
    one, of_many = (json.loads(line)["error"] for line in capsys.readouterr().err.splitlines())
    assert "row" not in one
    assert (of_many["file"], of_many["row"]) == ("a.jsonl", 7)


def test_a_question_about_stored_data_is_harmless(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    asking.confirm(EVIL, yes=False)
    assert is_harmless(capsys.readouterr().err)


def test_what_a_node_says_of_itself_is_harmless_in_the_table_of_nodes() -> None:
    lines = [str(each) for each in problem_lines([not_reached(EVIL, EVIL, True, EVIL)])]
    assert lines
    assert all(is_harmless(each) for each in lines)
