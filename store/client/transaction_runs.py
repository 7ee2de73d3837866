"""Running a function as a transaction until it commits.

Runs that conflict try again until their time is over, after a pause that grows and is random (*Exponential Backoff And
Jitter*, Brooker 2015, "full jitter"). Many that conflict for long would only make each other slower, so a client has a
budget of such retries: it begins with some, and earns more by committing. The budget sets the pace, never the outcome::

    begin ──► room? ── yes ──► IN ── attempt ──► committed
                │ no            │ ▲ conflict: pause
                ▼               ▼ │ room
              LINE ◄── unpaid conflict, and more are in than there is room for

Until the budget fails to pay for a conflict, there is room for all. Each such conflict narrows the room, to
one at last; each commit widens it a little. So about every sixth attempt conflicts at most, and a new run does not
overtake those in line. A run waits in line for a second at most, and then tries all the same: those that are in may be
slow, and have nothing to do with it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar

from cortado.errors import Conflict, CortadoError, InvalidArgument, SnapshotTooOld, TransactionAborted, WriteConflict
from cortado.store.client.retry import ATTEMPT_S_MIN

if TYPE_CHECKING:
    from cortado.store.client.runtime import Runtime, Signal
    from cortado.store.client.transaction import AsyncTransaction

T = TypeVar("T")

PAUSE_FIRST_S: Final = 0.005
PAUSE_MAX_S: Final = 0.5
PAUSE_OF_LEFT: Final = 0.05
"""A pause is at most this share of the time that is left."""
IN_LINE_S_MAX: Final = 1.0
BUDGET_FIRST: Final = 10.0
BUDGET_OF_A_COMMIT: Final = 0.2
BUDGET_MAX: Final = 100.0
"""A good hour does not pay for a storm."""
NARROWED: Final = 0.7
WIDENED: Final = 0.1


class _Run:
    """One run of a client: in, or in line."""

    __slots__ = ("is_in", "let_in")

    def __init__(self) -> None:
        self.is_in = False
        self.let_in: Signal | None = None
        """Given once it may go on; None if it never had to wait."""


class Pace:
    """How fast the transactions of a client run, for all of its threads or tasks."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._budget = BUDGET_FIRST
        self._room = inf
        self._in = 0
        self._line: deque[_Run] = deque()

    def begin(self) -> _Run:
        """Begin a new run; let it in if there is room."""
        run = _Run()
        with self._lock:
            if self._line or self._in + 1 > self._room:
                self._stand_in_line(run)
            else:
                run.is_in = True
                self._in += 1
        return run

    def end(self, run: _Run, *, committed: bool) -> None:
        """Make room for the next run."""
        with self._lock:
            if committed:
                self._budget = min(self._budget + BUDGET_OF_A_COMMIT, BUDGET_MAX)
                self._room += WIDENED
            if run.is_in:
                self._in -= 1
            else:
                self._line.remove(run)
            self._let_in()

    def conflict(self, run: _Run) -> None:
        """Pay for the retry of ``run``, or narrow the room and, if too many are in, put ``run`` in line."""
        with self._lock:
            if self._budget >= 1:
                self._budget -= 1
                return
            self._room = max(1.0, NARROWED * min(self._room, self._in))
            if run.is_in and self._in > self._room:
                run.is_in = False
                self._in -= 1
                self._stand_in_line(run)
                self._let_in()

    def _stand_in_line(self, run: _Run) -> None:
        run.let_in = self._runtime.signal()
        self._line.append(run)

    def _let_in(self) -> None:
        while self._line and self._in + 1 <= self._room:
            run = self._line.popleft()
            run.is_in = True
            self._in += 1
            assert run.let_in is not None
            run.let_in.give()


async def run_transactions(
    begin: Callable[[], AsyncTransaction],
    fn: Callable[[AsyncTransaction], Awaitable[T]],
    runtime: Runtime,
    pace: Pace,
    *,
    timeout_s: float,
    attempts: int | None,
) -> T:
    """See :meth:`AsyncClient.run`."""
    now_s = runtime.environment.monotonic_s
    deadline_s = now_s() + timeout_s
    run, committed = pace.begin(), False
    try:
        count, pauses, was_too_old = 0, 0, False
        while True:
            if not run.is_in:
                assert run.let_in is not None
                await run.let_in.wait(min(IN_LINE_S_MAX, (deadline_s - now_s()) / 2))
                pauses = 0
            elif count:
                pauses += 1
                await runtime.sleep(pause_s(pauses, deadline_s - now_s(), runtime.environment.random()))
            try:
                result = await _once(begin, fn)
            except (WriteConflict, TransactionAborted, SnapshotTooOld) as error:
                refusal: CortadoError = error
            else:
                committed = True
                return result
            count += 1
            is_too_old = isinstance(refusal, SnapshotTooOld)
            if count == attempts or deadline_s - now_s() < ATTEMPT_S_MIN or (is_too_old and was_too_old):
                raise refusal
            was_too_old |= is_too_old
            if isinstance(refusal, Conflict):
                pace.conflict(run)
    finally:
        pace.end(run, committed=committed)


async def _once(begin: Callable[[], AsyncTransaction], fn: Callable[[AsyncTransaction], Awaitable[T]]) -> T:
    async with begin() as transaction:
        awaited = fn(transaction)
        if not isinstance(awaited, Awaitable):
            raise InvalidArgument("fn", "must be a coroutine function", type(awaited).__name__)
        return await awaited


def pause_s(count: int, left_s: float, chance: float) -> float:
    """Return the seconds to wait after ``count`` attempts, ``left_s`` before the last; ``chance`` is from 0 to 1.

    Pauses get shorter again as the time runs out. Otherwise new runs, with short pauses, would overtake the oldest.
    """
    return min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0 ** min(count - 1, 20), PAUSE_OF_LEFT * left_s) * chance
