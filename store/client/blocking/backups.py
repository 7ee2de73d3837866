"""What a backup asks of a cluster, synchronous."""

from __future__ import annotations

from collections.abc import Generator

from cortado.store.client.backups import AsyncBackups, BackupPlan, Wanted
from cortado.store.client.blocking.drive import run, steps
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.values import At


@forwards(AsyncBackups)
class Backups:
    """Reading a cluster's versions out. May be shared by threads."""

    def __init__(self, core: AsyncBackups) -> None:
        self._core = core

    def plan(self, *, at: At = None, range_bytes: int = 0) -> BackupPlan:
        return run(self._core.plan(at=at, range_bytes=range_bytes))

    def read(self, start: bytes, end: bytes, wanted: Wanted) -> Generator[bytes, None, None]:
        return steps(self._core.read(start, end, wanted))
