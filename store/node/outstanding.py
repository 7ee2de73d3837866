"""The one Ready that is at the storage thread, until it is durable, taken back, or the node stops.

::

    log.ready() ──► storage thread ──┬─ durable ─────────► on_durable(ready, state)
         ▲                           ├─ no room ─ alone ─► withdrawn: on_taken_back(index, error)
         │                           │            else ──► the same Ready again, whole, after a wait
         `── when the one before ended └─ anything else ─► on_failure(error)

Waits grow from 100 ms to a second. A group of one waits too where what had no room was the log's own (the term that it
wants to lead, after a start on a full disk), and no write asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cortado.errors import ResourceExhausted
from cortado.invariants import invariant
from cortado.raft.log import Ready
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.group_context import GroupContext
from cortado.store.observe.measures import TransactionMeasures

RETRY_MS_MIN: Final = 100.0
RETRY_MS_MAX: Final = 1_000.0


class Outstanding:
    """Gives work to the storage thread, one Ready at a time. The callbacks come on the loop."""

    def __init__(
        self,
        group: GroupContext,
        *,
        on_durable: Callable[[Ready, AppliedState], None],
        on_taken_back: Callable[[int, ResourceExhausted], None],
        on_refused: Callable[[ResourceExhausted], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``on_taken_back`` is told the last index that had no room: what follows it was taken back as well.
        ``on_refused`` hears of a Ready that stands, and is tried again."""
        self._log = group.log
        self._machine = group.machine
        self._storage = group.storage
        self._monotonic_ms = group.host.monotonic_ms
        self._on_durable = on_durable
        self._on_taken_back = on_taken_back
        self._on_refused = on_refused
        self._on_failure = on_failure
        self._ready: Ready | None = None
        self._last_index = 0
        self._retry_ms = RETRY_MS_MIN
        self.measures = TransactionMeasures()
        self._handed_ms = 0.0
        self.is_busy = False
        """The storage thread has a job."""
        self.retry_at_ms: float | None = None
        """When the next attempt is due, after one that had no room."""

    @property
    def is_free(self) -> bool:
        """A new Ready may be stored."""
        return self._ready is None

    @property
    def is_refused(self) -> bool:
        """There is a Ready that had no room, and stands."""
        return self._ready is not None and self.retry_at_ms is not None

    def store(self, state: AppliedState, now_ms: float, *, at_once: bool) -> None:
        """Store what the log has ready now, or try again what had no room. ``at_once``: do not wait for the time to
        try again, since a write asks for it."""
        if self.is_busy or (self.retry_at_ms is not None and now_ms < self.retry_at_ms and not at_once):
            return
        ready = self._ready
        if ready is None:
            ready = self._log.ready()
            if not ready:
                return
            self._ready, self._last_index = ready, self._log.last[0]
        self.retry_at_ms = None
        self.is_busy = True
        self._handed_ms = now_ms
        machine = self._machine
        self._storage.submit(lambda: machine.apply(state, ready), lambda outcome: self._heard(ready, outcome))

    def _heard(self, ready: Ready, outcome: object) -> None:
        """The storage thread's word. Nobody waits for this call, so a defect in it is told here."""
        try:
            self._stored(ready, outcome)
        except Exception as defect:
            self._on_failure(defect)

    def _stored(self, ready: Ready, outcome: object) -> None:
        invariant(self._ready is ready and self.is_busy, "the storage thread reports the Ready that it was given")
        self.is_busy = False
        if isinstance(outcome, AppliedState):
            self._end()
            self._retry_ms = RETRY_MS_MIN
            self.measures.transactions.observe((self._monotonic_ms() - self._handed_ms) / 1000)
            self._log.synced(ready)
            self._on_durable(ready, outcome)
        elif isinstance(outcome, ResourceExhausted):
            self.measures.refused += 1
            self.retry_at_ms = self._monotonic_ms() + self._retry_ms
            self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)
            if self._log.withdraw(ready):
                self._end()
                self._on_taken_back(self._last_index, outcome)
            else:
                self._on_refused(outcome)
        else:
            assert isinstance(outcome, BaseException)
            self._on_failure(outcome)

    def _end(self) -> None:
        self._ready = None
