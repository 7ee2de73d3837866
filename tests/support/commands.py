"""The tree of commands, as tests walk it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from cortado.store.cli.app import build

ROOT: Final = build()
_CONTEXT: Final = click.Context(ROOT)


def child(node: Any, name: str) -> Any:
    """Return the command or group of this name in a group, or None."""
    return node.get_command(_CONTEXT, name)


def is_group(node: Any) -> bool:
    return isinstance(node, click.Group)


def commands(node: Any = ROOT, path: tuple[str, ...] = ("cortado",)) -> Iterator[tuple[str, Any]]:
    """Yield every command below a group, with the words that call it."""
    if not is_group(node):
        yield " ".join(path), node
        return
    for name in node.list_commands(_CONTEXT):
        yield from commands(child(node, name), (*path, name))


def found(words: Sequence[str], line: str) -> tuple[Any, list[str]]:
    """Return the command or group that a line's words name, behind ``cortado``, and the words behind it."""
    node, left = ROOT, list(words)
    while left and is_group(node) and not left[0].startswith("-") and left[0] != "...":
        below = child(node, left[0])
        assert below is not None, f"{line}: there is no {left[0]}"
        node = below
        del left[0]
    return node, left


def check_command(words: Sequence[str]) -> None:
    """Check that the command line has this command and takes these options."""
    line = shlex.join(["cortado", *words])
    node, rest = found(words, line)
    node.make_context(line, list(rest))
