"""``cortado.v1.Restores``: an empty cluster takes a backup (:mod:`cortado.store.replica.features.restoring`).

Runs are decoded, and made into stored versions, beside the loop; the loop sees finished items.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

from cortado.errors import DataLoss, InvalidArgument
from cortado.proto.v1 import backups_pb2 as pb
from cortado.store.backup.runs import decode_run
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.archive import archived_ranges, stored_items
from cortado.store.mvcc.evaluation import Evaluate
from cortado.store.mvcc.versions import Item
from cortado.store.replica.features.restoring import (
    PARTS_MAX,
    RestoreState,
    abandoned,
    begun_restore,
    ended,
    ended_restore,
    not_empty,
    put_back,
)
from cortado.store.server.convert import timestamp_message, timestamp_value
from cortado.store.server.service import Service

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class RestoresService(Service):
    """Answers the calls of restores."""

    async def begin(self, request: pb.BeginRestoreRequest) -> pb.RestoreResponse:
        asked = _asked(request)
        replica = self.host.meta
        newest = await replica.reads.applied_to(await replica.reads.newest())
        if replica.features.restore.state is None and ended_restore(replica.reader(newest)) != asked.restore_id:
            found = await self.host.process.scan(self._left)
            if found:
                raise not_empty(found[0][0])
        elif replica.features.restore.state is None:
            return self._reply(newest, None, asked.restore_id)
        return await self._write(begun_restore(asked, newest), request.ByteSize())

    async def put(self, request: pb.PutRestoreRequest) -> pb.RestoreResponse:
        part_done = request.part_done if request.HasField("part_done") else None
        with self.host.process.reads.place():
            items, highest = await self.host.process.scan(lambda: _items(request))
        evaluate = put_back(request.restore_id, items, highest, part_done)
        result = await self.host.meta.write(evaluate, size_bytes=request.ByteSize(), while_closed=True)
        return self._reply(result.ts, None, "")

    async def end(self, request: pb.EndRestoreRequest) -> pb.RestoreResponse:
        return await self._write(ended(request.restore_id), request.ByteSize(), request.restore_id)

    async def abandon(self, request: pb.AbandonRestoreRequest) -> pb.RestoreResponse:
        replica = self.host.meta
        await replica.reads.applied_to(await replica.reads.newest())
        state = replica.features.restore.state
        left = await self.host.process.scan(self._left)
        return await self._write(abandoned(request.restore_id, left, state), request.ByteSize())

    async def status(self, request: pb.RestoreStatusRequest) -> pb.RestoreResponse:
        del request
        replica = self.host.meta
        read_ts = replica.read_ts()
        return self._reply(read_ts, replica.features.restore.state, ended_restore(replica.reader(read_ts)))

    async def _write(self, evaluate: Evaluate, size_bytes: int, ends: str = "") -> pb.RestoreResponse:
        result = await self.host.meta.write(evaluate, size_bytes=size_bytes, while_closed=True)
        # A caller that learns that the cluster serves, or does not, finds this node in the same state.
        await self.host.meta.reads.applied_to(result.ts)
        state = result.value
        assert state is None or isinstance(state, RestoreState)
        return self._reply(result.ts, state, ends if state is None else "")

    def _reply(self, ts: Timestamp, state: RestoreState | None, ends: str) -> pb.RestoreResponse:
        is_enabled = self.host.meta.roles.committed.is_enabled
        reply = pb.RestoreResponse(header=self.header(ts), ended=ends, roles_enabled=is_enabled)
        if state is not None:
            reply.state.CopyFrom(
                pb.RestoreState(
                    restore_id=state.restore_id,
                    timestamp=timestamp_message(state.timestamp),
                    readable_from=timestamp_message(state.readable_from),
                    parts=state.parts,
                    parts_done=state.parts_done,
                    is_abandoned=state.is_abandoned,
                )
            )
        return reply

    def _left(self) -> list[KeyRange]:
        """Return the ranges of a backup that hold a version, each from its first one on."""
        left: list[KeyRange] = []
        with self.host.process.engine.read() as txn:
            for start, end in archived_ranges():
                keys, _ = txn.keys(Space.DATA, start, end, max_items=1)
                left += [(LogicalKey(keys[0]), end)] if keys else []
        return left


def _asked(request: pb.BeginRestoreRequest) -> RestoreState:
    """Return the state of a restore that begins as requested. Raises InvalidArgument."""
    if not _ID.fullmatch(request.restore_id):
        raise InvalidArgument("restore_id", "must be 1 to 64 letters, digits, '_' and '-'", repr(request.restore_id))
    if not 1 <= request.parts <= PARTS_MAX:
        raise InvalidArgument("parts", f"must be between 1 and {PARTS_MAX}", str(request.parts))
    timestamp = timestamp_value(request.timestamp)
    readable_from = timestamp_value(request.readable_from, "readable_from")
    if readable_from > timestamp:
        raise InvalidArgument("readable_from", f"must be at or below {timestamp}", str(readable_from))
    return RestoreState(request.restore_id, timestamp, readable_from, request.parts)


def _items(request: pb.PutRestoreRequest) -> tuple[list[Item], Timestamp]:
    """Return items as they are to be stored, and their highest timestamp. Raises DataLoss if the bytes are not those
    that were sent, InvalidArgument for items that no backup has."""
    if not request.run:
        return [], ZERO
    if zlib.crc32(request.run) != request.checksum:
        raise DataLoss("a request", f"a run of {len(request.run)} bytes arrived with a wrong checksum")
    run = decode_run(request.run, "a request")
    highest = Timestamp.from_bytes(max(run.timestamps, default=bytes(ZERO)))
    return stored_items(run.stored_keys, run.values), highest
