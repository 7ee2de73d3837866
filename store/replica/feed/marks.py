"""When idle watches send marks: one timer for all of them, and a bound on how many a second.

A mark costs its node some 70 us, with or without changes. So a node sends at most ``MARKS_A_SECOND`` to idle watches, a
few at a time, and calls come between. With more watches than that, each one's interval is longer than it asked for:
with 4,000 it is 8 s. Watches with changes do not wait for their marks.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol

MARKS_A_SECOND: Final = 500
MARKS_AT_ONCE: Final = 8


class Marked(Protocol):
    """A watch that is told that its interval is over."""

    due_s: float
    """On the loop's clock; it may become later."""

    def mark(self) -> bool:
        """Its interval is over. False if no caller waits for that any more."""


class Marks:
    """In line by when they are due. Everything here runs on the loop."""

    def __init__(self) -> None:
        self._line: list[tuple[float, int, Marked]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._next_s = 0.0
        """Before that nothing is marked."""

    def put(self, marked: Marked) -> None:
        """Tell it once it is due. It may be in line once."""
        heappush(self._line, (marked.due_s, next(self._numbers), marked))
        if self._timer is None or self._line[0][2] is marked:
            self._look_later()

    def _look_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._line:
            at_s = max(self._line[0][0], self._next_s)
            self._timer = asyncio.get_running_loop().call_at(at_s, self._look)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        marked = 0
        while self._line and self._line[0][0] <= now_s and marked < MARKS_AT_ONCE:
            each = heappop(self._line)[2]
            if each.due_s > now_s:
                # It has said something meanwhile.
                heappush(self._line, (each.due_s, next(self._numbers), each))
            else:
                marked += each.mark()
        if marked == MARKS_AT_ONCE:
            self._next_s = now_s + MARKS_AT_ONCE / MARKS_A_SECOND
        self._timer = None
        self._look_later()
