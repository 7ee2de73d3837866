"""A leader's duties beside writes, for as long as it leads: long work, in turns, through the log.

::

    may evaluate in a term of its own ──► each duty's task begins
    the term is over, or the node stops ─► each task is cancelled

A duty proposes writes like a client does, and keeps nothing that a next leader would miss: it writes its own progress.
So it may be cut off between any two steps. Failures in it are logged, and it begins again after a wait. It belongs to
no call, not even the one in which the term began: no caller's rights bound it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final

from cortado.errors import CortadoError
from cortado.store.engine.failures import StorageFailed

_LOG: Final = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
"""The wait after a refusal or a defect."""


class Duties:
    """One replica's duties. On the loop. ``on_failure`` hears that the disk failed: then the node must stop."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._duties: dict[str, Callable[[], Awaitable[None]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Add a duty: ``run`` goes on until it is cancelled, or until nothing is left to do in this term."""
        self._duties[name] = run

    def begin(self) -> None:
        """Begin all duties: a term of our own has begun, or goes on."""
        self.end()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._do(name, run), context=Context()) for name, run in self._duties.items()]

    def end(self) -> None:
        """End all duties: the term is over. Their proposals stand or fall with the log."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def stop(self) -> None:
        """End all duties; return once none of them runs any more."""
        tasks = self._tasks
        self.end()
        if tasks:
            await asyncio.wait(tasks)

    async def _do(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await run()
            except StorageFailed as failed:
                self._on_failure(failed)
                return
            except CortadoError as refusal:
                _LOG.info("%s waits: %s", name, refusal)
            except Exception:
                _LOG.exception("a defect in the leader's duties beside writes: %s", name)
            else:
                return
            await asyncio.sleep(AGAIN_S)
