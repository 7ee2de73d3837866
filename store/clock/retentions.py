"""How long old versions are kept: as text, and in milliseconds."""

from __future__ import annotations

import re
from typing import Final

KEEP_ALL: Final = -1
"""The retention of tables that keep all of their versions."""
MS_MIN: Final = 1_000
MS_MAX: Final = 100 * 365 * 86_400_000
FORM: Final = "must be a time such as 90s, 30m, 12h or 7d, or all"

_DURATION: Final = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_retention(text: str) -> int | None:
    """``7d``, ``all``; None for any other text."""
    if text == "all":
        return KEEP_ALL
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1]) * _UNITS_MS[match[2]]


def show_retention(retention_ms: int) -> str:
    """Return the text that may be given again."""
    if retention_ms == KEEP_ALL:
        return "all"
    unit = next(each for each, unit_ms in reversed(_UNITS_MS.items()) if retention_ms % unit_ms == 0)
    return f"{retention_ms // _UNITS_MS[unit]}{unit}"
