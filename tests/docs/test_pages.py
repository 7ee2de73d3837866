"""Every command and code block of the documentation runs, in the order in which it stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.page_runner import FIRST_PORT, PORTS, PageRunner, differs, sessions
from support.pages import RUN, Page, all_pages
from support.ports import free_ports
from support.server_process import ServerProcess

_PORT = re.compile(r"\b(76\d\d)\b")
HERE = Path(__file__).parent
PAGES = all_pages()


@pytest.mark.parametrize("page", [p for p in PAGES if p.is_run], ids=lambda p: p.name)
def test_a_page_with_commands_says_what_they_need(page: Page) -> None:
    assert page.world, f"{page.name}: begins with no <!-- test: nothing|server ... -->"


@pytest.fixture
def ports(page: Page, tmp_path: Path) -> Iterator[list[int]]:
    """What the page's ports stand for here; a server listens on the first, if the page wants one."""
    free = free_ports(PORTS)
    if not page.world.startswith("server"):
        yield free
        return
    server = ServerProcess(tmp_path / "data", listen=f"127.0.0.1:{free[0]}").start()
    try:
        yield free
    finally:
        server.kill()


@pytest.mark.process
@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in PAGES if p.is_run], ids=lambda p: p.name)
def test_the_blocks_of_a_page_run(page: Page, ports: list[int], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    names = {"spark": request.getfixturevalue("spark")} if page.world.endswith("spark") else {}
    with PageRunner(tmp_path / "page", ports, names).running() as runner:
        if page.prepare:
            runner.prepare(HERE / page.prepare)
        for block in page.blocks:
            runner.run(page, block)


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
