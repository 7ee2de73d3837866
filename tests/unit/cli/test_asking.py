"""Commands that destroy data ask first; without a terminal to ask at, they are refused, which is not taken for a no."""

from __future__ import annotations

import io

import click
import pytest

from cortado.errors import InvalidArgument
from cortado.store.cli.asking import confirm


def answered(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    confirm("Remove it?", yes=False)


@pytest.mark.parametrize("text", ["y\n", "Yes\n", "what?\ny\n"])
def test_yes_goes_on_and_the_question_stays_off_the_output(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, text)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Remove it? [y/N]: ")


@pytest.mark.parametrize("text", ["n\n", "no\n", "\n"])
def test_anything_like_no_ends_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(click.Abort):
        answered(monkeypatch, text)


@pytest.mark.parametrize("text", ["", "what?"])
def test_silence_is_no_answer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="--yes"):
        answered(monkeypatch, text)


def test_with_yes_nobody_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", None)
    confirm("Remove it?", yes=True)
    assert capsys.readouterr().err == ""
