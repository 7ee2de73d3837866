"""The marker: this replica's data is not a state, because an installation was begun.

While it stands in the META space nothing is read here and this node does not campaign. It is written before the first
byte of the old state is deleted, and removed by the transaction that completes the new one. Format 1 (golden files pin
it)::

    format 1 | index 8 | term 8 | snapshot id | CRC-32C 4, little-endian, over all bytes before it

One that is damaged itself is read as one without an id: there is no file to install from, and any snapshot will do.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import google_crc32c

from cortado.errors import DataLoss
from cortado.store.keys.groups import GROUP_BYTES

FORMAT: Final = 1
_LAYOUT: Final = struct.Struct(">BQQ")


def marker_key(group_id: int) -> bytes:
    """Return the marker's key in META."""
    return b"installing" + group_id.to_bytes(GROUP_BYTES)


def applied_key(group_id: int) -> bytes:
    """Return the key of the applied state in META (``cortado.store.replica.apply.state_machine``)."""
    return b"applied" + group_id.to_bytes(GROUP_BYTES)


def reset_key(group_id: int) -> bytes:
    """Return the key in META that says how the log is to be reset to the installed snapshot, until that is done. The
    value is the hard state in its stored form (:func:`cortado.raft.records.decode_hard_state`)."""
    return b"log reset" + group_id.to_bytes(GROUP_BYTES)


@dataclass(frozen=True, slots=True)
class Marker:
    """Which snapshot is being installed, and its place in the log; id empty and 0, 0 if that is not known."""

    snapshot_id: str = ""
    index: int = 0
    term: int = 0

    def encode(self) -> bytes:
        record = _LAYOUT.pack(FORMAT, self.index, self.term) + self.snapshot_id.encode()
        return record + _checksum(record)

    @classmethod
    def decode(cls, encoded: bytes) -> Marker:
        """A marker that is damaged itself still marks: it becomes one without an id. Raises DataLoss on a format that
        a newer version wrote."""
        record, checksum = encoded[:-4], encoded[-4:]
        if len(record) < _LAYOUT.size or checksum != _checksum(record):
            return cls()
        format_, index, term = _LAYOUT.unpack_from(record)
        if format_ != FORMAT:
            raise DataLoss("the marker of an installation", f"format {format_} is unknown, this version reads {FORMAT}")
        return cls(record[_LAYOUT.size :].decode(), index, term)


def _checksum(record: bytes) -> bytes:
    checksum: int = google_crc32c.value(record)
    return checksum.to_bytes(4, "little")
