"""The leader's part in leases: which holders are alive, and which leases end.

::

    elected ──► every lease has its whole ttl ahead of it ──► heard of: again its whole ttl
                                                          ├─► silent for longer, or a day old: ended, by an entry
                                                          └─► the oldest ones, while room is scarce: the same

The log (:mod:`cortado.store.collection.leases`) says that a lease was acquired, and that it ended. When it was heard of
is in the leader's memory, by its monotonic clock, so an idle lease writes nothing, and wall clocks that differ end
none. A new leader knows nothing of that and begins anew: a dead holder's lease may live one ttl longer for each
election, and a living one's is never lost by one.

While room is scarce, leases end from the oldest timestamp on. All leases of one timestamp end together, and as many
timestamps as it takes until something can be collected. None ends if that frees nothing, such as within the retention.
While room stays scarce, the number of timestamps doubles each minute: a thousand end in ten minutes.

No holder keeps a consumer's lease alive: its age counts, the time since it was moved.

Its age is by wall time, since that alone outlasts leaders; but a leader ends a lease for its age only after it has seen
that lease for an hour itself, so a clock that jumps ends none. If the epoch has changed since, wall times do not
compare, and the age counts from when this leader saw the lease first.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cortado.errors import HoldExpired
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection.leases import AGE_MS_MAX, Lease, check_lease_id, end_as_seen, lease_of, leases_of
from cortado.store.mvcc.evaluation import Evaluate
from cortado.store.replica.context import GroupContext
from cortado.store.replica.driver import Driver
from cortado.store.replica.read.read_timestamps import ReadPoints
from cortado.store.replica.write.proposals import WriteResult

_LOG: Final = logging.getLogger(__name__)

LOOK_EVERY_MS: Final = 1_000.0

# A part of the greatest age: a leader ends a lease for its age only after it has seen it for this long.
_SEEN_PART: Final = 24
MAKE_ROOM_MS: Final = 60_000.0
"""So long it takes until what leases kept may be collected, before others end for want of room."""


@dataclass(slots=True)
class _Held:
    """A lease that there is, as far as this leader has looked; times are of its monotonic clock."""

    lease: Lease
    seen_ms: float
    heard_ms: float


class Leases:
    """One replica's. On the loop."""

    def __init__(
        self,
        group: GroupContext,
        driver: Driver,
        reads: ReadPoints,
        *,
        write: Callable[[Evaluate], Awaitable[WriteResult]],
        would_free: Callable[[Timestamp, Timestamp | None], bool],
    ) -> None:
        """``write`` returns once it is committed; it is for the leader's own, which may use the reserve of the disk.
        ``would_free`` is :meth:`.Collector.would_free`."""
        self._group = group
        self._driver = driver
        self._reads = reads
        self._write = write
        self._monotonic_ms = group.process.monotonic_ms
        self._term: int | None = None
        self._held: dict[bytes, _Held] = {}
        self._ending: set[bytes] = set()
        self._would_free = would_free
        self._room_from_ms = 0.0
        self._timestamps_at_once = 1
        """How many end at once for want of room."""
        self.ended = 0
        """How many this node has ended, since the start, for being silent, too old, or in the way."""

    # --- what there is -------------------------------------------------------------------------------------------

    async def all(self) -> list[Lease]:
        """Return all that were acquired and have not ended, the oldest timestamp first. Raises NotLeader,
        Unavailable."""
        read_ts = await self._reads.applied_to(await self._reads.linearize())
        return await self._group.process.scan(lambda: leases_of(self._group.store.snapshot(read_ts)))

    def oldest(self) -> Lease | None:
        """Return the lease with the oldest timestamp, as this leader has seen last. It serves planning; a decision asks
        :func:`oldest_lease` when it is evaluated."""
        return min((held.lease for held in self._seen()), key=lambda lease: lease.ts, default=None)

    @property
    def count(self) -> int:
        """How many there are, as this leader has seen last; 0 elsewhere."""
        return len(self._seen())

    def age_ms(self, lease: Lease) -> float:
        """Return how long ago it was acquired, as far as this leader can tell."""
        held = self._held.get(lease.lease_id)
        seen_ms = 0.0 if held is None else self._monotonic_ms() - held.seen_ms
        clock = self._group.process.clock
        if lease.acquired_ts.epoch != clock.epoch:
            return seen_ms
        return max(seen_ms, clock.physical_ms - lease.acquired_ts.wall_ms)

    def kept_ms(self, lease: Lease) -> float:
        """Return how far its timestamp is back. If the timestamp's epoch is over, that is unknown, but it is at least
        the lease's age."""
        clock = self._group.process.clock
        return clock.physical_ms - lease.ts.wall_ms if lease.ts.epoch == clock.epoch else self.age_ms(lease)

    def silent_ms(self, lease: Lease) -> float:
        """Return for how long this leader has not heard of it; for a consumer's lease, how long ago it was moved."""
        if lease.consumer:
            return self.age_ms(lease)
        held = self._held.get(lease.lease_id)
        return 0.0 if held is None else self._monotonic_ms() - held.heard_ms

    def _seen(self) -> Sequence[_Held]:
        """Return the leases seen in this term: others may have changed those of an earlier term since."""
        term = self._driver.leadership.term
        return [] if term is None or term != self._term else [*self._held.values()]

    # --- what holders say ----------------------------------------------------------------------------------------

    async def keep(self, lease_id: bytes, asker: Asker = ANYBODY) -> None:
        """The ``asker`` says that the holder of its lease is alive.

        Raises HoldExpired, also for one of another principal; NotLeader, Unavailable, InvalidArgument.
        A majority is asked whether this node still leads: one that was deposed, and does not know it, keeps nothing.
        """
        check_lease_id(lease_id)
        read_ts = await self._reads.linearize()
        lease = lease_of(self._driver.pipeline.reader(read_ts), lease_id, asker)
        if lease is None or lease.lease_id in self._ending:
            raise HoldExpired(lease_id.hex())
        self._hear(lease)

    def _hear(self, lease: Lease) -> None:
        now_ms = self._monotonic_ms()
        held = self._held.setdefault(lease.lease_id, _Held(lease, now_ms, now_ms))
        held.heard_ms = now_ms

    # --- the leader's duty ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """End expired leases, for as long as this node leads."""
        if self._term != self._driver.leadership.term:
            self._term = self._driver.leadership.term
            self._held.clear()
            self._ending.clear()
        while True:
            await self._look()
            expired = [held.lease for held in self._held.values() if self._is_over(held)]
            await self._end(expired, "its holder is silent, or it is too old")
            await self._end(self._in_the_way(), "the disk or the map is nearly full, and it was one of the oldest")
            await asyncio.sleep(LOOK_EVERY_MS / 1000)

    async def _look(self) -> None:
        """Read the leases that are applied by now. Beside the loop: many may have ended lately, and lie among those
        that have not."""
        applied_ts = self._driver.applied.last_ts
        found = await self._group.process.scan(lambda: leases_of(self._group.store.snapshot(applied_ts)))
        now_ms = self._monotonic_ms()
        before = self._held
        self._held = {}
        for lease in found:
            held = before.get(lease.lease_id)
            is_same = held is not None and held.lease.acquired_ts == lease.acquired_ts
            self._held[lease.lease_id] = held if held is not None and is_same else _Held(lease, now_ms, now_ms)

    def _is_over(self, held: _Held) -> bool:
        now_ms = self._monotonic_ms()
        # A wall clock that has jumped by years ends nothing that this leader has not seen for a while.
        consumer = held.lease.consumer
        age_ms_max = held.lease.ttl_ms if consumer else AGE_MS_MAX
        is_old = self.age_ms(held.lease) > age_ms_max and now_ms - held.seen_ms > age_ms_max / _SEEN_PART
        return is_old or (not consumer and now_ms - held.heard_ms > held.lease.ttl_ms)

    def _in_the_way(self) -> Sequence[Lease]:
        """No reader fills the disk: while room is scarce the oldest leases end, and after a while the next."""
        now_ms = self._monotonic_ms()
        if not self._group.process.engine.room().is_tight:
            self._timestamps_at_once = 1
            return []
        if now_ms < self._room_from_ms:
            return []
        leases = [held.lease for held in self._seen()]
        ascending = sorted({each.ts for each in leases})
        ending = set(ascending[: self._in_turn(ascending)])
        if ending:
            self._room_from_ms = now_ms + MAKE_ROOM_MS
            self._timestamps_at_once *= 2
        return [each for each in leases if each.ts in ending]

    def _in_turn(self, ascending: Sequence[Timestamp]) -> int:
        """Return how many of the leased timestamps, from the first on, no lease is to hold any more: as few as free
        something, but as many as it is the turn of; none if even all of them free nothing."""

        def frees(count: int) -> bool:
            return self._would_free(ascending[0], ascending[count] if count < len(ascending) else None)

        if not ascending or not frees(len(ascending)):
            return 0
        # More of them never free less.
        fewest = bisect_left(range(1, len(ascending) + 1), True, key=frees) + 1
        return min(max(fewest, self._timestamps_at_once), len(ascending))

    async def _end(self, leases: Sequence[Lease], why: str) -> None:
        """End all of them by one entry, but for those of consumers that were moved meanwhile; another holder that
        comes meanwhile comes too late."""
        if not leases:
            return
        ids = [lease.lease_id for lease in leases]
        self._ending.update(ids)
        try:
            ended = (await self._write(end_as_seen(*leases))).value
        finally:
            self._ending.difference_update(ids)
        assert isinstance(ended, tuple)
        self.ended += len(ended)
        for lease in [each for each in leases if each.lease_id in ended]:
            self._held.pop(lease.lease_id, None)
            label = f" ({lease.label})" if lease.label else ""
            _LOG.warning("the lease %s%s has ended: %s", lease.lease_id.hex(), label, why)
