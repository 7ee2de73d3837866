"""JSON lines as rows: one JSON object a line, perhaps compressed by gzip; empty lines are left aside.

A line is judged by itself: what is no JSON, or does not fit the schema, is one bad row.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, cast

from cortado.errors import CortadoError, InvalidArgument, TooLarge
from cortado.schema.json_bounds import check_json_bounds
from cortado.schema.json_text import parse_json_bytes
from cortado.store.transfer.rows import BadRow, RowChunk, Target, packed_lengths

LINE_BYTES_MAX: Final = 16 << 20
"""A document has at most 1 MiB as Avro; what becomes that never takes as much JSON."""
_CHUNK_ROWS: Final = 1_000
_CHUNK_BYTES: Final = 1 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"


def uncompressed(file: BinaryIO) -> BinaryIO:
    """``file``, or what is in it where it was compressed by gzip; its first bytes say so."""
    buffered = cast(BinaryIO, file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(Any, file)))
    if cast(Any, buffered).peek(2)[:2] == _GZIP_MAGIC:
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    return buffered


def lines_of(file: BinaryIO, name: str, lines_skipped: int = 0) -> Iterator[tuple[int, bytes]]:
    """(number, line) of what is not empty; a line over the limit comes cut off behind it."""
    readline = uncompressed(file).readline
    number = 0
    try:
        while line := readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(line) > LINE_BYTES_MAX:
                while (rest := readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                    pass
            if number > lines_skipped and not line.isspace():
                yield number, line
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InvalidArgument("file", f"is damaged behind line {number}: {error}", name) from None
    except OSError as error:
        raise InvalidArgument("file", f"cannot be read: {error.strerror or error}", name) from None


def value_of(line: bytes) -> Any:
    """The JSON value of a line. Raises InvalidArgument, TooLarge."""
    if len(line) > LINE_BYTES_MAX:
        problem = f"has more than {LINE_BYTES_MAX} bytes"
        raise TooLarge("line", problem, length=len(line), limit=LINE_BYTES_MAX)
    check_json_bounds(line, "line")
    return parse_json_bytes(line.rstrip(b"\r\n"), "line")


def text_of_line(line: bytes) -> str | None:
    """A bad line to be set aside as it is; None where it is too long to be kept."""
    if len(line) > LINE_BYTES_MAX:
        return None
    return line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def json_chunks(file: BinaryIO, name: str, target: Target, rows_skipped: int = 0) -> Iterator[RowChunk]:
    """The rows of a file from the line behind ``rows_skipped``. Raises InvalidArgument where it cannot be read."""
    collected = _Collected(name, target)
    for number, line in lines_of(file, name, rows_skipped):
        collected.add(number, line)
        if collected.is_full:
            yield collected.chunk()
            collected = _Collected(name, target)
    yield collected.chunk()


class _Collected:
    """Lines that become one chunk."""

    def __init__(self, name: str, target: Target) -> None:
        self._name = name
        self._target = target
        self._lines: list[bytes] = []
        self._bodies: list[bytes] = []
        self._places: list[int] = []
        self._refused: list[BadRow] = []
        self._bytes = self._last = 0

    @property
    def is_full(self) -> bool:
        return len(self._bodies) + len(self._refused) >= _CHUNK_ROWS or self._bytes >= _CHUNK_BYTES

    def add(self, number: int, line: bytes) -> None:
        self._last = number
        self._bytes += len(line)
        try:
            body = self._target.body_of(value_of(line))
        except CortadoError as error:
            self._refused.append(BadRow(self._name, number, error, text_of_line(line)))
            return
        self._lines.append(line)
        self._bodies.append(body)
        self._places.append(number)

    def chunk(self) -> RowChunk:
        lines = self._lines
        return RowChunk(
            self._target.schema_id,
            b"".join(self._bodies),
            packed_lengths([len(body) for body in self._bodies]),
            self._places,
            self._last,
            lambda row, _body: text_of_line(lines[row]) or "",
            self._refused,
        )
