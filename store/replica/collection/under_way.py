"""One write that is under way while its caller goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


class UnderWay:
    """At most one at a time. On the loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, write: Awaitable[object]) -> None:
        """Begin ``write``; none may be under way. The caller also waits for its end, or gives it up."""

        async def run() -> None:
            await write

        self._task = asyncio.get_running_loop().create_task(run())
        self._task.add_done_callback(_heard)

    async def end(self) -> None:
        """Return once nothing is under way; raises the error of the write."""
        task, self._task = self._task, None
        if task is not None:
            await task

    def give_up(self) -> None:
        """Whatever becomes of it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()


def _heard(task: asyncio.Task[None]) -> None:
    """Take the error of a write that was given up."""
    if not task.cancelled():
        task.exception()
