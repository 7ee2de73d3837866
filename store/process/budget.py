"""One budget of memory for everything that is in flight in a process.

::

    limit.in-flight-bytes-max
    ├─ entries   set aside: evaluated, appended and unapplied entries have bounds of their own
    ├─ calls     requests that are received and not answered: refused if there is no room
    ├─ chunks    of bulk streams: they wait in line, which their callers feel as back pressure
    └─ kept      columns for later aggregates: in what calls and chunks leave, and given back as soon as they take it

Calls and chunks are counted by about their cost in memory, a few times their encoded size, from before they are parsed
until they are answered. Each of the two keeps a quarter of the bytes that they share: the other never takes the last of
it, so neither a bulk load nor a flood of calls keeps the other out.

No waiter waits for ever:

- An admitted call or chunk never asks for more. So it ends even if the budget is full, and gives back.
- A waiting chunk holds the bytes of its message, which arrived before it could ask. If waiting chunks hold all of the
  budget, none is admitted; then the head of the line is let in all the same.
- The line is first come, first served, and the chunks' own quarter is enough for any one of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.store.mvcc.kept import Kept
from cortado.store.process.admission import RETRY_DELAY_MS, GateUse
from cortado.store.process.limits import NodeLimits

CALLS_MAX: Final = 65_536
"""More calls than this are refused, however small they are."""
CALL_COST: Final = 3
"""A call's cost for each byte of its request: the message, its parsed form, and its writes."""
CALL_BYTES: Final = 8 << 10
"""A call's cost beside its request: its task, and gRPC's own state."""
CHUNK_COST: Final = 4
"""A chunk's cost for each byte while it is prepared, at most (measured: 3.4) ..."""
ROW_BYTES: Final = 512
"""... and for each row (measured: 400)."""
_KEPT_PARTS: Final = 4


class Budget:
    """The bytes that calls and chunks share. Everything here runs on the node's loop, but for ``room_for``."""

    def __init__(self, limits: NodeLimits) -> None:
        self.kept: list[Kept] = []
        self._kept_bytes_max = limits.kept_bytes_max
        self.bytes_max = limits.in_flight_bytes_max - limits.entries_bytes_set_aside
        kept_bytes = self.bytes_max // _KEPT_PARTS
        self.calls = Share(self, "calls", kept_bytes)
        self.chunks = Line(self, "bulk chunks", kept_bytes)

    def in_flight_bytes(self) -> int:
        """Return the bytes that both hold."""
        return self.calls.bytes + self.chunks.bytes

    def keep(self, kept: Kept) -> None:
        """Let the columns of one replica share the room of all kept columns."""
        self.kept.append(kept)
        kept.room = lambda: self.room_for(kept)

    def room_for(self, kept: Kept) -> int:
        """Return how many bytes these columns may hold beside the others now. On any thread."""
        room = min(self._kept_bytes_max, self.bytes_max - self.in_flight_bytes())
        return max(0, room - sum([each.bytes for each in self.kept if each is not kept]))

    def took(self) -> None:
        """Take memory back from kept columns, if calls and chunks have come to need it."""
        for each in self.kept:
            room = self.room_for(each)
            if each.bytes > room:
                each.shrink(room)

    def room(self, share: Share) -> int:
        """Return how many bytes ``share`` may still take; below 0 if too much arrived already."""
        other = self.chunks if share is self.calls else self.calls
        # Chunks that arrived unasked may exceed their part. The kept part of this share is its own all the same.
        taken = min(max(other.bytes, other.kept_bytes), self.bytes_max - share.kept_bytes)
        return self.bytes_max - share.bytes - taken


class Share:
    """One of the two sides."""

    def __init__(self, budget: Budget, name: str, kept_bytes: int) -> None:
        self._budget = budget
        self.name = name
        self.kept_bytes = kept_bytes
        self.count = 0
        self.bytes = 0
        self.refused = 0
        """Takers that found no room, since the start."""

    def has_room(self, size_bytes: int, count: int = 1) -> bool:
        """Return whether ``count`` calls of ``size_bytes`` in all fit."""
        return self.count + count <= CALLS_MAX and size_bytes <= self._budget.room(self)

    def take(self, size_bytes: int) -> Held:
        """Take the bytes. Raises ResourceExhausted if there is no room; then it takes nothing."""
        if not self.has_room(size_bytes):
            raise self.refusal()
        return self.add(size_bytes)

    def add(self, size_bytes: int, count: int = 1) -> Held:
        """Count bytes that are there already, room or not."""
        self.count += count
        self.bytes += size_bytes
        # Looked at here, since each call comes by: mostly there is nothing to take back.
        for kept in self._budget.kept:
            if kept.bytes:
                self._budget.took()
                break
        return Held(self, size_bytes, count)

    def refusal(self) -> ResourceExhausted:
        self.refused += 1
        limit = self._budget.bytes_max
        problem = f"{self.count} {self.name} hold {self.bytes} bytes, all that is in flight may hold {limit}"
        return ResourceExhausted(problem, RETRY_DELAY_MS, self.name, limit)

    def use(self) -> GateUse:
        return GateUse(self.name, self.count, CALLS_MAX, self.bytes, self._budget.bytes_max)

    def _gave_back(self) -> None:
        self._budget.chunks.let_in()


@dataclass(slots=True, eq=False)
class Held:
    """Bytes of a share, until :meth:`leave`."""

    share: Share
    bytes: int
    count: int = 1
    is_inside: bool = False
    """Whether a chunk has been let in."""

    def leave(self) -> None:
        """Give the bytes back, once."""
        share, size_bytes, self.bytes = self.share, self.bytes, -1
        if size_bytes >= 0:
            share.count -= self.count
            share.bytes -= size_bytes
            if isinstance(share, Line):
                share.left(self)
            share._gave_back()


class Line(Share):
    """The share whose takers wait in line."""

    def __init__(self, budget: Budget, name: str, kept_bytes: int) -> None:
        super().__init__(budget, name, kept_bytes)
        self._waiting: deque[tuple[asyncio.Future[None], Held, int]] = deque()
        self._inside = 0

    @property
    def waiting(self) -> int:
        """Return how many stand in line."""
        return len(self._waiting)

    async def enter(self, held: Held, size_bytes: int) -> None:
        """Wait until ``held`` may be ``size_bytes`` in all. A cancelled caller still holds its earlier bytes."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = granted, held, size_bytes
        self._waiting.append(place)
        self.let_in()
        try:
            await granted
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                self.let_in()
            raise

    def let_in(self) -> None:
        """Let in the waiters for which there is room, in order."""
        while self._waiting:
            granted, held, size_bytes = self._waiting[0]
            more_bytes = max(size_bytes - held.bytes, 0)
            if self._inside and more_bytes > self._budget.room(self):
                return
            self._waiting.popleft()
            held.is_inside = True
            held.bytes += more_bytes
            self.bytes += more_bytes
            self._budget.took()
            self._inside += 1
            if not granted.done():
                granted.set_result(None)

    def left(self, held: Held) -> None:
        self._inside -= held.is_inside
