"""A log file that rotted while the node serves: it goes as soon as nothing needs it any more.

All that a needed segment holds is in memory, or applied in the data, which is another store: nothing is lost. But a
start would find it, and refuse. So nothing more is appended to the segment, and its applied entries are no longer kept
for members (one that lacks some gets a snapshot). Entries that are not applied yet soon are. Then the segment is
dropped like any old one. Until that has happened a crash costs this replica: its next start says ``DATA_LOSS``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.store.log_files.verifying import SegmentDamage
from cortado.store.process.storage_thread import run_job
from cortado.store.replica.context import GroupContext

_LOG: Final = logging.getLogger(__name__)
_LOOK_AGAIN_S: Final = 0.5


class DamagedSegments:
    """All on the loop. ``on_failure`` hears if the log can't go on at all: the node must end."""

    def __init__(self, group: GroupContext, on_failure: Callable[[BaseException], None]) -> None:
        self._log_files = group.process.log_files
        self._log_thread = group.log_thread
        self._log = group.log
        self._on_failure = on_failure
        self._newest = 0
        self._task: asyncio.Task[None] | None = None

    def report(self, damage: SegmentDamage) -> None:
        """Let go of it, and of all before."""
        self._newest = max(self._newest, damage.segment)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._drop())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _drop(self) -> None:
        log_files = self._log_files
        try:
            while log_files.oldest_needed <= self._newest:
                with suppress(ResourceExhausted):
                    await run_job(self._log_thread, lambda: log_files.leave(self._newest))
                self._log.window.drop_applied()
                await asyncio.sleep(_LOOK_AGAIN_S)
        except Exception as failure:
            self._on_failure(failure)
            return
        _LOG.warning("whole again: the damaged log file %d is dropped, nothing of it is needed", self._newest)
