"""Changes on their way from the applied entries to the queues of watches.

::

    applied(entries) ─► position, RecentChanges ─► RangeIndex ─► WatchQueue, WatchQueue, ...     on the loop

The *position* is the timestamp of the last applied entry: every change at or below it was handed out here, and later
ones are above it. Timestamps rise along the log, and an entry is handed out only once it is applied. So a queue that
was attached at one position and read to its end at another has exactly the changes between them. Changes that are
committed and not applied yet are above the position.

Four things keep a queue from being complete, and each detaches it, which its watch notices and makes good from the
engine: it overflows, all queues together do, a snapshot was installed (its entries are not known), or a large
transaction was committed that may have written in its range.

The rows of such a transaction are put in place over the entries that follow, at the timestamp of its commit. So of the
ranges that it may have written nothing is complete above that timestamp until all of it is in place (**L9**): their
queues stay detached, their watches have everything below it, and wait. Nor does :class:`RecentChanges` know which rows
it has changed: it begins anew (**L10**).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from cortado.invariants import invariant
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ABOVE_KEYS
from cortado.store.keys.keyspace import KeyRange
from cortado.store.mvcc.versions import Item
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.feed.order import in_order, size_of
from cortado.store.replica.feed.ranges import RangeIndex
from cortado.store.replica.feed.recent import Applied, RecentChanges


class WatchQueue:
    """The changes that one watch was not given yet, in runs: each holds whole commits, in order."""

    def __init__(self, start: bytes, end: bytes, wake: Callable[[], None], *, keeps: bool = True) -> None:
        """The queue takes keys in ``[start, end)``; ``wake`` is called when a change came, or the queue was detached.
        One that ``keeps`` nothing is told alone that a change came."""
        self.keeps = keeps
        self.has_news = not keeps
        self.start = start
        self.end = end
        self.wake = wake
        self.runs: deque[list[Item]] = deque()
        self.is_attached = False
        self.events = 0
        self.size_bytes = 0


class _Audience:
    """All queues of one range. Compared by identity."""

    def __init__(self) -> None:
        self.queues: set[WatchQueue] = set()


class ChangeFeed:
    """One group's changes as they are applied here. Everything runs on the node's loop."""

    def __init__(
        self, position: Timestamp, limits: NodeLimits, late_from: Callable[[bytes, bytes], Timestamp | None]
    ) -> None:
        """``position`` is the timestamp of the last applied entry. ``late_from`` returns the first timestamp at which
        versions of a range are still to be put in place; None if there is none."""
        self._late_from = late_from
        self._held: set[WatchQueue] = set()
        self.position = position
        self.recent = RecentChanges(
            position, entries_max=limits.watch_recent_entries_max, bytes_max=limits.watch_recent_bytes_max
        )
        self._limits = limits
        self._ranges: RangeIndex[_Audience] = RangeIndex()
        self._audiences: dict[tuple[bytes, bytes], _Audience] = {}
        self.queued_events = 0
        self.queued_bytes = 0
        self.overflows = 0
        """How often a queue had to be given up, since its watch was too slow."""

    @property
    def ranges(self) -> int:
        """How many different ranges are watched."""
        return len(self._audiences)

    # --- applied entries -----------------------------------------------------------------------------------------

    def applied(self, entries: Sequence[Applied], position: Timestamp, broken: Sequence[KeyRange] = ()) -> None:
        """Take the next entries, in the order of the log; ``position`` is the last one's timestamp. To the ``broken``
        ranges they bring versions later."""
        invariant(position >= self.position, "changes are handed out in their order", self.position, position)
        for entry in entries:
            if entry.items:
                self.recent.add(entry)
                if not self._ranges.is_empty:
                    self._hand_out(entry.items)
        self.position = position
        if broken:
            self.recent.clear(position)
            for start, end in broken:
                self._give_up_within(start, end)
        for queue in [each for each in self._held if self.complete_to(each.start, each.end) == position]:
            self._held.remove(queue)
            queue.wake()

    def complete_to(self, start: bytes, end: bytes) -> Timestamp:
        """Return the time up to which all changes of ``[start, end)`` are in place."""
        late_from = self._late_from(start, end)
        return self.position if late_from is None else late_from.previous()

    def replaced(self, position: Timestamp) -> None:
        """Another state, as of ``position``, took the place of the one that was here."""
        if position == self.position:
            return
        self.recent.clear(position)
        self.position = position
        self._give_up_within(b"", ABOVE_KEYS)

    def _hand_out(self, items: Sequence[Item]) -> None:
        found: dict[_Audience, list[Item]] = {}
        for begin, end, audiences in self._ranges.runs(items):
            for audience in audiences:
                found.setdefault(audience, []).extend(items[begin:end])
        for audience, changes in found.items():
            run, size_bytes = in_order(changes), size_of(changes)
            for queue in audience.queues:
                self._push(queue, run, size_bytes)

    def _push(self, queue: WatchQueue, run: list[Item], size_bytes: int) -> None:
        if not queue.keeps:
            queue.has_news = True
            queue.wake()
            return
        if not queue.is_attached:
            return
        limits = self._limits
        if (
            queue.events + len(run) > limits.watch_queue_events_max
            or queue.size_bytes + size_bytes > limits.watch_queue_bytes_max
            or self.queued_bytes + size_bytes > limits.watch_bytes_max
        ):
            self.overflows += 1
            self._give_up(queue)
            return
        queue.runs.append(run)
        self._count(queue, len(run), size_bytes)
        queue.wake()

    def _give_up_within(self, start: bytes, end: bytes) -> None:
        for audience in self._audiences.values():
            for queue in audience.queues:
                if queue.start < end and start < queue.end:
                    self._give_up(queue)

    def _give_up(self, queue: WatchQueue) -> None:
        """It is not complete any more: nothing in it may be sent."""
        queue.runs.clear()
        self._count(queue, -queue.events, -queue.size_bytes)
        queue.is_attached = False
        queue.wake()

    def _count(self, queue: WatchQueue, events: int, size_bytes: int) -> None:
        queue.events += events
        queue.size_bytes += size_bytes
        self.queued_events += events
        self.queued_bytes += size_bytes

    # --- watches -------------------------------------------------------------------------------------------------

    def open(self, queue: WatchQueue) -> None:
        """From now on ``queue`` may be attached, until it is closed."""
        bounds = (queue.start, queue.end)
        audience = self._audiences.get(bounds)
        if audience is None:
            audience = self._audiences[bounds] = _Audience()
            self._ranges.add(*bounds, audience)
        audience.queues.add(queue)

    def close(self, queue: WatchQueue) -> None:
        """The inverse of :meth:`open`."""
        bounds = (queue.start, queue.end)
        audience = self._audiences[bounds]
        audience.queues.remove(queue)
        self._held.discard(queue)
        self._count(queue, -queue.events, -queue.size_bytes)
        queue.runs.clear()
        if not audience.queues:
            del self._audiences[bounds]
            self._ranges.remove(*bounds, audience)

    def attach(self, queue: WatchQueue, after: Timestamp) -> Timestamp:
        """Put everything into ``queue`` that is applied from here on, and return a timestamp: the changes between
        ``after`` and it are still needed. It is ``after`` if the changes in memory reach back that far.

        While not all of its range is in place, the queue is not attached, and no change above the returned timestamp
        can be had: it is woken once that has changed."""
        complete_to = self.complete_to(queue.start, queue.end)
        if complete_to < self.position:
            self._held.add(queue)
            return max(after, complete_to)
        queue.is_attached = True
        recent = self.recent.since(after, queue.start, queue.end)
        if recent is None:
            return self.position
        runs = [in_order(changes) for changes in recent]
        events, size_bytes = sum(map(len, runs)), sum(map(size_of, runs))
        limits = self._limits
        if (
            events > limits.watch_queue_events_max
            or size_bytes > limits.watch_queue_bytes_max
            or self.queued_bytes + size_bytes > limits.watch_bytes_max
        ):
            return self.position
        queue.runs.extend(runs)
        self._count(queue, events, size_bytes)
        return after

    def take(self, queue: WatchQueue, *, events_max: int, bytes_max: int) -> list[Item]:
        """Return the next changes: at most ``events_max``, and little more than ``bytes_max`` of them, but one at
        least."""
        taken: list[Item] = []
        taken_bytes = 0
        while queue.runs and len(taken) < events_max and taken_bytes < bytes_max:
            run = queue.runs.popleft()
            size_bytes = size_of(run)
            if len(taken) + len(run) > events_max or taken_bytes + size_bytes > bytes_max:
                run, rest = _cut(run, events_max - len(taken), bytes_max - taken_bytes)
                if rest:
                    queue.runs.appendleft(rest)
                size_bytes = size_of(run)
            taken += run
            taken_bytes += size_bytes
        self._count(queue, -len(taken), -taken_bytes)
        return taken


def _cut(run: list[Item], events_max: int, bytes_max: int) -> tuple[list[Item], list[Item]]:
    """Return the beginning of a run, as much as is allowed and one more if that ends within an item, and the rest."""
    size_bytes = 0
    for place, (key, value) in enumerate(run[:events_max]):
        size_bytes += len(key) + len(value)
        if size_bytes >= bytes_max:
            return run[: place + 1], run[place + 1 :]
    return run[:events_max], run[events_max:]
