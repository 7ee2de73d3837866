"""How a table fits into its width: columns that break no word, or one field a line."""

from __future__ import annotations

import io
import sys

import pytest

from cortado.store.cli.layout import fitted, plain_record, plain_table, width_of
from cortado.store.cli.render import Renderer


class Terminal(io.StringIO):
    """Standard output of a given number of columns."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, width: int, columns: list[str], rows: list[list[object]]) -> list[str]:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    Renderer().table(columns, rows)
    return [line.rstrip() for line in terminal.getvalue().splitlines()]


WIDE = [f"column_{number}" for number in range(19)]


def test_a_table_with_more_columns_than_fit_is_shown_one_field_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80, WIDE, [[f"value{number}" for number in range(19)]] * 2)
    assert lines[0] == "─[ 1 ]─"
    assert "column_3   value3" in lines
    assert lines[20] == "─[ 2 ]─"
    assert max(map(len, lines)) <= 80


def test_a_word_is_never_broken_where_the_others_can_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    address, text = "127.0.0.1:24000", "some words " * 20
    lines = shown(monkeypatch, 80, ["kind", "address", "text"], [["configuration", address, text]])
    assert lines[0].split() == ["kind", "address", "text"]
    assert lines[2].startswith(f"configuration   {address}   some words")
    assert max(map(len, lines)) <= 80


def test_where_a_word_would_be_broken_each_field_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ["configuration", "127.0.0.1:24000", "0123456789abcdef" * 2, "0.1763643600000.2"]
    lines = shown(monkeypatch, 60, ["kind", "address", "request", "timestamp"], [row])
    assert lines[0] == "─[ 1 ]─"
    assert {line.split()[1] for line in lines[1:]} == set(row)


def test_a_word_that_is_longer_than_any_column_is_folded_and_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 60, ["key", "value"], [["a", "x" * 300]])
    assert lines[0].split() == ["key", "value"]
    assert sum(line.count("x") for line in lines[2:]) == 300


def test_the_space_goes_to_those_that_would_fold_least() -> None:
    assert fitted(["a", "b"], [["one two", "long words " * 9]], 30) == [7, 20]
    assert fitted(["a"], [["abc"]], 2) is None


@pytest.mark.parametrize("rows", [[], [["a", ""], ["long", "x"], ["", "漢字"]]])
def test_nothing_ends_with_blanks_where_there_is_no_terminal(rows: list[list[str]]) -> None:
    lines = [*plain_table(["name", "value"], rows), *plain_record([("name", ""), ("n", "x")])]
    assert lines == [line.rstrip() for line in lines]


def test_columns_stand_below_one_another_whatever_they_hold() -> None:
    _, _, first, second = plain_table(["name", "n"], [["漢字", "1"], ["e\u0301", "2"]])
    assert width_of(first.partition("1")[0]) == width_of(second.partition("2")[0]) == 7
