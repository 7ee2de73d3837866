"""The nodes of a cluster: the status of each, its clock, the cluster's members, and changes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import CortadoError, OutcomeUnknown
from cortado.proto.v1 import cluster_pb2
from cortado.store.client.arguments import flag, text
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.values import timestamp_of
from cortado.store.clock.timestamp import Timestamp

LOOK_S: Final = 2.0
"""For this long after its time, the client looks for a change with an unknown outcome."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Work in flight, and its bound. ``bytes_max`` is 0 if only the count is bounded."""

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
class DamagedItem:
    """A stored item that differs from the item that was written; ``key`` as it is stored (empty if unknown), ``text``
    for people. It ``is_lost`` if every other member has said that it has no whole copy."""

    key: bytes
    text: str
    problem: str
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Status:
    """A node's own report. ``state`` is "serving", or why it is not.

    ``role`` is "leader", "follower", "candidate" or "learner"; ``leader`` a node id, empty while none is known.
    ``damage`` lists the damage there, or the first of ``damaged`` items; ``repaired`` counts since the process started.
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
    damage: tuple[DamagedItem, ...] = ()
    damaged: int = 0
    repaired: int = 0
    slowed: str = ""
    """To which rate a leader slows writes down, and for which member; empty if it does not."""
    disputes: tuple[str, ...] = ()
    """Unsettled objections of other members to the node's log."""
    log_bytes: int = 0
    """Bytes of the log files on the disk."""
    scan_path: str = ""
    """The reader of slices of scans: ``compiled``, or ``python:`` and why."""


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """A node of the cluster. ``joined`` is False until its data directory has presented itself.

    The rest is known to the leader, and 0 elsewhere: the last entry known to be durable at the member, by how many
    entries that is behind, and how long ago it was heard of. A member that is ``down`` was not heard of for longer than
    an election may take: how far it is ``behind`` is unknown (None). One that has ``no_room`` has nothing left but the
    reserve of its disk or its map.

    Clients reach it at ``address``, empty until it has joined, the other nodes at ``peer_address``.
    """

    node_id: str
    address: str
    peer_address: str
    voter: bool
    joined: bool
    match_index: int = 0
    behind: int | None = 0
    last_heard_ms: int = 0
    needs_snapshot: bool = False
    down: bool = False
    no_room: bool = False


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
    """A node's clock: ``now`` (the time that it would give), the host's wall clock, and the last timestamp applied
    (every later write is above it). ``jump_ms`` is how far the wall clock has jumped from the time that is kept (0: it
    is followed)."""

    now: Timestamp
    physical_ms: int
    last_applied: Timestamp
    max_offset_ms: int
    jump_ms: int = 0

    @property
    def ahead_ms(self) -> int:
        """How far the clock's wall time is ahead of the physical clock; negative if behind."""
        return self.now.wall_ms - self.physical_ms


def status_from_proto(reply: cluster_pb2.StatusResponse) -> Status:
    """Return a status reply as a value."""
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
        damage=tuple(DamagedItem(each.key, each.text, each.problem, each.is_lost) for each in reply.damage),
        damaged=reply.damaged,
        repaired=reply.repaired,
        slowed=reply.slowed,
        disputes=tuple(reply.disputes),
        log_bytes=reply.log_bytes,
        scan_path=reply.scan_path,
    )


def _patrol(told: cluster_pb2.Patrol) -> PatrolStatus:
    last_pass_ms = told.last_pass_ms if told.HasField("last_pass_ms") else None
    return PatrolStatus(told.read_bytes, told.expected_bytes, told.running_ms, told.passes, last_pass_ms, told.damaged)


def clock_from_proto(reply: cluster_pb2.ClockResponse) -> ClockReading:
    """Return a clock reply as a value."""
    return ClockReading(
        timestamp_of(reply.now), reply.physical_ms, timestamp_of(reply.last_applied), reply.max_offset_ms, reply.jump_ms
    )


def members_from_proto(reply: cluster_pb2.MembersResponse) -> Members:
    """Return a reply as a value."""
    return Members(_members_from_proto(reply.members), reply.leader, reply.header.node_id)


def _members_from_proto(members: Iterable[cluster_pb2.MemberStatus]) -> tuple[MemberStatus, ...]:
    return tuple(
        MemberStatus(
            each.node_id,
            each.address,
            each.peer_address,
            each.voter,
            each.joined,
            each.match_index,
            None if each.down else each.behind,
            each.last_heard_ms,
            each.needs_snapshot,
            each.down,
            each.no_room,
        )
        for each in members
    )


@public_face
class AsyncMembership:
    """The cluster's members. Changes go to the leader, one at a time, and return when they are committed.

    A change that may have been made is never reported as refused. If an attempt was not answered, the client looks at
    the members. If they show the change, the call returns. If they do not (yet), it raises OutcomeUnknown:
    :meth:`list` tells later whether the change was made.
    """

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    async def list(self, *, at_leader: bool = False) -> Members:
        """Return the members as the node that answers knows them; ``at_leader`` with every member's progress.

        Raises NotLeader if ``at_leader`` and there is no leader.
        """
        request = cluster_pb2.MembersRequest(at_leader=flag(at_leader, "at_leader"))
        return await self._members(request, self._timeout_s)

    async def add(self, node_id: str, peer_address: str) -> tuple[MemberStatus, ...]:
        """Announce a new node, which the other nodes will reach at ``peer_address``, and which joins as a learner when
        it starts. Raises InvalidArgument (a known id or address), Unavailable (another change is under way),
        OutcomeUnknown."""
        request = cluster_pb2.AddMemberRequest(
            node_id=text(node_id, "node_id"), peer_address=text(peer_address, "peer_address")
        )

        def is_made(now: Members) -> bool:
            added = now.member(node_id)
            return added is not None and added.peer_address == peer_address

        return await self._change("AddMember", request, is_made)

    async def promote(self, node_id: str) -> tuple[MemberStatus, ...]:
        """Make a learner a voter. Raises InvalidArgument (no such learner), Unavailable (not caught up yet),
        OutcomeUnknown."""
        request = cluster_pb2.PromoteMemberRequest(node_id=text(node_id, "node_id"))

        def is_made(now: Members) -> bool:
            promoted = now.member(node_id)
            return promoted is not None and promoted.voter

        return await self._change("PromoteMember", request, is_made)

    async def remove(self, node_id: str) -> tuple[MemberStatus, ...]:
        """Remove a member, for ever under this id. A leader hands leadership over first. Raises InvalidArgument,
        Unavailable, OutcomeUnknown."""
        request = cluster_pb2.RemoveMemberRequest(node_id=text(node_id, "node_id"))
        self._connection.check_present("writing")
        # A member that is absent afterwards was removed only if it was there before.
        before = await self.list()

        def is_made(now: Members) -> bool:
            return before.member(node_id) is not None and now.member(node_id) is None

        return await self._change("RemoveMember", request, is_made)

    async def transfer_leader(self, to_node_id: str = "") -> str:
        """Hand leadership to a voter, or to the one that is furthest; return the id of the node that leads then.

        Raises InvalidArgument (no voter), Unavailable (it can't be reached, or did not take it), OutcomeUnknown. None
        of these is tried again, since writes wait during each attempt.
        """
        request = cluster_pb2.TransferLeaderRequest(to_node_id=text(to_node_id, "to_node_id"))
        try:
            leader: str = (await self._call("TransferLeader", request, insists=False)).leader
        except OutcomeUnknown as unknown:
            now = await self._looked_at()
            if now is None or not to_node_id or now.leader != to_node_id:
                raise OutcomeUnknown(f"{unknown.problem}; look at the members to see the leader") from None
            return to_node_id
        return leader

    async def _change(self, method: str, request: Any, is_made: Callable[[Members], bool]) -> tuple[MemberStatus, ...]:
        try:
            return _members_from_proto((await self._call(method, request)).members)
        except OutcomeUnknown as unknown:
            now = await self._looked_at()
            if now is None or not is_made(now):
                problem = f"{unknown.problem}; look at the members to see whether the change was made"
                raise OutcomeUnknown(problem) from None
            return now.members

    async def _call(self, method: str, request: Any, *, insists: bool = True) -> Any:
        self._connection.check_present("writing")
        stub = getattr(self._connection.stubs.cluster, method)
        return await self._connection.call(stub, request, timeout_s=self._timeout_s, changes=True, insists=insists)

    async def _looked_at(self) -> Members | None:
        """Return the committed members, or None if no leader tells them soon. A leader with an uncommitted change in
        its log waits, since the change may yet be rolled back."""
        try:
            request = cluster_pb2.MembersRequest(at_leader=True, committed=True)
            return await self._members(request, min(self._timeout_s, LOOK_S))
        except CortadoError:
            return None

    async def _members(self, request: cluster_pb2.MembersRequest, timeout_s: float) -> Members:
        reply = await self._connection.call(self._connection.stubs.cluster.Members, request, timeout_s=timeout_s)
        return members_from_proto(reply)
