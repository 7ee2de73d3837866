"""The members of a group: one set of voters and learners, by node id, replaced whole by an entry of the log.

A configuration takes effect when its entry is appended, and is rolled back when that entry is truncated (Raft, Ongaro
2014, §4.1). Consecutive ones differ by one voter at most, so that any two majorities overlap. Addresses of nodes are no
part of it: the registry has them (:mod:`~cortado.raft.registry`).

As bytes a configuration is ``cortado.internal.Configuration`` (``proto/internal/raft.proto``), golden files pin them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb


@dataclass(frozen=True, slots=True)
class Configuration:
    """Node ids, each kind ascending. A :class:`~cortado.raft.log.Payload`."""

    voters: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()
    members: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", self.voters + self.learners)

    def is_voter(self, node_id: str) -> bool:
        return node_id in self.voters

    def is_alone(self, node_id: str) -> bool:
        """Return whether ``node_id`` is the one voter, and the group's only member."""
        return not self.learners and self.voters == (node_id,)

    def others(self, node_id: str) -> tuple[str, ...]:
        return tuple(each for each in self.members if each != node_id)

    @property
    def majority(self) -> int:
        """Return how many voters decide."""
        return len(self.voters) // 2 + 1

    def with_learner(self, node_id: str) -> Configuration:
        return Configuration(self.voters, tuple(sorted((*self.learners, node_id))))

    def with_voter(self, node_id: str) -> Configuration:
        """Return this configuration with the learner ``node_id`` as a voter."""
        return Configuration(tuple(sorted((*self.voters, node_id))), self.without(node_id).learners)

    def without(self, node_id: str) -> Configuration:
        return Configuration(
            tuple(each for each in self.voters if each != node_id),
            tuple(each for each in self.learners if each != node_id),
        )

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
        return pb.Configuration(voters=self.voters, learners=self.learners)

    @classmethod
    def from_message(cls, message: pb.Configuration) -> Configuration:
        return cls(tuple(sorted(message.voters)), tuple(sorted(message.learners)))
