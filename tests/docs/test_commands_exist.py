"""Commands that the documentation names, and does not run, exist with the options that it gives them."""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

import pytest

from support.commands import found as found_below
from support.page_runner import sessions
from support.pages import ROOT, Block, all_pages

PAGES: Final = all_pages()


def commands(block: Block) -> list[str]:
    """The commands of a block, each on one line."""
    text = block.text if block.language != "console" else "\n".join(command for command, _ in sessions(block.text))
    lines = text.replace("\\\n", " ").splitlines()
    # A command behind a pipe, a variable or another command is found by its name.
    return [found for line in lines for found in re.findall(r"(?:^|[|;] |\$\()(cortado [a-z][^|;)]*)", line)]


NOT_RUN: Final = [
    pytest.param(line, id=f"{page.name}:{block.line} {line}")
    for page in PAGES
    for block in page.blocks
    if block.language in ("sh", "console") and not block.is_run
    for line in commands(block)
]
INLINE: Final = [
    pytest.param(line, id=f"{page.name} {line}")
    for page in PAGES
    for line in sorted(set(re.findall(r"`(cortado [a-z-]+[^`]*)`", (ROOT / page.name).read_text())))
]


@pytest.mark.parametrize("line", NOT_RUN)
def test_a_command_in_a_block_that_is_not_run_parses(line: str) -> None:
    node, words = found(line, shlex.split(line, comments=True))
    node.make_context(line, [word for word in words if word not in ("&", "<", ">")])


@pytest.mark.parametrize("line", INLINE)
def test_a_command_that_is_named_exists_with_its_options(line: str) -> None:
    node, words = found(line, line.split())
    offered = {option for parameter in node.params for option in parameter.opts}
    # Options of a setting and of a table's row are many: `--limit.NAME`.
    given = {word.partition("=")[0] for word in words if word.startswith("--") and word != "--"}
    assert given <= offered | {"--help"}, f"{line}: {given - offered}"


def found(line: str, words: list[str]) -> tuple[Any, list[str]]:
    """The command of a line, and the words behind it."""
    words = words[1:]
    # A global option may stand before the command.
    while words and words[0] in ("-e", "-o", "--endpoint", "--output", "--context", "--timeout"):
        words = words[2:]
    return found_below(words, line)
