"""Numbers of options: read by functions of ours, so that a refusal names the option, the value and the bound."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.catalog.descriptors import KEEP_ALL

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DURATION: Final = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_RETENTIONS: Final = {"default": 0, "all": KEEP_ALL}


def whole(option: str, minimum: int = 0, maximum: int = (1 << 63) - 1) -> Callable[[str], int]:
    """A parser of an option's whole number, which names the option, the value and the bound in its refusal."""

    def parse(text: str | int) -> int:
        if not _WHOLE.fullmatch(str(text)) or not minimum <= int(text) <= maximum:
            bound = f"{minimum} or more" if maximum > 1 << 32 else f"{minimum} to {maximum}"
            raise InvalidArgument(option, f"must be a whole number, {bound}", repr(text))
        return int(text)

    return parse


def seconds(option: str) -> Callable[[str], float]:
    """A parser of an option's seconds, which names the option and the value in its refusal."""

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
    """A parser of how long old versions are kept, in milliseconds: 0 for ``default``, KEEP_ALL for ``all``."""

    def parse(text: str) -> int:
        if text in _RETENTIONS:
            return _RETENTIONS[text]
        match = _DURATION.fullmatch(text)
        if match is None:
            raise InvalidArgument(option, "must be a time such as 90s, 30m, 12h or 7d, or all, or default", repr(text))
        return int(match[1]) * _UNITS_MS[match[2]]

    return parse


def show_retention(retention_ms: int) -> str:
    """As it may be given again."""
    for name, value in _RETENTIONS.items():
        if retention_ms == value:
            return name
    unit = next(each for each, unit_ms in reversed(_UNITS_MS.items()) if retention_ms % unit_ms == 0)
    return f"{retention_ms // _UNITS_MS[unit]}{unit}"
