"""How a node reaches its peers: a seam, so that a test puts a network of its own behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from cortado.errors import NotFound, Unavailable
from cortado.raft.log import Message
from cortado.raft.registry import Roster
from cortado.store.node.repair.ranges import Answer, Ask


class Transport(Protocol):
    """Carries messages to peers, as a network does: late, twice, in another order, or never. Never blocks.

    What arrives is given to :meth:`cortado.store.node.host.Host.receive`. All calls come from the node's loop.
    """

    def configure(self, roster: Roster) -> None:
        """Whom to be connected to from now on: every member but ourselves."""

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        """Send, or drop what the peer's bounded queue has no room for."""

    def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        """The bytes of a peer's snapshot from ``offset`` on, in pieces whose checksums were verified, to its end.
        Raises Unavailable where the stream broke (to be resumed), NotFound where the snapshot is gone."""

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """What a peer has in a range of stored keys, or in the first part of it. Raises Unavailable, PeerRefused."""


class NoPeers:
    """The transport of a group of one."""

    def configure(self, roster: Roster) -> None:
        """Nobody to connect to."""

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        """Nobody to send to."""

    async def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        """Nothing to fetch."""
        raise NotFound("snapshot", f"{snapshot_id} of group {group_id} at {peer} from {offset} on: there are no peers")
        yield b""

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """Nobody to ask."""
        raise Unavailable(f"there is no peer {peer} with group {group_id}, {ask.space}", 1_000)
