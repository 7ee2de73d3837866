"""The leader collects garbage that no read can reach: it raises the safepoints, and searches for garbage below them.

::

    every step    safepoints ──► through the log, as far as retention and leases allow
    each piece    that was written below them: slices on the scan thread ──► what is garbage ──► through the log
    each drop     whose grace is over: its ranges ──► cleared some thousand items at a time, through the log

All replicas remove the same items at the same place in the log, since they are to hold the same bytes (G8). A version
that is garbage stays garbage, so later writes do not matter until it is removed. The collector's state is in memory
only: a new leader begins with everything.

Beside other work it takes a fifth of the scan thread's time at most, in small steps; an idle thread it uses whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cortado.errors import Unavailable
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import Dropped
from cortado.store.catalog.dropped import begin_clearing, collectible, forget
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.collection.leases import Lease, oldest_lease
from cortado.store.collection.safepoints import (
    CLUSTERS,
    Retentions,
    collected_below,
    is_own,
    raise_safepoints,
    retentions_of,
    risen,
)
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import KeyRange
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.evaluation import Cleared, Evaluate, Evaluation, Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.safepoints import SAFEPOINTS_KEY, Safepoints
from cortado.store.replica.collection.findings import Findings
from cortado.store.replica.collection.horizon import Horizon
from cortado.store.replica.collection.pieces import PIECE_VERSIONS, Piece, Pieces
from cortado.store.replica.collection.slices import Place, Slice, look
from cortado.store.replica.collection.under_way import UnderWay
from cortado.store.replica.context import GroupContext
from cortado.store.replica.driver import Driver
from cortado.store.replica.feed.recent import Applied

STEP_MS_MIN: Final = 250.0
STEP_MS_MAX: Final = 60_000.0
STEPS: Final = 60
"""So often within the shortest retention it is looked whether safepoints may rise."""

# A piece is due once its first write is below the safepoint by this part of the retention: by then more of it is
# garbage.
_WAITS: Final = 8

_SLICE_ITEMS: Final = 2_000
_SLICE_BYTES: Final = 512 << 10
_REST_BUSY: Final = 4.0
_REST_IDLE: Final = 1.0
"""After a slice, rest at least this many times its duration. Under load the duration is mostly the wait for the
interpreter."""
_BUSY_REMOVED: Final = 1_000
_IDLE_REMOVED: Final = 4_000
"""Items that one entry removes."""
_BUSY_MS: Final = 100.0


@dataclass(frozen=True, slots=True)
class Collection:
    """How it goes. ``removed`` is of this replica since its start, ``pieces`` of this leader's term, and ``pending`` of
    them have what will be garbage. ``holder`` is the oldest lease if the cluster's safepoint waits for it."""

    safepoints: Safepoints
    retention_ms: int
    lag_ms: int
    holder: Lease | None
    removed: int
    pieces: int
    pending: int


class Collector:
    """One replica's; :meth:`run` is the duty of a leader. All on the loop."""

    def __init__(
        self,
        group: GroupContext,
        driver: Driver,
        *,
        write: Callable[[Evaluate], Awaitable[object]],
        catalog: Callable[[Reader], Catalog],
        on_damage: Callable[[Damage], None],
    ) -> None:
        """``write`` proposes a write, and returns once that is committed; it may use the disk's reserve."""
        self._group = group
        self._driver = driver
        self._process = group.process
        self._store = group.store
        self._machine = group.machine
        self._write = write
        self._catalog = catalog
        self._on_damage = on_damage
        self._monotonic_ms = group.process.monotonic_ms
        self._retention_ms = group.process.retention_ms
        self._horizon = Horizon()
        self._pieces = Pieces(group.of.data, ())
        self._retentions = Retentions({}, ZERO)
        self._dropped: tuple[Timestamp, list[Dropped]] | None = None
        self._written_ms = 0.0
        self._last_ts = driver.applied.last_ts
        self._turns = asyncio.Lock()
        self._under_way = UnderWay()
        self._disruptions = 0
        driver.applier.heard = self._heard
        self._horizon.note(self._monotonic_ms(), self._last_ts)

    def status(self) -> Collection:
        """Return the state as far as this replica has applied."""
        reader = self._machine.snapshot(self._driver.applied.last_ts)
        oldest = oldest_lease(reader)
        holder = None if oldest is None or oldest.ts > self._bound(self._retention_ms) else oldest
        pieces = len(self._pieces)
        return Collection(
            self._store.safepoints, self._retention_ms, self.lag_ms, holder, self.removed, pieces, self.pending
        )

    @property
    def lag_ms(self) -> int:
        """How far the cluster's safepoint is back, in wall time; 0 while nothing was ever collected."""
        safepoint = self._store.safepoints.cluster
        return max(0, self._process.clock.physical_ms - safepoint.wall_ms) if safepoint > ZERO else 0

    @property
    def removed(self) -> int:
        """How many stored items were removed here since the start."""
        return self._machine.removals.removed

    @property
    def pending(self) -> int:
        """Return how many pieces have, or will have, garbage: 0 if all versions are kept."""
        ever = risen(self._store.safepoints, self._retentions, self._bounds(lambda _: LARGEST), None)
        return self._pieces.pending(lambda piece: collected_below(ever, piece.start))

    def would_free(self, held: Timestamp, next_held: Timestamp | None) -> bool:
        """Return whether something can be collected once the oldest lease is at ``next_held`` (None: there is no
        lease), and not while it is at ``held``. A piece that this leader has not looked at counts as garbage. The
        cluster's own keys do not count, since each lease leaves an old list of leases behind."""
        bounds = self._bounds(self._bound)
        before, after = (risen(self._store.safepoints, self._retentions, bounds, each) for each in (held, next_held))
        if before == after:
            return False
        if self._pieces.pending(lambda piece: ZERO if is_own(piece.start) else collected_below(after, piece.start)):
            return True
        drops = () if self._dropped is None else self._dropped[1]
        return any(before.of_table(each.what.table_id) < each.dropped_ts for each in drops if self._waits(each))

    # --- the duty ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """For as long as this node leads."""
        self._pieces, self._retentions = Pieces(self._group.of.data, ()), Retentions({}, ZERO)
        while True:
            async with self._turns:
                began_ms = self._monotonic_ms()
                await self._pass(self._waits_ms(), is_duty=True)
            # If more is to be done than fits between two steps, the next step follows at once.
            await asyncio.sleep(max(0.0, began_ms + self._step_ms() - self._monotonic_ms()) / 1000)

    async def pass_now(self) -> None:
        """Run one pass at once: all that is garbage by now is gone when it returns. The caller has checked that this
        node leads; raises the errors of a write if it no longer does."""
        async with self._turns:
            await self._pass(0.0, is_duty=False)

    async def _pass(self, waits_ms: float, *, is_duty: bool) -> None:
        if self._driver.pipeline.features.is_closed:
            # A delete that goes would not hide the older version that is put back after it.
            self._driver.pipeline.features.check_open()
        if self._machine.are_safepoints_damaged:
            # The safepoints that stand in for the damaged ones refuse every read of the past: versions below them are
            # not garbage.
            raise Unavailable("the safepoints are damaged here, and are repaired first", retry_delay_ms=1_000)
        self._disruptions = self._driver.pipeline.features.disruptions
        await self._raise_safepoints()
        await self._clear_dropped()
        began_ms = self._monotonic_ms()
        while (piece := self._pieces.due(self._below, waits_ms)) is not None:
            await self._collect(piece)
            if is_duty and self._monotonic_ms() - began_ms > self._step_ms():
                return

    def _heard(self, entries: Sequence[Applied]) -> None:
        """Entries were applied, here as at every replica."""
        now_ms = self._monotonic_ms()
        for each in entries:
            items = each.items
            if items and not (len(items) == 1 and items[0][0].startswith(SAFEPOINTS_KEY)):
                self._pieces.wrote(items, self._last_ts)
                self._written_ms = now_ms
            if each.moved:
                self._pieces.wrote(each.moved, self._last_ts)
            self._last_ts = each.last_ts
        self._horizon.note(now_ms, self._last_ts)

    @property
    def _is_busy(self) -> bool:
        is_written = self._monotonic_ms() - self._written_ms < _BUSY_MS
        return is_written or self._process.scans.use().count > 0

    @property
    def _removed_at_once(self) -> int:
        return _BUSY_REMOVED if self._is_busy else _IDLE_REMOVED

    def _shortest_ms(self) -> int:
        each = (self._retention_ms, *self._retentions.tables.values())
        return min([ms for ms in each if ms != KEEP_ALL], default=0)

    def _step_ms(self) -> float:
        shortest_ms = self._shortest_ms()
        return min(max(shortest_ms / STEPS, STEP_MS_MIN), STEP_MS_MAX) if shortest_ms else STEP_MS_MAX

    def _waits_ms(self) -> float:
        if self._process.engine.room().is_tight:
            return 0.0
        waits_ms = self._shortest_ms() / _WAITS
        return waits_ms if self._monotonic_ms() - self._written_ms < waits_ms else 0.0

    # --- safepoints --------------------------------------------------------------------------------------------

    async def _raise_safepoints(self) -> None:
        # A time at which nothing is written is a sample, too. Entries that came with a snapshot were never heard of.
        self._horizon.note(self._monotonic_ms(), self._driver.applied.last_ts)
        applied = self._machine.snapshot(self._driver.applied.last_ts)
        retentions = self._retentions
        if self._catalog(applied).changed_ts != retentions.changed_ts:
            retentions = await self._process.scan(lambda: retentions_of(Catalog(applied)))
        if retentions.tables != self._retentions.tables:
            self._pieces = Pieces(self._group.of.data, retentions.tables)
        self._retentions = retentions
        is_wanted = self.pending > 0 or any(map(self._waits, await self._drops()))
        if is_wanted and self._shortest_ms():
            await self._write(raise_safepoints(retentions, self._bounds(self._bound)))
            await self._applied()

    def _bounds(self, bound: Callable[[int], Timestamp]) -> dict[int, Timestamp]:
        """That of each retention after which something is collected."""
        own = {ms: bound(ms) for ms in {*self._retentions.tables.values()} if ms != KEEP_ALL}
        return own if self._retention_ms == KEEP_ALL else {CLUSTERS: bound(self._retention_ms), **own}

    def _bound(self, retention_ms: int) -> Timestamp:
        clock = self._process.clock
        return self._horizon.bound(self._monotonic_ms(), retention_ms, clock.physical_ms, clock.epoch)

    async def _applied(self) -> None:
        """Return once all committed entries are applied: the search reads the applied state."""
        committed = self._group.log.durable_commit_index
        await self._driver.until(lambda: self._driver.applied.index >= committed)

    # --- versions ----------------------------------------------------------------------------------------------

    def _below(self, piece: Piece) -> Timestamp:
        return collected_below(self._store.safepoints, piece.start)

    async def _collect(self, piece: Piece) -> None:
        """Look at a whole piece, and remove its garbage."""
        written_from, piece.written_from = piece.written_from, None
        end, place, looked = self._pieces.end_of(piece), Place(piece.start), 0
        following: Place | None = place
        findings = Findings(piece.loose)
        try:
            while following is not None:
                place, safepoint = following, self._below(piece)
                if looked >= PIECE_VERSIONS and not place.behind:
                    await self._remove(findings.take())
                    rest = self._pieces.divide(piece, place.key)
                    piece.loose = findings.loose
                    piece, looked = rest, 0
                    findings = Findings(piece.loose)
                found = await self._look(place, end, safepoint)
                self._pieces.mark(piece, safepoint if found.was_left else found.garbage.next_ts)
                findings.add(found)
                if findings.is_enough(self._removed_at_once):
                    await self._remove(findings.take())
                looked, following = looked + found.versions, found.next
            await self._remove(findings.take())
            piece.loose = findings.loose
            await self._under_way.end()
        except BaseException:
            self._under_way.give_up()
            self._pieces.mark(piece, written_from)
            raise

    async def _look(self, place: Place, end: bytes, safepoint: Timestamp) -> Slice:
        def timed() -> tuple[Slice, float]:
            began_ms = self._monotonic_ms()
            bounds = {"items_max": _SLICE_ITEMS, "bytes_max": _SLICE_BYTES}
            found = look(self._process.engine, place, end, safepoint, on_damage=self._on_damage, **bounds)
            return found, self._monotonic_ms() - began_ms

        found, took_ms = await self._process.scan(timed)
        await asyncio.sleep(took_ms * (_REST_BUSY if self._is_busy else _REST_IDLE) / 1000)
        return found

    async def _remove(self, removal: Removal | None) -> None:
        """One after the other; the next slices are looked at meanwhile."""
        if removal is None:
            return
        await self._under_way.end()
        self._under_way.begin(self._write(self._removing(removal)))

    # --- drops -----------------------------------------------------------------------------------------------------

    async def _drops(self) -> list[Dropped]:
        """Return the drops that are to be cleared, now or later."""
        applied = self._machine.snapshot(self._driver.applied.last_ts)
        as_of = self._catalog(applied).changed_ts
        if self._dropped is None or self._dropped[0] != as_of:
            # There may be twenty thousand.
            self._dropped = as_of, await self._process.scan(lambda: collectible(Catalog(applied)))
        return self._dropped[1]

    def _waits(self, dropped: Dropped) -> bool:
        """Return whether its grace has still to end: a safepoint rises for it, though nothing else may lie below."""
        if (dropped.what.retention_ms or self._retention_ms) == KEEP_ALL:
            return False
        return not self._is_over(dropped)

    def _is_over(self, dropped: Dropped) -> bool:
        return dropped.is_clearing or self._store.safepoints.of_table(dropped.what.table_id) >= dropped.dropped_ts

    async def _clear_dropped(self) -> None:
        for each in await self._drops():
            if any(self._store.unresolved.seen_at(LARGEST, *bounds) for bounds in each.what.ranges):
                # A large transaction that was committed before the drop is being put in its place there.
                continue
            if self._is_over(each):
                await self._clear(each)

    async def _clear(self, dropped: Dropped) -> None:
        number = dropped.number
        if not dropped.is_clearing:
            await self._write(lambda reader, _ts: Evaluation(begin_clearing(self._catalog(reader), number), None))
        for bounds in dropped.what.ranges:
            while await self._has_items(bounds):
                cleared = Cleared(*bounds, self._removed_at_once)
                await self._write(self._removing(Removal(cleared=[cleared])))
                await self._applied()
        await self._write(lambda reader, _ts: Evaluation(forget(self._catalog(reader), number), None))

    async def _has_items(self, bounds: KeyRange) -> bool:
        def look_there() -> bool:
            with self._process.engine.read() as txn:
                return bool(txn.keys(Space.DATA, *bounds, max_items=1)[0])

        return await self._process.scan(look_there)

    def _removing(self, removal: Removal) -> Evaluate:
        """Return a write of ``removal`` that is refused if a restore has begun since: garbage found before or during a
        restore is not removed after it."""
        disruptions = self._disruptions

        def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            if self._driver.pipeline.features.disruptions != disruptions:
                raise Unavailable("what was found to be garbage was found before a restore", retry_delay_ms=100)
            return Evaluation(Mutations(), None, removal=removal)

        return evaluate
