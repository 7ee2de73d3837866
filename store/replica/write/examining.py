"""A follower compares the reads behind an entry with its own state, before it keeps the entry.

::

    leader     reads a@7, "no b"     ─► entry 41: c := ..., worked out from a@7, no b ─►  follower
                                                                     holds b@5 and it is whole: the leader lost it
                                                                     holds a@6 at most: this replica lost a@7

A stored version carries its checksum, and only entries make versions. So the newer of two versions of a key is the one
that was written, and the replica that lacks it is damaged: two replicas are enough to tell, without a vote. In either
case the follower does not keep the entry. If the follower is damaged, it repairs the key, and the leader sends the
entry again. If the leader is, the follower tells it; the leader gives up the entry and its leadership, and repairs the
key.

A follower's state *before* the entry is its applied state, and the entries behind that, newest on top: the same
:class:`~cortado.store.replica.write.overlay.OverlayReader` that the leader read through.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from cortado.errors import DataLoss
from cortado.raft.configuration import Configuration
from cortado.raft.log import Doubt, Entry, Nothing
from cortado.raft.registry import Registry
from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import Space
from cortado.store.keys.dump import dump
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.reader import logical_of
from cortado.store.mvcc.seen import NOTHING, Reads, Seen
from cortado.store.mvcc.staged import moves_staged
from cortado.store.mvcc.store import VersionStore
from cortado.store.replica.write.log_entry import LogEntry
from cortado.store.replica.write.overlay import Layer, Layers, OverlayReader

_LOG: Final = logging.getLogger(__name__)
EXAMINED_EVERY_MS: Final = 50.0
"""The reads behind an entry are examined this often at least, if there are entries."""
_ABOVE_VERSIONS: Final = b"\xff" * (len(NOTHING) + 1)


class Examiner:
    """One replica's. On the loop. ``on_missing`` hears of a range, and of a version that is missing in it."""

    def __init__(self, store: VersionStore, on_missing: Callable[[Damage, bytes], None]) -> None:
        self._store = store
        self._on_missing = on_missing
        # Entries that were not applied here at the last call: their places, and their layers.
        self._places: list[tuple[int, int]] = []
        self._layers = Layers([])
        # Those of them that move the staged values of large transactions: a layer does not show their removal.
        self._moving: set[tuple[int, int]] = set()
        self.examined = self.doubted = 0

    def examine(self, before: Sequence[Entry], entry: Entry) -> Doubt | None:
        """Return None if ``entry`` may be kept behind ``before``, the entries not applied here."""
        log_entry = _decoded(entry)
        assert log_entry is not None
        self._follow(before)
        if self._store.unreadable or self._store.unresolved or self._moving:
            # There is no state here to compare with; or staged values are still here that the leader may have moved.
            return None
        self.examined += 1
        reads = log_entry.reads
        held = Seen(reads.collected)
        applied = self._store.snapshot(log_entry.first_ts, held)
        reader = OverlayReader(applied, self._layers.all, held, newest=self._layers.newest, has_open_layer=False)
        try:
            reader.get_many([LogicalKey(key) for key in reads.keys])
            for start, end in reads.ranges:
                for _ in reader.scan(LogicalKey(start), LogicalKey(end)):
                    pass
        except DataLoss as damage:
            # The store has reported it.
            self.doubted += 1
            _LOG.error("entry %d waits until what it was worked out from is repaired here: %s", entry.index, damage)
            return Doubt(entry.index)
        return self._compare(entry.index, reads, held)

    def _compare(self, index: int, reads: Reads, held: Seen) -> Doubt | None:
        leaders = dict(zip(reads.keys, reads.versions, strict=True))
        newer_here = b""
        lacks = False
        for key, suffix in held.versions.items():
            theirs = leaders.get(key, NOTHING)
            if theirs < suffix:
                lacks = True
                what = f"{dump(key + theirs)}: the leader has this version, and this replica does not"
                self._on_missing(missing(key, what), key + theirs)
            elif suffix < theirs:
                newer_here = key + suffix
        if not lacks and not newer_here:
            return None
        self.doubted += 1
        if lacks:
            _LOG.error("entry %d waits until what it was worked out from is repaired here", index)
            return Doubt(index)
        _LOG.error("entry %d is not kept: it was worked out without %s, which is here", index, dump(newer_here))
        return Doubt(index, newer_here)

    def _follow(self, before: Sequence[Entry]) -> None:
        """Lay the entries ``before`` over each other. Layers known from the last call are kept."""
        places = [(each.index, each.term) for each in before]
        while self._places and self._places[:1] != places[:1]:
            self._places.pop(0)
            self._layers.pop_oldest()
        if self._places != places[: len(self._places)]:
            self._places, self._layers = [], Layers([])
        for entry in before[len(self._places) :]:
            self._push(entry)
        self._places = places
        self._moving.intersection_update(places)

    def _push(self, entry: Entry) -> None:
        layer, log_entry = Layer(), _decoded(entry)
        self._layers.push(layer)
        if log_entry is not None:
            # The newest version of a key comes first, and is to be put last.
            items = log_entry.items[::-1]
            keys = [logical_of(key) for key, _ in items]
            layer.add(keys, items)
            self._layers.newest.wrote(keys, items)
            if moves_staged(log_entry.removal):
                self._moving.add((entry.index, entry.term))


def rests_on(entry: Entry | None, stored_key: bytes) -> bool:
    """Return whether ``entry`` may have been worked out without this version of a key: it says that it read the key.
    A follower is not believed about any other key."""
    log_entry = None if entry is None else _decoded(entry)
    if log_entry is None or len(stored_key) <= TIMESTAMP_BYTES:
        return False
    key = logical_of(stored_key)
    return key in log_entry.reads.keys or any(start <= key < end for start, end in log_entry.reads.ranges)


def lost(stored_key: bytes) -> Damage:
    """Return the damage of a version that a follower has, and without which an entry of ours was worked out."""
    return missing(logical_of(stored_key), f"{dump(stored_key)}: another member has this version, and it is not here")


def missing(key: bytes, what: str) -> Damage:
    """Return the damage of a version of ``key`` that another member has and this one lacks."""
    return Damage(Space.DATA, key, key + _ABOVE_VERSIONS, what)


def _decoded(entry: Entry) -> LogEntry | None:
    payload = entry.payload
    if isinstance(payload, Nothing | Configuration | Registry):
        return None
    return payload if isinstance(payload, LogEntry) else LogEntry.decode(payload.encode())


class Drawing:
    """A leader's choice of the entries that carry their reads: one in ``EXAMINED_EVERY_MS``, and ``percent`` of a
    hundred, evenly; no entry if ``percent`` is 0."""

    def __init__(self, percent: int) -> None:
        self._percent = percent
        self._due = 0
        self._drawn_ms = -math.inf

    def draw(self, now_ms: float) -> bool:
        """Return whether the next entry does."""
        self._due += self._percent
        is_drawn = self._percent > 0 and (self._due >= 100 or now_ms >= self._drawn_ms + EXAMINED_EVERY_MS)
        if is_drawn:
            self._due = max(self._due - 100, 0)
            self._drawn_ms = now_ms
        return is_drawn
