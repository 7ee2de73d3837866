"""The layout of a table: as columns, or, if columns would break words, one field a line.

Columns are two spaces and a rule's width apart. A column needs the width of its longest word, up to :data:`WORD_MAX`;
spare width goes to the columns that would fold least. If not even the words fit, rows are shown one field a line, as
psql does under ``\\x auto``. Pure: text in, widths and lines out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

GAP: Final = "   "
WORD_MAX: Final = 40
"""A longer word (a blob in hexadecimal, a URL) may be broken."""


def width_of(text: str) -> int:
    """Columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return a width for each column of a table that takes ``width`` at most; None if words would have to be broken."""
    down = list(zip(columns, *rows, strict=True))
    natural = [max(map(width_of, texts)) for texts in down]
    found = [max(min(WORD_MAX, width_of(word)) for text in texts for word in text.split() or [""]) for texts in down]
    spare = width - len(GAP) * (len(columns) - 1) - sum(found)
    if spare < 0:
        return None
    wanting = sorted(range(len(columns)), key=lambda place: natural[place] - found[place])
    for left, place in zip(range(len(wanting), 0, -1), wanting, strict=True):
        more = min(natural[place] - found[place], spare // left)
        found[place] += more
        spare -= more
    return found


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table that is as wide as its content, without blanks at their ends."""
    widths = [max(map(width_of, texts)) for texts in zip(columns, *rows, strict=True)]
    yield _line(columns, widths)
    yield "─" * (sum(widths) + len(GAP) * (len(columns) - 1))
    for row in rows:
        yield _line(row, widths)


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text + " " * (width - width_of(text)) for text, width in zip(texts, widths, strict=True))
    return GAP.join(padded).rstrip()


def plain_record(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a name and a value a line, the values below one another."""
    width = max((width_of(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        yield f"{name}{' ' * (width - width_of(name))}  {value}".rstrip()
