"""Numbers of options: read by functions of ours, so that a refusal names the option, the value and the bound."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Literal

from cortado.errors import InvalidArgument
from cortado.store.clock import retentions
from cortado.store.clock.timestamp import TTL_MS_MAX, Timestamp
from cortado.store.settings.sizes import UNITS

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_SIZE: Final = re.compile(r"([0-9]{1,19})(KiB|MiB|GiB|TiB|)")
_DEFAULT_RETENTION: Final = "default"
_NO_TTL: Final = "none"


def whole(option: str, minimum: int = 0, maximum: int = (1 << 63) - 1) -> Callable[[str], int]:
    """Return a parser of an option's whole number, which names the option, the value and the bound in its refusal."""

    def parse(text: str | int) -> int:
        is_whole = _WHOLE.fullmatch(str(text)) is not None
        if not is_whole or not minimum <= int(text) <= maximum:
            names_both = maximum <= 1 << 32 or (is_whole and int(text) > maximum)
            bound = f"{minimum} to {maximum}" if names_both else f"{minimum} or more"
            raise InvalidArgument(option, f"must be a whole number, {bound}", repr(text))
        return int(text)

    return parse


def size(option: str, minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a parser of an option's bytes, such as ``4096`` or ``64MiB``."""

    def parse(text: str | int) -> int:
        match = _SIZE.fullmatch(str(text))
        found = int(match[1]) * UNITS[match[2]] if match else -1
        if not minimum <= found <= maximum:
            bound = f"{minimum} to {maximum}"
            raise InvalidArgument(
                option, f"must be whole bytes, perhaps with KiB, MiB, GiB or TiB, {bound}", repr(text)
            )
        return found

    return parse


def seconds(option: str) -> Callable[[str], float]:
    """Return a parser of an option's seconds, which names the option and the value in its refusal."""

    def parse(text: str | float) -> float:
        try:
            found = float(text)
        except ValueError:
            raise InvalidArgument(option, "must be a number of seconds", repr(text)) from None
        # A time that is no number would never be over.
        if not 0 <= found < math.inf:
            raise InvalidArgument(option, "must be a number of seconds, finite and not negative", repr(text))
        return found

    return parse


def retention(option: str) -> Callable[[str], int]:
    """Return a parser of how long old versions of a table are kept, in milliseconds: 0 for ``default``."""

    def parse(text: str) -> int:
        found = 0 if text == _DEFAULT_RETENTION else retentions.parse_retention(text)
        if found is None:
            raise InvalidArgument(option, f"{retentions.FORM}, or {_DEFAULT_RETENTION}", repr(text))
        return found

    return parse


def ttl(option: str) -> Callable[[str], int]:
    """Return a parser of how long something lives, in milliseconds: 0 for ``none``, for ever."""

    def parse(text: str) -> int:
        found = 0 if text == _NO_TTL else retentions.parse_retention(text)
        if found is None or found == retentions.KEEP_ALL or not (text == _NO_TTL or 1 <= found <= TTL_MS_MAX):
            raise InvalidArgument(option, "must be a time such as 90s, 30m, 12h or 7d, or none", repr(text))
        return found

    return parse


def show_ttl(ttl_ms: int) -> str:
    """Return a time to live as it may be given again."""
    return _NO_TTL if ttl_ms == 0 else retentions.show_retention(ttl_ms)


def expiry_text(expires_ms: int) -> str:
    """Return a wall time at which something expires, for people."""
    return f"{Timestamp(0, expires_ms, 0).as_datetime():%Y-%m-%d %H:%M:%S}Z"


def expires_of(ttl_ms: int | None) -> timedelta | Literal["never"] | None:
    """Return a time to live as the client takes it."""
    if ttl_ms is None:
        return None
    return timedelta(milliseconds=ttl_ms) if ttl_ms else "never"


def show_retention(retention_ms: int) -> str:
    """Return a retention as it may be given again."""
    return _DEFAULT_RETENTION if retention_ms == 0 else retentions.show_retention(retention_ms)
