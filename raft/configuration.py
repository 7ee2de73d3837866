"""Who belongs to a group: one set of voters and learners, replaced whole by an entry of the log.

A configuration takes effect when its entry is appended, and is rolled back when that entry is truncated (Raft, Ongaro
2014, §4.1). Consecutive ones differ by one voter at most, so that any two majorities overlap.

A member is bound to one data directory by ``storage_id``, which is drawn when the directory is created: a disk that was
lost cannot come back empty under the name of the voter that it was.

As bytes a configuration is ``cortado.internal.Configuration`` (``proto/internal/raft.proto``), golden files pin them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb


@dataclass(frozen=True, slots=True)
class Member:
    """Peers reach it at ``peer_address``, clients at ``address`` (host:port each). Whoever announces it knows the first
    one; ``storage_id`` and ``address`` are empty until it has presented itself."""

    node_id: str
    peer_address: str
    storage_id: str = ""
    address: str = ""


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

    def is_alone(self, node_id: str) -> bool:
        """True where ``node_id`` is the one voter, and nobody else belongs to the group."""
        return not self.learners and len(self.voters) == 1 and self.voters[0].node_id == node_id

    def others(self, node_id: str) -> tuple[Member, ...]:
        return tuple(each for each in self.members if each.node_id != node_id)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    def encode(self) -> bytes:
        return self.to_message().SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, encoded: bytes) -> Configuration:
        """Raises DataLoss on malformed bytes."""
        try:
            return cls.from_message(pb.Configuration.FromString(encoded))
        except DecodeError as error:
            raise DataLoss("a configuration", str(error)) from error

    def to_message(self) -> pb.Configuration:
        return pb.Configuration(voters=_to_messages(self.voters), learners=_to_messages(self.learners))

    @classmethod
    def from_message(cls, message: pb.Configuration) -> Configuration:
        return cls(_from_messages(message.voters), _from_messages(message.learners))


def sorted_members(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: member.node_id))


def _to_messages(members: Iterable[Member]) -> list[pb.Member]:
    return [
        pb.Member(node_id=m.node_id, peer_address=m.peer_address, storage_id=m.storage_id, address=m.address)
        for m in members
    ]


def _from_messages(messages: Iterable[pb.Member]) -> tuple[Member, ...]:
    return sorted_members(Member(each.node_id, each.peer_address, each.storage_id, each.address) for each in messages)
