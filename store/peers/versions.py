"""The versions of the peers' protocol and of log entries that a build understands, and the rule by which builds can
talk to each other.

::

    build            speaks     writes   reads
    1.0              1          2        2
    1.1              1, 2       2        2, 3      a new format is read first ...
    1.2              2          3        2, 3      ... and written by a later build

So the nodes of two builds in a row understand each other, both ways: a cluster goes from one to the next node by node,
and back. Two that do not understand each other are kept apart when they meet, before an entry passes between them. Else
a node that cannot read its leader's entries would stop at the first. Nothing is replicated for this, and no operator
switches it on (docs/adr/0019-read-before-written.md).

The protocol's version covers all messages between nodes: batches, messages of Raft, the frames of stored entries,
snapshot files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.errors import PeerRefused
from cortado.proto.internal.peers_pb2 import Hello, JoinRequest
from cortado.store.replica.write import log_entry


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that a build knows; ranges include both ends."""

    oldest_protocol: int
    newest_protocol: int
    entries_written: int
    oldest_entries: int
    newest_entries: int

    def tell(self, message: Hello | JoinRequest) -> None:
        """Write them into what introduces this node."""
        message.protocol = self.newest_protocol
        message.oldest_protocol = self.oldest_protocol
        message.entries.written = self.entries_written
        message.entries.oldest_read = self.oldest_entries
        message.entries.newest_read = self.newest_entries


OURS: Final = Versions(
    oldest_protocol=7,
    newest_protocol=7,
    entries_written=log_entry.FORMAT,
    oldest_entries=log_entry.FORMAT,
    newest_entries=log_entry.FORMAT,
)


def versions_of(message: Hello | JoinRequest) -> Versions:
    """Return the versions that the sender knows, by its own word."""
    entries = message.entries
    return Versions(
        oldest_protocol=message.oldest_protocol or message.protocol,
        newest_protocol=message.protocol,
        entries_written=entries.written,
        oldest_entries=entries.oldest_read,
        newest_entries=entries.newest_read,
    )


def check_versions(theirs: Versions, their_name: str, our_name: str, ours: Versions = OURS) -> None:
    """Check that the two understand each other, with either as leader. Raises PeerRefused naming both versions."""
    if theirs.newest_protocol < ours.oldest_protocol or ours.newest_protocol < theirs.oldest_protocol:
        they_speak = _range(theirs.oldest_protocol, theirs.newest_protocol)
        we_speak = _range(ours.oldest_protocol, ours.newest_protocol)
        raise PeerRefused(f"node {their_name} speaks {they_speak} of the peers' protocol, node {our_name} {we_speak}")
    for writer, writer_name, reader, reader_name in (
        (theirs, f"node {their_name}", ours, f"node {our_name}"),
        (ours, f"node {our_name}", theirs, f"node {their_name}"),
    ):
        if not reader.oldest_entries <= writer.entries_written <= reader.newest_entries:
            read = _range(reader.oldest_entries, reader.newest_entries)
            problem = f"writes version {writer.entries_written} of log entries, {reader_name} reads {read}"
            raise PeerRefused(f"{writer_name} {problem}: upgrade through the versions in between")


def _range(oldest: int, newest: int) -> str:
    return f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
