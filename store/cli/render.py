"""Answers on standard output: tables for people, JSON lines for scripts.

A table fits the terminal by folding, or is shown one field a line (``layout.py``), and never cuts anything. If the
output is no terminal, it is as wide as its content. JSON has no colour, is never cut, and has one object a line. Text
from documents is data: nothing in it is read as markup or obeyed by a terminal (``terminal.py``). rich is imported for
a terminal alone: a script has no use for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cortado.schema.json_text import json_text
from cortado.store.cli.layout import GAP, fitted, plain_record, plain_table
from cortado.store.cli.terminal import harmless, one_line
from cortado.store.clock.timestamp import ZERO, Timestamp


class Renderer:
    """Writes to standard output, as it is at the time."""

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
        """Show rows under column names."""
        heads = [one_line(name) for name in columns]
        cells = [[cell(value) for value in row] for row in rows]
        if title:
            self.line(one_line(title))
        if not sys.stdout.isatty():
            _write(plain_table(heads, cells))
            return
        from cortado.store.cli.terminal_tables import show_table, terminal_width

        widths = fitted(heads, cells, terminal_width())
        if widths is not None:
            show_table(heads, cells, widths, gap=len(GAP))
            return
        for number, row in enumerate(cells, start=1):
            self.line(f"─[ {number} ]─")
            self.record(list(zip(heads, row, strict=True)))

    def record(self, pairs: Mapping[str, Any] | Sequence[tuple[str, Any]]) -> None:
        """Show one thing: a name and a value a line."""
        items = pairs.items() if isinstance(pairs, Mapping) else pairs
        shown = [(one_line(str(name)), cell(value)) for name, value in items]
        if not sys.stdout.isatty():
            _write(plain_record(shown))
            return
        from cortado.store.cli.terminal_tables import show_record

        show_record(shown)

    def line(self, text: str) -> None:
        """Show one line to people."""
        sys.stdout.write(f"{harmless(text)}\n")

    def json(self, value: Any, *, indent: int | None = None) -> None:
        """Write one JSON value, on one line unless there is an ``indent``."""
        sys.stdout.write(json_text(value, indent=indent) + "\n")

    def note(self, text: str) -> None:
        """Write a remark for people, after all earlier output, if both go to one file."""
        sys.stdout.flush()
        sys.stderr.write(f"{harmless(text)}\n")


def _write(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def cell(value: Any) -> str:
    """Return a JSON-like value as the text of one cell."""
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
    """Return a number and its noun: "1 row", "2,000 rows"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(ts: Timestamp) -> str:
    """Return a timestamp and its wall part for people; ``-`` if nothing was written yet."""
    return "-" if ts == ZERO else f"{ts} ({ts.as_datetime():%Y-%m-%d %H:%M:%S}Z)"
