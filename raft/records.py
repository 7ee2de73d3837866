"""The log's bytes: an entry's stored form, the hard state, and the records that hold them (``docs/formats/raft.md``).

::

    an entry      CRC-32C (4, little-endian)  StoredEntry    ->  ENTRY  (group, index, term)
    hard state    CRC-32C (4, little-endian)  HardState      ->  HARD_STATE  (group, base's index and term)

The checksum covers the place (group, index) and what follows it. An entry travels between nodes in its stored form, so
the leader's checksum is the one that is verified on a follower's arrival and again when its disk is read. The log files
add a checksum of their own, over all that one write brings there.
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
from cortado.raft.large_fields import Piece, large_field
from cortado.raft.log import Encoded, Entry, LogRecord, Nothing, Payload, RecordKind
from cortado.raft.registry import Registry, Roster

FORMAT: Final = 5
CHECKSUM_BYTES: Final = 4
KIND_NOTHING, KIND_DATA, KIND_CONFIGURATION, KIND_EXAMINED, KIND_REGISTRY = 0, 1, 2, 3, 4
_BODY: Final = pb.StoredEntry.BODY_FIELD_NUMBER
_ENTRY_PLACE: Final = struct.Struct(">IcQ")
_HARD_PLACE: Final = struct.Struct(">Ic")

# PySyncObj's mark of an entry without a command: it never looks further into it.
ENGINE_NO_OP: Final = b"\x01"

Writes = list[LogRecord]


def _entry_place(group_id: int, index: int) -> bytes:
    return _ENTRY_PLACE.pack(group_id, b"e", index)


def _hard_place(group_id: int) -> bytes:
    return _HARD_PLACE.pack(group_id, b"h")


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
        """Return the value on the disk and on the wire."""
        if self._stored is None:
            assert self.entry is not None
            head = pb.StoredEntry(term=self.term, kind=self.kind).SerializeToString()
            body = large_field(_BODY, self.entry.payload.encode())
            self._stored = _with_checksum(_entry_place(group_id, self.index), head, *body)
        return self._stored

    def log_record(self, group_id: int) -> LogRecord:
        """Return its record for the log files."""
        return LogRecord(RecordKind.ENTRY, group_id, self.index, self.term, self.stored(group_id))

    def taken_entry(self) -> Entry:
        """Return the entry, to be applied. If its bytes are kept, the record drops the decoded entry."""
        entry = self.entry if self.entry is not None else _decode_entry(self.index, self._stored)
        if self._stored is not None:
            self.entry = None
        return entry

    @property
    def held_entry(self) -> Entry:
        """Return the entry, to be looked at."""
        return self.entry if self.entry is not None else _decode_entry(self.index, self._stored)

    @property
    def configuration(self) -> Configuration:
        payload = self.held_entry.payload
        assert isinstance(payload, Configuration)
        return payload

    @property
    def registry(self) -> Registry:
        payload = self.held_entry.payload
        assert isinstance(payload, Registry)
        return payload


def nothing(index: int, term: int) -> Record:
    return Record(KIND_NOTHING, Nothing(), index, term)


def decode_record(group_id: int, index: int, stored: bytes) -> Record:
    """Verify and decode a stored or received entry. Raises DataLoss naming the place."""
    place = f"entry {index} of group {group_id}"
    message = pb.StoredEntry()
    _decode(message, _entry_place(group_id, index), stored, place)
    if message.kind > KIND_REGISTRY:
        raise DataLoss(place, f"unknown kind {message.kind}: it was written by a newer version")
    record = Record(message.kind, None, index, message.term, stored)
    record.entry = Entry(index, message.term, _payload(message.kind, message.body))
    return record


def _decode_entry(index: int, stored: bytes | None) -> Entry:
    assert stored is not None
    message = pb.StoredEntry.FromString(stored[CHECKSUM_BYTES:])
    return Entry(index, message.term, _payload(message.kind, message.body))


def _payload(kind: int, body: bytes) -> Payload:
    if kind == KIND_NOTHING:
        return Nothing()
    if kind == KIND_CONFIGURATION:
        return Configuration.decode(body)
    return Registry.decode(body) if kind == KIND_REGISTRY else Encoded(body)


@dataclass(frozen=True, slots=True)
class HardState:
    """A group's state beside its entries; see ``HardState`` in ``proto/internal/raft.proto``. An empty log has the
    owner alone."""

    term: int = 0
    voted_for: str = ""
    base_index: int = 0
    base_term: int = 0
    base_roster: Roster = field(default_factory=Roster)
    owner: str = ""

    def log_record(self, group_id: int) -> LogRecord:
        """Return its record for the log files."""
        message = pb.HardState(
            format=FORMAT,
            term=self.term,
            voted_for=self.voted_for,
            base_index=self.base_index,
            base_term=self.base_term,
            base_roster=self.base_roster.to_message(),
            owner=self.owner,
        )
        payload = _with_checksum(_hard_place(group_id), message.SerializeToString(deterministic=True))
        return LogRecord(RecordKind.HARD_STATE, group_id, self.base_index, self.base_term, payload)


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A group's log as the log files have it, verified: ``records`` follow ``hard_state``'s base without a gap."""

    hard_state: HardState
    records: Sequence[Record]

    @property
    def is_empty(self) -> bool:
        """Nothing was ever stored: a replica that has received nothing yet."""
        return self.hard_state == HardState(owner=self.hard_state.owner) and not self.records

    @property
    def last(self) -> tuple[int, int]:
        if self.records:
            return self.records[-1].index, self.records[-1].term
        return self.hard_state.base_index, self.hard_state.base_term

    @property
    def roster(self) -> Roster:
        """Return the newest configuration and registry, committed or not."""
        base = self.hard_state.base_roster
        configuration = next((each for each in reversed(self.records) if each.kind == KIND_CONFIGURATION), None)
        registry = next((each for each in reversed(self.records) if each.kind == KIND_REGISTRY), None)
        return Roster(
            base.configuration if configuration is None else configuration.configuration,
            base.registry if registry is None else registry.registry,
        )


def reset_to(group_id: int, stored: StoredLog, state: HardState) -> tuple[StoredLog, Writes]:
    """``stored``, begun anew behind the base of ``state``, and the writes that make it so. Entries behind that base
    stay if the log agrees with it."""
    base = state.base_index
    first = stored.hard_state.base_index
    terms = {first: stored.hard_state.base_term, **{each.index: each.term for each in stored.records}}
    is_kept = terms.get(base) == state.base_term
    cut = [LogRecord(RecordKind.TRUNCATE, group_id, first + 1, 0)] if stored.records and not is_kept else []
    kept = [each for each in stored.records if each.index > base] if is_kept else []
    return StoredLog(state, kept), [*cut, state.log_record(group_id)]


def decode_stored(group_id: int, hard_state: LogRecord | None, entries: Sequence[LogRecord]) -> StoredLog:
    """Decode a group's records from the log files. Nothing stored is an empty hard state. Raises DataLoss."""
    if hard_state is None:
        if entries:
            raise DataLoss(f"the log of group {group_id}", "it has entries, but no hard state")
        return StoredLog(HardState(), ())
    # First: its format says whether the entries can be read.
    state = decode_hard_state(group_id, hard_state.payload)
    records = [decode_record(group_id, each.index, each.payload) for each in entries]
    _check_sequence(group_id, state, records)
    return StoredLog(state, records)


def _check_sequence(group_id: int, hard_state: HardState, records: Sequence[Record]) -> None:
    index, term = hard_state.base_index, hard_state.base_term
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


def decode_hard_state(group_id: int, value: bytes) -> HardState:
    """Raises DataLoss on a wrong checksum or format."""
    message = pb.HardState()
    place = f"the hard state of group {group_id}"
    _decode(message, _hard_place(group_id), value, place)
    if message.format != FORMAT:
        raise DataLoss(place, f"format {message.format}, this version knows {FORMAT}")
    return HardState(
        message.term,
        message.voted_for,
        message.base_index,
        message.base_term,
        Roster.from_message(message.base_roster),
        message.owner,
    )


def _with_checksum(place: bytes, *pieces: Piece) -> bytes:
    return b"".join((_checksum(place, *pieces), *pieces))


def _checksum(place: bytes, *pieces: Piece) -> bytes:
    checksum: int = google_crc32c.value(place)
    for piece in pieces:
        checksum = google_crc32c.extend(checksum, piece)
    return checksum.to_bytes(CHECKSUM_BYTES, "little")


def _decode(message: pb.StoredEntry | pb.HardState, checked: bytes, value: bytes, place: str) -> None:
    body = value[CHECKSUM_BYTES:]
    if len(value) < CHECKSUM_BYTES or _checksum(checked, body) != value[:CHECKSUM_BYTES]:
        raise DataLoss(place, "its checksum does not match")
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise DataLoss(place, str(error)) from error
