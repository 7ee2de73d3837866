"""The seam between a node and its replicated log.

A :class:`ReplicatedLog` is a core without I/O, in the manner of etcd's ``raft.Node``: the node gives it proposals,
messages and ticks, and takes from :meth:`~ReplicatedLog.ready` what is to be done, as a value. The order is what
matters, and the node's turn keeps it::

    append(payload) ... tick(now_ms) -> ready() -> one synced transaction: writes + committed entries, applied
                                                -> synced(ready) -> messages may leave, callers are answered

Nothing that a Ready carries in ``messages`` may leave the node before its ``writes`` are durable. A log knows nothing
of tables, of gRPC, or of what a payload means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Payload(Protocol):
    """What an entry carries. Encoded only when it must be stored or sent; a group of one never needs to."""

    def encode(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in the log. ``payload`` is the proposer's object on the node that proposed it."""

    index: int
    term: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Message:
    """Opaque bytes for a peer."""

    to: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Ready:
    """Work for one turn: ``writes`` (key, value; None deletes) and ``committed`` go into one synced transaction."""

    writes: Sequence[tuple[bytes, bytes | None]] = field(default=())
    committed: Sequence[Entry] = field(default=())
    messages: Sequence[Message] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.writes or self.committed or self.messages)


class ReplicatedLog(Protocol):
    """A group's log. All calls come from one thread, the node's loop."""

    @property
    def term(self) -> int: ...

    @property
    def is_leader(self) -> bool:
        """True where this node leads and has applied an entry of its own term: only then may commands be evaluated."""

    @property
    def leader(self) -> str:
        """The leader's node id; empty while there is none."""

    @property
    def last(self) -> tuple[int, int]:
        """Index and term of the last entry, applied or not."""

    def append(self, payload: Payload) -> Entry:
        """Append at the leader; the entry follows :attr:`last` directly. Raises NotLeader."""

    def tick(self, now_ms: int) -> None:
        """Let time pass. ``now_ms`` is monotonic."""

    def step(self, message: Message) -> None:
        """Take a message from a peer."""

    def ready(self) -> Ready:
        """What is to be done now. Each entry is handed over once."""

    def synced(self, ready: Ready) -> None:
        """The node's word that ``ready`` is durable and its committed entries are applied."""

    def withdraw(self, ready: Ready) -> bool:
        """The node could not store ``ready`` (there is no room). True: its entries and all after them are taken back,
        since nobody else can hold them, and :attr:`last` is again the last durable entry. False: they stand, and the
        node must store them or stop."""
