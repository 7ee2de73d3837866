"""The tasks of one client: kept while they run, since a loop keeps none, and waited for when it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

END_S: Final = 1.0


class Tasks:
    """For one loop."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` beside the caller."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def ended(self) -> None:
        """Wait for the running tasks, once the object that they serve has ended, and cancel those that take long."""
        if self._running:
            await asyncio.wait(self._running, timeout=END_S)
        for task in self._running:
            task.cancel()
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Fetch the error, so that asyncio does not report it as never retrieved.
            task.exception()
