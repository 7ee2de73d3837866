"""Bound every queue, in count and in bytes, and refuse callers past the bound at once.

A :class:`Gate` stands before each queue: writes in flight, reads, streams. An admitted request holds its place until it
leaves; others are refused with the delay after which to try again. So memory under overload stays flat, and a caller
learns of the overload in microseconds instead of in timeouts.

A gate of streams has a share for each caller (:func:`.has_share`), so that one caller cannot keep the others out.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.store.auth.owners import has_share

RETRY_DELAY_MS: Final = 50

HELD: Final[ContextVar[list[Gate] | None]] = ContextVar("cortado_held", default=None)
"""The gates with shares at which the stream being served holds places, for the code that looks after it."""


@dataclass(frozen=True, slots=True)
class GateUse:
    """How full a queue is. ``bytes_max`` 0 means that only the count is bounded."""

    name: str
    count: int
    count_max: int
    bytes: int
    bytes_max: int


class Gate:
    """Bounds one queue. All calls come from the node's loop."""

    def __init__(
        self, name: str, *, count_max: int, bytes_max: int = 0, holder: Callable[[], str] | None = None
    ) -> None:
        """``holder`` names the caller to whose share a :meth:`place` counts; empty for none. Without ``holder`` there
        are no shares."""
        self.name = name
        self._holder = holder
        self._held: Counter[str] = Counter()
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._count = 0
        self._bytes = 0
        self.refused = 0
        """Callers that found no place, since the start."""
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def enter(self, size_bytes: int = 0, holder: str = "", count: int = 1) -> None:
        """Take ``count`` places of ``size_bytes`` in all, of the share of ``holder``. If they are not free, take
        nothing and raise ResourceExhausted.

        A request larger than the whole bound is let in when it is alone, since waiting would never help it. The place
        of the first waiter is kept for it: otherwise many small requests would keep a large one out.
        """
        kept_count, kept_bytes = (1, self._waiting[0][1]) if self._waiting else (0, 0)
        if self._count + kept_count + count > self._count_max:
            raise self._refusal(f"{self._count} {self.name} are in flight", self._count_max)
        if not self._has_room(kept_bytes + size_bytes):
            raise self._refusal(f"{self._bytes} bytes of {self.name} are in flight", self._bytes_max)
        if holder and not has_share(self._held[holder], self._count, self._count_max):
            raise self._over_share(holder)
        self._take(size_bytes, count)
        if holder:
            self._held[holder] += count

    def take(self, size_bytes: int = 0, count: int = 1) -> GatePlace:
        """Take places as :meth:`enter` does, for a caller that gives them back elsewhere."""
        self.enter(size_bytes, count=count)
        return GatePlace(self, size_bytes, count)

    async def wait(self, size_bytes: int = 0) -> None:
        """Take a place as :meth:`enter` does, but wait for it, first come first served. For a bounded number of
        waiters: their callers feel the wait as back pressure."""
        if not self._waiting and self._has_room(size_bytes):
            self._take(size_bytes)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = granted, size_bytes
        self._waiting.append(place)
        try:
            await granted
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                self._let_in()
            else:
                self.leave(size_bytes)
            raise

    def leave(self, size_bytes: int = 0, holder: str = "", count: int = 1) -> None:
        """Give back places that were taken with the same ``size_bytes``, ``holder`` and ``count``."""
        self._count -= count
        self._bytes -= size_bytes
        if holder:
            self._held[holder] -= count
            if not self._held[holder]:
                del self._held[holder]
        self._let_in()

    def _let_in(self) -> None:
        """Give places to the first in line, as far as there is room."""
        while self._waiting and self._has_room(self._waiting[0][1]):
            granted, next_bytes = self._waiting.popleft()
            self._take(next_bytes)
            if granted.done():
                # Cancelled, and does not know of its place yet: its handler gives the place back.
                continue
            granted.set_result(None)

    def place(self, size_bytes: int = 0, count: int = 1) -> AbstractContextManager[None]:
        """Hold ``count`` places for the duration, of the share of the caller. Raises ResourceExhausted."""
        return _Within(self, size_bytes, "" if self._holder is None else self._holder(), count)

    def use(self) -> GateUse:
        return GateUse(self.name, self._count, self._count_max, self._bytes, self._bytes_max)

    def _take(self, size_bytes: int, count: int = 1) -> None:
        self._count += count
        self._bytes += size_bytes

    def _has_room(self, size_bytes: int) -> bool:
        if self._count >= self._count_max:
            return False
        return not (self._bytes_max and self._count and self._bytes + size_bytes > self._bytes_max)

    def _over_share(self, holder: str) -> ResourceExhausted:
        own, free, limit = self._held[holder], self._count_max - self._count, self._count_max
        problem = f"{own} {self.name} of {holder} are in flight: no more than are free, which are {free} of {limit}"
        return self._refused(problem, limit)

    def _refusal(self, problem: str, limit: int) -> ResourceExhausted:
        return self._refused(f"{problem}, the limit is {limit}", limit)

    def _refused(self, problem: str, limit: int) -> ResourceExhausted:
        self.refused += 1
        return ResourceExhausted(problem, RETRY_DELAY_MS, resource=self.name, limit=limit)


class _Within:
    """The context of :meth:`Gate.place`. No generator, since each read holds one."""

    __slots__ = ("_count", "_gate", "_held", "_holder", "_size_bytes")

    def __init__(self, gate: Gate, size_bytes: int, holder: str, count: int) -> None:
        self._gate = gate
        self._count = count
        self._size_bytes = size_bytes
        self._holder = holder
        self._held = HELD.get() if holder else None

    def __enter__(self) -> None:
        self._gate.enter(self._size_bytes, self._holder, self._count)
        if self._held is not None:
            self._held.append(self._gate)

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self._size_bytes, self._holder, self._count)
        if self._held is not None:
            self._held.remove(self._gate)


@dataclass(frozen=True, slots=True)
class GatePlace:
    """Places that were taken together, to be left once."""

    gate: Gate
    size_bytes: int
    count: int = 1

    def leave(self) -> None:
        """Give the places back."""
        self.gate.leave(self.size_bytes, count=self.count)
