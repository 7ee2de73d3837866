"""Wait for conditions that a round may bring about. They are asked after each round, so callers need not poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cortado.errors import CortadoError


class Conditions:
    """All waiters for a condition of the node's state."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def is_empty(self) -> bool:
        """True if no caller waits."""
        return not self._waiting

    def wait(self, condition: Callable[[], bool]) -> asyncio.Future[None]:
        """Return a future that is done once ``condition`` holds at a look."""
        watcher: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((condition, watcher))
        return watcher

    def look(self) -> None:
        """Tell the waiters whose condition holds now. Called after a round."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for condition, watcher in waiting:
            if watcher.done():
                continue
            if condition():
                watcher.set_result(None)
            else:
                self._waiting.append((condition, watcher))

    def fail(self, error: CortadoError) -> None:
        """Tell the waiters whose condition holds, and end the others with ``error``: no round follows."""
        self.look()
        waiting, self._waiting = self._waiting, []
        for _, watcher in waiting:
            if not watcher.done():
                watcher.set_exception(error)
                # A cancelled waiter must not leave an "exception was never retrieved" in the log.
                watcher.exception()
