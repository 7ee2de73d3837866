"""How a node reaches its peers: a seam, behind which a test puts a network of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from cortado.errors import NotFound, Unavailable
from cortado.raft.log import Message
from cortado.raft.registry import Roster
from cortado.store.process.range_copies import Answer, Ask


class Transport(Protocol):
    """Carries messages to peers, as a network does: late, twice, in another order, or never. Never blocks.

    Arriving messages go to :meth:`cortado.store.host.host.Host.receive`. All calls come from the node's loop.
    """

    def configure(self, roster: Roster) -> None:
        """Connect to these members from now on: every member but ourselves."""

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        """Send messages, or drop those that the peer's bounded queue has no room for."""

    def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        """Yield a peer's snapshot from ``offset`` on, in pieces whose checksums were verified, to its end. Raises
        Unavailable if the stream broke (to be resumed), NotFound if the snapshot is gone."""

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """Read a peer's items in a range of stored keys, or in its first part. Raises Unavailable, PeerRefused."""


class NoPeers:
    """The transport of a group of one."""

    def configure(self, roster: Roster) -> None:
        """Do nothing: there are no peers."""

    def send(self, group_id: int, messages: Sequence[Message]) -> None:
        """Do nothing: there are no peers."""

    async def fetch_snapshot(self, peer: str, group_id: int, snapshot_id: str, offset: int) -> AsyncIterator[bytes]:
        """Raise NotFound: there are no peers."""
        raise NotFound("snapshot", f"{snapshot_id} of group {group_id} at {peer} from {offset} on: there are no peers")
        yield b""

    async def read_range(self, peer: str, group_id: int, ask: Ask) -> Answer:
        """Raise Unavailable: there are no peers."""
        raise Unavailable(f"there is no peer {peer} with group {group_id}, {ask.space}", 1_000)
