"""Notebooks' view of tables, documents and results: the HTML of their ``_repr_html_``.

It is bounded for any stored data, by lines, by columns, and by the characters of each value. Every text is
escaped, and unprintable characters, such as a sign that turns the direction of the text after it, are shown as escapes.
There are no colours in it, so it has those of the notebook, be they light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from html import escape
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cortado.errors import CortadoError
from cortado.store.client.document_types import to_mapping

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.client.table_reads import TableReads
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


async def table_html(table: TableReads[Any]) -> str | None:
    """Return a table's key, indexes and first rows, or the error that reading them raised. None in a transaction."""
    try:
        sample = await table.open_sample(ROWS_MAX, WAIT_S)
        if sample is None:
            return None
        descriptor, documents, has_more = sample
        rows = [to_mapping(each.value, each.schema) for each in documents]
    except CortadoError as error:
        return grid(table.full_name, (), (), f"{type(error).__name__}: {error}")
    columns = [field.name for field in documents[0].schema.record.fields] if documents else []
    shown = f"the first {len(rows)} rows, more may follow" if has_more else "all of its rows" if rows else "no rows"
    lines = [[row.get(name) for name in columns] for row in rows]
    return grid(table.full_name, columns, lines, f"{shown}; {_described(descriptor)}")


def _described(descriptor: TableDescriptor) -> str:
    indexes = [f"index {index.name} ({_parts(index.parts)})" for index in descriptor.indexes]
    return "; ".join([f"key ({_parts(descriptor.key)})", *indexes])


def _parts(parts: Sequence[KeyPart]) -> str:
    return ", ".join(f"{part.path} desc" if part.descending else part.path for part in parts)
