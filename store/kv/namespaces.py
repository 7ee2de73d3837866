"""Which namespaces there are: those that have a pair.

Nothing lists them, so they are searched for, from one to the next: the first live key at or behind a place names one,
and the next place is behind it::

    k "a" 0 ...      k "a" 0 ...      k "b" 0 ...      k "b" 7 ...       k "c" 0 ...
    ^ a              skipped          dropped: skipped ^ b               ^ c

Keys of a generation that was dropped stay until its grace is over, and the generation that the name means may be empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cortado.store.catalog.generations import generation_of
from cortado.store.catalog.namespaces import pairs_range
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import namespace_range, namespaces_range, pair_of
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.scan import ChunkSource
from cortado.store.mvcc.reader import Reader


class Source(ChunkSource, Protocol):
    """The version store."""

    def snapshot(self, read_ts: Timestamp) -> Reader: ...


def list_namespaces(
    source: Source, read_ts: Timestamp, start: LogicalKey, names_max: int, is_over: Callable[[], bool]
) -> tuple[list[str], LogicalKey | None]:
    """The next names at or behind ``start``, in order, and where to go on; None at the end.

    At most ``names_max``; fewer, perhaps none, where it ``is_over`` before. Raises SnapshotTooOld, DataLoss.
    """
    reader = source.snapshot(read_ts)
    end = namespaces_range()[1]
    names: list[str] = []
    place: LogicalKey | None = start
    while place is not None and place < end:
        if len(names) == names_max or is_over():
            return names, place
        chunk = source.scan_chunk(place, end, read_ts, max_rows=1)
        if not chunk.keys:
            place = chunk.resume
            continue
        name, generation, _ = pair_of(chunk.keys[0])
        meant = generation_of(reader, name)
        if generation == meant:
            names.append(name)
        # Behind a generation that was dropped the one that the name means may have pairs.
        place = pairs_range(name, meant)[0] if generation < meant else namespace_range(name)[1]
    return names, None
