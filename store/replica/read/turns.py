"""Reads that went on together take turns with the other work of the loop.

A confirmed round, or an applied transaction, lets up to two thousand waiting reads go on at once, and each may read a
page, which takes up to 3 ms of a busy processor. In one turn of the loop they would hold it for seconds: peers hear no
heartbeat then, and elect another leader. So a read whose turn has no time left of :data:`SLICE_MS` waits in line::

    turn    read read read │ heartbeats, timers, rounds, replies │ read read read │ ...
                SLICE_MS ──┘ the others in line

Quick reads all have their turn together, which is much cheaper, and make no future for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

SLICE_MS: Final = 5.0
READS_A_TURN: Final = 16
"""So many of those in line try to go on in a turn: pages take its slice, quick reads need no turn each."""


class ReadTurns:
    """The turns of one replica's reads. Make it on the loop."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._loop = asyncio.get_running_loop()
        self._monotonic_ms = monotonic_ms
        # When the slice of this turn is over; None if no read went on in it.
        self._ends_ms: float | None = None
        self._line: deque[asyncio.Future[None]] = deque()
        # Those that tried, and found no time: they stay before the others, or new readers would overtake them for ever.
        self._tried: deque[asyncio.Future[None]] = deque()

    def is_over(self) -> bool:
        """Return whether a read that goes on now must wait for :meth:`next`."""
        if self._ends_ms is None:
            self._begin()
            return False
        return self._monotonic_ms() > self._ends_ms

    async def next(self) -> None:
        """Return in a later turn that has time for the read."""
        line = self._line
        while True:
            waiting = self._loop.create_future()
            line.append(waiting)
            await waiting
            if not self.is_over():
                return
            line = self._tried

    def _begin(self) -> None:
        self._ends_ms = self._monotonic_ms() + SLICE_MS
        self._loop.call_soon(self._turned)

    def _turned(self) -> None:
        """Begin the next slice, if reads are in line."""
        self._ends_ms = None
        while self._tried:
            self._line.appendleft(self._tried.pop())
        if not self._line:
            return
        self._begin()
        for _ in range(min(len(self._line), READS_A_TURN)):
            waiting = self._line.popleft()
            if not waiting.done():
                waiting.set_result(None)
