"""In the end every replica's index of changes must agree with its versions, or say that it does not know."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from cortado.errors import SnapshotTooOld
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.keys.keyspace import KV_SPACE, META_SPACE, STAGED_SPACE, TABLE_SPACE
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import timestamp_of
from cortado.store.replica.feed.history import VersionsPass
from cortado.store.replica.feed.indexed import IndexPass, Progress
from cortado.store.replica.feed.oldest import OldestChanges, Window
from cortado.store.replica.group_range import GroupRange
from support.simulation.cluster import Cluster

RANGES: Final = (
    (KV_SPACE, META_SPACE),
    (META_SPACE, STAGED_SPACE),
    (TABLE_SPACE, ABOVE_KEYS),
)
BOUNDS: Final = 6


def check_changes(cluster: Cluster, of: GroupRange, source: random.Random) -> Iterator[str]:
    """Yield the problems of a window, of any replica of a group, a sentence each."""
    ranges = [(max(start, of.data[0]), min(end, of.data[1])) for start, end in RANGES]
    ranges = [(start, end) for start, end in ranges if start < end]
    for host in cluster.hosts.values():
        life = host.life
        if life is None or not hasattr(life, "node"):
            continue
        replica = life.node.replicas[of.group_id]
        store, position = replica.store, replica.applied.last_ts
        with store.engine.read() as txn:
            keys = [key for start, end in ranges for key in txn.keys(Space.DATA, start, end, max_items=1 << 20)[0]]
        times = {timestamp_of(key[-12:]) for key in source.sample(keys, min(BOUNDS, len(keys)))}
        for after, until in combinations(sorted({ZERO, position, *times}), 2):
            for start, end in ranges:
                events_max = source.choice((1, 4, 1_000))
                try:
                    wanted = by_versions(store, start, end, after, until, events_max)
                except SnapshotTooOld:
                    continue
                found = by_index(store, of.group_id, start, end, after, until, events_max)
                cluster.counts["windows that the index had" if found else "windows that the index had not"] += 1
                if found is not None and found != wanted:
                    yield f"{host.node_id}: of ({after}, {until}] the index says {found}, the versions say {wanted}"


def by_versions(
    store: VersionStore, start: bytes, end: bytes, after: Timestamp, until: Timestamp, events_max: int
) -> Window:
    """Return the window by the versions."""
    search = VersionsPass(store.engine, store, start, end, OldestChanges(after, until, events_max), after)
    while not search.step():
        pass
    return search.window()


def by_index(
    store: VersionStore,
    group_id: int,
    start: bytes,
    end: bytes,
    after: Timestamp,
    until: Timestamp,
    events_max: int,
) -> Window | None:
    """Return the window by the index, or None if the index does not know it."""
    search = IndexPass(store, group_id, start, end, OldestChanges(after, until, events_max), after)
    progress = search.step()
    while progress is Progress.MORE:
        progress = search.step()
    return search.window() if progress is Progress.DONE else None
