"""One watch: batches of changes in order, and how far they are complete, for as long as the caller takes them.

::

            attach at P                        overflow, or another state
    sent ─────────────────► catch up (sent, P] ─► queue (P, ...] ─────┐
     ▲                       from the engine       as it is applied   │
     `────────────────────────────────────────────────────────────────┘

``sent`` is the timestamp up to which everything was handed over. Whatever happens to the queue, the watch attaches it
again at the position of that moment, and catches up from ``sent``: so nothing is left out. Changes have one total order
(:mod:`cortado.store.replica.feed.order`), and those at or below the last one handed over are passed over: so nothing
comes twice, wherever a commit was cut in two.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.mvcc.versions import Item
from cortado.store.replica.feed.feed import ChangeFeed, WatchQueue
from cortado.store.replica.feed.history import HistoryPass
from cortado.store.replica.feed.marks import Marks
from cortado.store.replica.feed.oldest import Window
from cortado.store.replica.feed.order import place_after, place_of, ts_of

T = TypeVar("T")

BATCH_EVENTS_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 512 << 10


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes in their order, perhaps none; ``resolved`` if it is known: every change at or below it was handed over,
    with this batch or before. None if the batch ends within a commit."""

    items: list[Item]
    resolved: Timestamp | None


class History(Protocol):
    """The history before a watch's queue, and the watch's turn among the others."""

    marks: Marks

    def begin(self, queue: WatchQueue, after: Timestamp, until: Timestamp) -> HistoryPass:
        """See :class:`HistoryPass`."""

    def passed(self, search: HistoryPass) -> None:
        """It is done."""

    def read(self, keys: list[bytes], *, bytes_max: int) -> list[Item]:
        """See :func:`~cortado.store.replica.feed.history.read_changes`."""

    async def run(self, step: Callable[[], T]) -> T:
        """Run one slice off the loop."""

    def place(self) -> asyncio.Semaphore:
        """Held while a pass goes over the versions: so many at a time."""

    def holding(self, events: int) -> AbstractContextManager[None]:
        """Around the time in which a window of so many changes is sent: they count against later windows."""


class Watch:
    """Take :meth:`batches` once, then :meth:`close`."""

    def __init__(
        self,
        feed: ChangeFeed,
        history: History,
        start: bytes,
        end: bytes,
        after: Timestamp,
        *,
        resolved_interval_ms: float,
        progress_only: bool = False,
        is_read_at: bool = False,
    ) -> None:
        """Changes above ``after`` of keys in ``[start, end)``. The caller gets a batch, be it an empty one, every
        ``resolved_interval_ms``, as far as its turn comes by then. ``progress_only``: all batches are empty, and one
        comes also when a key has changed. ``is_read_at``: reads were promised the state at ``after``, so nothing will
        follow at or below it."""
        self._feed = feed
        self._history = history
        self._marks = history.marks
        self._interval_s = resolved_interval_ms / 1_000
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._ended: CortadoError | None = None
        self._last_place = place_after(after)
        self.sent = after
        """Everything at or below it was handed over."""
        self._final = after if is_read_at else ZERO
        self.began = feed.position
        """The position when it began."""
        self.events = 0
        self._queue = WatchQueue(start, end, self._wake, keeps=not progress_only)
        feed.open(self._queue)
        self._joins_at = after if progress_only else feed.attach(self._queue, after)
        self.due_s = self._loop.time() + self._interval_s
        self._is_marked = self._is_closed = False
        self._marks.put(self)

    def end(self, error: CortadoError) -> None:
        """Raise this error to the caller that takes batches, next."""
        self._ended = error
        self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._feed.close(self._queue)

    def mark(self) -> bool:
        """See :class:`.Marked`."""
        self._is_marked = not self._is_closed
        self._wake()
        return self._is_marked

    @property
    def is_catching_up(self) -> bool:
        """True while there is something to be had from the engine first."""
        return self.sent < self._joins_at

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Without end. The first comes at once, and says where the watch begins.

        Raises SnapshotTooOld if history that this needs is gone, Unavailable if this replica can't go on: at another
        one, go on from the last ``resolved``.
        """
        yield self._batch([], self.sent)
        while not self._queue.keeps:
            self.check()
            if self._queue.has_news or await self._is_due():
                self._queue.has_news = False
                yield self._batch([], self._feed.complete_to(self._queue.start, self._queue.end))
        while True:
            self.check()
            if self._joins_at > self.sent:
                async with aclosing(self._catch_up(self._joins_at)) as found:
                    async for batch in found:
                        yield batch
            elif not self._queue.is_attached:
                self._joins_at = self._feed.attach(self._queue, self.sent)
                if self._joins_at <= self.sent and not self._queue.is_attached and await self._is_due():
                    # Not all is in place yet.
                    yield self._batch([], self.sent)
            elif self._queue.runs:
                yield self._take()
            elif await self._is_due():
                yield self._batch([], self._feed.position)

    # --- as it is applied --------------------------------------------------------------------------------------

    def _take(self) -> Batch:
        queue = self._queue
        items = self._feed.take(queue, events_max=BATCH_EVENTS_MAX, bytes_max=BATCH_BYTES_MAX)
        if not queue.runs:
            return self._batch(items, self._feed.position)
        last_ts = ts_of(items[-1])
        # Cut within a commit: its rest is to come.
        is_whole = last_ts < ts_of(queue.runs[0][0])
        return self._batch(items, last_ts if is_whole else None)

    def _batch(self, items: list[Item], resolved: Timestamp | None) -> Batch:
        if items and place_of(items[0][0]) <= self._last_place:
            items = items[bisect_right(items, self._last_place, key=_place_of_item) :]
        if items:
            self._last_place = place_of(items[-1][0])
            self.events += len(items)
        if resolved is not None and resolved > self.sent:
            self.sent = resolved
        self.due_s = self._loop.time() + self._interval_s
        if self._is_marked:
            self._is_marked = False
            self._marks.put(self)
        return Batch(items, self.sent if resolved is not None and self._is_final() else None)

    def _is_final(self) -> bool:
        """Return whether all up to ``sent`` is in place here. If the watch began at a later time than is in place here,
        entries below that may still come, and it hands over none of them."""
        return self.sent <= max(self._final, self._feed.complete_to(self._queue.start, self._queue.end))

    async def _is_due(self) -> bool:
        """Wait for something in the queue, or the end of the interval: True there."""
        if self._is_marked:
            return True
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return False

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def check(self) -> None:
        """Raise the error that ended the watch, if there is one."""
        if self._ended is not None:
            raise self._ended

    # --- history -----------------------------------------------------------------------------------------------------

    async def _catch_up(self, until: Timestamp) -> AsyncGenerator[Batch, None]:
        """Everything up to ``until`` that was not handed over, window by window."""
        while self.sent < until:
            search = asyncio.ensure_future(self._search(until))
            try:
                while not await self._is_done(search):
                    yield self._batch([], self.sent)
                window = search.result()
            finally:
                search.cancel()
            with self._history.holding(len(window.keys)):
                async with aclosing(self._changes_of(window)) as found:
                    async for batch in found:
                        yield batch

    async def _search(self, until: Timestamp) -> Window:
        """Return the next window, when it is this watch's turn to look for it."""
        history = self._history
        async with history.place():
            search = history.begin(self._queue, self.sent, until)
            while not await history.run(search.step):
                self.check()
            history.passed(search)
            return await history.run(search.window)

    async def _is_done(self, search: asyncio.Future[Window]) -> bool:
        """Wait for a search, or the end of the interval: False there."""
        await asyncio.wait({search}, timeout=max(self.due_s - self._loop.time(), 0.0))
        self.check()
        return search.done()

    async def _changes_of(self, window: Window) -> AsyncGenerator[Batch, None]:
        history, keys = self._history, window.keys
        if not keys:
            yield self._batch([], window.until)
        while keys:
            found = await history.run(lambda keys=keys: history.read(keys, bytes_max=BATCH_BYTES_MAX))  # type: ignore[misc]
            self.check()
            keys = keys[len(found) :]
            last_ts = ts_of(found[-1])
            if not keys:
                yield self._batch(found, window.until)
            else:
                is_whole = last_ts < ts_of((keys[0], b""))
                yield self._batch(found, last_ts if is_whole else None)


def _place_of_item(item: Item) -> bytes:
    return place_of(item[0])
