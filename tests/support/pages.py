"""The pages of the documentation as tests see them: blocks of code, each with its directive.

A directive is an HTML comment, which a reader of the rendered page does not see. At the head of a page it names the
preparation for the first block; directly before a block it says how that one differs from the others::

    <!-- test: server -->                      at the head: nothing or server, and perhaps spark behind it
    <!-- test: examples -->                    at the head: its blocks are lines that stand alone, see test_examples.py
    <!-- test: prepare shop.sh -->             at the head, below it: run tests/docs/shop.sh before the first block
    <!-- test: file order.avsc -->             the block is the content of this file
    <!-- test: background until "serving" -->  it goes on running; wait until it has written this
    <!-- test: exits 5 -->                     each of its commands ends with this code
    <!-- test: not run, it needs three hosts -->

Blocks without one are run as they stand: ``console`` are commands behind ``$``, each followed by its output; ``sh`` are
commands; ``python`` shares one namespace with the other blocks of the page. Other languages show something, and are not
run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RUN: Final = ("console", "sh", "python")

_DIRECTIVE = re.compile(r"<!-- test: (.+?) -->\n")
_BLOCK = re.compile(
    r"(?:^<!-- test: (?P<directive>[^\n]+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
_WORLDS: Final = ("nothing", "server", "nothing spark", "server spark", "examples")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page. ``line`` is that of its first line of code, from 1 on."""

    line: int
    language: str
    text: str
    directive: str = ""

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.directive.startswith("not run")

    @property
    def file(self) -> str:
        """The file that the block is, or nothing."""
        return self.directive.removeprefix("file ") if self.directive.startswith("file ") else ""

    @property
    def until(self) -> str:
        """Return the text that a block in the background writes when it is ready, or an empty string."""
        found = re.fullmatch(r'background until "(.+)"', self.directive)
        return found[1] if found else ""

    @property
    def exit_code(self) -> int:
        return int(self.directive.removeprefix("exits ")) if self.directive.startswith("exits ") else 0

    def problem(self) -> str:
        """Return the problem with its directive, or an empty string."""
        known = re.fullmatch(r'file \S+|background until ".+"|exits \d+|not run, .+', self.directive)
        return f"line {self.line}: no such directive: {self.directive}" if self.directive and not known else ""


@dataclass(frozen=True, slots=True)
class Page:
    """``name`` is relative to the repository; ``world`` runs before the first block, and ``prepare`` is the script that
    makes the data of its commands, or nothing."""

    name: str
    world: str
    prepare: str
    blocks: tuple[Block, ...]

    @property
    def is_run(self) -> bool:
        return self.world != "examples" and any(block.is_run for block in self.blocks)

    @property
    def wants_spark(self) -> bool:
        """Its code finds a session."""
        return self.world.endswith("spark")


def page(name: str) -> Page:
    """Return the page of that name. Raises AssertionError for an unknown directive."""
    text = (ROOT / name).read_text()
    blocks = tuple(_block(text, match) for match in _BLOCK.finditer(text))
    said = _DIRECTIVE.findall(text.partition("\n\n")[0] + "\n")
    world = next((each for each in said if each in _WORLDS), "")
    prepare = next((each.removeprefix("prepare ") for each in said if each.startswith("prepare ")), "")
    problems = [block.problem() for block in blocks if block.problem()]
    assert not problems, f"{name}: {problems}"
    return Page(name, world, prepare, blocks)


def all_pages() -> list[Page]:
    """Return README.md and everything below docs/, by name."""
    names = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page(str(path.relative_to(ROOT))) for path in names]


def _block(text: str, match: re.Match[str]) -> Block:
    line = text.count("\n", 0, match.start("text")) + 1
    return Block(line, match["language"], match["text"], match["directive"] or "")
