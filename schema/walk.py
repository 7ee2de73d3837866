"""Shared by compiled readers and writers: the state of one walk over a document, and errors that learn their path.

A schema is compiled once into closures, one per type. A closure that finds a mistake raises an InvalidDocument without
a path; each record, array and map that the error passes on its way out puts its own step in front. So a path costs
nothing until an error occurs.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cortado.errors import InvalidDocument
from cortado.schema.limits import DEPTH_MAX, FREE_ITEMS_MAX

_SHOWN_CHARACTERS: Final = 60


class Walk:
    """State of one walk: how deep it stands (``depth``), and how many more values without bytes it may meet."""

    __slots__ = ("depth", "free_items")

    def __init__(self) -> None:
        self.depth = 0
        self.free_items = FREE_ITEMS_MAX

    def enter(self) -> None:
        """Go into a record, an array or a map. Raises InvalidDocument when too deep."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise too_deep()

    def take_free(self, count: int) -> None:
        """Account for ``count`` values that take no bytes. Raises InvalidDocument past the limit."""
        self.free_items -= count
        if self.free_items < 0:
            raise InvalidDocument("", f"more than {FREE_ITEMS_MAX} values that take no bytes")


def too_deep() -> InvalidDocument:
    return InvalidDocument("", f"nested deeper than {DEPTH_MAX} records, arrays and maps")


MISTAKES: Final = (InvalidDocument, IndexError, struct.error, UnicodeError)
"""Errors that a reader may raise over a bad body. The last three come from Python's own reading of bytes."""

REFUSALS: Final = (InvalidDocument, UnicodeError)
"""Errors that a writer may raise over a bad value."""


def located(error: Exception, step: str) -> InvalidDocument:
    """``error`` (one of :data:`MISTAKES`) with ``step``, a field's name, ``[3]`` or ``['key']``, before its path."""
    if not isinstance(error, InvalidDocument):
        error = explained(error)
    inner = error.field
    error.field = step if not inner else step + inner if inner.startswith("[") else f"{step}.{inner}"
    return error


def explained(error: Exception) -> InvalidDocument:
    """Return an InvalidDocument that says in Avro's terms what Python's reading of the bytes found."""
    if isinstance(error, InvalidDocument):
        return error
    if isinstance(error, UnicodeDecodeError):
        return InvalidDocument("", f"not valid UTF-8 at byte {error.start} of the string")
    if isinstance(error, UnicodeEncodeError):
        return InvalidDocument("", f"not valid Unicode at character {error.start}")
    return InvalidDocument("", "the body ends in the middle of a value")


def shown(value: Any) -> str:
    """Return a Python value as a short text for a message, with its type."""
    try:
        text = repr(value) if not isinstance(value, str | bytes) else repr(value[:_SHOWN_CHARACTERS])
    except Exception:  # A caller's own class may fail to show itself; the error about it must not.
        text = "..."
    if len(text) > _SHOWN_CHARACTERS:
        text = text[: _SHOWN_CHARACTERS - 3] + "..."
    # The form of many types names the type: Decimal('1.5').
    return text if text.startswith(f"{type(value).__name__}(") else f"{type(value).__name__} {text}"
