"""The nodes of a cluster: what each says of itself, its clock, and who belongs to it; and how that is changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cortado.errors import DeadlineExceeded, OutcomeUnknown
from cortado.proto.v1 import cluster_pb2
from cortado.store.client.arguments import flag, text
from cortado.store.client.connection import Connection
from cortado.store.client.values import timestamp_of
from cortado.store.clock.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Queue:
    """What is in flight, and its bound. ``bytes_max`` is 0 where only the count is bounded."""

    name: str
    count: int
    count_max: int
    bytes: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The clock of the peer ``node_id`` minus the node's own lies between the two."""

    node_id: str
    low_ms: int
    high_ms: int


@dataclass(frozen=True, slots=True)
class PatrolStatus:
    """How far a node's pass over all that it stores is: ``read_bytes`` of about ``expected_bytes`` in ``running_ms``.
    ``passes`` are over since its start, the last one after ``last_pass_ms``; ``damaged`` places were met."""

    read_bytes: int
    expected_bytes: int
    running_ms: int
    passes: int
    last_pass_ms: int | None
    damaged: int


@dataclass(frozen=True, slots=True)
class Status:
    """What a node says of itself. ``state`` is "serving", or why it is not.

    ``role`` is "leader", "follower", "candidate" or "learner"; ``leader`` a node id, empty while none is known.
    """

    cluster_id: str
    node_id: str
    term: int
    version: str
    data_dir: str
    state: str
    leader: str
    applied_index: int
    uptime_ms: int
    map_used_bytes: int
    map_limit_bytes: int
    disk_free_bytes: int
    loop_lag_ms_max: int
    queues: tuple[Queue, ...]
    ts: Timestamp
    role: str = ""
    last_index: int = 0
    leader_address: str = ""
    clock_offsets: tuple[ClockOffset, ...] = ()
    patrol: PatrolStatus | None = None


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """A node of the cluster. ``joined`` is False until its data directory has presented itself.

    The rest is what the leader knows, and 0 elsewhere: the last entry known to be durable at the member, by how many
    entries that is behind, and how long ago it was heard of.
    """

    node_id: str
    address: str
    voter: bool
    joined: bool
    match_index: int = 0
    behind: int = 0
    last_heard_ms: int = 0
    needs_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Members:
    """All members, as the node ``told_by`` knows them; ``leader`` is a node id, empty while none is known."""

    members: tuple[MemberStatus, ...]
    leader: str = ""
    told_by: str = ""

    def member(self, node_id: str) -> MemberStatus | None:
        return next((each for each in self.members if each.node_id == node_id), None)


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A node's clock: ``now`` (every later write of this run is above it), the physical clock, and the last timestamp
    applied (every later write is above it, whatever happens)."""

    now: Timestamp
    physical_ms: int
    last_applied: Timestamp
    max_offset_ms: int

    @property
    def ahead_ms(self) -> int:
        """How far the clock's wall time is ahead of the physical clock; negative where it is behind."""
        return self.now.wall_ms - self.physical_ms


def status_from_proto(reply: cluster_pb2.StatusResponse) -> Status:
    """A status reply as a value."""
    return Status(
        cluster_id=reply.header.cluster_id,
        node_id=reply.header.node_id,
        term=reply.header.term,
        version=reply.version,
        data_dir=reply.data_dir,
        state=reply.state,
        leader=reply.leader,
        applied_index=reply.applied_index,
        uptime_ms=reply.uptime_ms,
        map_used_bytes=reply.map.used_bytes,
        map_limit_bytes=reply.map.limit_bytes,
        disk_free_bytes=reply.disk_free_bytes,
        loop_lag_ms_max=reply.loop_lag_ms_max,
        queues=tuple(Queue(q.name, q.count, q.count_max, q.bytes, q.bytes_max) for q in reply.queues),
        ts=timestamp_of(reply.header.timestamp),
        role=reply.role,
        last_index=reply.last_index,
        leader_address=reply.leader_address,
        clock_offsets=tuple(ClockOffset(each.node_id, each.low_ms, each.high_ms) for each in reply.clock_offsets),
        patrol=_patrol(reply.patrol) if reply.HasField("patrol") else None,
    )


def _patrol(told: cluster_pb2.Patrol) -> PatrolStatus:
    last_pass_ms = told.last_pass_ms if told.HasField("last_pass_ms") else None
    return PatrolStatus(told.read_bytes, told.expected_bytes, told.running_ms, told.passes, last_pass_ms, told.damaged)


def clock_from_proto(reply: cluster_pb2.ClockResponse) -> ClockReading:
    """A clock reply as a value."""
    return ClockReading(
        timestamp_of(reply.now), reply.physical_ms, timestamp_of(reply.last_applied), reply.max_offset_ms
    )


def _members_from_proto(members: Iterable[cluster_pb2.MemberStatus]) -> tuple[MemberStatus, ...]:
    return tuple(
        MemberStatus(
            each.node_id,
            each.address,
            each.voter,
            each.joined,
            each.match_index,
            each.behind,
            each.last_heard_ms,
            each.needs_snapshot,
        )
        for each in members
    )


class AsyncMembership:
    """Who belongs to the cluster. Changes go to the leader, one at a time, and return when they are committed.

    A change whose answer does not come in time raises OutcomeUnknown: :meth:`members` tells later whether it was made.
    """

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    async def members(self, *, at_leader: bool = False) -> Members:
        """Who belongs to the cluster, as the node that answers knows it; ``at_leader`` with everybody's progress.

        Raises NotLeader where ``at_leader`` and nobody leads.
        """
        stub = self._connection.stubs.cluster
        request = cluster_pb2.MembersRequest(at_leader=flag(at_leader, "at_leader"))
        reply = await self._connection.call(stub.Members, request, timeout_s=self._timeout_s)
        return Members(_members_from_proto(reply.members), reply.leader, reply.header.node_id)

    async def add(self, node_id: str, address: str) -> tuple[MemberStatus, ...]:
        """Announces a new node, which joins as a learner when it starts. Raises InvalidArgument (a known id or
        address), Unavailable (another change is under way)."""
        request = cluster_pb2.AddMemberRequest(node_id=text(node_id, "node_id"), address=text(address, "address"))
        return _members_from_proto((await self._change("AddMember", request)).members)

    async def promote(self, node_id: str) -> tuple[MemberStatus, ...]:
        """Makes a learner a voter. Raises InvalidArgument (no such learner), Unavailable (not caught up yet)."""
        request = cluster_pb2.PromoteMemberRequest(node_id=text(node_id, "node_id"))
        return _members_from_proto((await self._change("PromoteMember", request)).members)

    async def remove(self, node_id: str) -> tuple[MemberStatus, ...]:
        """Removes a member, for ever under this id. A leader hands leadership over first. Raises InvalidArgument."""
        request = cluster_pb2.RemoveMemberRequest(node_id=text(node_id, "node_id"))
        return _members_from_proto((await self._change("RemoveMember", request)).members)

    async def transfer_leader(self, to_node_id: str = "") -> str:
        """Hands leadership to a voter, or to the one that is furthest; returns the id of the node that leads then.

        Raises InvalidArgument (no voter), Unavailable (it can't be reached, or did not take it). That is not tried
        again, since writes wait during each attempt.
        """
        request = cluster_pb2.TransferLeaderRequest(to_node_id=text(to_node_id, "to_node_id"))
        leader: str = (await self._change("TransferLeader", request, insists=False)).leader
        return leader

    async def _change(self, method: str, request: Any, *, insists: bool = True) -> Any:
        self._connection.check_present("writing")
        stub = getattr(self._connection.stubs.cluster, method)
        try:
            return await self._connection.call(stub, request, timeout_s=self._timeout_s, insists=insists)
        except DeadlineExceeded as late:
            raise OutcomeUnknown(f"{late.message()}; look at the members to see whether the change was made") from late
