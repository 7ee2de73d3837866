"""A TOML file with the line of each key, so that a refusal can say where to look.

:mod:`tomllib` tells no lines. So the file is cut into statements, which are the shortest runs of whole lines that parse
by themselves: a header, or a key with its value, which may go over several lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.files.named_files import read_named

BYTES_MAX: Final = 1 << 20

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """Lines ``first`` to ``last`` of a file, from 1. ``keys`` are those it gives a value, none for a header."""

    first: int
    last: int
    keys: tuple[Key, ...]
    header: Key | None = None


@dataclass(frozen=True, slots=True)
class TomlFile:
    """``path``, its text, its content as nested dictionaries, and its statements in their order."""

    path: Path
    text: str
    content: dict[str, Any]
    statements: tuple[Statement, ...]

    def place(self, *key: str) -> str:
        """Return ``FILE:LINE`` of a key or a table; the file alone if it is not written there."""
        for each in self.statements:
            if key in each.keys or any(known[: len(key)] == key for known in each.keys):
                return f"{self.path}:{each.first}"
            if each.header is not None and each.header[: len(key)] == key:
                return f"{self.path}:{each.first}"
        return str(self.path)


def read_toml(path: Path, named: str) -> TomlFile:
    """Return the file. Raises InvalidArgument under the name ``named`` if it cannot be read, or is no TOML."""
    try:
        raw = read_named(path, BYTES_MAX)
    except OSError as error:
        raise InvalidArgument(named, f"cannot be read: {error.strerror}", str(path)) from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"must be UTF-8: line {raw[: error.start].count(10) + 1} is not"
        raise InvalidArgument(named, problem, str(path)) from None
    return parse_toml(path, text, named)


def parse_toml(path: Path, text: str, named: str) -> TomlFile:
    """Parse as :func:`read_toml` does, a text that is to stand at ``path``."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(named, f"is not TOML: {error}", str(path)) from None
    except RecursionError:
        raise InvalidArgument(named, "is nested too deeply", str(path)) from None
    return TomlFile(path, text, content, tuple(_statements(text.splitlines())))


def _statements(lines: list[str]) -> Iterator[Statement]:
    table: Key = ()
    first = 0
    for last in range(len(lines)):
        try:
            found = tomllib.loads("\n".join(lines[first : last + 1]))
        except tomllib.TOMLDecodeError:
            continue  # It goes on in the next line.
        if lines[first].lstrip().startswith("["):
            table = _path_of(found)
            yield Statement(first + 1, last + 1, (), table)
        elif found:
            yield Statement(first + 1, last + 1, tuple(table + key for key in _leaves(found)))
        first = last + 1


def _path_of(header: Any) -> Key:
    path: list[str] = []
    while isinstance(header, dict | list) and header:
        if isinstance(header, list):
            header = header[0]
        else:
            (name,) = header
            path.append(name)
            header = header[name]
    return tuple(path)


def _leaves(found: dict[str, Any]) -> Iterator[Key]:
    for name, value in found.items():
        if isinstance(value, dict) and value:
            for key in _leaves(value):
                yield (name, *key)
        else:
            yield (name,)
