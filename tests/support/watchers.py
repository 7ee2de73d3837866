"""Watchers of nodes in this process that record the changes they see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import KV_SPACE, kv_range, user_key_of
from cortado.store.mvcc.reader import logical_of
from cortado.store.mvcc.versions import Item, payload_of, timestamp_of
from support.watch_history import Resolved, Seen

NAMESPACE = "test"


def seen_of(item: Item) -> Seen:
    """Return a change as an engine item, by the user's key of a pair, or a row's."""
    key, value = item
    payload = payload_of(value)
    return Seen(
        timestamp_of(key[-TIMESTAMP_BYTES:]),
        user_key_of(logical_of(key)) if key[:1] == KV_SPACE else logical_of(key),
        payload,
    )


def committed_in(node: Host, start: bytes = b"", end: bytes = b"") -> list[Seen]:
    """Return every version that a node's engine holds of a range of user keys."""
    with node.process.engine.read() as txn:
        page = txn.page(Space.DATA, *kv_range(NAMESPACE, start, end), max_items=1_000_000, max_bytes=1 << 30)
    return [seen_of(item) for item in zip(page.keys, page.values, strict=True)]


class Watcher:
    """Watches ``[start, end)`` of a node from ``after`` on, as a task; begins again, from its last resolved mark, at
    the node that ``turn_to`` gives, whenever a stream ends."""

    def __init__(
        self,
        node: Host,
        after: Timestamp,
        *,
        start: bytes = b"",
        end: bytes = b"",
        bounds: tuple[bytes, bytes] | None = None,
        interval_ms: float = 50,
        pause: Callable[[], Awaitable[None]] | None = None,
        turn_to: Callable[[], Host] | None = None,
    ) -> None:
        """``pause`` is awaited after each batch: a slow watcher's work."""
        self._node = node
        self.after = after
        self._bounds = bounds or kv_range(NAMESPACE, start, end)
        self._interval_ms = interval_ms
        self._pause = pause
        self._turn_to = turn_to
        self.history: list[Seen | Resolved] = []
        self.resolved = after
        self.errors: list[CortadoError] = []
        self.task = asyncio.get_running_loop().create_task(self._run())

    @property
    def changes(self) -> list[Seen]:
        return [each for each in self.history if isinstance(each, Seen)]

    def stop(self) -> None:
        self.task.cancel()

    async def _run(self) -> None:
        while True:
            try:
                await self._watch()
            except CortadoError as ended:
                self.errors.append(ended)
            if self._turn_to is None:
                return
            # Changes above the last mark come again.
            self.history = [each for each in self.history if each.ts <= self.resolved]
            await asyncio.sleep(0.01)
            self._node = self._turn_to()

    async def _watch(self) -> None:
        with self._node.meta.watches.watch(
            *self._bounds, self.resolved, resolved_interval_ms=self._interval_ms
        ) as watch:
            async with aclosing(watch.batches()) as batches:
                async for batch in batches:
                    self.history += map(seen_of, batch.items)
                    if batch.resolved is not None:
                        self.history.append(Resolved(batch.resolved))
                        self.resolved = batch.resolved
                    if self._pause is not None:
                        await self._pause()
