"""The work at one of the writing threads: one piece, until it is durable, taken back, or the node stops.

::

    take() ──► thread: run() ──┬─ it is durable ► done()
      ▲                        ├─ no room ──────► no_room(): taken back, or the same again, whole, after a wait
      │                        └─ anything else ► on_failure()
      `── when the one before ended

A replica has two: :class:`~cortado.store.replica.log_writer.LogWriter` and
:class:`~cortado.store.replica.apply.applier.Applier`. Each goes at its own pace. Waits grow from 100 ms to a second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from cortado.errors import ResourceExhausted
from cortado.invariants import invariant
from cortado.store.observe.measures import TransactionMeasures
from cortado.store.process.storage_thread import Storage

RETRY_MS_MIN: Final = 100.0
RETRY_MS_MAX: Final = 1_000.0

Work = TypeVar("Work")
Outcome = TypeVar("Outcome")


class Outstanding(ABC, Generic[Work, Outcome]):
    """Gives work to ``thread``, one piece at a time. :meth:`run` runs there, everything else on the loop."""

    def __init__(
        self, thread: Storage, monotonic_ms: Callable[[], float], *, on_failure: Callable[[BaseException], None]
    ) -> None:
        self._thread = thread
        self._monotonic_ms = monotonic_ms
        self._on_failure = on_failure
        self._work: Work | None = None
        self._retry_ms = RETRY_MS_MIN
        self._handed_ms = self._taken_ms = 0.0
        self._is_stopped = False
        self.measures = TransactionMeasures()
        self.is_busy = False
        """True while the thread has a job."""
        self.retry_at_ms: float | None = None
        """When the next attempt is due, after one that had no room."""
        self.refused_for: str = ""
        """Why there was no room the last time; empty while writes go well."""

    # --- the subclass's part ----------------------------------------------------------------------------------

    @abstractmethod
    def take(self) -> Work | None:
        """Return the next work, or None."""

    @abstractmethod
    def run(self, work: Work) -> Outcome:
        """Do the work. Raises ResourceExhausted if there is no room; then nothing was done."""

    @abstractmethod
    def done(self, work: Work, outcome: Outcome) -> None:
        """Go on: the work is durable."""

    @abstractmethod
    def no_room(self, work: Work, error: ResourceExhausted) -> bool:
        """Handle a want of room. True if the work was taken back; False: it stands, and is tried again, whole."""

    def is_small(self, _work: Work) -> bool:
        """Return whether the loop may run the work itself, if the disk is quick."""
        return False

    # --- the work ---------------------------------------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """True if new work may be taken."""
        return self._work is None

    @property
    def is_refused(self) -> bool:
        """True if there is work that had no room, and stands."""
        return self._work is not None and self.retry_at_ms is not None

    def begin(self, now_ms: float, *, at_once: bool = False) -> None:
        """Take the next work, or try again the work that had no room. ``at_once``: do not wait for the time to try
        again, since a write asks for it."""
        if self.is_busy or (self.retry_at_ms is not None and now_ms < self.retry_at_ms and not at_once):
            return
        if self._work is None:
            self._work = self.take()
            if self._work is None:
                return
            self._taken_ms = now_ms
        work = self._work
        self.retry_at_ms = None
        self.is_busy = True
        self._handed_ms = now_ms
        self._thread.submit(partial(self.run, work), partial(self._heard, work), is_small=self.is_small(work))

    def is_stuck(self, now_ms: float, *, refused_ms: float, busy_ms: float) -> bool:
        """Return whether the work found no room for ``refused_ms``, or the thread has been at it for ``busy_ms``."""
        if self._work is None:
            return False
        is_refused = bool(self.refused_for) and now_ms - self._taken_ms > refused_ms
        return is_refused or (self.is_busy and now_ms - self._handed_ms > busy_ms)

    def stop(self) -> None:
        """Ignore all further reports of the thread."""
        self._is_stopped = True

    def _heard(self, work: Work, outcome: Any) -> None:
        """Take the thread's report. No caller awaits this call, so a defect in it is reported here."""
        if self._is_stopped:
            return
        try:
            self._ended(work, outcome)
        except Exception as defect:
            self._on_failure(defect)

    def _ended(self, work: Work, outcome: Any) -> None:
        invariant(self._work is work and self.is_busy, "the thread reports the work that it was given")
        self.is_busy = False
        if not isinstance(outcome, BaseException):
            self._work = None
            self._retry_ms = RETRY_MS_MIN
            self.refused_for = ""
            self.measures.transactions.observe((self._monotonic_ms() - self._handed_ms) / 1000)
            self.done(work, outcome)
        elif isinstance(outcome, ResourceExhausted):
            self.measures.refused += 1
            self.retry_at_ms = self._monotonic_ms() + self._retry_ms
            self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)
            if self.no_room(work, outcome):
                self._work = None
            self.refused_for = outcome.message()
        else:
            self._on_failure(outcome)
