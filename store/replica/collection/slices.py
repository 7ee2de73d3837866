"""One slice of a pass for garbage, on the scan thread: read, verify, look.

Items that are removed here are removed on all replicas. So nothing is concluded from a damaged item: a version with a
flipped timestamp would look newer than the version that counts. A run with damage in it is left alone until it is
repaired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.mvcc.damage import Damage, damaged_keys
from cortado.store.mvcc.garbage import Garbage, find_garbage
from cortado.store.mvcc.reader import logical_of, suffix_from
from cortado.store.mvcc.versions import suffix_of

NOTHING_FOUND: Final = Garbage((), (), None)


@dataclass(frozen=True, slots=True)
class Place:
    """The beginning of a slice; ``behind`` the version that counts of this logical key, or of none."""

    key: bytes
    behind: bytes = b""


@dataclass(frozen=True, slots=True)
class Slice:
    """``versions`` were looked at; ``next`` is None at the end of the range. It ``was_left`` if an item is damaged."""

    garbage: Garbage
    versions: int
    next: Place | None
    was_left: bool = False


def look(
    engine: Engine,
    place: Place,
    end: bytes,
    safepoint: Timestamp,
    *,
    items_max: int,
    bytes_max: int,
    on_damage: Callable[[Damage], None],
) -> Slice:
    """Return the next stored items of ``[place, end)``. Raises DataLoss if the tree cannot be walked."""
    with engine.read() as txn:
        keys, values, exhausted = txn.page(Space.DATA, place.key, end, max_items=items_max, max_bytes=bytes_max)
    if not keys:
        return Slice(NOTHING_FOUND, 0, None)
    wrong = damaged_keys(keys, values)
    wrong += [key for before, key in pairwise(keys) if key <= before]
    if wrong:
        for key in wrong:
            on_damage(Damage.at(Space.DATA, key))
        return Slice(NOTHING_FOUND, len(keys), None if exhausted else Place(keys[-1] + b"\0"), was_left=True)
    following = None
    if not exhausted:
        last = logical_of(keys[-1])
        first_of_last = next(i for i, key in enumerate(keys) if logical_of(key) == last)
        if first_of_last:
            # It may have more versions: all of them come with the next slice.
            following = Place(keys[first_of_last])
            del keys[first_of_last:], values[first_of_last:]
        else:
            has_newest = place.behind == last or suffix_from(keys[-1]) >= suffix_of(safepoint)
            following = Place(keys[-1] + b"\0", last if has_newest else b"")
    is_cut = following is not None and following.key[:-1] == keys[-1]
    garbage = find_garbage(keys, values, safepoint, behind=place.behind, is_cut=is_cut)
    return Slice(garbage, len(keys), following)
