"""Every command and code block of the documentation runs, in the order in which it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.page_runner import FIRST_PORT, differs, run_page, sessions
from support.pages import RUN, Page, all_pages

_PORT = re.compile(r"\b(76\d\d)\b")
PAGES = all_pages()


@pytest.mark.parametrize("page", [p for p in PAGES if p.is_run], ids=lambda p: p.name)
def test_a_page_with_commands_says_what_they_need(page: Page) -> None:
    assert page.world, f"{page.name}: begins with no <!-- test: nothing|server ... -->"


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize("page", [p for p in PAGES if p.is_run and not p.wants_spark], ids=lambda p: p.name)
def test_the_blocks_of_a_page_run(page: Page, tmp_path: Path) -> None:
    run_page(page, tmp_path, {})


# --- the runner itself -----------------------------------------------------------------------------------------


def test_a_session_is_commands_and_what_they_write() -> None:
    text = "$ one \\\n>   two\nout\nput\n$ three\n"
    assert list(sessions(text)) == [("one \\\n  two", "out\nput"), ("three", "")]


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        ("", "anything"),
        ("3 rows in 0.2 s", "41 rows in 1.75 s"),
        ("etag 0.1763643600000.2", "etag 0.1800000000000.17"),
        ("id 0b5a6e0c9f3d4e21", "id 1111111111111111"),
        ("│ a │ b │", "┃ a  ┃ b   ┃"),
        ("first\n...\nlast", "first\nx\ny\nlast"),
        ("listening on ...", "listening on 127.0.0.1:7621"),
    ],
)
def test_what_may_differ_does(expected: str, shown: str) -> None:
    assert differs(expected, shown) == ""


@pytest.mark.parametrize(
    ("expected", "shown"), [("ada", "bob"), ("a\nb", "b\na"), ("a", "a\nb"), ("a\nb", "a"), ("a #", "a b")]
)
def test_what_must_not_differ_is_found(expected: str, shown: str) -> None:
    assert differs(expected, shown) != ""


def test_no_block_of_commands_has_a_language_that_the_runner_passes_by() -> None:
    shown = {block.language for page in PAGES for block in page.blocks}
    assert shown >= set(RUN), "a language that no page uses need not be run"
    assert not shown & {"bash", "zsh", "shell", "shell-session", "terminal", "py", "python3", "pycon"}


def test_the_first_port_of_the_pages_is_the_one_that_the_runner_replaces() -> None:
    ports = {int(port) for page in PAGES for block in page.blocks for port in _PORT.findall(block.text)}
    assert FIRST_PORT in ports
    assert min(ports) == FIRST_PORT, "a port below it would be taken as it stands"
