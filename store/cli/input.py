"""What a command reads: files, standard input, and the JSON documents in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cortado.errors import InvalidArgument
from cortado.schema.json_text import parse_json

STDIN = "-"


def read_bytes(name: str) -> bytes:
    """All of a file, or of standard input for ``-``. Raises InvalidArgument naming the file."""
    if name == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InvalidArgument("FILE", f"cannot be read: {error.strerror}", name) from None


def read_text(name: str) -> str:
    """As :func:`read_bytes`, as UTF-8."""
    return _decode(read_bytes(name), name)


def read_documents(name: str) -> Iterator[Any]:
    """JSON values of a file or of standard input: one a line, or any number of them one after the other.

    Where the first line is a whole value, the rest is read line by line, so that a file of any size can pass.
    """
    if name == STDIN:
        yield from _documents(iter(sys.stdin.buffer), "standard input")
        return
    try:
        with Path(name).open("rb") as file:
            yield from _documents(iter(file), name)
    except OSError as error:
        raise InvalidArgument("FILE", f"cannot be read: {error.strerror}", name) from None


def _documents(lines: Iterator[bytes], name: str) -> Iterator[Any]:
    number = 0
    for line in lines:
        number += 1
        text = _decode(line, name).strip()
        if not text:
            continue
        if number == 1 and not _is_whole(text):
            yield from _values(text + "\n" + _decode(b"".join(lines), name), name)
            return
        yield parse_json(text, f"{name}, line {number}")


def _is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _values(text: str, name: str) -> Iterator[Any]:
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = len(text)
        # Strictly, and with a precise error where it is none.
        yield parse_json(text[position:end], name)
        position = end


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("FILE", f"must be UTF-8: {error.reason} at byte {error.start}", name) from None
