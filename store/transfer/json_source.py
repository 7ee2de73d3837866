"""JSON lines as rows: one JSON object a line, perhaps compressed by gzip; empty lines are left aside.

A line is judged by itself: a line that is no JSON, or does not fit the schema, is one bad row.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, Final, cast

from cortado.errors import InvalidArgument, TooLarge
from cortado.schema.json_bounds import check_json_bounds
from cortado.schema.json_text import not_utf8, parse_json_bytes
from cortado.store.transfer.rows import Collected, RowChunk, Target

LINE_BYTES_MAX: Final = 16 << 20
"""A document has at most 1 MiB as Avro; its JSON never takes as much."""
_GZIP_MAGIC: Final = b"\x1f\x8b"


def uncompressed(file: BinaryIO) -> BinaryIO:
    """Return ``file``, or its unpacked content if it was compressed by gzip; its first bytes say so."""
    buffered = cast(BinaryIO, file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(Any, file)))
    if cast(Any, buffered).peek(2)[:2] == _GZIP_MAGIC:
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    return buffered


def each_line(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """(number, line) of a file; a line over the limit comes cut off behind it. Raises InvalidArgument."""
    readline = uncompressed(file).readline
    number = 0
    try:
        while line := readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(line) > LINE_BYTES_MAX:
                while (rest := readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                    pass
            yield number, line
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InvalidArgument("file", f"is damaged behind line {number}: {error}", name) from None
    except OSError as error:
        raise InvalidArgument("file", f"cannot be read: {error.strerror or error}", name) from None


def lines_of(file: BinaryIO, name: str, lines_skipped: int = 0) -> Iterator[tuple[int, bytes]]:
    """As :func:`each_line`, behind the first ``lines_skipped``, without those that are empty."""
    for number, line in each_line(file, name):
        if number > lines_skipped and not line.isspace():
            yield number, line


def line_text(line: bytes) -> str:
    """Return the text of a line, with its end. Raises InvalidArgument, TooLarge."""
    _check_length(line)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("line", not_utf8(error)) from None


def value_of(line: bytes) -> Any:
    """Return the JSON value of a line. Raises InvalidArgument, TooLarge."""
    _check_length(line)
    check_json_bounds(line, "line")
    return parse_json_bytes(line.rstrip(b"\r\n"), "line")


def _check_length(line: bytes) -> None:
    if len(line) > LINE_BYTES_MAX:
        problem = f"has more than {LINE_BYTES_MAX} bytes"
        raise TooLarge("line", problem, length=len(line), limit=LINE_BYTES_MAX)


def text_of_line(line: bytes) -> str | None:
    """Return a bad line to be set aside as it is; None if it is too long to be kept."""
    if len(line) > LINE_BYTES_MAX:
        return None
    return line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def json_chunks(file: BinaryIO, name: str, target: Target, rows_skipped: int = 0) -> Iterator[RowChunk]:
    """Yield the rows of a file from the line behind ``rows_skipped``. Raises InvalidArgument if it cannot be read."""
    collected = Collected(name, target)
    for number, line in lines_of(file, name, rows_skipped):
        collected.add(number, len(line), partial(_body_of, target, line), partial(text_of_line, line))
        if collected.is_full:
            yield collected.chunk()
            collected = Collected(name, target)
    yield collected.chunk()


def _body_of(target: Target, line: bytes) -> bytes:
    return target.body_of(value_of(line))
