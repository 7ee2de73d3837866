"""Making a backup: all of a cluster at one timestamp, into a directory.

::

    plan: the timestamp, ranges of keys ──► backup.checkpoint.json
    for each range, some at once: read ──► part-N.cortado.partial ── sync, rename ──► part-N.cortado
    manifest.json, and the checkpoint goes: a run that finds both has this left to do

A file is there whole or not at all, the directory is synced behind each, and the manifest comes last. So if the command
ends at any point, the same command goes on from there: parts that are there are verified and kept, the others are read,
all at the timestamp of the checkpoint, as long as the cluster can still read that. While the command runs, a hold
keeps it readable.

Every write that was acknowledged before the backup began is in it. Later writes are not: every range is read at the
same timestamp, whichever member answers, and however long it takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import Final

from cortado.errors import DataLoss, InvalidArgument, SnapshotTooOld
from cortado.store.backup.chain import Backup, Empty, look, whole_backup
from cortado.store.backup.manifest import (
    CHECKPOINT,
    BaseBackup,
    Checkpoint,
    Manifest,
    PartEntry,
    RangeEntry,
    Shape,
    part_name,
    write_checkpoint,
    write_manifest,
)
from cortado.store.backup.part_file import PartEnd, PartWriter, read_end
from cortado.store.backup.streams import STREAMS, Streams, transferring
from cortado.store.client import Client
from cortado.store.client.backups import Wanted
from cortado.store.client.values import At
from cortado.store.transfer.directory import Directory, Where, directory_at
from cortado.store.transfer.kept import kept
from cortado.store.transfer.progress import Progress, Report, silent

_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """The request for a backup. ``at`` None: now. ``base``: the directory of the backup that this one follows.
    ``streams`` ranges are read at once, of about ``range_bytes`` each (0: the server's choice)."""

    directory: Where
    at: At = None
    history: bool = False
    base: Where | None = None
    streams: int = STREAMS
    range_bytes: int = 0
    random_bytes: Callable[[int], bytes] = os.urandom


def create_backup(client: Client, request: BackupRequest, report: Report = silent) -> Manifest:
    """Take the backup, or go on with it; one that is whole, and of the time that ``at`` names, is verified. ``client``
    should read from any member.

    Raises InvalidArgument if the directory holds another backup, and the errors of a read. SnapshotTooOld if its
    timestamp, or that of the backup that it follows, cannot be read any more.
    """
    with backing_up(client, request, report) as manifest:
        return manifest


@contextmanager
def backing_up(client: Client, request: BackupRequest, report: Report) -> Iterator[Manifest]:
    """As :func:`create_backup`, and the versions that the backup needed are kept until the end of the block."""
    streams = transferring(request.streams, "backup")
    directory = directory_at(request.directory)
    found = look(directory)
    if isinstance(found, Manifest):
        if not directory.has(CHECKPOINT):
            _check_there(request, directory, found)
        # Else a run was ended between its last two steps: all is there.
        check_same(client, request, found.shape)
        finish(directory)
        yield found
        return
    if isinstance(found, Empty):
        found = _begin(client, request, directory)
    else:
        check_same(client, request, found.shape)
    shape = found.shape
    with kept(client, shape.after or shape.at, f"backup {shape.backup_id}"):
        yield _Making(client, directory, found, streams, report).run()


def _check_there(request: BackupRequest, directory: Directory, found: Manifest) -> None:
    """Verify a whole backup, if the request names its time. Without one it may be last night's, in a directory that is
    given again by mistake. Raises InvalidArgument, DataLoss."""
    if request.at is None:
        problem = f"holds a whole backup of {found.shape.timestamp} already, which can be restored as it is"
        raise InvalidArgument("DIR", f"{problem}: give an empty directory for another one", str(directory))
    backup = Backup(directory, found)
    for part in range(len(found.parts)):
        backup.check(part)


def finish(directory: Directory) -> None:
    """The last step, once the manifest is there."""
    if directory.has(CHECKPOINT):
        directory.remove(CHECKPOINT)


def _begin(client: Client, request: BackupRequest, directory: Directory) -> Checkpoint:
    base, followed = _base(request, directory)
    plan = client.admin.backups.plan(at=request.at, range_bytes=request.range_bytes)
    if base is not None and base.cluster_id != plan.cluster_id:
        problem = f"is a backup of the cluster {base.cluster_id}; this one is {plan.cluster_id}"
        raise InvalidArgument("base", problem, str(request.base))
    if base is not None and base.at > plan.timestamp:
        raise InvalidArgument("base", f"is of {base.timestamp}, and must be no later than {plan.timestamp}")
    if base is not None and base.at < max(plan.oldest, plan.restored):
        # Deletes since then may be gone without a trace; restored versions are older than their restore.
        raise SnapshotTooOld(base.timestamp, str(max(plan.oldest, plan.restored)))
    since = base.at if base is not None else plan.oldest if request.history else None
    shape = Shape(
        plan.cluster_id,
        request.random_bytes(_ID_BYTES).hex(),
        str(plan.timestamp),
        None if since is None else str(since),
        request.history,
        followed,
        plan.roles_enabled,
    )
    ranges = tuple(RangeEntry(each.start.hex(), each.end.hex(), each.keys) for each in plan.ranges)
    checkpoint = Checkpoint(shape, ranges)
    directory.make()
    write_checkpoint(directory, checkpoint)
    return checkpoint


def _base(request: BackupRequest, directory: Directory) -> tuple[Shape | None, BaseBackup | None]:
    """Return the followed backup, and its name from ``directory``."""
    if request.base is None:
        return None, None
    place = directory_at(request.base)
    base = whole_backup(place).shape
    return base, BaseBackup(base.backup_id, base.timestamp, directory.path_to(place))


def check_same(client: Client, request: BackupRequest, shape: Shape) -> None:
    """Raise InvalidArgument if another backup than the requested one was begun there."""
    where = str(request.directory)
    cluster_id = client.status().cluster_id
    if shape.cluster_id != cluster_id:
        problem = f"holds the beginning of a backup of the cluster {shape.cluster_id}; this one is {cluster_id}"
        raise InvalidArgument("DIR", problem, where)
    if shape.history != request.history:
        begun = "with" if shape.history else "without"
        raise InvalidArgument("history", f"was begun {begun} it in {where}: go on as it was begun")
    base = None if request.base is None else whole_backup(directory_at(request.base)).shape.backup_id
    begun_on = None if shape.base is None else shape.base.backup_id
    if base != begun_on:
        problem = f"must be {begun_on or 'none'}, as it was begun in {where}"
        raise InvalidArgument("base", problem, base or "none")
    if request.at is not None and client.admin.backups.plan(at=request.at).timestamp != shape.at:
        raise InvalidArgument("at", f"must be {shape.timestamp}, as it was begun in {where}", str(request.at))


class _Making:
    """One run of the command, from the checkpoint on."""

    def __init__(
        self, client: Client, directory: Directory, checkpoint: Checkpoint, streams: Streams, report: Report
    ) -> None:
        self._client = client
        self._directory = directory
        self._streams = streams
        self._checkpoint = checkpoint
        self._report = report
        self._lock = Lock()
        self._versions = 0
        shape = checkpoint.shape
        self._wanted = Wanted(shape.at, shape.after, history=shape.history, with_start=shape.with_start)
        self._keys = sum(each.keys for each in checkpoint.ranges)

    def run(self) -> Manifest:
        checkpoint, directory = self._checkpoint, self._directory
        ends = self._streams.run(self._part, range(len(checkpoint.ranges)))
        parts = tuple(
            PartEntry(each.start, each.end, end.versions, end.content, end.bytes, end.sha256)
            for each, end in zip(checkpoint.ranges, ends, strict=True)
        )
        manifest = Manifest(checkpoint.shape, parts)
        write_manifest(directory, manifest)
        finish(self._directory)
        return manifest

    def _part(self, number: int) -> PartEnd:
        """Return a part, from an earlier run or from the cluster."""
        name, header = part_name(number), self._checkpoint.header(number)
        if self._directory.has(name):
            # A part that is not whole is read again: not every store shows an object only once all of it is there.
            with suppress(DataLoss):
                end = read_end(self._directory, name, header)
                self._count(number, end.versions)
                return end
        within = self._checkpoint.ranges[number]
        with self._directory.writing(name) as file:
            writer = PartWriter(file, header)
            runs = self._client.admin.backups.read(bytes.fromhex(within.start), bytes.fromhex(within.end), self._wanted)
            with closing(runs):
                for run in runs:
                    self._streams.check()
                    before = writer.versions
                    writer.add(run)
                    self._count(number, writer.versions - before)
            return writer.end()

    def _count(self, number: int, versions: int) -> None:
        with self._lock:
            self._versions += versions
            step = Progress(part_name(number), self._versions, done=self._versions, total=self._keys)
            self._report(step)
