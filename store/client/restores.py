"""A restore's calls to a cluster: to take a backup's versions, and to serve again."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final

from cortado.proto.v1 import backups_pb2 as pb
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.stubs import Method
from cortado.store.client.values import timestamp_of, timestamp_to_proto
from cortado.store.clock.timestamp import Timestamp

_CALL_S: Final = 120.0
"""Each call may be made again, so there is time for a change of leaders."""


@dataclass(frozen=True, slots=True)
class RestoreStatus:
    """``restore_id`` is under way, and these parts are all put. If it is empty, no restore is under way, and ``ended``
    is the one that has ended here, if there was one. ``roles_enabled``: roles are on in the cluster."""

    restore_id: str = ""
    timestamp: Timestamp | None = None
    parts: int = 0
    parts_done: frozenset[int] = frozenset()
    is_abandoned: bool = False
    ended: str = ""
    roles_enabled: bool = False


@public_face
class AsyncRestores:
    """Putting versions back. Every call may be made again: made twice it does the same as once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def begin(self, restore_id: str, timestamp: Timestamp, readable_from: Timestamp, parts: int) -> RestoreStatus:
        """Begin a restore: the cluster takes a backup, and refuses all other calls. Called again, return its progress.

        Raises InvalidArgument if the cluster is not empty, or its clock not above ``timestamp``; Restoring if
        another one is under way.
        """
        request = pb.BeginRestoreRequest(
            restore_id=restore_id,
            timestamp=timestamp_to_proto(timestamp),
            readable_from=timestamp_to_proto(readable_from),
            parts=parts,
        )
        return _status(await self._call(self._connection.stubs.restores.Begin, request))

    async def put(self, restore_id: str, versions: bytes, part_done: int | None) -> None:
        """Put the versions of an encoded run back; ``part_done`` is all there then. Raises NotFound, Restoring,
        DataLoss."""
        request = pb.PutRestoreRequest(
            restore_id=restore_id, run=versions, checksum=zlib.crc32(versions), part_done=part_done
        )
        await self._call(self._connection.stubs.restores.Put, request)

    async def end(self, restore_id: str) -> None:
        """Let the cluster serve the restored data. Raises InvalidArgument if parts are missing, NotFound."""
        await self._call(self._connection.stubs.restores.End, pb.EndRestoreRequest(restore_id=restore_id))

    async def abandon(self, restore_id: str) -> RestoreStatus:
        """Remove a piece of restored data; none is left once no restore is under way. Raises Restoring (another)."""
        request = pb.AbandonRestoreRequest(restore_id=restore_id)
        return _status(await self._call(self._connection.stubs.restores.Abandon, request))

    async def status(self) -> RestoreStatus:
        """Return a restore's progress."""
        return _status(await self._call(self._connection.stubs.restores.Status, pb.RestoreStatusRequest()))

    async def _call(self, method: Method, request: Any) -> Any:
        self._connection.check_present("a restore")
        return await self._connection.call(method, request, timeout_s=_CALL_S)


def _status(reply: pb.RestoreResponse) -> RestoreStatus:
    if not reply.HasField("state"):
        return RestoreStatus(ended=reply.ended, roles_enabled=reply.roles_enabled)
    state = reply.state
    return RestoreStatus(
        state.restore_id,
        timestamp_of(state.timestamp),
        state.parts,
        frozenset(state.parts_done),
        state.is_abandoned,
        roles_enabled=reply.roles_enabled,
    )
