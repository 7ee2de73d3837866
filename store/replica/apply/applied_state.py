"""The record of a node's applied position, written in the same transaction as everything that it speaks of.

Format 6, numbers big-endian (golden files pin it)::

    format 1 | index 8 | term 8 | last_ts 12 | ceiling 12 | epoch_began 12 | request_floor 20 | requests 8
    | request_bytes 8 | expires_to_ms 8 | changed_ts 12 | roles_on 1 | reserved 24 | CRC-32C 4

The reserved bytes are for a safepoint and a resolved timestamp (docs/formats/node.md). They are zero: other values
would come from a newer version. The checksum is little-endian, as everywhere, and covers all bytes before it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import google_crc32c

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES

FORMAT: Final = 6
_RESERVED: Final = bytes(2 * TIMESTAMP_BYTES)
_LAYOUT: Final = struct.Struct(">BQQ12s12s12s20sQQQ12s?24s")
_CHECKSUM: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class AppliedState:
    """The state that the applied log has reached.

    - ``index``, ``term``: place of the last applied entry.
    - ``last_ts``: the last commit's timestamp. Reads at or below it are complete.
    - ``ceiling``: reads ahead of the log were served up to here at most; a new leader begins above it.
    - ``epoch_began``: the first timestamp of the current epoch.
    - ``request_floor``: results of requests with an id below this one (20 bytes) are no longer remembered.
    - ``requests``, ``request_bytes``: how many results are remembered, and the bytes of their records.
    - ``expires_to_ms``: all expiring writes of this epoch expire by this wall time; 0: there are no such writes.
    - ``changed_ts``: ``last_ts`` of the last entry that changed stored items, staged values aside. The index of changes
      ends there (:mod:`cortado.store.replica.feed.index`).
    - ``roles_on``: whether the keys of principals turn roles on; known even if damage hides those keys.
    """

    index: int = 0
    term: int = 0
    last_ts: Timestamp = ZERO
    ceiling: Timestamp = ZERO
    epoch_began: Timestamp = ZERO
    request_floor: bytes = bytes(REQUEST_ID_BYTES)
    requests: int = 0
    request_bytes: int = 0
    expires_to_ms: int = 0
    changed_ts: Timestamp = ZERO
    roles_on: bool = False

    def is_after(self, other: AppliedState) -> bool:
        """Return whether this may be the same group's later state: no rising field is below ``other``'s."""
        return (
            self.index >= other.index
            and self.term >= other.term
            and self.last_ts >= other.last_ts
            and self.ceiling >= other.ceiling
            and self.epoch_began >= other.epoch_began
            and self.request_floor >= other.request_floor
            and self.changed_ts >= other.changed_ts
        )

    def encode(self) -> bytes:
        record = _LAYOUT.pack(
            FORMAT,
            self.index,
            self.term,
            bytes(self.last_ts),
            bytes(self.ceiling),
            bytes(self.epoch_began),
            self.request_floor,
            self.requests,
            self.request_bytes,
            self.expires_to_ms,
            bytes(self.changed_ts),
            self.roles_on,
            _RESERVED,
        )
        return record + _CHECKSUM.pack(google_crc32c.value(record))

    @classmethod
    def decode_stored(cls, encoded: bytes | None) -> AppliedState:
        """Decode the record as it is stored; without one nothing was applied. Raises as :meth:`decode`."""
        return AppliedState() if encoded is None else cls.decode(encoded)

    @classmethod
    def decode(cls, encoded: bytes) -> AppliedState:
        """Decode a record. Raises DataLoss on a wrong length, checksum or format, and on used reserved bytes."""
        record, checksum = encoded[:-4], encoded[-4:]
        if not record or _CHECKSUM.pack(google_crc32c.value(record)) != checksum:
            raise DataLoss("the node's state", f"a record of {len(encoded)} bytes with a wrong checksum")
        if record[0] != FORMAT:
            raise DataLoss("the node's state", f"format {record[0]} is unknown, this version reads {FORMAT}")
        if len(record) != _LAYOUT.size:
            raise DataLoss("the node's state", f"a record of {len(encoded)} bytes, not of {_LAYOUT.size + 4}")
        _, index, term, last_ts, ceiling, epoch_began, request_floor, *rest = _LAYOUT.unpack(record)
        requests, request_bytes, expires_to_ms, changed_ts, roles_on, reserved = rest
        if reserved != _RESERVED:
            raise DataLoss("the node's state", "a newer version wrote a safepoint or a resolved timestamp")
        return cls(
            index,
            term,
            Timestamp.from_bytes(last_ts),
            Timestamp.from_bytes(ceiling),
            Timestamp.from_bytes(epoch_began),
            request_floor,
            requests,
            request_bytes,
            expires_to_ms,
            Timestamp.from_bytes(changed_ts),
            roles_on,
        )
