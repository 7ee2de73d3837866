"""Waiting for what a round may bring about: asked after each round, so nobody polls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cortado.errors import CortadoError


class Conditions:
    """Everybody who waits for a condition of the node's state."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def is_empty(self) -> bool:
        """True where nobody waits."""
        return not self._waiting

    def wait(self, condition: Callable[[], bool]) -> asyncio.Future[None]:
        """Done once ``condition`` holds when it is looked at."""
        watcher: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((condition, watcher))
        return watcher

    def look(self) -> None:
        """After a round: tell those whose condition holds now."""
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
        """No round follows: tell those whose condition holds, and end the others with ``error``."""
        self.look()
        waiting, self._waiting = self._waiting, []
        for _, watcher in waiting:
            if not watcher.done():
                watcher.set_exception(error)
                # Who was cancelled must not leave an "exception was never retrieved" in the log.
                watcher.exception()
