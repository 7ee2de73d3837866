"""Answers on standard output: tables for people, JSON lines for scripts.

A table fits the terminal by folding, and never cuts anything; where the output is no terminal it is as wide as its
content. JSON has no colour, is never cut, and has one object a line. What comes from documents is data: nothing in it
is read as markup or obeyed by a terminal (``terminal.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cortado.schema.json_text import json_text
from cortado.store.cli.terminal import harmless, one_line
from cortado.store.clock.timestamp import ZERO, Timestamp

_WIDE: Final = 100_000


class Renderer:
    """Writes to standard output, as it is at the time."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
        """Rows under column names. Numbers stand to the right."""
        cells = [[Text(cell(value)) for value in row] for row in rows]
        raw = Table(
            title=Text(one_line(title)) if title else None,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
        )
        for name in columns:
            raw.add_column(Text(one_line(name)), overflow="fold", header_style="bold")
        for row in cells:
            raw.add_row(*row)
        self._console().print(raw, soft_wrap=False)

    def record(self, pairs: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> None:
        """One thing: a name and a value a line."""
        items = pairs.items() if isinstance(pairs, Mapping) else pairs
        raw = Table(box=None, show_header=False, pad_edge=False)
        raw.add_column(style="bold", no_wrap=True)
        raw.add_column(overflow="fold")
        for name, value in items:
            raw.add_row(Text(one_line(str(name))), Text(cell(value)))
        self._console().print(raw, soft_wrap=False)

    def line(self, text: str) -> None:
        """One line for people."""
        sys.stdout.write(f"{harmless(text)}\n")

    def json(self, value: Any, *, indent: int | None = None) -> None:
        """One JSON value, on one line unless there is an ``indent``."""
        sys.stdout.write(json_text(value, indent=indent) + "\n")

    def note(self, text: str) -> None:
        """A remark for people, beside the output."""
        sys.stderr.write(f"{harmless(text)}\n")

    def _console(self) -> Console:
        if sys.stdout.isatty():
            return Console(file=sys.stdout, highlight=False)
        return Console(file=sys.stdout, highlight=False, no_color=True, force_terminal=False, width=_WIDE)


def cell(value: Any) -> str:
    """A JSON-like value as the text of one cell."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return one_line(value)
        case list() | dict():
            return one_line(json_text(value))
        case _:
            return one_line(str(value))


def count(number: int, one: str, many: str = "") -> str:
    """A number and its noun: "1 row", "2,000 rows"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(ts: Timestamp) -> str:
    """A timestamp and its wall part for people; ``-`` where nothing was written yet."""
    return "-" if ts == ZERO else f"{ts} ({ts.as_datetime():%Y-%m-%d %H:%M:%S}Z)"


def size(number: int) -> str:
    """Bytes for people."""
    if number < 1024:
        return f"{number} B"
    power = min(4, (number.bit_length() - 1) // 10)
    return f"{number / (1 << 10 * power):.1f} {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"
