"""A backup's calls to a cluster: the plan of its ranges, and the versions of each."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final

from cortado.errors import DataLoss
from cortado.proto.v1 import backups_pb2 as pb
from cortado.proto.v1 import watch_pb2
from cortado.store.backup.runs import decode_run
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.restores import AsyncRestores
from cortado.store.client.stubs import Stubs
from cortado.store.client.values import At, at_to_proto, timestamp_of, timestamp_to_proto
from cortado.store.client.watch import AsyncWatch, Changed, WatchOptions
from cortado.store.client.watch_sources import timestamps_of
from cortado.store.clock.timestamp import Timestamp

_PLAN_S: Final = 600.0
"""A plan counts all keys, a million of them in less than a second."""


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """Logical keys in ``[start, end)``; ``keys`` is their approximate count."""

    start: bytes
    end: bytes
    keys: int


@dataclass(frozen=True, slots=True)
class BackupPlan:
    """``ranges`` are to be read at ``timestamp``, in the cluster of that id. From ``oldest`` on all
    versions are there. Changes are known from ``restored`` on, the time at which a restore ended.
    ``roles_enabled``: roles are on in the cluster."""

    cluster_id: str
    timestamp: Timestamp
    oldest: Timestamp
    restored: Timestamp
    ranges: tuple[PlannedRange, ...]
    roles_enabled: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The versions to read: the state at ``at``; or the changes above ``since``, deletes too. The newest of each key is
    read, with ``history`` all; ``with_start`` adds the state at ``since``. ``restore_id`` restricts the read to the
    versions that this restore, still under way, has put so far."""

    at: Timestamp
    since: Timestamp | None = None
    history: bool = False
    with_start: bool = False
    restore_id: str = ""


class VersionSource:
    """All versions that belong to a backup, as they are committed. A value has its kind before its payload.

    ``roles_enabled``: whether roles are on, as the newest reply has it.
    """

    method = Stubs.backups.Follow

    def __init__(self, *, roles_enabled: bool) -> None:
        """``roles_enabled`` holds until the first reply."""
        self.roles_enabled = roles_enabled

    async def request(self, options: watch_pb2.WatchOptions) -> pb.FollowBackupRequest:
        return pb.FollowBackupRequest(after=options.after.timestamp, resolved_interval_ms=options.resolved_interval_ms)

    async def changes(self, reply: pb.FollowBackupResponse) -> Sequence[Changed[bytes, bytes]]:
        self.roles_enabled = reply.roles_enabled
        if not reply.run:
            return ()
        _check(reply)
        run = decode_run(reply.run, "a reply", in_order=False)
        return [
            Changed(key, value, ts)
            for key, value, ts in zip(run.keys, run.values, timestamps_of(run.timestamps), strict=True)
        ]


@public_face
class AsyncBackups:
    """Reading a cluster's versions out."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    async def plan(self, *, at: At = None, range_bytes: int = 0) -> BackupPlan:
        """Return ranges of about ``range_bytes`` each as they are stored (0: the server's choice), and the timestamp
        of a backup that sees all acknowledged writes. Raises TimestampInFuture, SnapshotTooOld."""
        self._connection.check_present("a backup")
        request = pb.PlanBackupRequest(at=at_to_proto(at), range_bytes=range_bytes)
        method = self._connection.stubs.backups.Plan
        reply = await self._connection.call(method, request, timeout_s=max(self._timeout_s, _PLAN_S))
        return BackupPlan(
            reply.header.cluster_id,
            timestamp_of(reply.timestamp),
            timestamp_of(reply.oldest),
            timestamp_of(reply.restored),
            tuple(PlannedRange(each.start, each.end, each.keys) for each in reply.ranges),
            reply.roles_enabled,
        )

    @property
    def restores(self) -> AsyncRestores:
        """A restore's calls to a cluster."""
        return AsyncRestores(self._connection)

    async def read(self, start: bytes, end: bytes, wanted: Wanted) -> AsyncGenerator[bytes, None]:
        """Yield the versions of a range as runs of bytes (``docs/formats/backup.md``); the last run may be empty.

        A stream that breaks goes on at another member. Raises SnapshotTooOld if the versions were collected, and
        DataLoss.
        """
        request = pb.ReadBackupRequest(
            start=start,
            end=end,
            at=at_to_proto(wanted.at),
            since=None if wanted.since is None else timestamp_to_proto(wanted.since),
            history=wanted.history,
            with_start=wanted.with_start,
            restore_id=wanted.restore_id,
        )
        method = self._connection.stubs.backups.Read
        async for reply in self._connection.replies(method, request, timeout_s=self._timeout_s):
            _check(reply)
            yield reply.run

    def follow(self, after: Timestamp, source: VersionSource, *, resolved_ms: int = 1_000) -> AsyncWatch[bytes, bytes]:
        """Watch all versions of ``source`` above ``after``, in the order of their commits: logical keys, and values
        that begin with their kind. The watch goes on over changes of leader, and raises SnapshotTooOld if versions
        that it needs were collected."""
        options = WatchOptions(after=after, resolved_ms=resolved_ms)
        return AsyncWatch(self._connection, source, options, timeout_s=self._timeout_s)


def _check(reply: pb.ReadBackupResponse | pb.FollowBackupResponse) -> None:
    if zlib.crc32(reply.run) != reply.checksum:
        raise DataLoss("a reply", f"a run of {len(reply.run)} bytes arrived with a wrong checksum")
