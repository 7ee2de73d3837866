"""The node and its clock, as values."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.proto.v1 import cluster_pb2
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
class Status:
    """What a node says of itself. ``state`` is "serving", or why it is not."""

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
    )


def clock_from_proto(reply: cluster_pb2.ClockResponse) -> ClockReading:
    """A clock reply as a value."""
    return ClockReading(
        timestamp_of(reply.now), reply.physical_ms, timestamp_of(reply.last_applied), reply.max_offset_ms
    )
