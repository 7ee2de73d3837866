"""Notebooks' view of tables, documents and results: the HTML of their ``_repr_html_``.

It is bounded for any stored data, by lines, by columns, and by the characters of each value. Every text is
escaped, and unprintable characters, such as a sign that turns the direction of the text after it, are shown as escapes.
There are no colours in it, so it has those of the notebook, be they light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from html import escape
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.keys.types import KeyPart

ROWS_MAX: Final = 10
LINES_MAX: Final = 50
COLUMNS_MAX: Final = 50
CHARACTERS_MAX: Final = 200
"""Characters of one value, a heading or a note."""
WAIT_S: Final = 2.0

_SHORT: Final = Repr()
_SHORT.maxlevel = 3
_SHORT.maxlist = _SHORT.maxdict = 10
_SHORT.maxstring = _SHORT.maxother = CHARACTERS_MAX


def grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> str:
    """Return a table of values below ``columns``, with a title above and a note below it."""
    notes = [note] if note else []
    for kind, count, most in (("lines", len(rows), LINES_MAX), ("columns", len(columns), COLUMNS_MAX)):
        notes += [f"{count - most} more {kind} are not shown"] if count > most else []
    lines = [_line("th", columns), *(_line("td", row) for row in rows[:LINES_MAX])] if columns else []
    below = "".join(f"<p>{_cell(each)}</p>" for each in notes)
    return f"<div><strong>{_cell(title)}</strong><table>{''.join(lines)}</table>{below}</div>"


def _line(tag: str, values: Sequence[Any]) -> str:
    # Notebooks align to the right, and a text brings its own direction.
    cells = (f'<{tag} dir="auto" style="text-align: left">{_cell(each)}</{tag}>' for each in values[:COLUMNS_MAX])
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: Any) -> str:
    match value:
        case None:
            return "<em>None</em>"
        case str():
            start = value[: CHARACTERS_MAX + 1]
            text = start if start.isprintable() else repr(start)
        case bytes():
            text = repr(value[:CHARACTERS_MAX])
        case date() | time() | Decimal() | UUID():
            text = str(value)
        case _:
            text = _SHORT.repr(value)
    return escape(text if len(text) <= CHARACTERS_MAX else f"{text[:CHARACTERS_MAX]}…")


def table_grid(
    name: str, descriptor: TableDescriptor, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], *, has_more: bool
) -> str:
    """Return a table's key and indexes, and its first ``rows``, of which ``has_more`` may follow."""
    shown = f"the first {len(rows)} rows, more may follow" if has_more else "all of its rows" if rows else "no rows"
    lines = [[row.get(column) for column in columns] for row in rows]
    return grid(name, columns, lines, f"{shown}; {_described(descriptor)}")


def _described(descriptor: TableDescriptor) -> str:
    indexes = [f"index {index.name} ({_parts(index.parts)})" for index in descriptor.indexes]
    return "; ".join([f"key ({_parts(descriptor.key)})", *indexes])


def _parts(parts: Sequence[KeyPart]) -> str:
    return ", ".join(f"{part.path} desc" if part.descending else part.path for part in parts)
