"""The registry of nodes in the log: their addresses, and the data directory of each.

::

    configuration   voters n1, n2, n3; learner n4            who decides, who is sent the log
    registry        n1 .. n4: addresses, data directory      how to reach them, and how to know them
                    removed: n0                              ids that are used up

So a node that moves changes the registry, and no configuration. Both are replaced whole by entries of the log, and both
take effect when their entry is appended: a replica that has an entry knows which nodes may speak about it, applied or
not.

Every member of a configuration is in the registry. A member is added to the registry first and to the configuration by
the entry behind it; it is removed from the configuration first and from the registry by the entry behind that. A log
may end between the two: then the node is in the registry and belongs to no configuration, and the next leader completes
its removal (:meth:`Registry.without`).

**A node id that a data directory was bound to is never used again.** The registry keeps it among the removed ones. So a
removed node's votes, acknowledgements and certificate cannot be taken for another's. A member that was announced and
never joined leaves nothing behind.

As bytes they are ``cortado.internal.Registry`` and ``Roster`` (``proto/internal/raft.proto``), golden files pin them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.configuration import Configuration

IDS_MAX: Final = 10_000
"""Ids that a registry holds, those that are used up included."""


@dataclass(frozen=True, slots=True)
class Member:
    """Peers reach it at ``peer_address``, clients at ``address`` (host:port each). ``peer_address`` is known when it is
    announced; ``storage_id`` and ``address`` are empty until it has presented itself.

    ``storage_id`` is drawn when a data directory is created, and bound to the id once: a disk that was lost cannot come
    back empty under the name of the voter that it was."""

    node_id: str
    peer_address: str
    storage_id: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Registry:
    """Nodes in the order of their ids, and the ids that are used up. A :class:`~cortado.raft.log.Payload`."""

    nodes: tuple[Member, ...] = ()
    removed: tuple[str, ...] = ()

    def node(self, node_id: str) -> Member | None:
        return next((each for each in self.nodes if each.node_id == node_id), None)

    def with_node(self, node: Member) -> Registry:
        """Return this registry with ``node``, in the place of its earlier record if there was one."""
        others = (each for each in self.nodes if each.node_id != node.node_id)
        return Registry(_sorted((*others, node)), self.removed)

    def without(self, node_ids: Iterable[str]) -> Registry:
        """Return this registry without these nodes; the ids of those that had joined are used up."""
        gone = frozenset(node_ids)
        used_up = {each.node_id for each in self.nodes if each.node_id in gone and each.storage_id}
        left = tuple(each for each in self.nodes if each.node_id not in gone)
        return Registry(left, tuple(sorted(used_up.union(self.removed))))

    def encode(self) -> bytes:
        return self.to_message().SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, encoded: bytes) -> Registry:
        """Raises DataLoss on malformed bytes."""
        try:
            return cls.from_message(pb.Registry.FromString(encoded))
        except DecodeError as error:
            raise DataLoss("a registry of nodes", str(error)) from error

    def to_message(self) -> pb.Registry:
        nodes = [
            pb.Member(node_id=m.node_id, peer_address=m.peer_address, storage_id=m.storage_id, address=m.address)
            for m in self.nodes
        ]
        return pb.Registry(nodes=nodes, removed=self.removed)

    @classmethod
    def from_message(cls, message: pb.Registry) -> Registry:
        nodes = (Member(each.node_id, each.peer_address, each.storage_id, each.address) for each in message.nodes)
        return cls(_sorted(nodes), tuple(sorted(message.removed)))


@dataclass(frozen=True, slots=True)
class Roster:
    """The members of a group, and where they are: a configuration and the registry of the same place in the log."""

    configuration: Configuration = field(default_factory=Configuration)
    registry: Registry = field(default_factory=Registry)

    @classmethod
    def of(cls, voters: Iterable[Member] = (), learners: Iterable[Member] = ()) -> Roster:
        """Return the roster of these members, with no removed ids."""
        voting, learning = _sorted(voters), _sorted(learners)
        ids = (tuple(each.node_id for each in some) for some in (voting, learning))
        return cls(Configuration(*ids), Registry(_sorted((*voting, *learning))))

    @property
    def members(self) -> tuple[Member, ...]:
        """Voters, then learners."""
        return self._known(self.configuration.members)

    @property
    def voters(self) -> tuple[Member, ...]:
        return self._known(self.configuration.voters)

    @property
    def learners(self) -> tuple[Member, ...]:
        return self._known(self.configuration.learners)

    def member(self, node_id: str) -> Member | None:
        """Return the member; None for a node that is not in the configuration, even if the registry has it."""
        return self.registry.node(node_id) if node_id in self.configuration.members else None

    def is_voter(self, node_id: str) -> bool:
        return self.configuration.is_voter(node_id)

    def others(self, node_id: str) -> tuple[Member, ...]:
        return self._known(self.configuration.others(node_id))

    def _known(self, node_ids: Iterable[str]) -> tuple[Member, ...]:
        found = map(self.registry.node, node_ids)
        return tuple(each for each in found if each is not None)

    def encode(self) -> bytes:
        return self.to_message().SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, encoded: bytes) -> Roster:
        """Raises DataLoss on malformed bytes."""
        try:
            return cls.from_message(pb.Roster.FromString(encoded))
        except DecodeError as error:
            raise DataLoss("a list of members", str(error)) from error

    def to_message(self) -> pb.Roster:
        return pb.Roster(configuration=self.configuration.to_message(), registry=self.registry.to_message())

    @classmethod
    def from_message(cls, message: pb.Roster) -> Roster:
        return cls(Configuration.from_message(message.configuration), Registry.from_message(message.registry))


def _sorted(members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda member: member.node_id))
