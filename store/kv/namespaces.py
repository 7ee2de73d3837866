"""Find the namespaces that exist: those that have a pair.

No list of them is stored, so a search goes from one to the next. The first live key at or behind a place names one, and
the next place is behind it::

    k "a" 0 ...      k "a" 0 ...      k "b" 0 ...      k "b" 7 ...       k "c" 0 ...
    ^ a              skipped          dropped: skipped ^ b               ^ c

Keys of a dropped generation stay until its grace is over, and the generation that the name means may be empty.

If a caller may see only some names, only these are looked for. Namespaces between them cost nothing, and no place to go
on at lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cortado.store.catalog.namespaces import pairs_range
from cortado.store.catalog.stored import generation_of
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
    """Return the next names at or behind ``start``, in order, and the place to go on at (None at the end). If
    ``among`` is given, only these names are looked for; they ascend.

    Returns at most ``names_max``, or fewer, perhaps none, if it ``is_over`` before. Raises SnapshotTooOld, DataLoss.
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
        # Behind a dropped generation, the one that the name means may have pairs.
        place = pairs_range(name, meant)[0] if generation < meant else namespace_range(name)[1]
    return names, None
