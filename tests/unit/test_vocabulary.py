"""``docs/vocabulary.md`` has each name of a surface once: in the row of its thing, or among those of one surface."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest

import cortado
from cortado.store.cli.app import build
from cortado.store.gateway import batches, documents, listings, pairs, watching
from cortado.store.settings.gateway import GATEWAY_SETTINGS
from cortado.store.settings.server import SETTINGS
from pyspark_cortado import options
from pyspark_cortado.aliases import ALIASES

PAGE: Final = (Path(__file__).parents[2] / "docs" / "vocabulary.md").read_text()
SURFACES: Final = ("Python", "command line", "HTTP", "Spark")
OPAQUE: Final = {"Backups", "AsyncBackups", "Schema", "Environment"}
"""Types of :mod:`cortado.store.backup` and of other parts of Cortado."""
_NAME: Final = re.compile(r"`([^`]+)`")


def python_names() -> set[str]:
    """Return the parameters of all public calls, from ``Client`` on."""
    found: set[str] = set()
    seen, ahead = {cortado.Client}, [cortado.Client]
    while ahead:
        cls: Any = ahead.pop()
        annotations = [str(getattr(each, "__forward_arg__", each)) for each in _own(cls).values()]
        if hasattr(cls, "__total__"):
            found |= _own(cls).keys()
        for name, member in inspect.getmembers(cls):
            function = inspect.unwrap(member.fget if isinstance(member, property) else member)
            if inspect.isfunction(function) and (
                not name.startswith("_") or (name, cls) == ("__init__", cortado.Client)
            ):
                found |= inspect.signature(function).parameters.keys() - {"self", "options", "bounds"}
                annotations += map(str, function.__annotations__.values())
        for name in {name for each in annotations for name in _names_in(each)} - OPAQUE:
            named = getattr(cortado, name, None)
            if inspect.isclass(named) and named not in seen:
                seen.add(named)
                ahead.append(named)
    return found


def _own(cls: Any) -> dict[str, Any]:
    return dict(getattr(cls, "__annotations__", {}))


def _names_in(annotation: str) -> set[str]:
    return {each.id for each in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(each, ast.Name)}


def command_line_names() -> set[str]:
    """Return the options of all commands, but for a server's settings, which have a page of their own."""
    root = build()
    settings = {each.flag for each in (*SETTINGS, *GATEWAY_SETTINGS)}
    return {name for name in _options(root, click.Context(root)) if name.startswith("--")} - settings


def _options(line: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in line.params:
        if not getattr(parameter, "hidden", False):
            yield from parameter.opts
    if isinstance(line, click.Group):
        for name in line.list_commands(context):
            command = line.get_command(context, name)
            assert command is not None
            yield from _options(command, context)


def http_names() -> set[str]:
    """Return the parameters of the calls for documents, pairs, changes and batches."""
    groups = (batches, watching, pairs, documents, listings)
    operations = [each for group in groups for each in group.operations()]
    return {each.name for operation in operations for each in operation.parameters if each.where == "query"}


def spark_names() -> set[str]:
    """Return the options of reads and writes, and the names of other sources that are taken."""
    return {*options._READ, *options._CHANGES, *options._WRITE, *options._OF_STREAM, *ALIASES}


NAMES: Final = {
    "Python": python_names,
    "command line": command_line_names,
    "HTTP": http_names,
    "Spark": spark_names,
}


def rows() -> list[list[str]]:
    """Return the table of names: a thing, and its name on each surface."""
    lines = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| ")]
    return [row for row in lines if len(row) == len(SURFACES) + 1]


def told(surface: str) -> list[str]:
    """Return the names of a surface, as the page tells them."""
    place = SURFACES.index(surface) + 1
    cells = [row[place] for row in rows()]
    alone = PAGE.split(f"\n### {surface[0].upper()}{surface[1:]}\n", 1)[1].split("\n### ", 1)[0]
    return [name for text in (*cells, alone) for name in _NAME.findall(text)]


@pytest.mark.parametrize("surface", SURFACES)
def test_each_name_of_a_surface_stands_in_the_vocabulary_once(surface: str) -> None:
    names, on_the_page = NAMES[surface](), Counter(told(surface))
    assert len(names) > 10
    assert names - on_the_page.keys() == set(), "a new name: is there one for that thing already?"
    assert on_the_page.keys() - names == set(), "the page has names that are gone"
    assert [name for name, count in on_the_page.items() if count > 1] == []


def test_a_thing_has_one_name_on_a_surface() -> None:
    assert len(rows()) > 30
    assert [row for row in rows() if any(len(_NAME.findall(cell)) > 1 for cell in row[1:])] == []
