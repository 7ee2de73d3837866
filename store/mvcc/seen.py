"""The reads of an evaluation: its keys, and the version of each that counted.

A leader with a disk that hides a row reads that there is none, and no checksum says otherwise. So its reads go with the
entry that it worked out, and a follower that holds the row notices the miss before it keeps the entry. The notes are of
the state *before* the entry: a command's view of an earlier command of the same entry is not noted.

Deletes are versions too: a missed row and a missed delete would look alike otherwise. The exceptions are a delete at or
below the safepoint, and a version that has expired there: one replica collects it sooner than another, and it counts as
nothing on both. So an entry names that safepoint.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS
from cortado.store.keys.codec import INVERTED
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import DELETE_KIND, PUT_KIND, has_expired

NOTHING: Final = b"\xff" * TIMESTAMP_BYTES
"""The suffix for a key without a version. It sorts behind every other, as the oldest of all."""

_GONE: Final = b""
"""Noted for a key whose newest version is not applied yet and counts as nothing. It sorts before every suffix: no older
version is noted in its place."""
_SEEN_OVERHEAD_BYTES: Final = TIMESTAMP_BYTES + 4


class Reads(NamedTuple):
    """The reads in an entry: ``versions`` are the suffixes of the engine keys, one for each of the ``keys``. The
    ``ranges`` held no other keys. Deletes at or below ``collected``, and versions that have expired there, counted as
    nothing."""

    keys: Sequence[bytes] = ()
    versions: Sequence[bytes] = ()
    ranges: Sequence[tuple[bytes, bytes]] = ()
    collected: Timestamp = ZERO


NO_READS: Final = Reads()


class Seen:
    """Notes of one evaluation, or of all that share an entry."""

    __slots__ = ("_collected_suffix", "_noted", "_within", "collected", "ranges")

    def __init__(self, collected: Timestamp = ZERO, within: tuple[bytes, bytes] = (b"", ABOVE_KEYS)) -> None:
        """Deletes at or below ``collected``, and versions that have expired there, count as nothing. :meth:`reads` are
        ``within`` these bounds: the keys of another group follow another log, and differ between replicas."""
        self._noted: dict[LogicalKey, bytes] = {}
        self.ranges: list[tuple[bytes, bytes]] = []
        self.collected = collected
        self._within = within
        self._collected_suffix = bytes(collected).translate(INVERTED)

    def __bool__(self) -> bool:
        return bool(self._noted or self.ranges)

    @property
    def versions(self) -> dict[LogicalKey, bytes]:
        """Return the suffix of the version of each key that counted; NOTHING if none did."""
        return {key: suffix or NOTHING for key, suffix in self._noted.items()}

    def note(self, key: LogicalKey, suffix: bytes) -> None:
        """Note that ``key`` was read, and that the version with this suffix counted. The newer of two notes stands."""
        if suffix <= self._noted.get(key, NOTHING):
            self._noted[key] = suffix

    def note_item(self, key: LogicalKey, engine_key: bytes, engine_value: bytes) -> None:
        """Note a version as it is stored; compare :meth:`note`."""
        self.note(key, self._suffix(engine_key, engine_value, NOTHING))

    def note_above(self, key: LogicalKey, engine_key: bytes, engine_value: bytes) -> None:
        """Note a version that is not applied yet, as :meth:`note_item`. It hides the applied ones, even if it counts
        as nothing: another replica may have applied and collected all of them."""
        self.note(key, self._suffix(engine_key, engine_value, _GONE))

    def _suffix(self, engine_key: bytes, engine_value: bytes, gone: bytes) -> bytes:
        suffix = engine_key[-TIMESTAMP_BYTES:]
        if suffix >= self._collected_suffix and engine_value[0] != PUT_KIND:
            is_delete = engine_value[0] == DELETE_KIND
            if is_delete or has_expired(engine_key, engine_value, self._collected_suffix):
                return gone
        return suffix

    def add(self, other: Seen) -> None:
        for key, suffix in other._noted.items():
            self.note(key, suffix)
        self.ranges += other.ranges

    def forget(self, keys: Collection[LogicalKey]) -> None:
        """Some keys were read in another state than the one that is noted here; ranges may have been, then."""
        if keys:
            for key in self._noted.keys() & set(keys):
                del self._noted[key]
            self.ranges.clear()

    def reads(self, bytes_max: int) -> Reads:
        """Return as many of them as fit ``bytes_max``: the ranges only if all keys do."""
        first, behind = self._within
        keys = sorted(self._noted)
        keys = keys[bisect_left(keys, first) : bisect_left(keys, behind)]
        size = sum(map(len, keys)) + _SEEN_OVERHEAD_BYTES * len(keys)
        ranges, range_bytes = set(), 0
        for low, high in self.ranges:
            start, end = max(low, first), min(high, behind)
            if start < end:
                ranges.add((start, end))
                range_bytes += len(start) + len(end) + 8
        is_whole = size + range_bytes <= bytes_max
        while size > bytes_max:
            size -= len(keys.pop()) + _SEEN_OVERHEAD_BYTES
        versions = [self._noted[key] or NOTHING for key in keys]
        return Reads(keys, versions, sorted(ranges) if is_whole else (), self.collected)
