"""Watchers of the simulated cluster: each asks one node after the other for the changes, for a while at a time.

A watcher keeps a node's changes up to the resolved mark, and goes on from there at any other node. So in the end it
must have the committed changes: in order, without gaps, through changes of leader, crashes and snapshots.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from cortado.errors import CortadoError
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.keyspace import KeyRange, kv_range, user_key_of
from cortado.store.mvcc.reader import logical_of
from cortado.store.mvcc.versions import payload_of, timestamp_of
from support.simulation.checkers import Truth
from support.simulation.rpc import Calls, Lost, Refused
from support.watch_history import Resolved, Seen, problems

if TYPE_CHECKING:
    from cortado.store.host.host import Host as NodeHost
    from support.simulation.cluster import Cluster

CALL_MS = 3_000.0


class Watcher:
    """One, as a task on the clients' loop. It draws from a source of its own, so that it changes no other draws."""

    def __init__(self, cluster: Cluster, source: random.Random, namespace: str) -> None:
        self._bounds = kv_range(namespace)
        self._cluster = cluster
        self._random = source
        self._calls = Calls(cluster.world, source, cluster.find)
        self.history: list[Seen | Resolved] = []
        self.resolved = ZERO
        self.is_stopped = False

    async def run(self) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / 100))
            node_id = self._random.choice(self._cluster.node_ids)
            after, for_ms = self.resolved, self._random.choice((1.0, 50.0, 400.0))
            try:
                told = await self._calls.call(
                    node_id, lambda node, after=after, ms=for_ms: watch_for(node, self._bounds, after, ms), CALL_MS
                )
            except (Lost, Refused, CortadoError):
                continue
            self._take(told)

    def _take(self, told: Sequence[Seen | Resolved]) -> None:
        marks = [each.ts for each in told if isinstance(each, Resolved)]
        self.resolved = max([self.resolved, *marks])
        # Changes above the last mark are asked for again.
        self.history += [each for each in told if each.ts <= self.resolved]
        self._cluster.counts["changes watched"] += sum(isinstance(each, Seen) for each in told)


async def watch_for(node: NodeHost, bounds: KeyRange, after: Timestamp, for_ms: float) -> list[Seen | Resolved]:
    """Return the changes and marks of a watch of a range at this node within ``for_ms``, and at least its first
    ones."""
    told: list[Seen | Resolved] = []
    loop = asyncio.get_running_loop()
    end_s = loop.time() + for_ms / 1_000
    with node.replica_of(bounds[0]).watches.watch(*bounds, after, resolved_interval_ms=20) as watch:
        async with aclosing(watch.batches()) as batches:
            async for batch in batches:
                for key, value in batch.items:
                    payload = payload_of(value)
                    told.append(Seen(timestamp_of(key[-TIMESTAMP_BYTES:]), user_key_of(logical_of(key)), payload))
                if batch.resolved is not None:
                    told.append(Resolved(batch.resolved))
                if loop.time() >= end_s and len(told) > 1:
                    break
    return told


def check_watched(truth: Truth, watchers: Sequence[Watcher]) -> list[str]:
    """Check that each watcher has the committed changes up to its resolved mark."""
    committed = [Seen(ts, key, value) for key, versions in truth.items() for ts, value in versions]
    return [
        f"a watcher: {problem}" for watcher in watchers for problem in problems(watcher.history, ZERO, committed)[:3]
    ]
