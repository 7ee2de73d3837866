"""``cortado.v1.Collection``: leases, and the progress of garbage collection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from google.protobuf.message import Message

from cortado.errors import InvalidArgument
from cortado.proto.v1 import collection_pb2 as pb
from cortado.proto.v1 import common_pb2
from cortado.store.auth.caller import asking
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection.leases import CONSUMER_TTL_MS_DEFAULT, TTL_MS_DEFAULT, Lease, acquire, end, move
from cortado.store.keys.keyspace import show_table_id
from cortado.store.replica.read.read_timestamps import Stale
from cortado.store.server.convert import read_at, timestamp_message, timestamp_value
from cortado.store.server.service import Service

_TELLS_S: Final = 1.0


class CollectionService(Service):
    """Answered by the leader alone."""

    async def acquire_lease(self, request: pb.AcquireLeaseRequest) -> bytes:
        lease_id, ts, label = request.lease_id, self._lease_ts(request), request.label
        if request.owner and not request.consumer:
            raise InvalidArgument("owner", "must not be set without a consumer", request.owner)
        asked_by = asking()
        if request.consumer:
            ttl_ms = request.ttl_ms or CONSUMER_TTL_MS_DEFAULT
            evaluate = move(lease_id, ts, ttl_ms, label, request.consumer, request.owner, asked_by)
        else:
            evaluate = acquire(lease_id, ts, request.ttl_ms or TTL_MS_DEFAULT, label, asked_by)
        return await self.change(
            request, evaluate, Lease, lambda lease: pb.AcquireLeaseResponse(lease=self._message(lease))
        )

    def _lease_ts(self, request: pb.AcquireLeaseRequest) -> Timestamp | None:
        match request.WhichOneof("at"):
            case "timestamp":
                return timestamp_value(request.timestamp)
            case "wall_ms":
                at = read_at(common_pb2.ReadAt(wall_ms=request.wall_ms), self.host.process.clock.epoch, field="at")
                assert not isinstance(at, Stale)
                return at
            case _:
                return None

    async def keep_lease(self, request: pb.KeepLeaseRequest) -> Message:
        await self.host.meta.leases.keep(request.lease_id, asking()())
        return pb.KeepLeaseResponse(header=self.header(self.host.meta.read_ts()))

    async def release_lease(self, request: pb.ReleaseLeaseRequest) -> bytes:
        evaluate = end(request.lease_id, asked_by=asking())
        return await self.change(request, evaluate, object, lambda ended: pb.ReleaseLeaseResponse(ended=bool(ended)))

    async def list_leases(self, _request: pb.ListLeasesRequest) -> Message:
        with self.host.process.reads.place():
            leases = await self.host.meta.leases.all()
        header = self.header(self.host.meta.read_ts())
        return pb.ListLeasesResponse(header=header, leases=[self._message(each) for each in leases])

    # --- collection ------------------------------------------------------------------------------------------------

    async def status(self, _request: pb.CollectionStatusRequest) -> Message:
        replica = self.host.meta
        read_ts = await self.newest()
        found = replica.collector.status()
        names = {}
        if found.safepoints.tables:
            with self.host.process.reads.place():
                names = await self.host.process.scan(self._table_names)
        return pb.CollectionStatusResponse(
            header=self.header(read_ts),
            safepoint=timestamp_message(found.safepoints.cluster),
            retention_ms=found.retention_ms,
            lag_ms=found.lag_ms,
            holder=None if found.holder is None else self._message(found.holder),
            removed=found.removed,
            pieces=found.pieces,
            pieces_pending=found.pending,
            tables=[
                pb.TableSafepoint(table=names.get(each) or show_table_id(each), safepoint=timestamp_message(ts))
                for each, ts in sorted(found.safepoints.tables.items())
            ],
        )

    def _table_names(self) -> dict[int, str]:
        """Return the names of all tables by id. It reads the whole catalog: not for the loop."""
        store, applied_ts = self.host.meta.store, self.host.meta.applied.last_ts
        return {each.table_id: each.full_name for each in Catalog(store.snapshot(applied_ts)).tables()}

    async def run(self, _request: pb.RunCollectionRequest) -> AsyncGenerator[Message, None]:
        await self.newest()
        collector = self.host.meta.collector
        before = collector.status().removed
        running = asyncio.ensure_future(collector.pass_now())
        try:
            while True:
                await asyncio.wait({running}, timeout=_TELLS_S)
                if running.done():
                    running.result()
                found = collector.status()
                yield pb.RunCollectionResponse(
                    header=self.header(self.host.meta.read_ts()),
                    removed=found.removed - before,
                    pieces_pending=found.pending,
                    done=running.done(),
                )
                if running.done():
                    return
        finally:
            running.cancel()

    def _message(self, lease: Lease) -> pb.Lease:
        return pb.Lease(
            lease_id=lease.lease_id,
            timestamp=timestamp_message(lease.ts),
            ttl_ms=lease.ttl_ms,
            label=lease.label,
            acquired=timestamp_message(lease.acquired_ts),
            silent_ms=int(self.host.meta.leases.silent_ms(lease)),
            consumer=lease.consumer,
            owner=lease.owner,
            principal=lease.principal,
        )
