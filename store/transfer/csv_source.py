"""CSV as rows of a table: the header names fields, and each cell is read by the type of its field.

A record is judged by itself: one that is no CSV, has more or fewer cells than the header, or does not fit the schema,
is one bad row. Its place is the line that it begins in. A wrong header, and a quoted text without an end, end the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO, Final

from cortado.errors import CortadoError, InvalidArgument
from cortado.schema.json_text import json_text, shown_text
from cortado.schema.limits import SCHEMA_FIELDS_MAX
from cortado.schema.model import NO_DEFAULT
from cortado.schema.names import listed
from cortado.schema.text_format import admits_null
from cortado.store.transfer.csv_text import cells_of, wrong_count
from cortado.store.transfer.json_source import LINE_BYTES_MAX, each_line, line_text
from cortado.store.transfer.rows import Collected, RowChunk, Target

_MARK: Final = b"\xef\xbb\xbf"
"""A byte order mark, which spreadsheets write before UTF-8."""
_OTHER_SEPARATORS: Final = (";", "\t", "|")


def csv_chunks(
    file: BinaryIO, name: str, target: Target, rows_skipped: int = 0, *, null_text: str = ""
) -> Iterator[RowChunk]:
    """Yield the rows of a file that begin behind line ``rows_skipped``. Raises InvalidArgument if it cannot be read."""
    records = _Records(file, name, null_text)
    nulls = _nulls(records.header(), target, name, null_text)
    collected = Collected(name, target)
    # An empty line of a single column that may be null is a row.
    has_empty_rows = len(nulls) == 1 and None in nulls.values()
    for number, size, found in records.rows(len(nulls), has_empty_rows=has_empty_rows):
        if number <= rows_skipped:
            continue
        if isinstance(found, CortadoError):
            collected.refuse(number, size, found)
        else:
            cells = zip(nulls.items(), found, strict=True)
            texts = {field: null if cell is None else cell for (field, null), cell in cells}
            collected.add(number, size, partial(target.body_of_texts, texts), partial(_as_json, target, texts))
        if collected.is_full:
            yield collected.chunk()
            collected = Collected(name, target)
    yield collected.chunk()


def _as_json(target: Target, texts: dict[str, str | None]) -> str:
    return json_text(target.json_of_texts(texts))


def _nulls(header: Sequence[str], target: Target, name: str, null_text: str) -> dict[str, str | None]:
    """Return the meaning of the null text in each column: null, or the text itself if the field cannot be null. Raises
    InvalidArgument."""
    fields = {each.name: each for each in target.schema.record.fields}
    for place, column in enumerate(header):
        if column not in fields:
            problem = (
                f"its header has no field of {target.name} in column {place + 1}; there are {listed(list(fields))}"
            )
            if len(header) == 1 and any(each in column for each in _OTHER_SEPARATORS):
                problem += "; commas stand between columns"
            raise InvalidArgument("file", f"{problem} (found {shown_text(column)})", name)
        if column in header[:place]:
            raise InvalidArgument("file", f"its header has the field {column} twice", name)
    for each in fields.values():
        if each.default is NO_DEFAULT and each.name not in header:
            raise InvalidArgument("file", f"its header lacks the field {each.name}, which has no default", name)
    return {each: None if admits_null(fields[each].type) else null_text for each in header}


class _NoEnd(Exception):
    """A quoted text has no end, or no end within a record's bounds."""


class _Records:
    """The records of a file, one after the other."""

    def __init__(self, file: BinaryIO, name: str, null_text: str) -> None:
        self._lines = each_line(file, name)
        self._name = name
        self._null_text = null_text
        self._size = 0

    def header(self) -> list[str]:
        """Return the header's cells. Raises InvalidArgument if there is no header."""
        for number, line in self._lines:
            line = line.removeprefix(_MARK) if number == 1 else line
            if line.isspace() or not line:
                continue
            found = self._cells(number, line, None, SCHEMA_FIELDS_MAX)
            if isinstance(found, CortadoError):
                raise InvalidArgument("file", f"its header cannot be read: {found.message()}", self._name)
            return [cell or "" for cell in found]
        raise InvalidArgument("file", "has no header: its first line names the fields", self._name)

    def rows(self, columns: int, *, has_empty_rows: bool) -> Iterator[tuple[int, int, list[str | None] | CortadoError]]:
        """Yield (line, bytes, cells or their problem) of each record. Raises InvalidArgument for a text without an
        end."""
        for number, line in self._lines:
            is_blank = line.isspace() if columns > 1 else not line.strip(b"\r\n")
            if is_blank and not has_empty_rows:
                continue
            found = self._cells(number, line, self._null_text, columns)
            if not isinstance(found, CortadoError) and len(found) < columns:
                yield number, self._size, wrong_count(columns, len(found))
            else:
                yield number, self._size, found

    def _cells(
        self, number: int, line: bytes, null_text: str | None, cells_max: int
    ) -> list[str | None] | CortadoError:
        self._size = len(line)
        try:
            return cells_of(line_text(line), self._more, null_text, cells_max)
        except _NoEnd:
            problem = f"has a quoted text without an end in the record that begins in line {number}"
            raise InvalidArgument("file", problem, self._name) from None
        except CortadoError as error:
            return error

    def _more(self) -> str:
        """Return the next line of a record."""
        _, line = next(self._lines, (0, b""))
        self._size += len(line)
        if not line or self._size > LINE_BYTES_MAX:
            raise _NoEnd
        return line_text(line)
