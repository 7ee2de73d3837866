"""Escapes characters that a terminal would obey: stored data must not move its cursor or turn its text around.

Controls (C0, DEL and C1: U+009B begins an escape sequence), changes of the direction of text (U+202E), line separators
and every other character without a picture become escapes. They do so wherever the output goes, since a pipe may end on
a terminal. JSON has escapes of its own, which give the characters back: :func:`cortado.schema.json_text.json_text`.
"""

from __future__ import annotations


def harmless(text: str) -> str:
    """``text``, its lines and tabs as they are."""
    return text if text.isprintable() else "".join(char if char in "\n\t" else _shown(char) for char in text)


def one_line(text: str) -> str:
    """``text`` on one line, for a cell of a table."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode()
