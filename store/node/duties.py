"""What a leader does beside writes, for as long as it leads: long work, in turns, through the log.

::

    may evaluate in a term of its own ──► each duty's task begins
    the term is over, or the node stops ─► each task is cancelled

A duty proposes writes like a client does, and keeps nothing that a next leader would miss: what it must know of its
progress it writes. So it may be cut off between any two steps. What goes wrong in it is logged, and it begins again
after a wait. It is nobody's call, whoever's call it was in which the term began: nobody's rights bound it.
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
"""After a refusal or a defect."""


class Duties:
    """One replica's. On the loop. ``on_failure`` hears that the disk failed: then the node must stop."""

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._duties: dict[str, Callable[[], Awaitable[None]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """``run`` does it, until it is cancelled, or until there is nothing left to do in this term."""
        self._duties[name] = run

    def begin(self) -> None:
        """A term of our own has begun, or goes on."""
        self.end()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._do(name, run), context=Context()) for name, run in self._duties.items()]

    def end(self) -> None:
        """It is over: whatever a duty proposed stands or falls with the log."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def stop(self) -> None:
        """As :meth:`end`; returns once nothing runs any more."""
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
                _LOG.exception("a defect in what the leader does beside writes: %s", name)
            else:
                return
            await asyncio.sleep(AGAIN_S)
