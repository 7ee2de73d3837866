"""What evaluation reads through: one state of the keyspace at one timestamp.

A command reads a :class:`Reader` and returns mutations; it never touches the disk. The engine's snapshot, the
leader's view with what is in flight laid over it, and the tests' dictionary all are Readers, and one suite holds them
to the same behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import INVERTED
from cortado.store.keys.types import LogicalKey


class Version:
    """The newest visible value of a key: its ``payload`` and the timestamp of the commit that wrote it.

    Read-only. A store gives ``ts`` as it is stored, 12 inverted bytes, and it is decoded when somebody asks: most
    reads don't, and a point read would spend half its time on it.
    """

    __slots__ = ("_ts", "payload")

    def __init__(self, ts: Timestamp | bytes, payload: bytes) -> None:
        self._ts = ts
        self.payload = payload

    @property
    def ts(self) -> Timestamp:
        if isinstance(self._ts, bytes):
            self._ts = Timestamp.from_bytes(self._ts.translate(INVERTED))
        return self._ts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.ts == other.ts and self.payload == other.payload

    def __hash__(self) -> int:
        return hash((self.ts, self.payload))

    def __repr__(self) -> str:
        return f"Version(ts={self.ts!r}, payload={self.payload!r})"


class Reader(Protocol):
    """One consistent state at ``read_ts``. Raises DataLoss on a bad checksum, SnapshotTooOld below the safepoint."""

    @property
    def read_ts(self) -> Timestamp: ...

    def get(self, key: LogicalKey) -> Version | None:
        """The newest version at or below read_ts; None where there is none or it is a delete."""

    def get_many(self, keys: Sequence[LogicalKey]) -> list[Version | None]:
        """As :meth:`get` for each, in the order asked."""

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        """Live keys in ``[start, end)``, ascending, or descending if ``reverse``."""


@dataclass(frozen=True, slots=True)
class ScanChunk:
    """Rows of one bounded slice of a scan, as parallel lists; ``resume`` is the start (or, reversed, the end) of the
    next slice, None at the end of the range. A slice may hold no rows and still not be the last."""

    keys: list[LogicalKey]
    suffixes: list[bytes]
    payloads: list[bytes]
    resume: LogicalKey | None

    def timestamps(self) -> list[Timestamp]:
        """Commit timestamps; ``suffixes`` are the engine keys' inverted timestamps, undone only when wanted."""
        return [Timestamp.from_bytes(each.translate(INVERTED)) for each in self.suffixes]
