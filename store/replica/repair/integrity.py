"""The damage handling of one replica: how damage is found, which reads are trusted meanwhile, and how it is repaired.

::

    the host's patrol: a log file can't be read ──────────────────────────────────────► damaged segments
    the host's patrol: reads everything, ───────┐
    again and again                             │
    a read, a copy for a snapshot, a peer ──────┼─► distrust where a true key may be hidden ─► repairs
    examiner: what a leader read is missing ────┘

Damage is met on any thread, and repaired on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from cortado.errors import Unavailable
from cortado.store.clock.timestamp import LOGICAL_MAX, WALL_MS_MAX, Timestamp
from cortado.store.log_files.verifying import SegmentDamage
from cortado.store.mvcc.damage import Damage
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.replica.context import GroupContext
from cortado.store.replica.driver import Driver
from cortado.store.replica.repair.damaged_segments import DamagedSegments
from cortado.store.replica.repair.ranges import answer
from cortado.store.replica.repair.repairs import Repairs
from cortado.store.replica.write.examining import Examiner, lost, rests_on
from cortado.store.replica.write.request_table.records import AHEAD_FACTOR

_LOG: Final = logging.getLogger(__name__)


class Integrity:
    """One replica's examiner and repairs, wired to its store, its log and its driver."""

    def __init__(self, group: GroupContext, driver: Driver, *, on_repaired: Callable[[], None]) -> None:
        """``on_repaired`` hears when stored items were changed."""
        self._process = group.process
        self._store = store = group.store
        self._of = group.of
        self._loop = asyncio.get_running_loop()
        self._is_stopping = False
        self._log = group.log
        self.disowned = 0
        """Entries that this leader gave up, since the start: they were worked out without versions that it had lost."""
        self.repairs = Repairs(
            group,
            applied_index=lambda: driver.applied.index,
            on_repaired=on_repaired,
            on_failure=driver.fail,
        )
        """The damage here, and the progress of its repair."""
        self.damaged_segments = DamagedSegments(group, driver.fail)
        """Log files that were found damaged."""
        self.examiner = Examiner(store, self._lacks)
        store.on_damage = self._met
        store.newest_request = lambda: self._newest_request(driver)
        group.log.examine = self.examiner.examine
        driver.on_doubts = self._hear_doubts

    def close(self) -> None:
        """Report nothing more: the node is stopping."""
        self._is_stopping = True

    async def stop(self) -> None:
        """End what runs in the background."""
        self.close()
        await self.damaged_segments.stop()
        await self.repairs.stop()

    async def answer(self, ask: Ask) -> Answer:
        """Read a range, or its first part. Raises Unavailable if the data is no state, or if a version of the range is
        known to be missing. A peer that asks for that one key is told that it is not here."""
        is_of_one_key = ask.end == ask.start + b"\x00"
        for each in () if is_of_one_key else self.repairs.missing():
            if each.space is ask.space and each.start < ask.end and ask.start < each.end:
                raise Unavailable(f"it lacks a version itself: {each.what}", 1_000)
        found = await self._process.scan(lambda: answer(self._process.engine, self._of, ask))
        for key in found.damaged:
            self.report(Damage.at(ask.space, key))
        return found

    def report(self, damage: Damage) -> None:
        """Note damaged data that was met: it is repaired from another member that has it whole, if there is one."""
        if not self._is_stopping:
            self.repairs.report(damage)

    def _newest_request(self, driver: Driver) -> bytes:
        """Return the key behind all requests that can be remembered by now: an id is ahead of its commit by some
        clocks' bounds."""
        last = driver.applied.last_ts
        wall_ms = min(last.wall_ms + AHEAD_FACTOR * self._process.clock.max_offset_ms, WALL_MS_MAX)
        return self._of.segment + bytes(Timestamp(last.epoch, wall_ms, LOGICAL_MAX))

    def _met(self, damage: Damage) -> None:
        """On the reader's thread."""
        self._loop.call_soon_threadsafe(self.report, damage)

    def found(self, damage: Damage) -> None:
        """Take a find of a pass over everything, on any thread. The damaged items of a range were something else,
        perhaps another key: no read may miss that."""
        if not self._of.overlaps(damage.space, damage.start, damage.end):
            return
        if not damage.is_of_one_key and not self.repairs.is_known(damage):
            self._store.distrust(damage)
        self._store.on_damage(damage)

    def _hear_doubts(self) -> None:
        """Take the doubts of followers. An entry that a follower refused was worked out without a version that is lost
        here: nothing may come of it."""
        for doubt in self._log.take_doubts():
            if not rests_on(self._log.window.entry_at(doubt.index), doubt.stored_key):
                _LOG.warning("a follower doubts entry %d, which did not read what it says is missing", doubt.index)
                continue
            _LOG.critical(
                "entry %d was worked out without %s, which a follower has", doubt.index, doubt.stored_key.hex()
            )
            self._lacks(lost(doubt.stored_key), doubt.stored_key)
            if self._log.disown(doubt.index):
                self.disowned += 1

    def found_segment(self, damage: SegmentDamage) -> None:
        """Take the patrol's find of a damaged log file, on the scan thread."""
        self._loop.call_soon_threadsafe(self._drop_segment, damage)

    def _drop_segment(self, damage: SegmentDamage) -> None:
        if not self._is_stopping:
            self.damaged_segments.report(damage)

    def _lacks(self, damage: Damage, stored_key: bytes) -> None:
        """A version is not here, and another member has it: no read may say that there is nothing."""
        _LOG.critical("lost here: %s", damage.what)
        self._store.distrust(damage)
        self.repairs.fill(damage, stored_key)
