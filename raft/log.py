"""The values that pass between a node and a group's log (:class:`~cortado.raft.group.RaftLog`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol, TypeAlias

from cortado.raft.registry import Roster


class Payload(Protocol):
    """The content of an entry."""

    def encode(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """A payload that came from the disk or from a peer."""

    body: bytes

    def encode(self) -> bytes:
        return self.body


@dataclass(frozen=True, slots=True)
class Nothing:
    """The first entry of a leader's term. Applying it moves the place in the log, and that is all."""

    def encode(self) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in the log.

    On the node that proposed it in this incarnation, ``payload`` is the proposer's own object; elsewhere it is
    :class:`Encoded`. The log's own entries have :class:`Nothing`, a :class:`~cortado.raft.configuration.Configuration`
    or a :class:`~cortado.raft.registry.Registry`.
    """

    index: int
    term: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Doubt:
    """An entry that a follower did not keep, since it was worked out from other versions than the follower holds.
    ``stored_key`` is a key with its version as the engine stores it, which the leader must have lost. Empty if the
    follower lacks something, or cannot tell: then it mends itself, and is sent the entry again."""

    index: int
    stored_key: bytes = b""


Examine: TypeAlias = "Callable[[Sequence[Entry], Entry], Doubt | None]"
"""Whether an entry may be kept, behind those before it that are not applied."""


@dataclass(frozen=True, slots=True)
class Message:
    """Opaque bytes for the peer with the node id ``to``."""

    to: str
    body: bytes


class RecordKind(IntEnum):
    """The kinds of a log-file record."""

    ENTRY = 1
    """An entry. If its index exists already, it replaces that entry and all behind it."""
    TRUNCATE = 2
    """The entries from its index on go, and nothing takes their place yet."""
    HARD_STATE = 3
    """Term, vote and base. Its index and term are the base, the place that the log begins after: entries up to there
    are needed no longer."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record that a group's log gives the log files. ``payload`` is opaque to them; empty in a TRUNCATE."""

    kind: RecordKind
    group_id: int
    index: int
    term: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class SnapshotMeta:
    """A state to be brought to a peer: everything applied up to ``index``, whose entry is of ``term``.

    ``snapshot_id`` names the file of one sender, so that an interrupted transfer resumes; ``size_bytes`` is the file's
    length.
    """

    snapshot_id: str
    index: int
    term: int
    roster: Roster
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SnapshotOffer:
    """A leader's word, on a replica that fell behind, that ``meta`` can be fetched from ``sender``."""

    sender: str
    meta: SnapshotMeta


@dataclass(frozen=True, slots=True)
class Room:
    """How many more bytes a member may store: of any kind, and of writes that free room, which may use most of a
    reserve. Bytes on their way into its log files or its data are not in it."""

    bytes: int
    freeing_bytes: int

    def less(self, size_bytes: int) -> Room:
        """Return the room that is left beside ``size_bytes`` that are to be stored, too."""
        cost_bytes = STORED_TIMES * size_bytes
        return Room(max(self.bytes - cost_bytes, 0), max(self.freeing_bytes - cost_bytes, 0))


STORED_TIMES: Final = 2
"""How many times an entry is stored: in the log files, and in the data."""


@dataclass(frozen=True, slots=True)
class VoterRoom:
    """Another voter's room, as the leader knows it. ``room`` is the voter's last answer, less all entries that it was
    not sent or has not acknowledged; None if it said nothing of its room."""

    node_id: str
    room: Room | None

    def bytes(self, *, frees: bool) -> float:
        """Return the bytes for a write of any kind, or for one that ``frees`` room; infinite if ``room`` is None."""
        if self.room is None:
            return math.inf
        return self.room.freeing_bytes if frees else self.room.bytes


@dataclass(frozen=True, slots=True)
class PeerProgress:
    """A member as its leader knows it: for status pages, and for decisions about promotion and hand-over."""

    node_id: str
    is_voter: bool
    match_index: int
    last_heard_ms: float
    """Milliseconds since its last answer."""
    needs_snapshot: bool
    room: Room | None
    """The bytes that it may still store, as it said last; None if it did not."""
