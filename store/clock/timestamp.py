"""A version's time: ``(epoch: 16 bit, wall_ms: 48 bit, logical: 32 bit)``, 12 bytes big-endian, ordered as bytes.

The wall part follows the physical clock, the logical part counts within one millisecond, and the epoch lets an
operator bring the wall time back after a wrong clock got in: every timestamp of a later epoch sorts after every one
of an earlier epoch. Source: *Logical Physical Clocks*, Kulkarni et al. 2014; the epoch is ours.

As text a timestamp is ``epoch.wall_ms.logical``, such as ``0.1763643600000.2``; this is also a document's etag.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cortado.errors import InvalidArgument

EPOCH_MAX: Final = (1 << 16) - 1
WALL_MS_MAX: Final = (1 << 48) - 1
TTL_MS_MAX: Final = 100 * 365 * 86_400_000
"""The longest time from a write to its expiry: a hundred years."""
LOGICAL_MAX: Final = (1 << 32) - 1
TIMESTAMP_BYTES: Final = 12

_LAYOUT = struct.Struct(">QI")
pack_timestamp: Final = _LAYOUT.pack
"""From ``epoch << 48 | wall_ms`` and ``logical`` to the bytes of a timestamp, without the object."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """One point in the order of all versions. Fields are unsigned; ``wall_ms`` counts from 1970 in UTC."""

    epoch: int
    wall_ms: int
    logical: int

    def __post_init__(self) -> None:
        if 0 <= self.epoch <= EPOCH_MAX and 0 <= self.wall_ms <= WALL_MS_MAX and 0 <= self.logical <= LOGICAL_MAX:
            return
        for name, value, bound in (
            ("epoch", self.epoch, EPOCH_MAX),
            ("wall_ms", self.wall_ms, WALL_MS_MAX),
            ("logical", self.logical, LOGICAL_MAX),
        ):
            if not 0 <= value <= bound:
                raise InvalidArgument(f"timestamp.{name}", f"must be between 0 and {bound}", str(value))

    def __bytes__(self) -> bytes:
        return _LAYOUT.pack(self.epoch << 48 | self.wall_ms, self.logical)

    @classmethod
    def from_bytes(cls, encoded: bytes) -> Timestamp:
        """Raises InvalidArgument unless ``encoded`` has 12 bytes."""
        if len(encoded) != TIMESTAMP_BYTES:
            raise InvalidArgument("timestamp", f"must have {TIMESTAMP_BYTES} bytes", f"{len(encoded)} bytes")
        high, logical = _LAYOUT.unpack(encoded)
        return cls(high >> 48, high & WALL_MS_MAX, logical)

    def __str__(self) -> str:
        return f"{self.epoch}.{self.wall_ms}.{self.logical}"

    @classmethod
    def parse(cls, text: str, field: str = "timestamp") -> Timestamp:
        """From ``epoch.wall_ms.logical``. Raises InvalidArgument naming ``field``."""
        parts = text.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) <= 15 for part in parts):
            raise InvalidArgument(field, "must look like epoch.wall_ms.logical, such as 0.1763643600000.2", text)
        return cls(*map(int, parts))

    def next(self) -> Timestamp:
        """Return the smallest timestamp above this one."""
        if self.logical < LOGICAL_MAX:
            return Timestamp(self.epoch, self.wall_ms, self.logical + 1)
        if self.wall_ms < WALL_MS_MAX:
            return Timestamp(self.epoch, self.wall_ms + 1, 0)
        return Timestamp(self.epoch + 1, 0, 0)

    def previous(self) -> Timestamp:
        """Return the largest timestamp below this one, which is not ZERO."""
        if self.logical:
            return Timestamp(self.epoch, self.wall_ms, self.logical - 1)
        if self.wall_ms:
            return Timestamp(self.epoch, self.wall_ms - 1, LOGICAL_MAX)
        return Timestamp(self.epoch - 1, WALL_MS_MAX, LOGICAL_MAX)

    def as_datetime(self) -> datetime:
        """Return the wall part, for people (UTC). Far futures are clamped to the year 9999."""
        return datetime.fromtimestamp(min(self.wall_ms, 253402300799000) / 1000, UTC)


def texts_of(encoded: bytes) -> list[str]:
    """Return the texts of timestamps of 12 bytes each, without their objects: for the etags of a page."""
    return [f"{high >> 48}.{high & WALL_MS_MAX}.{logical}" for high, logical in _LAYOUT.iter_unpack(encoded)]


ZERO: Final = Timestamp(0, 0, 0)
LARGEST: Final = Timestamp(EPOCH_MAX, WALL_MS_MAX, LOGICAL_MAX)


def lag_ms(newest: Timestamp, reached: Timestamp, began: Timestamp) -> int:
    """Return how far a follower at ``reached`` is behind ``newest`` in wall time; ``began`` is the newest when it
    began.

    The beginning of time and another epoch have no comparable wall time: the lag then counts from ``began``, and is 0
    if that has none either.
    """
    if reached >= newest:
        return 0
    since = reached if reached.epoch == newest.epoch and reached.wall_ms else began
    return max(newest.wall_ms - since.wall_ms, 0) if since.epoch == newest.epoch and since.wall_ms else 0
