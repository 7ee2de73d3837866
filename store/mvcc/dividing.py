"""Dividing a large range of keys for threads that read it side by side, by the pages of LMDB's tree.

::

    branch pages    | a | c | f | h | k | m | p | ...       the lower bounds of some hundreds
    parts           |     c     |     k     |     p  ...    cut at every n-th

Only branch pages are looked at, some tens of them in a few milliseconds. Parts have equally many pages each, whatever
these hold: threads that are done with one take the next one. Unlike :mod:`cortado.store.mvcc.weighed_split` it counts
nothing.
"""

from __future__ import annotations

from typing import Final

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import Engine, Space
from cortado.store.engine.tree_bounds import page_bounds
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import logical_of

PARTS_MAX: Final = 32
PAGES_PER_PART: Final = 8
"""A part with fewer branch pages is not worth its own beginning: a page may have no more than a thousand rows below."""


def divided(engine: Engine, within: KeyRange) -> list[LogicalKey]:
    """Return keys within the range, ascending, that cut it into parts; none if it is too small, or if the engine has no
    pages that can be looked at. Raises Unavailable once the engine is closed."""
    start, end = within
    mapped = engine.mapped
    if isinstance(mapped, str):
        return []
    bounds = page_bounds(mapped, Space.DATA, start, end, PARTS_MAX * PAGES_PER_PART)
    found = dict.fromkeys(logical_of(each) for each in bounds if len(each) > TIMESTAMP_BYTES)
    keys = [each for each in found if start < each < end]
    parts = min(PARTS_MAX, len(keys) // PAGES_PER_PART)
    return [keys[len(keys) * number // parts] for number in range(1, parts)] if parts > 1 else []
