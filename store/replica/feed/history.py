"""The changes of a range between two timestamps: by the index of changes, or among the versions themselves.

Versions are ordered by key, changes by time. So a pass over them goes over the keys of the whole range and keeps the
*oldest* changes, as many as fit into a bounded memory; if there are more, the window that it found ends before them,
and the next pass begins there::

    pass 1   (after .................... until]   ──► window (after .. w1]   the oldest changes, in order
    pass 2         (w1 ................. until]   ──► window (w1 .. w2]

Each window is complete up to its end, so changes leave in the order of commits however many there are. A pass reads
keys alone, in slices with a transaction each; values are read when they are sent. It costs one look at each version in
the range.

The :mod:`index <cortado.store.replica.feed.indexed>` costs one look at each change of that time, in any range. Which
of the two costs less is not known before: so they take turns, slice by slice, and the first that is done says what
there is. They say the same. If the index cannot prove that, the versions alone do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cortado.errors import Unavailable
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Engine, ReadTransaction, Space
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item, decode_version, timestamp_of
from cortado.store.replica.feed.indexed import IndexPass, Progress
from cortado.store.replica.feed.oldest import OldestChanges, Window

KEYS_PER_STEP: Final = 10_000
ITEMS_PER_READ: Final = 1_000


class HistoryPass:
    """Call :meth:`step` until it returns True, then ask for the :meth:`window`. A step takes a few milliseconds."""

    def __init__(
        self,
        engine: Engine,
        store: VersionStore,
        start: bytes,
        end: bytes,
        after: Timestamp,
        until: Timestamp,
        *,
        events_max: int,
        group_id: int,
    ) -> None:
        """Changes in ``(after, until]`` of keys in ``[start, end)``; about ``events_max`` in a window, but always whole
        commits."""
        self._versions = VersionsPass(engine, store, start, end, OldestChanges(after, until, events_max), after)
        self._indexed: IndexPass | None = IndexPass(
            store, group_id, start, end, OldestChanges(after, until, events_max), after
        )
        self._is_turn_of_index = True
        self.is_by_index = False
        """Whether the index had it all, once it is done."""

    def step(self) -> bool:
        """Look at the next versions or changes. True once all of it is done.

        Raises SnapshotTooOld if history that this needs is gone, Unavailable while a snapshot replaces the state.
        DataLoss if a change may be missing, or lie under another key or timestamp.
        """
        is_turn, self._is_turn_of_index = self._is_turn_of_index, not self._is_turn_of_index
        if self._indexed is None or not is_turn:
            return self._versions.step()
        progress = self._indexed.step()
        if progress is Progress.BROKEN:
            self._indexed = None
        self.is_by_index = progress is Progress.DONE
        return self.is_by_index

    def window(self) -> Window:
        """Return the changes, once all is done."""
        return self._indexed.window() if self._indexed is not None and self.is_by_index else self._versions.window()


class VersionsPass:
    """As :class:`HistoryPass`, among the versions."""

    def __init__(
        self, engine: Engine, store: VersionStore, start: bytes, end: bytes, found: OldestChanges, after: Timestamp
    ) -> None:
        """``found`` is empty, and bounds the search."""
        self._engine = engine
        self._store = store
        self._position = start
        self._end = end
        self._found = found
        self._after = after

    def step(self) -> bool:
        """Look at the next versions. True once the range is done."""
        start, doubted = self._position, self._store.suspect
        with self._engine.read() as txn:
            keys, exhausted = txn.keys(Space.DATA, start, self._end, max_items=KEYS_PER_STEP)
        self._store.check_readable(self._after, start, self._end)
        self._store.check_trusted(start, self._end if exhausted else next_key(keys[-1]), doubted)
        self._found.add(keys)
        if keys and not exhausted:
            self._position = next_key(keys[-1])
        return exhausted

    def window(self) -> Window:
        """Return the changes, once the range is done."""
        return self._found.window()


def read_changes(engine: Engine, store: VersionStore, keys: Sequence[bytes], *, bytes_max: int) -> list[Item]:
    """Return the items of the first ``keys``: some hundreds, and little more than ``bytes_max`` of them, at least one.

    Raises DataLoss for a damaged one, and as :meth:`HistoryPass.step`.
    """
    items: list[Item] = []
    size_bytes = 0
    doubted = store.suspect
    with engine.read() as txn:
        for key in keys[:ITEMS_PER_READ]:
            item = txn.seek(Space.DATA, key)
            if item is None or item[0] != key:
                break
            items.append(item)
            size_bytes += len(key) + len(item[1])
            if size_bytes > bytes_max:
                break
    if not items:
        store.check_readable(timestamp_of(keys[0][-TIMESTAMP_BYTES:]), keys[0], keys[0])
        # A search beside a key that is out of its order does not find every item that a pass over all keys comes by.
        store.check_trusted(keys[0], next_key(keys[0]), doubted)
        raise Unavailable("a change that was about to be sent is not stored here any more", retry_delay_ms=1_000)
    store.check_intact([key for key, _ in items], [value for _, value in items])
    return items


def read_previous(engine: Engine, store: VersionStore, items: Sequence[Item], *, bytes_max: int) -> list[Item | None]:
    """For each of the first changes, the version of its key that it replaced; None if there was none, or it was a
    delete or had expired. Little more than ``bytes_max`` of them, but those of one change at least.

    Raises as :func:`read_changes`.
    """
    found: list[Item | None] = []
    size_bytes = 0
    doubted = store.suspect
    with engine.read() as txn:
        for key, _ in items:
            older, seen_to = _older(txn, key)
            store.check_trusted(key, seen_to, doubted)
            found.append(older)
            size_bytes += 0 if older is None else len(older[1])
            if size_bytes > bytes_max:
                break
    if items:
        store.check_readable(timestamp_of(items[0][0][-TIMESTAMP_BYTES:]), items[0][0], items[0][0])
    stored = [each for each in found if each is not None]
    store.check_intact([key for key, _ in stored], [value for _, value in stored])
    return [
        each if each is not None and decode_version(*each, key[-TIMESTAMP_BYTES:]) is not None else None
        for (key, _), each in zip(items, found, strict=False)
    ]


def next_key(engine_key: bytes) -> bytes:
    """Return the first key of the same length above: nothing that is stored lies between, since no logical key begins
    with another."""
    return (int.from_bytes(engine_key) + 1).to_bytes(len(engine_key))


def _older(txn: ReadTransaction, engine_key: bytes) -> tuple[Item | None, bytes]:
    """Return the version before, and up to which key nothing else may lie for that to be right."""
    item = txn.seek(Space.DATA, next_key(engine_key))
    if item is None:
        return None, ABOVE_KEYS
    is_older = item[0][:-TIMESTAMP_BYTES] == engine_key[:-TIMESTAMP_BYTES]
    return (item if is_older else None), item[0]
