"""Who belongs to a group: one set of voters and learners, replaced whole by an entry of the log.

A configuration takes effect when its entry is appended, and is rolled back when that entry is truncated (Raft, Ongaro
2014, §4.1). Consecutive ones differ by one voter at most, so that any two majorities overlap.

A member is bound to one data directory by ``storage_id``, which is drawn when the directory is created: a disk that was
lost cannot come back empty under the name of the voter that it was.

As bytes a configuration is ``cortado.internal.Configuration`` (``proto/internal/raft.proto``), golden files pin them.
"""

from __future__ import annotations

from dataclasses import dataclass

from cortado.errors import DataLoss  # noqa: F401


@dataclass(frozen=True, slots=True)
class Member:
    """``address`` (host:port) is where it serves peers and clients; ``storage_id`` is empty until it presented itself."""

    node_id: str
    address: str
    storage_id: str = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Members in the order of their ids. A :class:`~cortado.raft.log.Payload`."""

    voters: tuple[Member, ...] = ()
    learners: tuple[Member, ...] = ()

    @property
    def members(self) -> tuple[Member, ...]:
        return self.voters + self.learners

    def member(self, node_id: str) -> Member | None:
        return next((each for each in self.members if each.node_id == node_id), None)

    def is_voter(self, node_id: str) -> bool:
        return any(each.node_id == node_id for each in self.voters)

    def encode(self) -> bytes:
        raise NotImplementedError

    @classmethod
    def decode(cls, encoded: bytes) -> Configuration:
        """Raises DataLoss on malformed bytes."""
        raise NotImplementedError
