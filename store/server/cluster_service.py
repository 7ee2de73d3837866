"""``cortado.v1.Cluster``: the node's status, its clock, and the members of the cluster.

Any node answers Status, Clock and Members, from its own knowledge. The leader makes changes, and answers when they are
committed; other nodes refuse them with NotLeader, which names the leader's address. Malformed ids and addresses of
nodes are refused before the log sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from google.protobuf.message import Message

from cortado.errors import InvalidArgument, NotLeader
from cortado.proto.v1 import cluster_pb2
from cortado.raft.registry import Roster
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.host.patrol import PatrolProgress
from cortado.store.host.status import node_status
from cortado.store.peers.identity import check_name
from cortado.store.ports.addresses import check_address
from cortado.store.replica.controls import epoch_after
from cortado.store.replica.repair.by_operator import accept_loss, rebuild
from cortado.store.replica.replica import Role
from cortado.store.replica.write.disk_room import SMALL_BYTES
from cortado.store.server.convert import timestamp_message
from cortado.store.server.service import Service, request_hash
from cortado.version import __version__


class ClusterService(Service):
    """Status, clock, members, and the changes of epoch, members and leader."""

    def __init__(self, host: Host, data_dir: Path, *, state: Callable[[], str]) -> None:
        """``state`` returns a text for operators: "serving", or why not."""
        super().__init__(host)
        self._data_dir = data_dir
        self._state = state

    async def status(self, _request: cluster_pb2.StatusRequest) -> Message:
        """Return this node's knowledge of itself. It never waits for others, so it answers even if no other call
        does."""
        status = node_status(self.host)
        return cluster_pb2.StatusResponse(
            header=self.header(self.host.meta.read_ts()),
            version=__version__,
            data_dir=str(self._data_dir.absolute()),
            state=self._state(),
            leader=status.leader,
            applied_index=status.applied_index,
            uptime_ms=status.uptime_ms,
            map=cluster_pb2.MapUse(used_bytes=status.map_used_bytes, limit_bytes=status.map_limit_bytes),
            disk_free_bytes=status.disk_free_bytes,
            log_bytes=self.host.process.log_files.use().size_bytes,
            queues=[
                cluster_pb2.QueueUse(
                    name=use.name, count=use.count, count_max=use.count_max, bytes=use.bytes, bytes_max=use.bytes_max
                )
                for use in status.queues
            ],
            loop_lag_ms_max=status.loop_lag_ms_max,
            role=status.role,
            last_index=status.last_index,
            leader_address=status.leader_address,
            clock_offsets=[
                cluster_pb2.ClockOffset(node_id=each.node_id, low_ms=round(each.low_ms), high_ms=round(each.high_ms))
                for each in status.clock_offsets
            ],
            patrol=_patrol(status.patrol),
            damage=[
                cluster_pb2.DamagedItem(key=each.key, text=each.text, problem=each.problem, is_lost=each.is_lost)
                for each in status.damage
            ],
            damaged=status.damaged,
            repaired=status.repaired,
            slowed=status.slowed,
            disputes=status.disputes,
            scan_path=status.scan_path,
        )

    async def clock(self, request: cluster_pb2.ClockRequest) -> Message:
        """Return several clocks at one moment. ``is_read`` chooses a timestamp for a read, puts it into the header, and
        can raise the errors of a read."""
        self._check_leads(request.at_leader, "only the leader's time will do")
        clock, time = self.host.process.clock, self.host.process.host_time
        read_ts = await self.read_ts(self.host.meta, request.at) if request.is_read else self.host.meta.read_ts()
        last_applied = self.host.meta.read_ts()
        return cluster_pb2.ClockResponse(
            header=self.header(read_ts),
            now=timestamp_message(clock.reading()),
            physical_ms=max(time.wall_ms(), 0),
            last_applied=timestamp_message(last_applied),
            max_offset_ms=clock.max_offset_ms,
            jump_ms=round(time.jump_ms()),
        )

    async def bump_epoch(self, request: cluster_pb2.BumpEpochRequest) -> bytes:
        """Begin the epoch after ``from_epoch``. Raises InvalidArgument if that is not the current one."""

        def encode_reply(ts: Timestamp, _value: object) -> bytes:
            return cluster_pb2.BumpEpochResponse(epoch=ts.epoch).SerializeToString()

        request_id = request.request_id
        result = await self.host.meta.write(
            epoch_after(request.from_epoch),
            request_id=request_id,
            request_hash=request_hash(request) if request_id else b"",
            encode_reply=encode_reply,
        )
        return self.with_header(result)

    async def accept_loss(self, request: cluster_pb2.AcceptLossRequest) -> bytes:
        """Give up the damaged item under a stored key. Raises InvalidArgument if it is whole, Unavailable unless every
        member has said that it has no whole copy."""

        def encode_reply(_ts: Timestamp, _value: object) -> bytes:
            return cluster_pb2.AcceptLossResponse().SerializeToString()

        request_id = request.request_id
        result = await accept_loss(
            self.host.meta,
            request.key,
            request_id=request_id,
            request_hash=request_hash(request) if request_id else b"",
            encode_reply=encode_reply,
        )
        return self.with_header(result)

    # --- members -----------------------------------------------------------------------------------------------

    async def members(self, request: cluster_pb2.MembersRequest) -> Message:
        """Return the members as this node knows them; with ``committed``, as a majority has them, after a round of the
        leader's."""
        self._check_leads(request.at_leader, "only the leader knows how far each member is")
        roster = await self.host.meta.members.committed() if request.committed else self.host.meta.roster
        status = node_status(self.host)
        return cluster_pb2.MembersResponse(
            header=self.header(self.host.meta.read_ts()),
            members=self._members(roster),
            leader=status.leader,
        )

    async def add_member(self, request: cluster_pb2.AddMemberRequest) -> Message:
        """Add a member as a learner, which votes once it is promoted."""
        node_id = check_name(request.node_id, "node_id")
        peer_address = check_address("peer_address", request.peer_address)
        return self._changed(await self.host.meta.members.add(node_id, peer_address))

    async def promote_member(self, request: cluster_pb2.PromoteMemberRequest) -> Message:
        """Make a learner a voter. Raises Unavailable if it has not caught up."""
        return self._changed(await self.host.meta.members.promote(check_name(request.node_id, "node_id")))

    async def remove_member(self, request: cluster_pb2.RemoveMemberRequest) -> Message:
        """Remove a member for good: its id is used up. A leader hands leadership over first."""
        return self._changed(await self.host.meta.members.remove(check_name(request.node_id, "node_id")))

    async def transfer_leader(self, request: cluster_pb2.TransferLeaderRequest) -> Message:
        """Hand leadership to that voter, or to one of the leader's choice; return the id of the new leader. Raises
        Unavailable if the transfer failed, OutcomeUnknown if it may still happen."""
        to = check_name(request.to_node_id, "to_node_id") if request.to_node_id else ""
        leader = await self.host.meta.members.transfer(to)
        return cluster_pb2.TransferLeaderResponse(header=self.header(self.host.meta.read_ts()), leader=leader)

    async def rebuild_replica(self, request: cluster_pb2.RebuildReplicaRequest) -> Message:
        """Compare all data here with another member's, and make it the same; the node serves meanwhile. Raises
        InvalidArgument for another node's id, Unsupported for a node that is alone."""
        own_id = self.host.process.identity.node_id
        if request.node_id != own_id:
            raise InvalidArgument("node_id", f"this is node {own_id}, which rebuilds no other", request.node_id)
        await rebuild(self.host.meta)
        return cluster_pb2.RebuildReplicaResponse(header=self.header(self.host.meta.read_ts()))

    def _check_leads(self, at_leader: bool, why: str) -> None:
        if at_leader and self.host.meta.role != Role.LEADER:
            leader = self.host.meta.leader
            raise NotLeader(f"this node does not lead, and {why}", leader="" if leader is None else leader.address)

    def _changed(self, roster: Roster) -> Message:
        return cluster_pb2.MemberChangeResponse(
            header=self.header(self.host.meta.read_ts()), members=self._members(roster)
        )

    def _members(self, roster: Roster) -> Iterator[cluster_pb2.MemberStatus]:
        """Yield each member, with its progress if this node leads and so knows it."""
        progress = {each.node_id: each for each in self.host.meta.member_progress()}
        last_index = node_status(self.host).last_index
        for member in roster.members:
            status = cluster_pb2.MemberStatus(
                node_id=member.node_id,
                address=member.address,
                peer_address=member.peer_address,
                voter=roster.is_voter(member.node_id),
                joined=bool(member.storage_id),
            )
            known = progress.get(member.node_id)
            if known is not None:
                status.match_index = known.match_index
                status.down = known.last_heard_ms > self.host.process.raft.election_ms_max
                if not status.down:
                    # Its progress since it fell silent is not known.
                    status.behind = max(0, last_index - known.match_index)
                status.last_heard_ms = max(0, round(min(known.last_heard_ms, 1e15)))
                status.needs_snapshot = known.needs_snapshot
                status.no_room = known.room is not None and known.room.bytes < SMALL_BYTES
            elif member.node_id == self.host.process.identity.node_id:
                status.match_index = last_index
            yield status


def _patrol(progress: PatrolProgress | None) -> cluster_pb2.Patrol | None:
    if progress is None:
        return None
    return cluster_pb2.Patrol(
        read_bytes=progress.read_bytes,
        expected_bytes=progress.expected_bytes,
        running_ms=round(progress.running_ms),
        passes=progress.passes,
        last_pass_ms=None if progress.last_pass_ms is None else round(progress.last_pass_ms),
        damaged=progress.damaged,
    )
