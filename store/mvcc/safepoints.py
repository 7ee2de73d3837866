"""Safepoints: a key cannot be read below its safepoint, because versions that only such reads need may be collected.

::

    key @9   key @7   key @4   key @2          safepoint 5: a read at 5 or 6 finds @4, and @2 may be gone
             |----------- safepoint 5

The cluster has a safepoint, and so has each table with a retention of its own. The catalogue's is the lowest of them,
since a read of a table at an old time looks the table up at that time. Safepoints only rise, through the log, and are
stored as one versioned key, ``m "gc"``::

    the cluster's timestamp 12 | (table id 4, big-endian | its timestamp 12) ...      by ascending id
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cortado.errors import DataLoss, SnapshotTooOld
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import META_SPACE, TABLE_SPACE, meta_key, table_range
from cortado.store.mvcc.reader import Reader

SAFEPOINTS_KEY: Final = meta_key("gc")

_TABLE: Final = struct.Struct(">I12s")
_TABLE_ID: Final = slice(1, 5)
_TABLE_PREFIX_BYTES: Final = 5


@dataclass(frozen=True, slots=True)
class Safepoints:
    """The ``cluster``'s, and those of ``tables`` that have their own, by id."""

    cluster: Timestamp = ZERO
    tables: Mapping[int, Timestamp] = field(default_factory=dict)
    lowest: Timestamp = field(init=False)
    highest: Timestamp = field(init=False)

    def __post_init__(self) -> None:
        each = (self.cluster, *self.tables.values())
        object.__setattr__(self, "lowest", min(each))
        object.__setattr__(self, "highest", max(each))

    def of_table(self, table_id: int) -> Timestamp:
        return self.tables.get(table_id, self.cluster)

    def of(self, key: bytes) -> Timestamp:
        """That of one key, logical or stored."""
        space = key[:1]
        if space == TABLE_SPACE and self.tables:
            return self.of_table(int.from_bytes(key[_TABLE_ID], "big"))
        return self.lowest if space == META_SPACE else self.cluster

    def of_range(self, start: bytes, end: bytes) -> Timestamp:
        """Return the highest of any key in ``[start, end)``."""
        if not self.tables:
            return self.of(start) if start[:1] == META_SPACE and end <= TABLE_SPACE else self.cluster
        prefix = start[:_TABLE_PREFIX_BYTES]
        # A table's keys end at the begin of the next one's.
        is_of_one = end[:_TABLE_PREFIX_BYTES] == prefix or end == successor_of_prefix(prefix)
        if is_of_one or (start[:1] == META_SPACE and end <= TABLE_SPACE):
            return self.of(start)
        bounds = ((ts, *table_range(table_id)) for table_id, ts in self.tables.items())
        return max([self.cluster, *(ts for ts, first, behind in bounds if start < behind and first < end)])

    def check(self, ts: Timestamp, start: bytes, end: bytes) -> None:
        """Raise SnapshotTooOld if ``ts`` is below the safepoint of some key in ``[start, end)``."""
        if ts < self.highest:
            safepoint = self.of_range(start, end)
            if ts < safepoint:
                raise SnapshotTooOld(str(ts), str(safepoint))

    def is_below(self, other: Safepoints) -> bool:
        """Return whether none of them is above ``other``'s of the same keys."""
        ids = {*self.tables, *other.tables}
        return self.cluster <= other.cluster and all(self.of_table(each) <= other.of_table(each) for each in ids)

    def encode(self) -> bytes:
        tables = [_TABLE.pack(table_id, bytes(ts)) for table_id, ts in sorted(self.tables.items())]
        return bytes(self.cluster) + b"".join(tables)

    @classmethod
    def decode(cls, encoded: bytes) -> Safepoints:
        """Decode stored safepoints. Raises DataLoss if the bytes are no safepoints."""
        cluster, rest = encoded[:TIMESTAMP_BYTES], encoded[TIMESTAMP_BYTES:]
        if len(cluster) < TIMESTAMP_BYTES or len(rest) % _TABLE.size:
            raise DataLoss("the safepoints", f"a record of {len(encoded)} bytes")
        tables = {table_id: Timestamp.from_bytes(ts) for table_id, ts in _TABLE.iter_unpack(rest)}
        return cls(Timestamp.from_bytes(cluster), tables)


NO_SAFEPOINTS: Final = Safepoints()


def safepoints_of(reader: Reader) -> Safepoints:
    """Return the safepoints of the reader's state. Raises DataLoss."""
    version = reader.get(SAFEPOINTS_KEY)
    return NO_SAFEPOINTS if version is None else Safepoints.decode(version.payload)
