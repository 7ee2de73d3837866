"""One page of exit codes, which agrees with the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cortado.store.cli import failures
from cortado.store.cli.app import run
from cortado.store.cli.failures import EXIT_CODES
from cortado.store.server import exits

PAGE = Path(__file__).parents[3] / "docs" / "exit-codes.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_the_page_says_what_the_code_does() -> None:
    found = [(int(code), meaning, action) for code, meaning, action in ROW.findall(PAGE.read_text())]
    assert found == [(each.code, each.meaning, each.action) for each in EXIT_CODES]


def test_every_code_that_is_used_is_on_it_once() -> None:
    used = {code for name, code in vars(failures).items() if name.isupper() and isinstance(code, int)}
    used |= {code for name, code in vars(exits).items() if name.startswith("EXIT_")}
    codes = [each.code for each in EXIT_CODES]
    assert len(codes) == len(set(codes))
    assert set(codes) == used


def test_the_help_names_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == failures.OK
    assert "docs/exit-codes.md" in capsys.readouterr().out
