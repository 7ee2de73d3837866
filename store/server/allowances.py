"""Allowances: each principal may do a thing a number of times at once, and then once in each interval.

An allowance is kept as a time: each use moves it forward by ``every_ms``, and it is never further ahead of now than all
uses at once would move it. Callers that are not known share the allowance of the empty name.
"""

from __future__ import annotations

from typing import Final

_NAMES_MAX: Final = 2_048
"""More than there are principals. Beyond it, names with a whole allowance are forgotten."""


class Allowances:
    """The allowances of all principals for one thing. ``now_ms`` is of any clock, which may be put back."""

    def __init__(self, at_once: int, every_ms: float) -> None:
        """Allow ``at_once`` times, and once more every ``every_ms``."""
        self._every_ms = every_ms
        self._at_once_ms = at_once * every_ms
        self._whole_ms: dict[str, float] = {}
        """The time at which each name has all of its allowance again."""

    def wait_ms(self, name: str, now_ms: float, count: int = 1) -> float:
        """Return how long ``name`` has to wait for ``count`` more. If they are allowed now, take them and return 0."""
        taken_ms = self._whole_ms.get(name, now_ms) - now_ms
        # It is out of bounds only if the clock was put back, which must not cost a caller its allowance.
        if not 0 <= taken_ms <= self._at_once_ms:
            taken_ms = 0.0
        over_ms = taken_ms + count * self._every_ms - self._at_once_ms
        if over_ms > 0:
            return over_ms
        if len(self._whole_ms) >= _NAMES_MAX:
            self._whole_ms = {each: whole_ms for each, whole_ms in self._whole_ms.items() if whole_ms > now_ms}
        self._whole_ms[name] = now_ms + taken_ms + count * self._every_ms
        return 0.0
