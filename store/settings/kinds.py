"""The kinds of values that a setting may have: how each is written, read and shown.

A reader takes the place of the value (for a refusal) and the value as written: text from a flag or a variable, a TOML
value from a file. It raises InvalidArgument naming the place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.auth.tokens import holds_token
from cortado.store.clock import retentions
from cortado.store.settings.sizes import UNITS

_SIZE = re.compile(r"([0-9]{1,15})(KiB|MiB|GiB|TiB|)")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_SHOWN_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """``metavar`` stands for a value in a help, ``show`` writes one as it may be given again."""

    metavar: str
    read: Callable[[str, Any], Any]
    show: Callable[[Any], str] = str


def shown(value: object) -> str:
    """Return a written value for a refusal: short, on one line, and never a token or the content of a key."""
    text = value if isinstance(value, str) else repr(value)
    if holds_token(text):
        return "(a token, which is not shown)"
    if "-----BEGIN" in text:
        return "(the content of a PEM file, which is not shown)"
    text = repr(text) if isinstance(value, str) else text
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(place, "must be text", shown(value))
    if not value.isprintable():
        raise InvalidArgument(place, "must be text of characters that print", shown(value))
    return value


def _path(place: str, value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise InvalidArgument(place, "must be a path", shown(value))
    if not str(value).isprintable():
        # Half a character or a control character: neither logs nor answers could name it.
        raise InvalidArgument(place, "must be a path of characters that print", shown(value))
    if holds_token(str(value)):
        raise InvalidArgument(place, "must be the path of a file, and not the token that it holds", shown(str(value)))
    return Path(value)


def _flag(place: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(place, "must be true or false", shown(value))
    return value


def _whole(place: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not _WHOLE.fullmatch(str(value)):
        raise InvalidArgument(place, "must be a whole number", shown(value))
    return int(value)


def _size(place: str, value: Any) -> int:
    """Bytes of ``4096``, ``64MiB`` and the like."""
    match = _SIZE.fullmatch(str(value)) if isinstance(value, int | str) else None
    if match is None:
        raise InvalidArgument(place, "must be a number of bytes, perhaps with KiB, MiB, GiB or TiB", shown(value))
    return int(match[1]) * UNITS[match[2]]


def _seconds(place: str, value: Any) -> float:
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(place, "must be a number of seconds", shown(value)) from None
    # A time that is no number would never be over.
    if not 0 <= found < math.inf:
        raise InvalidArgument(place, "must be a number of seconds, finite and not negative", shown(value))
    return found


def _list(place: str, value: Any) -> tuple[str, ...]:
    """Texts, one after the other or with commas between."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise InvalidArgument(place, "must be a list of texts", shown(value))
    found = tuple(part.strip() for each in given for part in each.split(","))
    if "" in found:
        raise InvalidArgument(place, "has an empty element", shown(value))
    return found


def show_size(value: int) -> str:
    """Return a size in the largest unit that leaves it whole: ``64MiB``, ``5000``."""
    for unit, factor in sorted(UNITS.items(), key=lambda each: -each[1]):
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return str(value)


def _retention(place: str, value: Any) -> int:
    found = retentions.parse_retention(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgument(place, retentions.FORM, shown(value))
    if found != retentions.KEEP_ALL and not retentions.MS_MIN <= found <= retentions.MS_MAX:
        problem = f"must be between {retentions.MS_MIN} ms and {retentions.show_retention(retentions.MS_MAX)}, or all"
        raise InvalidArgument(place, problem, shown(value))
    return found


TEXT: Final = Kind("TEXT", _text)
PATH: Final = Kind("PATH", _path)
ADDRESS: Final = Kind("HOST:PORT", _text)
ADDRESSES: Final = Kind("HOST:PORT,...", _list, ",".join)
FLAG: Final = Kind("", _flag, lambda value: "true" if value else "false")
WHOLE: Final = Kind("N", _whole)
SIZE: Final = Kind("SIZE", _size, show_size)
RETENTION: Final = Kind("TIME|all", _retention, retentions.show_retention)
SECONDS: Final = Kind("SECONDS", _seconds, lambda value: f"{value:g}")


def choice(*names: str) -> Kind:
    """Return one of ``names``."""

    def read(place: str, value: Any) -> str:
        if value not in names:
            raise InvalidArgument(place, f"must be {' or '.join(names)}", shown(value))
        return str(value)

    return Kind("|".join(names), read)
