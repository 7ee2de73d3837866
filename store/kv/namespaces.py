"""Which namespaces there are: those that have a pair.

Nothing lists them, so they are searched for, from one to the next: the first live key at or behind a place names one,
and the next place is behind it::

    k "a" 0 ...      k "a" 0 ...      k "b" 0 ...      k "b" 7 ...       k "c" 0 ...
    ^ a              skipped          dropped: skipped ^ b               ^ c

Keys of a generation that was dropped stay until its grace is over, and the generation that the name means may be empty.

Who sees some names alone has those looked for: what lies between them costs nothing, and no place to go on at is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cortado.store.catalog.generations import generation_of
from cortado.store.catalog.namespaces import pairs_range
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import namespace_range, namespaces_range, pair_of
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import ScanSource


def list_namespaces(
    source: ScanSource,
    read_ts: Timestamp,
    start: LogicalKey,
    names_max: int,
    is_over: Callable[[], bool],
    among: Sequence[str] | None = None,
) -> tuple[list[str], LogicalKey | None]:
    """The next names at or behind ``start``, in order, and where to go on; None at the end. ``among`` these, which
    ascend, where they are given.

    At most ``names_max``; fewer, perhaps none, where it ``is_over`` before. Raises SnapshotTooOld, DataLoss.
    """
    reader = source.snapshot(read_ts)
    ranges = [namespaces_range()] if among is None else [namespace_range(each) for each in among]
    names: list[str] = []
    place = start
    while (within := next((each for each in ranges if place < each[1]), None)) is not None:
        place, end = max(place, within[0]), within[1]
        if len(names) == names_max or is_over():
            return names, place
        chunk = source.scan_chunk(place, end, read_ts, max_rows=1)
        if not chunk.keys:
            place = end if chunk.resume is None else chunk.resume
            continue
        name, generation, _ = pair_of(chunk.keys[0])
        meant = generation_of(reader, name)
        if generation == meant:
            names.append(name)
        # Behind a generation that was dropped the one that the name means may have pairs.
        place = pairs_range(name, meant)[0] if generation < meant else namespace_range(name)[1]
    return names, None
