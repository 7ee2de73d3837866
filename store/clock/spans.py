"""Lengths of time, for people."""

from __future__ import annotations

from typing import Final

_S_MS: Final = 1_000
_DAY_MS: Final = 86_400 * _S_MS
# Each unit from two of it on, so that no more than half of one is rounded away.
_UNITS: Final = (
    ("years", 365 * _DAY_MS + _DAY_MS // 4),
    ("days", _DAY_MS),
    ("hours", 3_600 * _S_MS),
    ("min", 60 * _S_MS),
)


def span_text(ms: int) -> str:
    """``ms`` milliseconds in the unit that reads best: ``3 ms``, ``43 s``, ``45 years``."""
    if abs(ms) < 10 * _S_MS:
        return f"{ms} ms"
    for unit, unit_ms in _UNITS:
        if abs(ms) >= 2 * unit_ms:
            return f"{round(ms / unit_ms)} {unit}"
    return f"{round(ms / _S_MS)} s"


def exact_span_text(ms: int) -> str:
    """``ms`` milliseconds to the last one, and what that is in a unit that reads better."""
    short = span_text(ms)
    return short if short.endswith(" ms") else f"{ms} ms ({short})"


def between_text(low_ms: int, high_ms: int) -> str:
    """Return bounds on how far one clock is ahead of another: ``-1 to +2 ms``, and in a larger unit if it is far."""
    exact = f"{low_ms:+d} to {high_ms:+d} ms"
    short = span_text(low_ms if abs(low_ms) < abs(high_ms) else high_ms)
    return exact if short.endswith(" ms") else f"{exact} ({short})"
