"""Following a cluster: a backup, and behind it everything that is committed, in segments.

::

    monday/
      manifest.json, part-...      the backup, at S0
      segment-00000001/            what was committed in (S0, S1]     } each a backup of its own: all versions, a part,
      segment-00000002/            what was committed in (S1, S2]     } and a manifest that is written last

    watch of everything ──► versions, in the order of commits ──► Resolved(S): all up to S came ──► a segment ends at S

A segment ends a few seconds after its first version came, at the next resolved timestamp. So at any instant the disk
holds the state up to the last segment, and a restore of the directory brings back any time from S0 on.

- *No gap.* A segment names the one before it by id and timestamp. The watch begins after the last segment's timestamp,
  and goes on by itself over changes of leader and dead nodes. If the cluster has collected versions after that
  timestamp, the watch is refused: a new backup is to be begun.
- *Nothing twice.* A command that was killed left whole segments, and perhaps one without a manifest, which is no
  segment: it is written anew, from the same timestamp on.
- *A lease* at the last segment keeps the later versions while the command runs, and for ten minutes after it was
  killed. It moves along once a minute.
- *One at a time.* A process that follows holds the directory. An object store cannot tell: there a segment that is
  there already, or is not the one that was written, ends the command.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from cortado.errors import (
    CortadoError,
    DeadlineExceeded,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    SnapshotTooOld,
    Unavailable,
)
from cortado.store.backup.chain import Backup, last_segment, look
from cortado.store.backup.create import BackupRequest, backing_up, check_same, finish
from cortado.store.backup.manifest import (
    MANIFEST,
    SEGMENTS_MAX,
    BaseBackup,
    Manifest,
    PartEntry,
    Shape,
    part_name,
    read_manifest,
    segment_name,
    write_manifest,
)
from cortado.store.backup.part_file import PartHeader, PartWriter
from cortado.store.backup.runs import Run, sorted_runs
from cortado.store.client import Client
from cortado.store.client.backups import VersionSource
from cortado.store.client.blocking.watch import Watch
from cortado.store.client.watch import Changed, Event, Resolved
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.transfer.directory import Directory, directory_at
from cortado.store.transfer.progress import Progress, Report, silent

SEGMENT_S: Final = 3.0
SEGMENT_BYTES: Final = 32 << 20
IDLE_S: Final = 60.0
_RESOLVED_MS: Final = 500
_LEASE_TTL_S: Final = 600.0
LEASE_MOVES_S: Final = 60.0
_AGAIN_S: Final = 1.0
_ID_BYTES: Final = 8


Stopping: TypeAlias = Callable[[], AbstractContextManager[threading.Event]]


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """The request to follow. A segment ends at the first resolved timestamp that is ``segment_s`` after its first
    version came, or sooner with ``segment_bytes``; one without versions after ``idle_s``. Every ``lease_moves_s`` the
    cluster may collect versions that are in a segment by now."""

    backup: BackupRequest
    segment_s: float = SEGMENT_S
    segment_bytes: int = SEGMENT_BYTES
    idle_s: float = IDLE_S
    lease_moves_s: float = LEASE_MOVES_S
    monotonic_s: Callable[[], float] = time.monotonic
    random_bytes: Callable[[int], bytes] = os.urandom


@dataclass(frozen=True, slots=True)
class Followed:
    """The result: the directory holds everything up to ``timestamp``, in ``segments`` behind its backup. This run wrote
    ``versions`` into segments."""

    timestamp: Timestamp
    segments: int
    versions: int


def follow_backup(client: Client, request: FollowRequest, stopping: Stopping, report: Report = silent) -> Followed:
    """Take the backup, unless it is there, and follow the cluster; goes on where an earlier run was ended, however it
    was. Once the backup is there ``stopping`` is entered; the event that it gives ends this, with a whole segment, when
    it is set. ``client`` should read from any member.

    Raises SnapshotTooOld if the cluster has collected versions after the last segment: begin a new backup in another
    directory. InvalidArgument if another process follows into the directory, or it cannot be written; and as
    :func:`~cortado.store.backup.create.create_backup`. While no member answers it waits.
    """
    backup = request.backup
    if backup.at is not None:
        raise InvalidArgument("at", "must not be given with follow, which begins now", str(backup.at))
    directory = directory_at(backup.directory)
    found = look(directory)
    with ExitStack() as stack:
        lease = stack.enter_context(_MovingLease(client))
        if isinstance(found, Manifest):
            check_same(client, backup, found.shape)
            finish(directory)
            tip = last_segment(directory, found)
            for part in range(len(tip.manifest.parts)):
                tip.check(part)
            lease.move(tip.manifest.shape)
        else:
            # A lease of its own before the backup's ends: in between, later versions could be collected.
            with backing_up(client, backup, report) as manifest:
                tip = Backup(directory, manifest)
                lease.move(manifest.shape)
        stack.enter_context(directory.held())
        return _Following(client, request, directory, tip, lease, report).run(stack.enter_context(stopping()))


class _MovingLease:
    """A lease that keeps the versions after the last segment."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held = ExitStack()

    def __enter__(self) -> _MovingLease:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def move(self, shape: Shape) -> None:
        """Keep the versions after ``shape`` from now on, and none before. If no lease can be had, the old one stays:
        the watch reports the versions that it then misses."""
        with suppress(SnapshotTooOld, ResourceExhausted, Unavailable, DeadlineExceeded, OutcomeUnknown):
            lease = self._client.hold(shape.at, label=f"backup {shape.backup_id}", ttl_s=_LEASE_TTL_S)
            with ExitStack() as taken:
                taken.enter_context(lease)
                self._held.close()
                self._held = taken.pop_all()


class _Following:
    """One run, from the last segment on."""

    def __init__(
        self,
        client: Client,
        request: FollowRequest,
        directory: Directory,
        tip: Backup,
        lease: _MovingLease,
        report: Report,
    ) -> None:
        self._client = client
        self._request = request
        self._directory = directory
        self._tip = tip
        self._lease = lease
        self._report = report
        self._resolved = tip.manifest.shape.at
        self._source = VersionSource(roles_enabled=tip.manifest.shape.roles_enabled)
        self._pending: list[Changed[bytes, bytes]] = []
        self._pending_bytes = 0
        self._whole = 0
        """The number of pending versions at or below the resolved timestamp."""
        self._versions = 0
        self._began_s = self._moved_s = self._now_s()

    def run(self, stop: threading.Event) -> Followed:
        with self._client.admin.backups.follow(self._resolved, self._source, resolved_ms=_RESOLVED_MS) as watch:
            # A thread that waits for an event finds the end.
            threading.Thread(target=_close_at, args=(stop, watch), name="backup-stop", daemon=True).start()
            try:
                while (event := self._next(watch, stop)) is not None:
                    self._take(event)
            finally:
                stop.set()
        self._end()
        return Followed(self._tip.manifest.shape.at, self._tip.segment, self._versions)

    def _next(self, watch: Watch[bytes, bytes], stop: threading.Event) -> Event[bytes, bytes] | None:
        """Return the next event, None once it was stopped. If an error ends the watch, the earlier versions are on the
        disk."""
        while not stop.is_set():
            try:
                return next(watch, None)
            except (Unavailable, DeadlineExceeded) as nobody:
                # The watch goes on where it was.
                self._show(f"waiting: {nobody}")
                stop.wait(_AGAIN_S)
            except CortadoError:
                self._end()
                raise
        return None

    def _end(self) -> None:
        if self._resolved > self._tip.manifest.shape.at:
            self._end_segment()

    def _take(self, event: Event[bytes, bytes]) -> None:
        if isinstance(event, Changed):
            if not self._pending:
                self._began_s = self._now_s()
            self._pending.append(event)
            self._pending_bytes += len(event.key) + len(event.value)
        elif isinstance(event, Resolved):
            self._resolved, self._whole = event.ts, len(self._pending)
            age_s = self._now_s() - self._began_s
            is_full = self._pending_bytes >= self._request.segment_bytes
            if is_full or age_s >= (self._request.segment_s if self._pending else self._request.idle_s):
                self._end_segment()
            self._show(f"following, up to {self._tip.manifest.shape.at.as_datetime():%Y-%m-%d %H:%M:%S}Z")

    def _end_segment(self) -> None:
        """Write all versions up to the resolved timestamp as a segment. They stay pending if that fails."""
        versions = self._pending[: self._whole]
        self._tip = self._written(versions)
        del self._pending[: self._whole]
        self._whole = 0
        self._pending_bytes = sum(len(each.key) + len(each.value) for each in self._pending)
        self._versions += len(versions)
        self._began_s = self._now_s()
        if self._began_s - self._moved_s >= self._request.lease_moves_s:
            self._lease.move(self._tip.manifest.shape)
            self._moved_s = self._began_s

    def _written(self, versions: list[Changed[bytes, bytes]]) -> Backup:
        """Return the next segment, whole on the disk."""
        tip, number = self._tip, self._tip.segment + 1
        shape, place = tip.manifest.shape, self._directory.at(segment_name(number))
        if number > SEGMENTS_MAX:
            problem = f"holds {SEGMENTS_MAX} segments, the limit: begin a new backup in another directory"
            raise InvalidArgument("DIR", problem, str(self._directory))
        is_ours = read_manifest(tip.directory).shape.backup_id == shape.backup_id
        if not is_ours or MANIFEST in (place.names() or []):
            problem = f"is followed by another process: {segment_name(number)} is there already"
            raise InvalidArgument("DIR", problem, str(self._directory))
        base = BaseBackup(shape.backup_id, shape.timestamp, place.path_to(tip.directory))
        backup_id = self._request.random_bytes(_ID_BYTES).hex()
        roles = self._source.roles_enabled
        next_shape = Shape(shape.cluster_id, backup_id, str(self._resolved), shape.timestamp, True, base, roles)
        place.make()
        manifest = Manifest(next_shape, _written_part(place, backup_id, versions))
        write_manifest(place, manifest)
        return Backup(place, manifest)

    def _show(self, what: str) -> None:
        self._report(Progress(what, self._versions + len(self._pending)))

    def _now_s(self) -> float:
        return self._request.monotonic_s()


def _close_at(stop: threading.Event, watch: Watch[bytes, bytes]) -> None:
    stop.wait()
    watch.close()


def _written_part(place: Directory, backup_id: str, versions: list[Changed[bytes, bytes]]) -> tuple[PartEntry, ...]:
    """Return the only part of a segment; none if nothing was committed."""
    if not versions:
        return ()
    keys, values = [each.key for each in versions], [each.value for each in versions]
    start, end = min(keys).hex(), successor_of_prefix(max(keys)).hex()
    with place.writing(part_name(0)) as file:
        writer = PartWriter(file, PartHeader(backup_id, 0, start, end))
        for run in sorted_runs(Run(keys, [bytes(each.ts) for each in versions], values)):
            writer.add(run.encode())
        found = writer.end()
    return (PartEntry(start, end, found.versions, found.content, found.bytes, found.sha256),)
