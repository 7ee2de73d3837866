"""Find the timestamp at which a read may be served, the replica, and the steps that must come first.

::

    ................ last_ts ........ ceiling ........ clock bound ........
      at once, at any     |  leader: wait for |  leader: raise  |  refused:
      replica             |  what is in flight|  the ceiling    |  TimestampInFuture

- *The newest* (linearizable): the leader alone, at the last committed timestamp, after a round in which a majority has
  answered it (:mod:`cortado.store.replica.read.read_index`). If something may have expired since that commit, and the
  commit lies before this leader's term or long ago, an entry comes first (:mod:`cortado.store.replica.read.expiring`).
- *At or below the last applied timestamp*: any replica. The state there is complete, since timestamps rise strictly
  along the log.
- *Above it*: the leader alone. Its clock moves forward, so that it gives no later write a timestamp at or below the
  read's; then it waits for the entries in flight, some of which may be below it. That promise must bind later leaders,
  too, so it is kept below a replicated *ceiling*, above which each leader begins. The ceiling is raised a little ahead,
  only when a read needs it: an idle group writes nothing.
- *Stale*: any replica, at its last applied timestamp, if that contains every commit until the bound asked for.

A deposed leader that does not know it yet may serve a read above the log without a round. The ceiling that covers the
read was committed in this leader's term or before, so every later leader holds it. So each of their writes is above the
ceiling, and above the read. Writes at or below the read are in this leader's own log, for which it has waited, or came
from earlier leaders, all of whose entries are applied. (Had its own been lost with its leadership, the read would have
ended with NotLeader.) If the ceiling must be raised first, that is an entry which a majority takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from cortado.errors import (
    ClockOutOfBounds,
    CortadoError,
    OutcomeUnknown,
    ResourceExhausted,
    TimestampInFuture,
    Unavailable,
)
from cortado.invariants import invariant
from cortado.store.clock.timestamp import WALL_MS_MAX, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS
from cortado.store.observe.call import CURRENT
from cortado.store.observe.measures import ReadMeasures
from cortado.store.replica.context import GroupContext
from cortado.store.replica.driver import Driver
from cortado.store.replica.read.expiring import LATE_MS
from cortado.store.replica.read.turns import ReadTurns

CAUGHT_UP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Stale:
    """A read that may miss writes acknowledged in the last ``ms`` milliseconds."""

    ms: int


class ReadPoints:
    """Finds the timestamp to read at. ``raise_ceiling`` returns when the new ceiling is committed."""

    def __init__(
        self, group: GroupContext, driver: Driver, *, raise_ceiling: Callable[[Timestamp], Awaitable[None]]
    ) -> None:
        self._group = group
        self._driver = driver
        self._clock = group.process.clock
        self._ceiling_ahead_ms = group.process.limits.ceiling_ahead_ms
        self._monotonic_ms = group.process.monotonic_ms
        self._raise_ceiling = raise_ceiling
        self._raising: asyncio.Lock = asyncio.Lock()
        self._saying: asyncio.Lock = asyncio.Lock()
        self._term_ms = 0
        self._turns = ReadTurns(group.process.monotonic_ms)
        self.measures = ReadMeasures()

    def term_begins(self) -> None:
        """Note that this node leads from now on."""
        self._term_ms = self._clock.physical_ms

    def resolve(self, at: Timestamp | Stale | None) -> Awaitable[Timestamp]:
        """Return the timestamp to read at, once it can be read at; None asks for the newest.

        Raises TimestampInFuture, NotLeader, Restoring, Unavailable (a replica that is too stale, or whose data is being
        replaced).
        """
        self.check_open()
        if at is None:
            return self.newest()
        if self._group.is_installing:
            self._group.check_serving()
        return self.stale(at) if isinstance(at, Stale) else self.at(at)

    async def linearize(self) -> Timestamp:
        """Return a timestamp that sees every write acknowledged, by any node, before this call.

        A group of one waits for nothing. Raises NotLeader, Restoring, Unavailable.
        """
        self.check_open()
        return await self.newest()

    def check_open(self) -> None:
        """Raise Restoring if the cluster takes a backup; NotLeader if that may have ended by now."""
        features = self._driver.pipeline.features
        if not features.is_closed:
            return
        if self._driver.leadership.term is None and not self._driver.is_alone:
            raise self._driver.leadership.not_leader()
        features.check_open()

    async def newest(self) -> Timestamp:
        """Return a timestamp as :meth:`linearize`, but also during a restore, for the restore's own reads."""
        newest = self._driver.readable_ts
        if newest is not None:
            return await self._say_time(newest) if self._is_late(newest) else newest
        if self._group.is_installing:
            self._group.check_serving()
        return await self._asked()

    async def caught_up(self) -> None:
        """Return when every entry that this node knows to be committed is applied here. So a caller that it answered
        finds that write when it asks for the catalogue without a time. Raises Unavailable if the data is being
        replaced, or that takes longer than ``CAUGHT_UP_S``."""
        self.check_open()
        group, driver, committed = self._group, self._driver, self._group.log.durable_commit_index
        group.check_serving()
        if driver.applied.index >= committed:
            return
        await self._once_applied(lambda: driver.applied.index >= committed)

    async def _once_applied(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` holds, which applying committed entries brings about. Raises Unavailable."""
        group = self._group
        problem = f"this replica has not applied all entries within {CAUGHT_UP_S:g} s that it knows to be committed"
        await self._soon(lambda: condition() or group.is_installing, problem)
        group.check_serving()

    async def _soon(self, condition: Callable[[], bool], problem: str) -> None:
        """Return once ``condition`` holds and the read has its turn; committed entries are applied at once for it.
        Raises Unavailable if ``condition`` takes longer than ``CAUGHT_UP_S``."""
        try:
            await asyncio.wait_for(self._driver.until(condition), CAUGHT_UP_S)
        except TimeoutError:
            raise Unavailable(problem, retry_delay_ms=1_000) from None
        if self._turns.is_over():
            await self._turns.next()

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` holds and the read has its turn. Raises Unavailable once the node stopped."""
        await self._driver.until(condition)
        if self._turns.is_over():
            await self._turns.next()

    async def in_place(self, ts: Timestamp) -> None:
        """Return when all rows that large transactions committed up to ``ts`` are in place here, for readers of
        versions as they are stored. Raises Unavailable if that takes longer than ``CAUGHT_UP_S``."""
        store = self._group.store
        if store.unresolved.seen_at(ts, b"", ABOVE_KEYS):
            problem = f"a large transaction that was committed before {ts} is being put in place"
            await self._soon(lambda: not store.unresolved.seen_at(ts, b"", ABOVE_KEYS), problem)

    async def applied_to(self, read_ts: Timestamp) -> Timestamp:
        """Return ``read_ts`` once every version that it sees is applied: scans read from the engine alone. Raises
        Unavailable once the node stopped."""
        driver = self._driver
        if driver.applied.last_ts < min(read_ts, driver.pipeline.acknowledged_ts):
            await self._until(lambda: driver.applied.last_ts >= min(read_ts, driver.pipeline.acknowledged_ts))
        return read_ts

    async def at(self, at: Timestamp) -> Timestamp:
        """Return ``at``, once the state at or below it is final and can be read.

        Raises TimestampInFuture, NotLeader, ResourceExhausted if the ceiling can't be raised.
        """
        driver = self._driver
        if at <= driver.applied.last_ts or at == driver.pipeline.newest_ts:
            return at
        driver.check_running()
        if driver.leadership.term is None:
            raise driver.leadership.not_leader()
        term = driver.leadership.term
        # Before its term's first entry is applied, a leader does not know yet its predecessors' last timestamp.
        await self._until(lambda: driver.leadership.is_ready or driver.leadership.term != term)
        self._check_leads(term)
        if at <= driver.applied.last_ts:
            return at
        self._advance_clock(at)
        in_flight = driver.pipeline.in_flight
        if in_flight:
            # Not the newest alone: one that finds no room is taken back while those before it wait to be applied.
            await self._until(lambda: all(each.has_ended for each in in_flight))
            self._check_leads(term)
        await self._keep_below_ceiling(at, term)
        return at

    async def stale(self, stale: Stale) -> Timestamp:
        """Return the last applied timestamp, if it is recent enough. A leader makes sure that it is; another replica
        applies the entries that it knows to be committed at once, if that is enough.

        Otherwise raises Unavailable, saying how stale this replica is.
        """
        driver, log = self._driver, self._driver.log
        since_ms = self._monotonic_ms() - stale.ms
        must_say_time = driver.leadership.is_ready and self._is_late(driver.applied.last_ts)
        if _reaches(log.fresh_as_of_ms, since_ms) and not must_say_time:
            return driver.applied.last_ts
        if driver.leadership.is_elected or driver.is_alone:
            return await self._asked()
        if _reaches(log.fresh_once_applied_ms, since_ms):
            await self._once_applied(lambda: _reaches(log.fresh_as_of_ms, since_ms))
            return driver.applied.last_ts
        fresh_ms = log.fresh_as_of_ms
        if fresh_ms is None:
            problem = "it is not known how stale this replica is: it has heard of no leader"
        else:
            problem = f"this replica is {self._monotonic_ms() - fresh_ms:.0f} ms stale, {stale.ms} ms were asked for"
        self.measures.stale_refused += 1
        raise Unavailable(problem)

    async def _asked(self) -> Timestamp:
        """Return the last commit's timestamp, once a majority confirms this leader. Raises NotLeader, Unavailable."""
        driver = self._driver
        driver.check_running()
        if driver.is_settled_alone:
            return driver.applied.last_ts
        waiting, asked_ms = driver.ask_read(), self._monotonic_ms()
        try:
            read_ts = await waiting
        except CortadoError:
            self.measures.failed += 1
            raise
        if self._turns.is_over():
            await self._turns.next()
        waited_ms = self._monotonic_ms() - asked_ms
        self.measures.waits.observe(waited_ms / 1000)
        call = CURRENT.get()
        if call is not None:
            call.read_wait_ms = waited_ms
        return await self._say_time(read_ts) if self._is_late(read_ts) else read_ts

    def _is_late(self, newest: Timestamp) -> bool:
        """Return whether something may have expired since ``newest``, the last commit, that a read at it would see."""
        newest_ms = newest.wall_ms
        if newest_ms >= self._driver.applied.expires_to_ms:
            return False
        return newest_ms < max(self._term_ms, self._clock.physical_ms - LATE_MS)

    async def _say_time(self, read_ts: Timestamp) -> Timestamp:
        """Return a timestamp as :meth:`_asked`, once an entry tells the time: one for all waiting reads. Raises
        NotLeader, Unavailable. If there is no room for an entry, returns ``read_ts``."""
        driver = self._driver
        async with self._saying:
            if self._is_late(driver.pipeline.newest_ts):
                try:
                    await self._raise_ceiling(self._clock.now())
                except ResourceExhausted:
                    return read_ts
                except OutcomeUnknown as lost:
                    raise driver.leadership.not_leader() from lost
        return max(read_ts, driver.pipeline.newest_ts)

    def _check_leads(self, term: int) -> None:
        if self._driver.leadership.term != term:
            raise self._driver.leadership.not_leader()

    def _advance_clock(self, at: Timestamp) -> None:
        now = self._clock.reading()
        try:
            self._clock.update(at)
        except ClockOutOfBounds as error:
            problem = f"is more than {self._clock.max_offset_ms} ms ahead of the server's clock"
            raise TimestampInFuture("at", problem, str(at), str(now)) from error
        invariant(self._clock.last >= at, "later writes sort above what is read", self._clock.last, at)

    async def _keep_below_ceiling(self, at: Timestamp, term: int) -> None:
        # One at a time: a read that waited here mostly finds that the one before has raised it far enough.
        async with self._raising:
            # A ceiling raised by another leader binds the leaders after it, not its own writes.
            self._check_leads(term)
            applied = self._driver.applied
            if at > applied.last_ts and at > self._driver.pipeline.ceiling:
                # Bounded by our clock: else reads at earlier leaders' ceilings would carry each later one further.
                ahead_ms = min(at.wall_ms, self._clock.physical_ms + self._clock.max_offset_ms)
                wall_ms = min(ahead_ms + self._ceiling_ahead_ms, WALL_MS_MAX)
                try:
                    await self._raise_ceiling(max(at, Timestamp(at.epoch, wall_ms, 0)))
                except OutcomeUnknown as lost:
                    # The ceiling's outcome is unknown; but the read was certainly not served.
                    raise self._driver.leadership.not_leader() from lost
                # A leader deposed since has forgotten its appended entries; the ceiling is committed all the same.
                is_covered = self._driver.leadership.term != term or at <= self._driver.pipeline.ceiling
                invariant(is_covered, "the ceiling covers what is read ahead of the log", at)


def _reaches(fresh_ms: float | None, since_ms: float) -> bool:
    return fresh_ms is not None and fresh_ms >= since_ms
