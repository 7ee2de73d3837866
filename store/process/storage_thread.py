"""A thread that writes: one for the log files, and one for the data, since LMDB wants a write transaction begun and
committed on the same thread.

It takes one job at a time, runs it off the event loop, and brings the outcome back into the loop. While it syncs, the
loop collects and evaluates the next batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
Job: TypeAlias = Callable[[], object]
Done: TypeAlias = Callable[[object], None]


class Storage(Protocol):
    """Runs jobs that write, one at a time and in order, and reports each on the loop."""

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        """Run ``job`` off the loop, then ``done`` on the loop, with its result or the exception that it raised.
        ``is_small``: so little is written that the loop may run the job itself, if the disk is quick."""

    def stop(self) -> None:
        """Finish the submitted jobs, then end. Blocks."""


async def run_job(storage: Storage, job: Callable[[], T]) -> T:
    """Run one job there and await its end. Raises the job's exception."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(outcome: Any) -> None:
        if future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    storage.submit(job, done)
    return await future


class StorageThread:
    """Runs jobs in the order in which they were given."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._jobs: SimpleQueue[tuple[Job, Done] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"cortado-{name}", daemon=True)
        self._thread.start()

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:  # noqa: ARG002
        self._jobs.put((job, done))

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            try:
                outcome = job()
            except BaseException as error:
                # Catch every exception: the loop decides whether the node can go on.
                outcome = error
            self._loop.call_soon_threadsafe(done, outcome)
