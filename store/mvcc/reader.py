"""The reader of an evaluation: one state of the keyspace at one timestamp.

A command reads a :class:`Reader` and returns mutations; it never touches the disk. The engine's snapshot, the leader's
view with commands in flight laid over it, and the tests' dictionary all are Readers, and one suite holds them to the
same behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.codec import INVERTED, successor_of_prefix
from cortado.store.keys.packing import cut, cut_equal
from cortado.store.keys.types import LogicalKey

PIECE_BYTES: Final = 4 << 20
"""The most bytes read at once, if all are examined and few are kept."""
_PIECE_KEYS: Final = 1_000
_NO_EXPIRIES: Final[Mapping[LogicalKey, int]] = MappingProxyType({})

# Slices by C code: over a list, a third cheaper than a comprehension.
logical_of: Final[Callable[[bytes], LogicalKey]] = itemgetter(slice(None, -TIMESTAMP_BYTES))
suffix_from: Final[Callable[[bytes], bytes]] = itemgetter(slice(-TIMESTAMP_BYTES, None))


class Version:
    """The newest visible value of a key: its ``payload``, the timestamp of the commit that wrote it, and the wall time
    in milliseconds at which it expires, 0 for never.

    Read-only. A store gives ``ts`` as the engine key that ends with it, inverted, and it is decoded at the first use:
    most reads do not use it, and a point read would spend half its time on it.
    """

    __slots__ = ("_ts", "expires_ms", "payload")

    def __init__(self, ts: Timestamp | bytes, payload: bytes, expires_ms: int = 0) -> None:
        self._ts = ts
        self.payload = payload
        self.expires_ms = expires_ms

    @property
    def ts(self) -> Timestamp:
        if isinstance(self._ts, bytes):
            self._ts = Timestamp.from_bytes(self._ts[-TIMESTAMP_BYTES:].translate(INVERTED))
        return self._ts

    @property
    def suffix(self) -> bytes:
        """Return the suffix of its engine key: its timestamp, inverted."""
        return self._ts[-TIMESTAMP_BYTES:] if isinstance(self._ts, bytes) else bytes(self._ts).translate(INVERTED)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return False
        return self.ts == other.ts and self.payload == other.payload and self.expires_ms == other.expires_ms

    def __hash__(self) -> int:
        return hash((self.ts, self.payload, self.expires_ms))

    def __repr__(self) -> str:
        return f"Version(ts={self.ts!r}, payload={self.payload!r}, expires_ms={self.expires_ms})"


class Changed(NamedTuple):
    """A key, and when its newest version was committed: a put or a delete."""

    key: LogicalKey
    ts: Timestamp


class Reader(Protocol):
    """One consistent state at ``read_ts``. Raises DataLoss on a bad checksum, SnapshotTooOld below the safepoint."""

    @property
    def read_ts(self) -> Timestamp: ...

    @property
    def as_of(self) -> Timestamp:
        """Return the time by which expired keys are absent: read_ts, or later if a command is evaluated ahead of its
        turn."""

    def get(self, key: LogicalKey) -> Version | None:
        """Return the newest version at or below read_ts; None if there is none, or it is a delete or has expired."""

    def get_many(self, keys: Sequence[LogicalKey], *, max_bytes: int | None = None) -> list[Version | None]:
        """Return the result of :meth:`get` for each, in the order asked.

        With ``max_bytes`` it reads the first keys alone, up to the one whose version reaches that bound: the list is
        shorter then, and has one place at least. Many values may be a gigabyte together.
        """

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        """Live keys in ``[start, end)``, ascending, or descending if ``reverse``."""

    def changed_since(
        self, keys: Sequence[LogicalKey], ranges: Sequence[tuple[LogicalKey, LogicalKey]], ts: Timestamp
    ) -> Changed | None:
        """Return one of the ``keys``, or a key in one of the ``ranges``, that has a version above ``ts`` and at or
        below read_ts, deletes too; None if there is none.

        Raises ResourceExhausted with the resource VALIDATION if ``ts`` is too long ago to read ranges here, or this
        many keys.
        """


VALIDATION: Final = "validation"


def get_in_pieces(
    reader: Reader, keys: Sequence[LogicalKey], *, max_bytes: int = PIECE_BYTES
) -> Iterator[list[Version | None]]:
    """Yield the results of :meth:`Reader.get_many` for all keys, a bounded piece at a time, in their order."""
    place = 0
    while place < len(keys):
        found = reader.get_many(keys[place : place + _PIECE_KEYS], max_bytes=max_bytes)
        yield found
        place += len(found)


def read_list(reader: Reader, key: LogicalKey, item_bytes: int, what: str) -> Sequence[bytes]:
    """Return the value under ``key``, cut into items of ``item_bytes``; empty if it is absent. Raises DataLoss, which
    names the list as ``what``."""
    version = reader.get(key)
    if version is None:
        return ()
    try:
        return cut_equal(version.payload, item_bytes)
    except ValueError as contradiction:
        raise DataLoss(what, f"a list of {len(version.payload)} bytes") from contradiction


@dataclass(frozen=True, slots=True)
class PackedKeys:
    """Logical keys end to end, and the end of each; and the suffixes of their engine keys."""

    joined: bytes
    ends: NDArray[np.int64]
    suffixes: bytes

    def __len__(self) -> int:
        return len(self.ends)

    def logical_key(self, place: int) -> LogicalKey:
        start = self.ends[place - 1] if place else 0
        return LogicalKey(self.joined[start : self.ends[place]])

    def logical_keys(self) -> list[LogicalKey]:
        return list(map(LogicalKey, cut(self.joined, np.diff(self.ends, prepend=0).astype("<u4").tobytes())))

    def each_suffix(self) -> list[bytes]:
        return list(cut_equal(self.suffixes, TIMESTAMP_BYTES))


class ScanChunk:
    """Rows of one bounded slice of a scan, as parallel lists; ``resume`` is the start (or, reversed, the end) of the
    next slice, None at the end of the range. A slice may hold no rows and still not be the last.

    ``suffixes`` are the engine keys' last 12 bytes: commit timestamps, inverted. They and the logical ``keys`` are cut
    from the engine keys at the first use, since many scans want the payloads alone. ``expiries`` are those of the rows
    that expire, by key.
    """

    __slots__ = ("_engine_keys", "_keys", "_suffixes", "expiries", "packed", "payloads", "resume")

    def __init__(
        self,
        keys: list[LogicalKey],
        suffixes: list[bytes],
        payloads: Sequence[bytes],
        resume: LogicalKey | None,
        expiries: Mapping[LogicalKey, int] = _NO_EXPIRIES,
    ) -> None:
        self._engine_keys: list[bytes] = []
        self.packed: PackedKeys | None = None
        self._keys: list[LogicalKey] | None = keys
        self._suffixes: list[bytes] | None = suffixes
        self.payloads = payloads
        self.resume = resume
        self.expiries = expiries

    @classmethod
    def of_stored(
        cls,
        engine_keys: list[bytes],
        payloads: list[bytes],
        resume: LogicalKey | None,
        expiries: Mapping[LogicalKey, int],
    ) -> ScanChunk:
        """From keys as they are stored, with their timestamps."""
        chunk = cls([], [], payloads, resume, expiries)
        chunk._engine_keys, chunk._keys, chunk._suffixes = engine_keys, None, None
        return chunk

    @classmethod
    def of_packed(
        cls,
        keys: PackedKeys,
        payloads: Sequence[bytes],
        resume: LogicalKey | None,
        expiries: Mapping[LogicalKey, int],
    ) -> ScanChunk:
        """From keys that lie end to end."""
        chunk = cls([], [], payloads, resume, expiries)
        chunk.packed, chunk._keys, chunk._suffixes = keys, None, None
        return chunk

    @property
    def keys(self) -> list[LogicalKey]:
        if self._keys is None:
            packed = self.packed
            self._keys = list(map(logical_of, self._engine_keys)) if packed is None else packed.logical_keys()
        return self._keys

    @property
    def suffixes(self) -> list[bytes]:
        if self._suffixes is None:
            packed = self.packed
            self._suffixes = list(map(suffix_from, self._engine_keys)) if packed is None else packed.each_suffix()
        return self._suffixes

    def versions(self, rows: Sequence[int] | None = None) -> bytes:
        """Return commit timestamps end to end, 12 bytes a row: of all rows, or of some by their numbers."""
        if self.packed is not None and self._suffixes is None:
            table = np.frombuffer(self.packed.suffixes, np.uint8).reshape(-1, TIMESTAMP_BYTES)
            return (~(table if rows is None else table[np.asarray(rows, np.intp)])).tobytes()
        suffixes = self.suffixes if rows is None else map(self.suffixes.__getitem__, rows)
        return b"".join(suffixes).translate(INVERTED)

    def cut(self, count: int, *, reverse: bool) -> ScanChunk:
        """Return its first ``count`` rows, one at least; the next slice begins with the rest."""
        if count >= len(self.payloads):
            return self
        last = self.keys[count - 1]
        resume = last if reverse else LogicalKey(successor_of_prefix(last))
        return ScanChunk(self.keys[:count], self.suffixes[:count], self.payloads[:count], resume, self.expiries)

    def timestamps(self) -> list[Timestamp]:
        """Return the commit timestamps, decoded. :meth:`versions` gives their bytes for less."""
        suffixes = self.suffixes
        # Rows of one commit have one timestamp, and neighbours often are of one commit.
        decoded = {each: Timestamp.from_bytes(each.translate(INVERTED)) for each in set(suffixes)}
        return list(map(decoded.__getitem__, suffixes))


class ScanSource(Protocol):
    """The source of scans: the store of versions, or that with a transaction's own writes over it."""

    def scan_chunk(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        *,
        reverse: bool = False,
        max_rows: int = ...,
        max_bytes: int = ...,
    ) -> ScanChunk:
        """Return the next rows of ``[start, end)`` at ``ts``, within the bounds unless one row alone has more. Raises
        SnapshotTooOld, DataLoss."""

    def snapshot(self, read_ts: Timestamp) -> Reader:
        """Return the state at that time."""
