"""All watches of one node: let in within bounds, ended when the node can't serve them, counted.

A replica serves watches as long as it follows a leader: one that has known no leader for ``watch_leaderless_ms`` ends
them, so that clients turn to another; otherwise a watcher of a node that is cut off would wait without being told. A
node that stops, or has its state replaced soon, ends them at once. Nothing is lost by that: a watcher that goes on
elsewhere names the timestamp that it is complete up to.

*Time goes on without writes.* A timestamp is resolved once it is applied, and an idle group applies nothing. So a
leader that has watches and has not written for ``watch_close_ms`` raises the ceiling to its clock, by an entry of its
own: that entry's timestamp resolves everything below it, here and at every replica. A group without watches at its
leader writes nothing, and then the replicas resolve as far as they have applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from cortado.errors import CortadoError, Unavailable
from cortado.store.auth.caller import holder
from cortado.store.clock.timestamp import Timestamp, lag_ms
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item
from cortado.store.process.admission import Gate
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.feed.counted import CountedWindow, CountingPass
from cortado.store.replica.feed.feed import ChangeFeed, WatchQueue
from cortado.store.replica.feed.history import HistoryPass, read_changes, read_previous
from cortado.store.replica.feed.marks import Marks
from cortado.store.replica.feed.watch import Watch

T = TypeVar("T")

# About how many bytes a key of a window takes, and how many keys a window holds however little room is left.
_KEY_BYTES: Final = 128
_WINDOW_EVENTS_MIN: Final = 1_000


@dataclass(frozen=True, slots=True)
class WatchStatistics:
    """The figures of one node's watches.

    - ``watches``: open now; ``ranges``: how many different ones they watch; ``catching_up``: those that are reading
      history from the engine, or wait for their turn to.
    - ``queued_events``, ``queued_bytes``: changes that wait to be sent.
    - ``recent_bytes``: changes that are kept in memory for watchers that come back.
    - ``events``: changes handed over since the start, by all; ``overflows``: how often a watch was too slow for its
      queue, and caught up from the engine instead; ``passes``: how often history was searched, and ``passes_by_index``:
      how often the index of changes had it.
    - ``resolved_lag_ms``: how far the slowest watch is behind the applied entries, 0 without watches; a watch from the
      beginning counts since it began.
    """

    watches: int
    ranges: int
    catching_up: int
    queued_events: int
    queued_bytes: int
    recent_bytes: int
    events: int
    overflows: int
    passes: int
    passes_by_index: int
    resolved_lag_ms: int


class Watches:
    """Everything runs on the node's loop."""

    def __init__(
        self,
        *,
        store: VersionStore,
        group_id: int,
        limits: NodeLimits,
        feed: ChangeFeed,
        run_scan: Callable[[Callable[[], T]], Awaitable[T]],
        has_leader: Callable[[], bool],
        is_idle_for: Callable[[int], bool],
        close_time: Callable[[], Awaitable[None]],
    ) -> None:
        """``is_idle_for(ms)``: whether this node leads, and nothing was written for so long; then ``close_time()``
        writes an entry."""
        self.feed = feed
        self._store = store
        self.gate = Gate("watches", count_max=limits.watches_max, holder=holder)
        self._limits = limits
        self._history = _History(store, group_id, limits, run_scan)
        self._has_leader = has_leader
        self._is_idle_for = is_idle_for
        self._close_time = close_time
        self._watches: set[Watch] = set()
        self._events_of_closed = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._leaderless_s: float | None = None
        self._stopped: CortadoError | None = None

    @contextmanager
    def watch(
        self,
        start: bytes,
        end: bytes,
        after: Timestamp,
        *,
        resolved_interval_ms: float,
        progress_only: bool = False,
        is_read_at: bool = False,
    ) -> Iterator[Watch]:
        """Watch a range for the length of the block: see :class:`Watch`. Raises ResourceExhausted, Unavailable once the
        node stopped."""
        if self._stopped is not None:
            raise self._stopped
        with self.gate.place():
            watch = Watch(
                self.feed,
                self._history,
                start,
                end,
                after,
                resolved_interval_ms=resolved_interval_ms,
                progress_only=progress_only,
                is_read_at=is_read_at,
            )
            self._watches.add(watch)
            self._look_later()
            try:
                yield watch
            finally:
                self._watches.remove(watch)
                self._events_of_closed += watch.events
                watch.close()

    async def window(
        self,
        start: bytes,
        end: bytes,
        after: Timestamp,
        until: Timestamp,
        *,
        changes_max: int,
        bytes_max: int,
        parts: int,
    ) -> CountedWindow:
        """Return the oldest changes of a range in ``(after, until]``, counted: at most ``changes_max`` (0: any number)
        and ``bytes_max`` of them, but never more than ``watch_pass_events_max``; always whole commits, and one at
        least. It ends before the first change that is not in place yet. ``until`` is applied. Raises as
        :meth:`.HistoryPass.step`.
        """
        until = min(until, self.feed.complete_to(start, end))
        if until <= after:
            return CountedWindow(after, 0, (), (0,))
        history, events_max = self._history, self._limits.watch_pass_events_max
        async with history.place():
            search = history.search(start, end, after, until, min(changes_max or events_max, events_max))
            counting = CountingPass(search, self._store, bytes_max=bytes_max, parts=parts)
            while not await history.run(counting.step):
                pass
            history.passed(search)
            return await history.run(counting.counted)

    async def previous(self, items: list[Item], *, bytes_max: int) -> list[Item | None]:
        """Return the version that each of the first changes replaced: see :func:`read_previous`."""
        return await self._history.run(lambda: self._history.previous(items, bytes_max))

    def end_all(self, error: CortadoError) -> None:
        """Let every watch have this error next."""
        for watch in self._watches:
            watch.end(error)

    def stop(self, error: CortadoError) -> None:
        """As :meth:`end_all`, and let none in any more."""
        self._stopped = error
        self.end_all(error)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def statistics(self) -> WatchStatistics:
        """Cheap: to be asked at any time."""
        feed = self.feed
        return WatchStatistics(
            watches=len(self._watches),
            ranges=feed.ranges,
            catching_up=sum(watch.is_catching_up for watch in self._watches),
            queued_events=feed.queued_events,
            queued_bytes=feed.queued_bytes,
            recent_bytes=feed.recent.size_bytes,
            events=self._events_of_closed + sum(watch.events for watch in self._watches),
            overflows=feed.overflows,
            passes=self._history.passes,
            passes_by_index=self._history.passes_by_index,
            resolved_lag_ms=max((lag_ms(feed.position, watch.sent, watch.began) for watch in self._watches), default=0),
        )

    # --- from time to time -------------------------------------------------------------------------------------------

    def _look_later(self) -> None:
        if self._timer is None and self._watches and self._stopped is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limits.watch_close_ms / 1_000, self._look)

    def _look(self) -> None:
        self._timer = None
        self._look_at_leader(asyncio.get_running_loop().time())
        is_closing = self._closing is not None and not self._closing.done()
        if self._watches and not is_closing and self._is_idle_for(self._limits.watch_close_ms):
            self._closing = asyncio.ensure_future(self._close())
        self._look_later()

    def _look_at_leader(self, now_s: float) -> None:
        if self._has_leader() or not self._watches:
            self._leaderless_s = None
        elif self._leaderless_s is None:
            self._leaderless_s = now_s
        elif now_s - self._leaderless_s >= self._limits.watch_leaderless_ms / 1_000:
            self._leaderless_s = None
            problem = "this replica knows no leader, and may lack changes: go on at another node"
            self.end_all(Unavailable(problem, retry_delay_ms=100))

    async def _close(self) -> None:
        # If there is no room, or leadership is lost, time stands still for now.
        with suppress(CortadoError):
            await self._close_time()


class _History:
    """The engine, as watches read it: a few passes at a time, each in slices on the scan thread."""

    def __init__(
        self,
        store: VersionStore,
        group_id: int,
        limits: NodeLimits,
        run_scan: Callable[[Callable[[], T]], Awaitable[T]],
    ) -> None:
        self._store = store
        self._group_id = group_id
        self._limits = limits
        self._run_scan = run_scan
        self._places = asyncio.Semaphore(limits.watch_passes_max)
        self.marks = Marks()
        self.passes = self.passes_by_index = 0
        self.held_events = 0
        """The changes of windows that are being sent."""

    def begin(self, queue: WatchQueue, after: Timestamp, until: Timestamp) -> HistoryPass:
        # Many watches that come back at once take smaller windows, so that together they stay bounded.
        room = self._limits.watch_bytes_max // _KEY_BYTES - self.held_events
        events_max = min(self._limits.watch_pass_events_max, max(room, _WINDOW_EVENTS_MIN))
        return self.search(queue.start, queue.end, after, until, events_max)

    def search(self, start: bytes, end: bytes, after: Timestamp, until: Timestamp, events_max: int) -> HistoryPass:
        self.passes += 1
        bounds = (start, end, after, until)
        return HistoryPass(self._store.engine, self._store, *bounds, events_max=events_max, group_id=self._group_id)

    def passed(self, search: HistoryPass) -> None:
        self.passes_by_index += search.is_by_index

    def read(self, keys: list[bytes], *, bytes_max: int) -> list[Item]:
        return read_changes(self._store.engine, self._store, keys, bytes_max=bytes_max)

    def previous(self, items: list[Item], bytes_max: int) -> list[Item | None]:
        return read_previous(self._store.engine, self._store, items, bytes_max=bytes_max)

    async def run(self, step: Callable[[], T]) -> T:
        return await self._run_scan(step)  # type: ignore[return-value, arg-type]

    def place(self) -> asyncio.Semaphore:
        return self._places

    @contextmanager
    def holding(self, events: int) -> Iterator[None]:
        self.held_events += events
        try:
            yield
        finally:
            self.held_events -= events
