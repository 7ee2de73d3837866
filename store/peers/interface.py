"""The interfaces to a node and to a stream, and the bounds of this package."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cortado.errors import InvalidArgument
from cortado.raft.registry import Member, Roster
from cortado.store.peers.bounds import FRAME_BYTES_MAX
from cortado.store.process.range_copies import Answer, Ask


class PeerNode(Protocol):
    """The node, as its peers reach it. All calls come from the node's loop."""

    @property
    def meta(self) -> PeerGroup:
        """Its replica of the group that holds the members."""

    def receive(self, sender: str, group_id: int, bodies: Sequence[bytes]) -> None:
        """Messages of one group from one peer, in the order in which it sent them. Never waits, never raises."""

    def observe_peer_clock(self, node_id: str, low_ms: float, high_ms: float) -> None:
        """Take the bounds of the peer's physical clock minus our monotonic one, in milliseconds."""

    def read_snapshot(self, group_id: int, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        """Return a snapshot's bytes from ``offset`` on. Raises NotFound if it is gone."""

    async def read_range(self, group_id: int, ask: Ask) -> Answer:
        """Return the stored items of a range, or of its first part. Raises NotFound, Unavailable."""


class PeerGroup(Protocol):
    """The members, as far as this node knows."""

    def log_position(self) -> tuple[int, int]:
        """Term and index of the last entry of the log."""

    def known_member(self, node_id: str) -> Member | None:
        """Return a member by any configuration that may be in force here."""

    def is_removed(self, node_id: str) -> bool:
        """Return whether it is known to be committed that the node was removed: its id is never used again."""

    def known_members(self) -> Sequence[Member]:
        """Return all of those, in the order of their ids; this node may be among them."""

    def believe(self, node_id: str, position: tuple[int, int]) -> None:
        """Hear ``node_id``, which members vouched for, until our own log reaches ``position`` (term, index)."""

    def is_believed(self, node_id: str) -> bool:
        """Return whether it is heard for that reason still."""

    async def bind_member(self, member: Member) -> Roster:
        """Remember the data directory and the addresses of an announced member. Returns when that is committed. Raises
        NotLeader, InvalidArgument, Unavailable."""


class Receiver(Protocol):
    """Receives the events of a stream. Called from the loop, as they happen, and never after ``ended``."""

    def arrived(self, message: bytes) -> None:
        """Take the next message. An error that it raises ends the stream."""

    def writable(self) -> None:
        """Note that the other side is slow no more."""

    def ended(self, reason: Exception) -> None:
        """Take the end of the stream: Unavailable if the connection broke or was closed; the error with which the
        other side ended it; or PeerRefused for a message that it should not have sent."""


class Stream(Protocol):
    """One open connection, from either end, that carries whole messages."""

    def start(self, receiver: Receiver) -> None:
        """Call ``receiver`` from now on; at once for messages that have already come."""

    @property
    def is_writable(self) -> bool:
        """False if the other side is slow, or gone."""

    def write(self, message: bytes) -> None:
        """Send a message, or drop it if the stream has ended."""


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """Bounds of one node's connections to its peers.

    - ``queue_messages_max``, ``queue_bytes_max``: messages that wait for one peer, while a batch is being written.
      More are dropped, and counted: Raft sends again.
    - ``batch_bytes_max``: a batch takes messages until it has this much, and at least one.
    - ``message_bytes_max``: the largest single message; a larger one could not be received, and is dropped.
    - ``idle_ms``: a stream on which nothing was sent for this long carries an empty batch, with the clock.
    - ``silence_ms``: a stream on which nothing arrived for this long is cut, and the peer dialled again.
    - ``patience_ms``: a snapshot is given up if nothing arrived, or nothing was taken, for this long: its sender reads
      from a disk, and its receiver writes to one.
    - ``hello_ms``: most time for connecting, TLS and both Hellos; half of it for asking members about a stranger.
    - ``connections_max``: all connections of others.
    - ``handshakes_max``: those of them whose caller is no known member yet. Beyond either bound one is ended: the
      unknown one that has waited longest, or else the newest.
    - ``frame_bytes_max``: the largest payload of a frame.
    - ``vouched_max``: strangers that members are being asked for; more are refused at once.
    - ``hello_bytes_max``: the largest first frame.
    - ``backoff_ms_min``, ``backoff_ms_max``: between attempts to connect, doubled each time, shortened by chance.
    - ``wait_to_dial_ms``: how long the node with the larger id waits for the other one's stream before it dials.
    - ``chunk_bytes``: pieces of a snapshot.
    """

    queue_messages_max: int = 4_096
    queue_bytes_max: int = 32 << 20
    batch_bytes_max: int = 1 << 20
    message_bytes_max: int = FRAME_BYTES_MAX - (64 << 10)
    idle_ms: int = 500
    silence_ms: int = 2_000
    patience_ms: int = 10_000
    hello_ms: int = 2_000
    vouched_max: int = 4
    connections_max: int = 128
    handshakes_max: int = 32
    frame_bytes_max: int = FRAME_BYTES_MAX
    hello_bytes_max: int = 16 << 10
    backoff_ms_min: int = 50
    backoff_ms_max: int = 1_000
    wait_to_dial_ms: int = 1_000
    chunk_bytes: int = 256 << 10

    def check(self) -> None:
        """Raise InvalidArgument with the field, the value and the bound."""
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if not 1 <= value <= 1 << 40:
                raise InvalidArgument(f"peers.{each.name}", f"must be between 1 and {1 << 40}", str(value))
        if self.idle_ms * 2 > self.silence_ms:
            raise InvalidArgument("peers.idle_ms", "must be at most half of peers.silence_ms", str(self.idle_ms))
