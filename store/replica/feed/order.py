"""The one order of changes: by commit timestamp, and within a commit by key.

It is total, the same at every replica and on every way by which a change is found, so a place in it says exactly which
changes came before. A change is an engine item (:data:`~cortado.store.mvcc.versions.Item`), as the log carried it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.mvcc.versions import Item, timestamp_of

engine_key: Final[Callable[[Item], bytes]] = itemgetter(0)

_ABOVE_ALL_KEYS: Final = b"\xff"
"""No key begins with it: keyspaces are letters."""


def place_of(engine_key: bytes) -> bytes:
    """Return the place of a change: bytes that sort as changes do."""
    return engine_key[-TIMESTAMP_BYTES:].translate(INVERTED) + engine_key[:-TIMESTAMP_BYTES]


def place_after(ts: Timestamp) -> bytes:
    """Above every change at or below ``ts``, and below every other."""
    return bytes(ts) + _ABOVE_ALL_KEYS


def ts_of(item: Item) -> Timestamp:
    """Return the commit of a change."""
    return timestamp_of(item[0][-TIMESTAMP_BYTES:])


def in_order(items: Sequence[Item]) -> list[Item]:
    """Changes that come in key order, in their order."""
    if len({key[-TIMESTAMP_BYTES:] for key, _ in items}) <= 1:
        return list(items)
    return sorted(items, key=_place_of_item)


def size_of(items: Sequence[Item]) -> int:
    """Bytes of keys and values."""
    return sum([len(key) + len(value) for key, value in items])


def _place_of_item(item: Item) -> bytes:
    return place_of(item[0])
