"""Writes the pages of the command line below docs/cli/, so that pages and help are one text.

There is a page for each heading of ``cortado --help``, and a ``## names`` for each line below that heading. A section
``### `cortado ...` `` begins with the help: the description, a table of arguments and options, and the examples. The
text behind the examples is the page's own and stays; so do comments before them, and the text below ``## names``. The
index, README.md, is a page by hand but for its section ``## Commands``.

    make cli-pages
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from cortado.store.cli.app import build
from cortado.store.cli.headings import HEADINGS
from cortado.store.cli.options import ShownArgument
from cortado.store.cli.tree import Line
from cortado.store.settings.gateway import GATEWAY_SETTINGS
from cortado.store.settings.server import SETTINGS

FOLDER: Final = Path(__file__).parents[1] / "docs" / "cli"
INDEX: Final = "README.md"
_EXAMPLES: Final = re.compile(r"(?P<comments>(?:^<!--[^\n]*-->\n)*)^```sh\n.*?^```\n(?P<own>.*)", re.M | re.S)
_LIST: Final = re.compile(r"(?<=^## Commands\n).*?(?=^## )", re.M | re.S)
_FLAGS: Final = {each.flag for each in (*SETTINGS, *GATEWAY_SETTINGS)}
_ROOT: Final = build()
_CONTEXT: Final = click.Context(_ROOT)


class _Kept(NamedTuple):
    """The parts of a section that are not from the help."""

    comments: str
    own: str


def read() -> dict[str, str]:
    """Return the pages as they are, by name."""
    return {path.name: path.read_text() for path in sorted(FOLDER.glob("*.md"))}


def updated(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the pages as the help has them, with the texts of their own from ``pages``."""
    kept = {heading: each for name, text in pages.items() if name != INDEX for heading, each in _sections(text)}
    found = {_name(heading): "".join(_page(heading, lines, kept)) for heading, lines in HEADINGS.items()}
    return {INDEX: _LIST.sub(lambda _: "".join(_list()), pages[INDEX]), **found}


def _name(heading: str) -> str:
    return f"{heading.lower()}.md"


def _sections(text: str) -> Iterator[tuple[str, _Kept]]:
    """Yield for each heading the parts that stay."""
    for section in re.split(r"^(?=##)", text, flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        examples = _EXAMPLES.search(body) if heading.startswith("###") else None
        comments, own = ("", body) if examples is None else (examples["comments"], examples["own"])
        yield heading, _Kept(comments, own.strip())


def _list() -> Iterator[str]:
    yield "\n| page | commands | for |\n| --- | --- | --- |\n"
    for heading, lines in HEADINGS.items():
        page = f"[{heading}]({_name(heading)})"
        for line in lines:
            anchor = line.names.replace(",", "").replace(" ", "-")
            yield f"| {page} | [`{line.names}`]({_name(heading)}#{anchor}) | {line.help} |\n"
            page = ""
    yield "\n"


def _page(heading: str, lines: tuple[Line, ...], kept: Mapping[str, _Kept]) -> Iterator[str]:
    yield f"<!-- test: examples -->\n# Command line: {heading.lower()}\n"
    for line in lines:
        title = f"## {line.names}"
        yield f"\n{title}\n"
        if title in kept and kept[title].own:
            yield f"\n{kept[title].own}\n"
        for name in line.modules:
            for words, node in _commands(_ROOT.get_command(_CONTEXT, name), f"cortado {name}"):
                yield from _section(f"### `{words}`", node, kept)


def _commands(node: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Yield the commands below a command or group, each with the words that call it."""
    if not isinstance(node, click.Group):
        yield words, node
        return
    for name in node.list_commands(_CONTEXT):
        yield from _commands(node.get_command(_CONTEXT, name), f"{words} {name}")


def _section(title: str, node: Any, kept: Mapping[str, _Kept]) -> Iterator[str]:
    """Yield a command's section."""
    stays = kept.get(title, _Kept("", ""))
    yield f"\n{title}\n\n"
    yield "\n\n".join(textwrap.fill(_marked(each), 120, break_on_hyphens=False) for each in node.help.split("\n\n"))
    rows = _rows(node)
    yield "\n\n" + (f"| | |\n|---|---|\n{''.join(rows)}\n" if rows else "")
    examples = "\n".join(node.declared.examples)
    yield f"{stays.comments}```sh\n{examples}\n```\n"
    if stays.own:
        yield f"\n{stays.own}\n"


def _rows(node: Any) -> list[str]:
    own = [each for each in node.params if each not in node.offered and not getattr(each, "hidden", False)]
    if node.declared.settings:
        # They have a page of their own.
        own = [each for each in own if not set(each.opts) <= _FLAGS]
    return [_row(each) for each in own]


def _row(parameter: Any) -> str:
    if isinstance(parameter, ShownArgument):
        return f"| `{parameter.declared_metavar}` | {_text(parameter.help_line)} |\n"
    long = max(parameter.opts, key=len)
    value = "" if parameter.is_flag else f" {parameter.make_metavar(click.Context(click.Command(None)))}"
    names = [
        f"`{long}{value}`",
        *(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts) if each != long),
    ]
    required = " Required." if parameter.required else ""
    return f"| {', '.join(names)} | {_text(parameter.help)}{required} |\n"


def _marked(text: str) -> str:
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", text)


def _text(help: str) -> str:
    return re.sub(r" \[default: (.*)\]$", r" Default: \1.", help).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in updated(read()).items():
        (FOLDER / name).write_text(text)
