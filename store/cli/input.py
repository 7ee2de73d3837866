"""The input of commands: files, standard input, and the JSON values in them."""

from __future__ import annotations

import io
import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from cortado.errors import InvalidArgument
from cortado.schema.json_text import not_utf8

STDIN: Final = "-"
BYTES_MAX: Final = 64 << 20
"""Bytes of a value or a schema, which is held in memory as a whole: far above a server's limit."""


def read_bytes(name: str) -> bytes:
    """Return all of a file, a pipe's too, or of standard input for ``-``. Raises InvalidArgument naming the file."""
    try:
        if name == STDIN:
            tell_that_it_waits("standard input")
            content = sys.stdin.buffer.read(BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise InvalidArgument("FILE", f"cannot be read: {error.strerror}", name) from None
    if len(content) > BYTES_MAX:
        raise InvalidArgument("FILE", f"must have at most {BYTES_MAX} bytes", name)
    return content


def read_text(name: str) -> str:
    """Return the text of :func:`read_bytes`, as UTF-8."""
    try:
        return read_bytes(name).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("FILE", not_utf8(error), name) from None


def tell_that_it_waits(what: str) -> None:
    """Say that a command reads standard input, if a user sits before it and may not know."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(f"reading {what}; end with Ctrl-D\n")
        sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class JsonInput:
    """JSON values of a file or of standard input: ``lines`` has a value a line, ``only`` is the text of a single
    value.

    A value may stand on several lines in the input (as ``jq`` writes it); such an
    input is read as a whole, one with a value a line may have any size.
    """

    name: str
    only: str | None
    lines: BinaryIO


def json_input(name: str, stack: ExitStack) -> JsonInput:
    """Open an input, which ``stack`` closes. Raises InvalidArgument if it cannot be read, or holds nothing."""
    if name == STDIN:
        tell_that_it_waits("JSON from standard input")
        return _json_input("standard input", sys.stdin.buffer)
    from cortado.store.transfer.json_source import uncompressed

    try:
        file = stack.enter_context(Path(name).open("rb"))  # noqa: SIM115
        return _json_input(name, uncompressed(file))
    except OSError as error:
        raise InvalidArgument("FILE", f"cannot be read: {error.strerror or error}", name) from None


def _json_input(name: str, source: BinaryIO) -> JsonInput:
    head = _up_to_content(source)
    if not head.strip():
        raise InvalidArgument("FILE", "holds nothing: one JSON value or more must be given", name)
    if _is_whole(head):
        more = _up_to_content(source)
        if not more.strip():
            return JsonInput(name, head.decode().strip(), io.BytesIO(head))
        return JsonInput(name, None, _behind(head + more, source))
    content = head + source.read()
    values = _values(content)
    if values is None and any(map(_is_whole, content.splitlines())):
        return JsonInput(name, None, io.BytesIO(content))  # Lines, though the first is no JSON.
    if values is None or len(values) == 1:
        try:
            only = content.decode().strip()
        except UnicodeDecodeError as error:
            raise InvalidArgument("FILE", not_utf8(error), name) from None
        return JsonInput(name, only, io.BytesIO(_on_one_line(content)))
    return JsonInput(name, None, io.BytesIO(b"\n".join(values)))


def _up_to_content(source: BinaryIO) -> bytes:
    """Return lines up to the first one that is not empty."""
    read = b""
    while line := source.readline():
        read += line
        if not line.isspace():
            break
    return read


def _is_whole(line: bytes) -> bool:
    try:
        # As text: from bytes it would guess another encoding, and ignore a byte order mark.
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _values(content: bytes) -> list[bytes] | None:
    """Return each value on a line of its own; None if it is not a row of values. A line end stands between tokens
    only."""
    decoder, position, found = json.JSONDecoder(), 0, []
    try:
        text = content.decode()
        while position < len(text):
            if text[position].isspace():
                position += 1
                continue
            _, end = decoder.raw_decode(text, position)
            found.append(_on_one_line(text[position:end].encode()))
            position = end
    except (ValueError, RecursionError):
        return None
    return found


def _on_one_line(value: bytes) -> bytes:
    return value.replace(b"\r", b" ").replace(b"\n", b" ")


def _behind(head: bytes, source: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(cast(Any, _Chained(head, source))))


class _Chained(io.RawIOBase):
    """Bytes that were read already, and behind them the rest of their source."""

    def __init__(self, head: bytes, source: BinaryIO) -> None:
        self._head = memoryview(head)
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if self._head:
            taken = self._head[: len(buffer)]
            buffer[: len(taken)] = taken
            self._head = self._head[len(taken) :]
            return len(taken)
        content = self._source.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)
