"""A cluster's calls for backups, synchronous."""

from __future__ import annotations

from collections.abc import Generator

from cortado.store.client.backups import AsyncBackups, BackupPlan, VersionSource, Wanted
from cortado.store.client.blocking.drive import run, steps
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.blocking.watch import Watch
from cortado.store.client.restores import AsyncRestores, RestoreStatus
from cortado.store.client.values import At
from cortado.store.clock.timestamp import Timestamp


@forwards(AsyncBackups)
class Backups:
    """Reading a cluster's versions out. May be shared by threads."""

    def __init__(self, core: AsyncBackups) -> None:
        self._core = core

    @property
    def restores(self) -> Restores:
        return Restores(self._core.restores)

    def plan(self, *, at: At = None, range_bytes: int = 0) -> BackupPlan:
        return run(self._core.plan(at=at, range_bytes=range_bytes))

    def read(self, start: bytes, end: bytes, wanted: Wanted) -> Generator[bytes, None, None]:
        return steps(self._core.read(start, end, wanted))

    def follow(self, after: Timestamp, source: VersionSource, *, resolved_ms: int = 1_000) -> Watch[bytes, bytes]:
        return Watch(self._core.follow(after, source, resolved_ms=resolved_ms))


@forwards(AsyncRestores)
class Restores:
    """Putting versions back. Every call may be made again: made twice it does the same as once."""

    def __init__(self, core: AsyncRestores) -> None:
        self._core = core

    def begin(self, restore_id: str, timestamp: Timestamp, readable_from: Timestamp, parts: int) -> RestoreStatus:
        return run(self._core.begin(restore_id, timestamp, readable_from, parts))

    def put(self, restore_id: str, versions: bytes, part_done: int | None) -> None:
        run(self._core.put(restore_id, versions, part_done))

    def end(self, restore_id: str) -> None:
        run(self._core.end(restore_id))

    def abandon(self, restore_id: str) -> RestoreStatus:
        return run(self._core.abandon(restore_id))

    def status(self) -> RestoreStatus:
        return run(self._core.status())
