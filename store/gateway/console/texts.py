"""Stored data as a page shows it: text that a reader sees whole, and that nothing obeys.

Templates escape markup. Plain characters have effects in a browser, too: it turns the direction of text at U+202E, and
shows nothing for U+200B. So each character that does not print stands as an escape, as everywhere in Cortado. Long text
is cut, with its length.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from cortado.schema.json_text import json_text
from cortado.store.client.sizes import Size
from cortado.store.clock.spans import span_text
from cortado.store.clock.timestamp import Timestamp
from cortado.store.settings.sizes import count_text, size_text

CELL_CHARS_MAX: Final = 160
TEXT_CHARS_MAX: Final = 20_000


def plain(text: object, chars_max: int = TEXT_CHARS_MAX) -> str:
    """``text`` with escapes for what does not print, but for line ends, and cut behind ``chars_max``."""
    given = str(text)
    shown = "".join(each if each.isprintable() or each == "\n" else _escape(each) for each in given[:chars_max])
    return shown if len(given) <= chars_max else f"{shown}… ({len(given):,} characters)"


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def cell(value: Any) -> str:
    """Return a value of a document on one line: text as it is, everything else as JSON."""
    return plain(value if isinstance(value, str) else json_text(value), CELL_CHARS_MAX).replace("\n", "\\n")


def pretty(value: Any) -> str:
    """Return a value as JSON over several lines."""
    return plain(json_text(value, indent=2))


def count(number: float) -> str:
    """Return a whole number, its digits in groups."""
    return f"{number:,.0f}"


def size(number: float) -> str:
    """Bytes."""
    return size_text(int(number))


def rows(found: Size) -> str:
    """Return how many there are, with a tilde before an estimate."""
    return count_text(found.count, is_estimated=found.is_estimated)


def span(ms: float) -> str:
    """Milliseconds in a unit that reads well."""
    return span_text(round(ms))


def seconds(number: float | None) -> str:
    """Return a latency; a dash if nothing was measured."""
    if number is None:
        return "-"
    if 0 < number < 0.001:
        return f"{number * 1e6:.0f} µs"
    return f"{number * 1e3:.3g} ms" if 0 < number < 1 else f"{number:.3g} s"


def rate(number: float | None) -> str:
    """Return a rate per second; a dash if nothing was measured."""
    return "-" if number is None else f"{number:,.2f}" if number < 10 else f"{number:,.1f}"


def moment(ts: Timestamp) -> str:
    """Return the wall time of a timestamp, in UTC, to the millisecond; "never" for the one before all others."""
    return wall(ts.wall_ms) if ts.wall_ms else "never"


def wall(ms: int) -> str:
    """Milliseconds since 1970 as a time."""
    at = datetime.fromtimestamp(min(ms, 253_402_300_799_000) / 1000, UTC)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"
