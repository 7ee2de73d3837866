"""Allowances: each principal may do something so often at once, and then so often in a time.

An allowance is kept as a time: each use moves it forward by ``every_ms``, and it is never further ahead of now than all
uses at once would move it. Callers that are not known share the allowance of the empty name.
"""

from __future__ import annotations

from typing import Final

_NAMES_MAX: Final = 2_048
"""More than there are principals. Beyond it, names whose allowance is whole again are forgotten."""


class Allowances:
    """The allowances of all principals for one thing. ``now_ms`` is of any clock, which may be put back."""

    def __init__(self, at_once: int, every_ms: float) -> None:
        """``at_once`` times, and once more every ``every_ms``."""
        self._every_ms = every_ms
        self._at_once_ms = at_once * every_ms
        self._whole_ms: dict[str, float] = {}
        """When each has all of its allowance again."""

    def wait_ms(self, name: str, now_ms: float, count: int = 1) -> float:
        """How long it takes until ``count`` more are allowed to ``name``; 0 where they are, and then they are taken."""
        taken_ms = self._whole_ms.get(name, now_ms) - now_ms
        # It is more only where the clock was put back, which silences nobody.
        if not 0 <= taken_ms <= self._at_once_ms:
            taken_ms = 0.0
        over_ms = taken_ms + count * self._every_ms - self._at_once_ms
        if over_ms > 0:
            return over_ms
        if len(self._whole_ms) >= _NAMES_MAX:
            self._whole_ms = {each: whole_ms for each, whole_ms in self._whole_ms.items() if whole_ms > now_ms}
        self._whole_ms[name] = now_ms + taken_ms + count * self._every_ms
        return 0.0
