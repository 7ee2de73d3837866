"""Where the log's writes run: on the log thread, or, while the disk is quick, on the loop itself.

::

    submit() ──┬─ small, the last 16 were quick, nothing at the thread ──► loop: behind what is in line there
               └─ anything else ───────────────────────────────────────► thread

A write of one entry takes the disk a fraction of a millisecond. To wake the thread for it, to hand the interpreter over
and to wake the loop again costs about as much processor time as the rest of a follower's work for a lone put.

- *Only small writes of entries* run on the loop, and only into a segment that has room (:meth:`LogWriter.is_small`).
  Terms, votes and bases go by the thread, and so does whatever creates or removes a file.
- *A disk that is slow or hangs* holds the loop for one write: a leader that is silent is replaced, a follower is not
  waited for. That write took more than ``SLOW_MS``, so no other one runs on the loop for ``PAUSE_MS``.
- *In order.* Nothing runs on the loop while the thread has a job, and the thread gets none before the loop's have run.
- *Messages leave first.* The loop runs the write behind the round that submitted it, which has sent its messages.
- *A failure is the same* on either side: ``done`` hears the exception, and the node stops or tries again.

A write's time counts from its begin until the loop hears of it. A loop that is busy hears late of the thread: it had
better not wait for the disk as well.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from cortado.store.process.storage_thread import Done, Job, Storage

QUICK_MS: Final = 2.0
"""A write that takes less is quick."""
QUICK_WRITES: Final = 16
"""This many quick writes, one after the other, and the next one may run on the loop."""
SLOW_MS: Final = 5.0
"""A write that takes more sends the next ones back to the thread."""
PAUSE_MS: Final = 10_000.0
"""For so long."""


class LoopStorage:
    """Runs jobs on the loop, each as soon as it comes to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:  # noqa: ARG002
        self._loop.call_soon(self._run, job, done)

    def stop(self) -> None:
        """Do nothing: nothing runs beside the loop."""

    def _run(self, job: Job, done: Done) -> None:
        try:
            outcome = job()
        except BaseException as error:
            # Catch every exception: the loop decides whether the node can go on.
            outcome = error
        done(outcome)


class LogStorage:
    """Gives jobs to ``thread``, or to ``here`` if they are small and the disk is quick. Make and use it on the loop."""

    def __init__(self, thread: Storage, here: Storage, monotonic_ms: Callable[[], float]) -> None:
        self._thread = thread
        self._here = here
        self._monotonic_ms = monotonic_ms
        self._at_thread = 0
        self._at_loop = 0
        # For the thread, behind the loop's.
        self._waiting: deque[tuple[Job, Done]] = deque()
        self._quick = 0
        self._paused_until_ms = -math.inf

    def submit(self, job: Job, done: Done, *, is_small: bool = False) -> None:
        if is_small and self._may_run_here():
            self._at_loop += 1
            self._hand_over(self._here, job, partial(self._ended_here, done))
        elif self._at_loop:
            self._waiting.append((job, done))
        else:
            self._to_thread(job, done)

    def stop(self) -> None:
        self._thread.stop()

    def _may_run_here(self) -> bool:
        if self._at_thread or self._waiting or self._quick < QUICK_WRITES:
            return False
        return self._monotonic_ms() >= self._paused_until_ms

    def _to_thread(self, job: Job, done: Done) -> None:
        self._at_thread += 1
        self._hand_over(self._thread, job, partial(self._ended_at_thread, done))

    def _hand_over(self, storage: Storage, job: Job, ended: Callable[[float, object], None]) -> None:
        began_ms = 0.0

        def timed() -> object:
            nonlocal began_ms
            began_ms = self._monotonic_ms()
            return job()

        storage.submit(timed, lambda outcome: ended(began_ms, outcome))

    def _ended_here(self, done: Done, began_ms: float, outcome: object) -> None:
        self._at_loop -= 1
        self._note(began_ms)
        if not self._at_loop:
            while self._waiting:
                self._to_thread(*self._waiting.popleft())
        done(outcome)

    def _ended_at_thread(self, done: Done, began_ms: float, outcome: object) -> None:
        self._at_thread -= 1
        self._note(began_ms)
        done(outcome)

    def _note(self, began_ms: float) -> None:
        ended_ms = self._monotonic_ms()
        took_ms = ended_ms - began_ms
        self._quick = self._quick + 1 if took_ms < QUICK_MS else 0
        if took_ms > SLOW_MS:
            self._paused_until_ms = ended_ms + PAUSE_MS
