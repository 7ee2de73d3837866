"""Writes the commands' own help into docs/cli.md, so that page and help are one text.

A section ``### `cortado ...` `` begins with the help: the description, a table of arguments and options, and the
examples. The text behind the examples is the page's own and stays, as do comments before them.

    .venv/bin/python tools/cli_page.py
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, Final

import click

from cortado.store.cli.app import build
from cortado.store.cli.options import ShownArgument
from cortado.store.settings.gateway import GATEWAY_SETTINGS
from cortado.store.settings.server import SETTINGS

PAGE: Final = Path(__file__).parents[1] / "docs" / "cli.md"
_SECTION: Final = re.compile(
    r"^### `cortado (?P<words>[^`]*)`\n(?:(?!^##).)*?(?P<comments>(?:<!--[^\n]*-->\n)*)```sh\n(?:(?!^##).)*?^```\n",
    re.M | re.S,
)
_FLAGS: Final = {each.flag for each in (*SETTINGS, *GATEWAY_SETTINGS)}


def updated(page: str) -> str:
    """Return the page with every section's beginning as the help has it."""
    root = build()
    ctx = click.Context(root)

    def section(found: re.Match[str]) -> str:
        node: Any = root
        for word in found["words"].split():
            node = node.get_command(ctx, word)
            if node is None:
                return found[0]
        paragraphs = (textwrap.fill(_marked(each), 120, break_on_hyphens=False) for each in node.help.split("\n\n"))
        description = "\n\n".join(paragraphs)
        examples = "\n".join(node.declared.examples)
        rows = "".join(_rows(node))
        table = f"| | |\n|---|---|\n{rows}\n" if rows else ""
        return f"### `cortado {found['words']}`\n\n{description}\n\n{table}{found['comments']}```sh\n{examples}\n```\n"

    return _SECTION.sub(section, page)


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
    PAGE.write_text(updated(PAGE.read_text()))
