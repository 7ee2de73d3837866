"""Numbers of options: read by functions of ours, so that a refusal names the option, the value and the bound."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store import retentions

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DEFAULT_RETENTION: Final = "default"


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
    """A parser of how long old versions of a table are kept, in milliseconds: 0 for ``default``."""

    def parse(text: str) -> int:
        found = 0 if text == _DEFAULT_RETENTION else retentions.parse_retention(text)
        if found is None:
            raise InvalidArgument(option, f"{retentions.FORM}, or {_DEFAULT_RETENTION}", repr(text))
        return found

    return parse


def show_retention(retention_ms: int) -> str:
    """As it may be given again."""
    return _DEFAULT_RETENTION if retention_ms == 0 else retentions.show_retention(retention_ms)
