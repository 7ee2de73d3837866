"""At which timestamp a read may be served, and what must happen first.

::

    ................ last_ts ........ ceiling ........ clock bound ........
      served at once      |  wait for what    |  raise the      |  refused:
                          |  is in flight     |  ceiling first  |  TimestampInFuture

- *The newest* (linearizable): at the last applied timestamp. Whatever was acknowledged is at or below it.
- *At or below the last applied timestamp*: everything that will ever be there is there.
- *Above it*: the clock moves forward, so that no later write can get a timestamp at or below it; then the entries in
  flight are waited for, some of which may be below it. That promise must survive a restart, so it is kept below a
  replicated *ceiling*, above which the next start begins. The ceiling is raised a little ahead, only when a read needs
  it: an idle group writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from cortado.errors import ClockOutOfBounds, TimestampInFuture
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import WALL_MS_MAX, Timestamp
from cortado.store.node.turns import Turns


class ReadPoints:
    """Finds the timestamp to read at. ``raise_ceiling`` returns when the new ceiling is durable."""

    def __init__(
        self,
        turns: Turns,
        clock: Clock,
        *,
        ceiling_ahead_ms: int,
        raise_ceiling: Callable[[Timestamp], Awaitable[None]],
    ) -> None:
        self._turns = turns
        self._clock = clock
        self._ceiling_ahead_ms = ceiling_ahead_ms
        self._raise_ceiling = raise_ceiling
        self._raising: asyncio.Lock = asyncio.Lock()

    @property
    def newest(self) -> Timestamp:
        """The linearizable read's timestamp. In a group of one nobody else can have acknowledged anything newer."""
        return self._turns.applied.last_ts

    async def resolve(self, at: Timestamp | None) -> Timestamp:
        """``at``, once everything at or below it can be read for good; None for the newest.

        Raises TimestampInFuture, ResourceExhausted where the ceiling can't be raised.
        """
        if at is None or at <= self.newest:
            return self.newest if at is None else at
        self._advance_clock(at)
        in_flight = self._turns.in_flight_ended()
        if in_flight is not None:
            await in_flight
        await self._keep_below_ceiling(at)
        return at

    def _advance_clock(self, at: Timestamp) -> None:
        now = self._clock.now()
        try:
            self._clock.update(at)
        except ClockOutOfBounds as error:
            problem = f"is more than {self._clock.max_offset_ms} ms ahead of the server's clock"
            raise TimestampInFuture("at", problem, str(at), str(now)) from error

    async def _keep_below_ceiling(self, at: Timestamp) -> None:
        # One at a time: who waited here mostly finds that the one before has raised it far enough.
        async with self._raising:
            applied = self._turns.applied
            if at > applied.last_ts and at > applied.ceiling:
                wall_ms = min(at.wall_ms + self._ceiling_ahead_ms, WALL_MS_MAX)
                await self._raise_ceiling(max(at, Timestamp(at.epoch, wall_ms, 0)))
