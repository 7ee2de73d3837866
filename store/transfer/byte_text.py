r"""Bytes as text that a person can read and a script can carry: printable UTF-8 as it is, ``\xNN`` for other bytes.

The form of the key-value API's keys and values, on the command line and in files. ``\\`` is a backslash. Any bytes come
back as they were, which is what JSON's own strings cannot promise.
"""

from __future__ import annotations

import re
from typing import Final

from cortado.errors import InvalidArgument

_ESCAPE = re.compile(r"\\(\\|x[0-9A-Fa-f]{2})")


def parse_bytes(text: str, what: str) -> bytes:
    r"""Text as UTF-8, with ``\xNN`` for a byte and ``\\`` for a backslash. Raises InvalidArgument naming ``what``."""
    if "\\" not in text:
        return text.encode("utf-8", "surrogateescape")
    encoded, end = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        encoded += _plain(text[end : match.start()], what)
        encoded += b"\\" if match[1] == "\\" else bytes.fromhex(match[1][1:])
        end = match.end()
    return bytes(encoded + _plain(text[end:], what))


def bytes_to_text(value: bytes) -> str:
    r"""Return text that :func:`parse_bytes` reads back: printable UTF-8 as it is, every other byte as ``\xNN``."""
    text = value.decode("utf-8", "surrogateescape")
    return text.replace("\\", "\\\\") if text.isprintable() else text.translate(_TEXTS)


class _Texts(dict[int, str]):
    """The text of a character, by its code. Single bytes are kept, since most bytes that are no text are such."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        return char if char.isprintable() else _escaped(char)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


_TEXTS: Final = _Texts()
_TEXTS.update({ord(char): _TEXTS[ord(char)] for char in bytes(range(256)).decode("ascii", "surrogateescape")})
_TEXTS[ord("\\")] = "\\\\"


def _plain(text: str, what: str) -> bytes:
    if "\\" in text:
        shown = repr(text) if len(text) <= 60 else f"{text[:57]!r}..."
        raise InvalidArgument(what, r"must have only the escapes \xNN and \\", shown)
    return text.encode("utf-8", "surrogateescape")
