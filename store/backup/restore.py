"""Restoring a backup, and those that it follows, into an empty cluster.

::

    every byte of the files is verified ──► Begin: the cluster takes this backup, and serves nobody
    for each part, some at once: its runs ──► Put, the last one with "this part is all there"
    for each part: what the cluster has stored is read back ──► the same count and digest as in the manifest
    End: the cluster serves ──► each table's indexes are held against its rows

Whatever ends this at any point, the same command goes on: the cluster knows which parts are all there. Versions that
were put twice are there once. Until the end no caller can read half a backup, or write into it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Final

from cortado.errors import DataLoss, InvalidArgument, TooLarge
from cortado.store.backup.chain import Backup, chain_of, readable_from
from cortado.store.backup.check import check_chain
from cortado.store.backup.runs import ContentDigest, Run, decode_run, merged_runs
from cortado.store.backup.streams import STREAMS, Streams, transferring
from cortado.store.client import Client
from cortado.store.client.backups import Wanted
from cortado.store.client.restores import RestoreStatus
from cortado.store.clock.text import wall_ms_of
from cortado.store.clock.timestamp import LOGICAL_MAX, ZERO, Timestamp
from cortado.store.transfer.directory import Where
from cortado.store.transfer.progress import Progress, Report, silent

_CLOCK_WAIT_MS: Final = 5_000
"""A clock that is so far behind catches up sooner than an epoch is worth."""
_CLOCK_LOOK_S: Final = 0.1
_EMPTY: Final = Run((), (), ())
_SEGMENTS_AT_ONCE: Final = 256
"""So many files are open, and so many runs in memory."""
_SEGMENT_BYTES_AT_ONCE: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """The request to restore. ``at`` None: the backup's own timestamp; else an earlier one, which a history in the
    chain reaches, or a wall time, which means all of its millisecond. ``streams`` parts are put at once.

    ``without_roles``: restore also if roles were on in the old cluster and are off in this one. Then every caller may
    read the restored data.
    """

    directory: Where
    at: Timestamp | datetime | None = None
    streams: int = STREAMS
    without_roles: bool = False
    sleep_s: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. ``was_done``: an earlier run had restored it. ``problems`` name tables with indexes that
    differ from their rows."""

    restore_id: str
    timestamp: Timestamp
    readable_from: Timestamp
    versions: int
    backups: int
    tables: int
    problems: tuple[str, ...] = ()
    was_done: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of one backup of the chain, or those of segments that follow each other, as far as ``at``; None: all.

    Segments are put and verified some hundreds at a time: to verify one reads all keys of its range.
    """

    files: Sequence[tuple[Backup, int]]
    at: Timestamp | None

    @property
    def name(self) -> str:
        backup, number = self.files[-1]
        others = f"{len(self.files)} segments to " if len(self.files) > 1 else ""
        return others + backup.name(number)

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        """The range of its keys."""
        entries = [backup.manifest.parts[number] for backup, number in self.files]
        return bytes.fromhex(min(each.start for each in entries)), bytes.fromhex(max(each.end for each in entries))

    def runs(self) -> Iterator[Run]:
        sources = [self._up_to(backup.runs(number)) for backup, number in self.files]
        return sources[0] if len(sources) == 1 else merged_runs(sources)

    def _up_to(self, runs: Iterator[Run]) -> Iterator[Run]:
        for run in runs:
            yield run if self.at is None else run.up_to(self.at)

    def expected(self) -> tuple[int, str]:
        """Return how many versions, and their digest."""
        if self.at is None and len(self.files) == 1:
            backup, number = self.files[0]
            entry = backup.manifest.parts[number]
            return entry.versions, entry.content
        return _digest(self.runs())

    def wanted(self, restore_id: str) -> Wanted:
        """Return the request to the cluster for exactly these versions."""
        first, last = (self.files[place][0].manifest.shape for place in (0, -1))
        since = ZERO if first.base is None or first.after is None else first.after
        return Wanted(self.at or last.at, since, history=True, restore_id=restore_id)


@dataclass(frozen=True, slots=True)
class _Plan:
    chain: Sequence[Backup]
    at: Timestamp
    readable_from: Timestamp
    needs_roles: bool
    parts: Sequence[_Part] = field(default_factory=tuple)

    @property
    def restore_id(self) -> str:
        """The same for the same backups and time: the same command, run again, goes on with it."""
        ids = [each.manifest.shape.backup_id for each in self.chain]
        return hashlib.sha256(" ".join([*ids, str(self.at)]).encode()).hexdigest()[:32]


def restore_backup(client: Client, request: RestoreRequest, report: Report = silent) -> Restored:
    """Restore the backup, or go on with it.

    Raises DataLoss if a file is damaged or the cluster does not hold the versions that were put, Restoring while
    another restore is under way. InvalidArgument: the cluster is not empty, the time is not in the backup, or roles
    were on in the old cluster and are off in this one.
    """
    streams = transferring(request.streams, "restore")
    plan = _plan(request)
    restores, restore_id = client.admin.backups.restores, plan.restore_id
    standing = restores.status()
    was_done = standing.ended == restore_id
    needs_roles = plan.needs_roles and not request.without_roles
    if needs_roles and not (was_done or standing.roles_enabled):
        raise _roles_are_off()
    check_chain(list(plan.chain), report)
    versions = sum(each.manifest.versions for each in plan.chain)
    if not was_done:
        begun = _begin(client, plan, request.sleep_s)
        was_done = begun.ended == restore_id
        if needs_roles and not (was_done or begun.roles_enabled):
            # They were switched off while the files were verified. From here on the cluster switches nothing.
            abandon_restore(client, report)
            raise _roles_are_off()
        if not was_done:
            left = [number for number in range(len(plan.parts)) if number not in begun.parts_done]
            _Putting(client, plan, streams, report).run(left)
            versions = _Verifying(client, plan, streams, report).run(range(len(plan.parts)))
            restores.end(restore_id)
    tables, problems = _check_tables(client, report)
    return Restored(
        restore_id, plan.at, plan.readable_from, versions, len(plan.chain), tables, tuple(problems), was_done
    )


def _roles_are_off() -> InvalidArgument:
    problem = (
        "were on in the cluster of this backup, and are off here, so that all callers could read the restored data"
    )
    advice = "enable them here first (cortado auth enable), or restore --without-roles"
    return InvalidArgument("roles", f"{problem}: {advice}")


def abandon_restore(client: Client, report: Report = silent) -> str:
    """Remove the versions that a restore under way has put, and end it: the cluster is empty again. Returns the
    restore's id, empty if there was no restore."""
    restores = client.admin.backups.restores
    restore_id, rounds = restores.status().restore_id, 0
    while restore_id and restores.abandon(restore_id).restore_id:
        rounds += 1
        report(Progress("what was put back", rounds))
    return restore_id


def _plan(request: RestoreRequest) -> _Plan:
    whole = chain_of(request.directory)
    newest = whole[-1].manifest.shape.at
    match request.at:
        case None:
            at = newest
        case datetime():
            at = Timestamp(newest.epoch, wall_ms_of(request.at, "at"), LOGICAL_MAX)
        case Timestamp():
            at = request.at
    chain = [each for place, each in enumerate(whole) if not place or whole[place - 1].manifest.shape.at < at]
    last = chain[-1].manifest.shape
    reached = last.after if last.history else None
    if at > last.at or (at < last.at and (reached is None or at < reached)):
        problem = f"is in no history of this backup; it can be restored as of {_times(whole)}"
        raise InvalidArgument("at", problem, str(at))
    # The newest manifest of all, also if an earlier time is restored: it says best whether roles protect the data.
    needs_roles = whole[-1].manifest.shape.roles_enabled
    return _Plan(chain, at, min(readable_from(chain), at), needs_roles, _parts(chain, at))


def _times(chain: Sequence[Backup]) -> str:
    """Return the times that a chain can be restored to: each backup's timestamp, and all of its history."""
    times: list[tuple[str, str]] = []
    for each in (backup.manifest.shape for backup in chain):
        begin = each.timestamp if not each.history or each.since is None else each.since
        if times and times[-1][1] == begin:
            begin = times.pop()[0]
        times.append((begin, each.timestamp))
    return ", ".join(end if begin == end else f"{begin} to {end}" for begin, end in times)


def _parts(chain: Sequence[Backup], at: Timestamp) -> list[_Part]:
    parts: list[_Part] = []
    segments, size_bytes = list[tuple[Backup, int]](), 0
    for backup in chain:
        files = [(backup, number) for number in range(len(backup.manifest.parts))]
        if not backup.segment:
            parts += [_Part([each], at if at < backup.manifest.shape.at else None) for each in files]
            continue
        if len(segments) >= _SEGMENTS_AT_ONCE or size_bytes >= _SEGMENT_BYTES_AT_ONCE:
            parts.append(_Part(segments, None))
            segments, size_bytes = [], 0
        segments += files
        size_bytes += backup.manifest.bytes
    if segments:
        parts.append(_Part(segments, at if at < segments[-1][0].manifest.shape.at else None))
    return parts


def _begin(client: Client, plan: _Plan, sleep_s: Callable[[float], None]) -> RestoreStatus:
    """Begin the restore. The clock is raised only for a cluster that would take it: a refusal changes nothing."""
    restores = client.admin.backups.restores
    while True:
        try:
            return restores.begin(plan.restore_id, plan.at, plan.readable_from, len(plan.parts))
        except InvalidArgument as refused:
            if refused.field != "timestamp" or client.clock().now > plan.at:
                raise
        _raise_clock(client, plan.at, sleep_s)


def _raise_clock(client: Client, ts: Timestamp, sleep_s: Callable[[float], None]) -> None:
    """Later commits must sort above the restored versions: wait for a clock that is a little behind, or begin
    epochs."""
    while True:
        now = client.clock().now
        if now > ts:
            return
        if now.epoch == ts.epoch and ts.wall_ms - now.wall_ms <= _CLOCK_WAIT_MS:
            sleep_s(_CLOCK_LOOK_S)
        else:
            client.admin.bump_epoch(now.epoch)


def _digest(runs: Iterator[Run]) -> tuple[int, str]:
    digest = ContentDigest()
    for run in runs:
        digest.add(run)
    return digest.versions, digest.hexdigest()


class _OverParts:
    """Something that is done for each part, some at once."""

    what = ""

    def __init__(self, client: Client, plan: _Plan, streams: Streams, report: Report) -> None:
        self._client = client
        self._plan = plan
        self._streams = streams
        self._report = report
        self._lock = Lock()
        self._versions = 0
        self._total = sum(each.manifest.versions for each in plan.chain)

    def run(self, numbers: Sequence[int]) -> int:
        """Does it for these; returns how many versions they have."""
        self._streams.run(self._part, numbers)
        return self._versions

    def _part(self, number: int) -> None:
        raise NotImplementedError

    def _count(self, part: _Part, versions: int) -> None:
        with self._lock:
            self._streams.check()
            self._versions += versions
            self._report(Progress(f"{self.what} {part.name}", self._versions, done=self._versions, total=self._total))


class _Putting(_OverParts):
    """Each part's versions go to the cluster."""

    what = "putting"

    def _part(self, number: int) -> None:
        part = self._plan.parts[number]
        before = _EMPTY
        for run in part.runs():
            self._put(before, None)
            self._count(part, len(before.keys))
            before = run
        # The file was verified to its end by now.
        self._put(before, number)
        self._count(part, len(before.keys))

    def _put(self, run: Run, part_done: int | None) -> None:
        """In halves if one write of this cluster may not change so much."""
        if not run.keys and part_done is None:
            return
        try:
            self._client.admin.backups.restores.put(self._plan.restore_id, run.encode(), part_done)
        except TooLarge:
            middle = len(run.keys) // 2
            if not middle:
                raise
            self._put(Run(run.keys[:middle], run.timestamps[:middle], run.values[:middle]), None)
            self._put(Run(run.keys[middle:], run.timestamps[middle:], run.values[middle:]), part_done)


class _Verifying(_OverParts):
    """The stored versions of each part are compared with the manifest."""

    what = "verifying"

    def _part(self, number: int) -> None:
        part = self._plan.parts[number]
        start, end = part.bounds
        with closing(self._client.admin.backups.read(start, end, part.wanted(self._plan.restore_id))) as bodies:
            found = _digest(decode_run(body, "a reply") for body in bodies)
        expected = part.expected()
        if found != expected:
            detail = f"of {part.name} it holds {found[0]} versions, and not the {expected[0]} that were put"
            raise DataLoss("the cluster", detail)
        self._count(part, found[0])


def _check_tables(client: Client, report: Report) -> tuple[int, list[str]]:
    tables, problems = client.tables(), list[str]()
    for place, table in enumerate(tables):
        report(Progress(f"checking {table.full_name}", 0, done=place, total=len(tables)))
        found = client.verify_indexes(table.full_name)
        problems += [f"{table.full_name}: {each}" for each in found.problems]
    return len(tables), problems
