"""``cortado.v1.Cluster``: what the node says of itself, and its clock."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import Message

from cortado import __version__
from cortado.proto.v1 import cluster_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.node.node import Node
from cortado.store.server.convert import timestamp_message
from cortado.store.server.service import Service, request_hash


class ClusterService(Service):
    """Status, clock, and the bump of the epoch."""

    def __init__(self, node: Node, data_dir: Path) -> None:
        super().__init__(node)
        self._data_dir = data_dir

    async def status(self, _request: cluster_pb2.StatusRequest) -> Message:
        status = self.node.status()
        return cluster_pb2.StatusResponse(
            header=self.header(self.node.read_ts()),
            version=__version__,
            data_dir=str(self._data_dir.absolute()),
            state=status.state,
            leader=status.leader,
            applied_index=status.applied_index,
            uptime_ms=status.uptime_ms,
            map=cluster_pb2.MapUse(used_bytes=status.map_used_bytes, limit_bytes=status.map_limit_bytes),
            disk_free_bytes=status.disk_free_bytes,
            queues=[
                cluster_pb2.QueueUse(
                    name=use.name, count=use.count, count_max=use.count_max, bytes=use.bytes, bytes_max=use.bytes_max
                )
                for use in status.queues
            ],
            loop_lag_ms_max=status.loop_lag_ms_max,
        )

    async def clock(self, _request: cluster_pb2.ClockRequest) -> Message:
        clock = self.node.clock
        last_applied = self.node.read_ts()
        return cluster_pb2.ClockResponse(
            header=self.header(last_applied),
            now=timestamp_message(clock.now()),
            physical_ms=clock.physical_ms,
            last_applied=timestamp_message(last_applied),
            max_offset_ms=clock.max_offset_ms,
        )

    async def bump_epoch(self, request: cluster_pb2.BumpEpochRequest) -> bytes:
        def encode_reply(ts: Timestamp, _value: object) -> bytes:
            return cluster_pb2.BumpEpochResponse(header=self.header(ts), epoch=ts.epoch).SerializeToString()

        request_id = request.request_id
        result = await self.node.bump_epoch(
            request.from_epoch,
            request_id=request_id,
            request_hash=request_hash(request) if request_id else b"",
            encode_reply=encode_reply,
        )
        return result.reply
