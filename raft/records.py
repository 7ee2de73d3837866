"""The log's bytes: keys in the log's space, stored entries, and the hard state (``docs/formats/raft.md``).

::

    group id (4, big-endian)  'e'  index (8, big-endian)   ->  CRC-32C (4, little-endian)  LogRecord
    group id (4, big-endian)  'h'                          ->  CRC-32C (4, little-endian)  HardState

The checksum covers the key and what follows it in the value. An entry travels between nodes in its stored form, so the
leader's checksum is the one that is verified on a follower's arrival and again when its disk is read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import google_crc32c
from google.protobuf.message import DecodeError

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.configuration import Configuration
from cortado.raft.log import Encoded, Entry, Nothing, Payload

FORMAT: Final = 3
CHECKSUM_BYTES: Final = 4
KIND_NOTHING, KIND_DATA, KIND_CONFIGURATION, KIND_EXAMINED = 0, 1, 2, 3
_ENTRY_KEY: Final = struct.Struct(">IcQ")
_HARD_KEY: Final = struct.Struct(">Ic")

# What PySyncObj takes for an entry without a command: it never looks further into it.
ENGINE_NO_OP: Final = b"\x01"

Writes = list[tuple[bytes, bytes | None]]


def entry_key(group_id: int, index: int) -> bytes:
    return _ENTRY_KEY.pack(group_id, b"e", index)


def hard_key(group_id: int) -> bytes:
    return _HARD_KEY.pack(group_id, b"h")


def group_range(group_id: int) -> tuple[bytes, bytes]:
    """The half-open range of a group's keys in the log's space."""
    return group_id.to_bytes(4, "big"), (group_id + 1).to_bytes(4, "big")


class Record:
    """An entry in the window of the journal, which PySyncObj holds as a command.

    It is encoded when its bytes are first asked for, and only once: the disk and all members share them. To PySyncObj
    it shows a first byte that says *no operation*, and a length.
    """

    __slots__ = ("_stored", "entry", "index", "is_counted", "kind", "term")

    def __init__(self, kind: int, payload: Payload | None, index: int = 0, term: int = 0, stored: bytes | None = None):
        self.kind = kind
        self.index = index
        self.term = term
        self.entry = None if payload is None else Entry(index, term, payload)
        self.is_counted = False
        self._stored = stored

    def __getitem__(self, item: slice) -> bytes:
        return ENGINE_NO_OP

    def __len__(self) -> int:
        return CHECKSUM_BYTES if self._stored is None else len(self._stored)

    def stored(self, group_id: int) -> bytes:
        """The value on the disk and on the wire."""
        if self._stored is None:
            assert self.entry is not None
            record = pb.LogRecord(term=self.term, kind=self.kind, body=self.entry.payload.encode())
            self._stored = _with_checksum(entry_key(group_id, self.index), record.SerializeToString())
        return self._stored

    def taken_entry(self) -> Entry:
        """The entry, to be applied. Where its bytes are kept, nothing else of it is from now on."""
        entry = self.entry if self.entry is not None else _decode_entry(self.index, self._stored)
        if self._stored is not None:
            self.entry = None
        return entry

    @property
    def held_entry(self) -> Entry:
        """The entry, to be looked at."""
        return self.entry if self.entry is not None else _decode_entry(self.index, self._stored)

    @property
    def configuration(self) -> Configuration:
        entry = self.entry if self.entry is not None else _decode_entry(self.index, self._stored)
        assert isinstance(entry.payload, Configuration)
        return entry.payload


def nothing(index: int, term: int) -> Record:
    return Record(KIND_NOTHING, Nothing(), index, term)


def decode_record(group_id: int, index: int, stored: bytes) -> Record:
    """Verify and decode a stored or received entry. Raises DataLoss naming the place."""
    place = f"entry {index} of group {group_id}"
    message = pb.LogRecord()
    _decode(message, entry_key(group_id, index), stored, place)
    if message.kind > KIND_EXAMINED:
        raise DataLoss(place, f"unknown kind {message.kind}: it was written by a newer version")
    record = Record(message.kind, None, index, message.term, stored)
    record.entry = Entry(index, message.term, _payload(message.kind, message.body))
    return record


def _decode_entry(index: int, stored: bytes | None) -> Entry:
    assert stored is not None
    message = pb.LogRecord.FromString(stored[CHECKSUM_BYTES:])
    return Entry(index, message.term, _payload(message.kind, message.body))


def _payload(kind: int, body: bytes) -> Payload:
    if kind == KIND_NOTHING:
        return Nothing()
    return Configuration.decode(body) if kind == KIND_CONFIGURATION else Encoded(body)


@dataclass(frozen=True, slots=True)
class HardState:
    """What a group's log keeps beside its entries; see ``HardState`` in ``proto/internal/raft.proto``."""

    term: int = 0
    voted_for: str = ""
    base_index: int = 0
    base_term: int = 0
    base_configuration: Configuration = field(default_factory=Configuration)
    keeps_entries: bool = True

    def write(self, group_id: int) -> tuple[bytes, bytes]:
        """The key and value that store it."""
        key = hard_key(group_id)
        message = pb.HardState(
            format=FORMAT,
            term=self.term,
            voted_for=self.voted_for,
            base_index=self.base_index,
            base_term=self.base_term,
            base_configuration=self.base_configuration.to_message(),
            keeps_entries=self.keeps_entries,
        )
        return key, _with_checksum(key, message.SerializeToString(deterministic=True))


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A group's part of the log's space, verified: ``records`` follow ``hard_state``'s base without a gap."""

    hard_state: HardState
    records: Sequence[Record]

    @property
    def last(self) -> tuple[int, int]:
        if self.records:
            return self.records[-1].index, self.records[-1].term
        return self.hard_state.base_index, self.hard_state.base_term

    @property
    def configuration(self) -> Configuration:
        """The newest one, committed or not."""
        newest = next((each for each in reversed(self.records) if each.kind == KIND_CONFIGURATION), None)
        return self.hard_state.base_configuration if newest is None else newest.configuration


def decode_stored(group_id: int, stored: Sequence[tuple[bytes, bytes]]) -> StoredLog:
    """Decode all keys and values of a group. Nothing stored is an empty hard state. Raises DataLoss."""
    values = dict(sorted(stored))
    # First: its format says whether the entries can be read.
    hard_value = values.pop(hard_key(group_id), None)
    hard_state = None if hard_value is None else _decode_hard_state(group_id, hard_value)
    records: list[Record] = []
    for key, value in values.items():
        if len(key) == _ENTRY_KEY.size and key[:5] == entry_key(group_id, 0)[:5]:
            records.append(decode_record(group_id, int.from_bytes(key[5:], "big"), value))
        else:
            raise DataLoss(f"the log of group {group_id}", f"unknown key {key.hex()}")
    if hard_state is None:
        if records:
            raise DataLoss(f"the log of group {group_id}", "it has entries, but no hard state")
        return StoredLog(HardState(), ())
    _check_sequence(group_id, hard_state, records)
    return StoredLog(hard_state, records)


def _check_sequence(group_id: int, hard_state: HardState, records: Sequence[Record]) -> None:
    index, term = hard_state.base_index, hard_state.base_term
    if records and not hard_state.keeps_entries:
        raise DataLoss(f"the log of group {group_id}", "entries are stored where none are kept")
    for record in records:
        if record.index != index + 1:
            raise DataLoss(
                f"the log of group {group_id}", f"entry {index + 1} is missing: {record.index} follows {index}"
            )
        if record.term < term:
            raise DataLoss(f"entry {record.index} of group {group_id}", f"term {record.term} follows term {term}")
        index, term = record.index, record.term
    if hard_state.term < term:
        problem = f"its term {hard_state.term} is below the last entry's term {term}"
        raise DataLoss(f"the hard state of group {group_id}", problem)


def _decode_hard_state(group_id: int, value: bytes) -> HardState:
    message = pb.HardState()
    place = f"the hard state of group {group_id}"
    _decode(message, hard_key(group_id), value, place)
    if message.format != FORMAT:
        raise DataLoss(place, f"format {message.format}, this version knows {FORMAT}")
    return HardState(
        message.term,
        message.voted_for,
        message.base_index,
        message.base_term,
        Configuration.from_message(message.base_configuration),
        message.keeps_entries,
    )


def _with_checksum(key: bytes, body: bytes) -> bytes:
    checksum: int = google_crc32c.extend(google_crc32c.value(key), body)
    return checksum.to_bytes(CHECKSUM_BYTES, "little") + body


def _decode(message: pb.LogRecord | pb.HardState, key: bytes, value: bytes, place: str) -> None:
    body = value[CHECKSUM_BYTES:]
    if len(value) < CHECKSUM_BYTES or _with_checksum(key, body)[:CHECKSUM_BYTES] != value[:CHECKSUM_BYTES]:
        raise DataLoss(place, "its checksum does not match")
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise DataLoss(place, str(error)) from error
