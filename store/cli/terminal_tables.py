"""Tables and records on a terminal, by rich: bold names, and cells that fold between words."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def terminal_width() -> int:
    """Return how many columns there are."""
    return _console().width


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], *, gap: int) -> None:
    """Print a table with columns of these widths."""
    raw = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for name, width in zip(columns, widths, strict=True):
        raw.add_column(Text(name), overflow="fold", header_style="bold", width=width)
    for row in rows:
        raw.add_row(*map(Text, row))
    _console().print(raw, soft_wrap=False)


def show_record(pairs: Sequence[tuple[str, str]]) -> None:
    """Print a name and a value a line."""
    raw = Table(box=None, show_header=False, pad_edge=False)
    raw.add_column(style="bold", no_wrap=True)
    raw.add_column(overflow="fold")
    for name, value in pairs:
        raw.add_row(Text(name), Text(value))
    _console().print(raw, soft_wrap=False)


def _console() -> Console:
    return Console(highlight=False)
