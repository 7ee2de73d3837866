"""``cortado.v1.Backups``: the versions that a cluster holds, read out at one timestamp.

The leader makes a plan, since it knows the newest timestamp. Any member that has applied the timestamp reads the
versions out. It reads in slices on the scan thread, which alternate with those of all other scans: a backup takes the
time that they leave.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from cortado.errors import InvalidArgument, NotFound, SnapshotTooOld
from cortado.proto.v1 import backups_pb2 as pb
from cortado.store.backup.runs import encode_stored
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.archive import Window, archived_ranges, archived_within, is_archived, read_slice
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, request_shape
from cortado.store.replica.features.restoring import restored_at
from cortado.store.replica.feed.watch import Batch
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.server.service import SLICE_BYTES_MAX, SLICE_MS_MAX, Service, Step, resolved_interval_ms

RANGE_BYTES: Final = 64 << 20
RANGE_BYTES_MIN: Final = 1 << 10
RANGES_MAX: Final = 4_096
_EVERYTHING: Final[KeyRange] = archived_ranges()[0][0], archived_ranges()[-1][1]
_ON_LOOP_MAX: Final = 64
"""More versions than these are made into a reply on the scan thread: the loop has others to serve."""


class BackupsService(Service):
    """Answers the calls of backups."""

    async def plan(self, request: pb.PlanBackupRequest) -> pb.PlanBackupResponse:
        range_bytes = request.range_bytes or RANGE_BYTES
        if range_bytes < RANGE_BYTES_MIN:
            raise InvalidArgument("range_bytes", f"must be at least {RANGE_BYTES_MIN}", str(range_bytes))
        replica = self.host.meta
        asked_ts = await self.scan_ts(replica, request.at)
        # A timestamp above the last commit reads the same state, and perhaps no other node knows it.
        ts = min(asked_ts, replica.applied.last_ts)
        wanted = min(max(self.host.process.engine.use().used_bytes // range_bytes, 1), RANGES_MAX)
        with self.host.process.scans.place():
            split = [await self._split(within, wanted, ts) for within in archived_ranges()]
        keys_max = sum(part.keys for parts in split for part in parts) // wanted
        is_enabled = replica.roles.committed.is_enabled
        reply = pb.PlanBackupResponse(header=self.header(ts), timestamp=timestamp_message(ts), roles_enabled=is_enabled)
        for parts in split:
            reply.ranges.extend(_merged(parts, keys_max))
        reply.oldest.CopyFrom(timestamp_message(replica.store.safepoints.highest))
        reply.restored.CopyFrom(timestamp_message(restored_at(replica.reader(replica.read_ts()))))
        return reply

    async def _split(self, within: KeyRange, parts: int, ts: Timestamp) -> list[pb.BackupRange]:
        start, end = within
        counting = self.host.meta.store.split(start, end, parts, ts)
        while not await self.host.process.scan(counting.step):
            pass
        found = counting.parts()
        ends = [*(each.start for each in found[1:]), end]
        return [
            pb.BackupRange(start=part.start, end=part_end, keys=part.rows)
            for part, part_end in zip(found, ends, strict=True)
        ]

    async def read(self, request: pb.ReadBackupRequest) -> AsyncGenerator[bytes, None]:
        replica = self.host.meta
        start, end = LogicalKey(request.start), LogicalKey(request.end)
        if not start < end:
            raise InvalidArgument("end", "must be above start", request.end.hex())
        since = timestamp_value(request.since, "since") if request.HasField("since") else None
        if since is None and (request.history or request.with_start):
            raise InvalidArgument("since", "must be given with history")
        if request.restore_id:
            at = await self._put_up_to(request)
        else:
            at = await self.scan_ts(replica, request.at)
            await replica.reads.in_place(at)
        is_own = bool(request.restore_id)
        ranges = archived_within(start, end)
        window = Window(at, since, is_history=request.history, with_start=request.with_start, is_own=is_own)
        shape = request_shape("backup", start, end, str(at), str(since), request.history, request.with_start)
        after = b""
        if request.page_token:
            after = decode_token(request.page_token, shape).resume_within(start, end)
        with self.host.process.scans.place():
            async with aclosing(self.stream(self._step(ranges, window, shape, after))) as replies:
                async for reply in replies:
                    yield reply

    async def follow(self, request: pb.FollowBackupRequest) -> AsyncGenerator[bytes, None]:
        replica, after = self.host.meta, timestamp_value(request.after, "after")
        interval_ms = resolved_interval_ms(request.resolved_interval_ms, "resolved_interval_ms")
        start, end = _EVERYTHING
        replica.reads.check_open()
        self.check_not_ahead(replica, after, "after")
        restored_ts = restored_at(replica.reader(replica.read_ts()))
        if after < restored_ts:
            # The backup is of the cluster before the restore: the restored versions are older, and came later.
            raise SnapshotTooOld(str(after), str(restored_ts))
        replica.store.check_readable(after, start, end)
        await replica.reads.applied_to(after)
        with replica.watches.watch(start, end, after, resolved_interval_ms=interval_ms) as watch:
            async with aclosing(watch.batches()) as batches:
                async for batch in batches:
                    if len(batch.items) <= _ON_LOOP_MAX:
                        yield self._followed(batch)
                    else:
                        yield await self.host.process.scan(lambda batch=batch: self._followed(batch))  # type: ignore[misc]

    def _followed(self, batch: Batch) -> bytes:
        replica = self.host.meta
        is_enabled = replica.roles.committed.is_enabled
        reply = pb.FollowBackupResponse(header=self.header(replica.read_ts()), roles_enabled=is_enabled)
        items = [item for item in batch.items if is_archived(item[0])]
        if items:
            reply.run = encode_stored([key for key, _ in items], [value for _, value in items])
            reply.checksum = zlib.crc32(reply.run)
        if batch.resolved is not None:
            reply.resolved.CopyFrom(timestamp_message(batch.resolved))
        return reply.SerializeToString()

    async def _put_up_to(self, request: pb.ReadBackupRequest) -> Timestamp:
        """Return the requested timestamp, once all writes that were acknowledged to the restore are applied here."""
        reads = self.host.meta.reads
        await reads.applied_to(await reads.newest())
        restore = self.host.meta.features.restore.state
        if restore is None or restore.restore_id != request.restore_id:
            raise NotFound("restore", request.restore_id)
        return timestamp_value(request.at.timestamp, "at.timestamp")

    def _step(self, ranges: Sequence[KeyRange], window: Window, shape: bytes, after: bytes) -> Step:
        header = self.header(window.at)

        def step() -> tuple[bytes, Step | None]:
            keys, values, resume = self._slices(ranges, window, after)
            run = encode_stored(keys, values)
            reply = pb.ReadBackupResponse(header=header, run=run, checksum=zlib.crc32(run))
            if resume is None:
                return reply.SerializeToString(), None
            reply.next_page_token = encode_token(PageToken(window.at, resume), shape)
            return reply.SerializeToString(), self._step(ranges, window, shape, resume)

        return step

    def _slices(
        self, ranges: Sequence[KeyRange], window: Window, after: bytes
    ) -> tuple[list[bytes], list[bytes], bytes | None]:
        """Read until a reply is full, or a slice of time on the scan thread is over. Return the last key if keys are
        left."""
        until_ms = self.host.process.monotonic_ms() + SLICE_MS_MAX
        keys, values, size_bytes = list[bytes](), list[bytes](), 0
        left = deque(each for each in ranges if after < each[1])
        while left:
            start, end = left[0]
            behind = after if after > start else b""
            found = read_slice(self.host.process.engine, self.host.meta.store, start, end, window, after=behind)
            keys += found.keys
            values += found.values
            size_bytes += sum(map(len, found.keys)) + sum(map(len, found.values))
            if found.resume is None:
                left.popleft()
            after = end if found.resume is None else found.resume
            if size_bytes >= SLICE_BYTES_MAX or self.host.process.monotonic_ms() >= until_ms:
                break
        return keys, values, after if left else None


def _merged(parts: Sequence[pb.BackupRange], keys_max: int) -> list[pb.BackupRange]:
    """Merge neighbours, as long as they hold no more than ``keys_max`` keys together."""
    merged: list[pb.BackupRange] = []
    for part in parts:
        if merged and merged[-1].keys + part.keys <= keys_max:
            merged[-1].end = part.end
            merged[-1].keys += part.keys
        else:
            merged.append(part)
    return merged
