r"""CSV: records of cells (RFC 4180), read and written so that null and the empty text stay two things.

::

    carrier,name,founded       the header: names of fields
    AA,"American, Inc.",1926   commas, quotes and ends of lines stand in quotes
    UA,United,                 the last cell is null: the null text, without quotes
    DL,"",1925                 in quotes it is the text itself, here the empty one

A quote in quotes is doubled. The null text is empty unless another one is given; if a field cannot be null, it is a
text like any other. A record may have several lines, as its quotes say. Blank lines between records are left aside.

Python's own reader does not tell what stood in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from cortado.errors import InvalidArgument

_BARE: Final = re.compile(r'[^",\r\n]*')
# Possessive: a place to go back to, for each of the doubled quotes, would take 60 times the bytes of the text.
_WITHIN: Final = re.compile(r'[^"]*+(?:""[^"]*+)*+')
_LINE_END: Final = re.compile(r"\r?\n?")
_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')
_NULL_CHARACTERS_MAX: Final = 100


def check_null_text(text: str) -> str:
    """Return ``text`` if it may stand for null. Raises InvalidArgument."""
    if len(text) > _NULL_CHARACTERS_MAX or _NEEDS_QUOTES.search(text):
        problem = f"must have at most {_NULL_CHARACTERS_MAX} characters, and no comma, quote or end of line"
        raise InvalidArgument("--null", problem, repr(text[:_NULL_CHARACTERS_MAX]))
    return text


def line_of(cells: Iterable[str | None], null_text: str) -> str:
    """Return a record's line, without its end. It is empty for a lone null alone, since other blank lines are left
    aside."""
    line = ",".join([null_text if cell is None else _quoted(cell, null_text) for cell in cells])
    return line if line or not null_text else '""'


def _quoted(cell: str, null_text: str) -> str:
    if cell != null_text and _NEEDS_QUOTES.search(cell) is None:
        return cell
    return '"' + cell.replace('"', '""') + '"'


def cells_of(line: str, more: Callable[[], str], null_text: str | None, cells_max: int) -> list[str | None]:
    """Return the cells of the record that begins with ``line``; None is null, and with a ``null_text`` of None nothing
    is.

    ``more`` gives the next line, if a quoted text goes on there. Raises InvalidArgument for text that is no CSV, and
    for more than ``cells_max`` cells.
    """
    bare = line.removesuffix("\n").removesuffix("\r")
    if '"' not in line and "\r" not in bare:
        count = bare.count(",") + 1
        cells = [None if cell == null_text else cell for cell in bare.split(",", cells_max)]
    else:
        each = _each_cell(line, more, null_text)
        cells = list(islice(each, cells_max))
        count = len(cells) + sum(1 for _ in each)
    if count > cells_max:
        raise wrong_count(cells_max, count)
    return cells


def wrong_count(wanted: int, found: int) -> InvalidArgument:
    """A record has not as many cells as the header."""
    return InvalidArgument("line", f"must have {wanted} cells, as the header has", f"{found} cells")


def _each_cell(line: str, more: Callable[[], str], null_text: str | None) -> Iterator[str | None]:
    place = 0
    while True:
        if line.startswith('"', place):
            pieces, place = [], place + 1
            while (end := _end(_WITHIN, line, place)) == len(line):
                pieces.append(line[place:])
                line, place = more(), 0
            pieces.append(line[place:end])
            place = end + 1
            yield "".join(pieces).replace('""', '"')
        else:
            end = _end(_BARE, line, place)
            bare, place = line[place:end], end
            yield None if bare == null_text else bare
        if line.startswith(",", place):
            place += 1
        elif _LINE_END.fullmatch(line, place):
            return
        else:
            raise InvalidArgument("line", f"must be CSV: {line[place]!r} at column {place + 1} does not belong there")


def _end(pattern: re.Pattern[str], line: str, place: int) -> int:
    found = pattern.match(line, place)
    assert found is not None
    return found.end()
