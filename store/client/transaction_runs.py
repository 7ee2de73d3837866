"""Running a function as a transaction until it commits.

Those that conflict try again after a pause that grows and is random (*Exponential Backoff And Jitter*, Brooker 2015,
"full jitter"). Many clients that conflict for long would only make each other slower, so a client has a budget of such
retries: it begins with some, and earns more by succeeding. Where it is used up the conflict is raised, and whoever runs
the function decides.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from cortado.errors import Conflict, CortadoError, InvalidArgument, SnapshotTooOld, TransactionAborted, WriteConflict

if TYPE_CHECKING:
    from cortado.store.client.connection import Connection
    from cortado.store.client.transaction import AsyncTransaction

T = TypeVar("T")

PAUSE_FIRST_S: Final = 0.005
PAUSE_MAX_S: Final = 0.5
BUDGET_FIRST: Final = 10.0
BUDGET_OF_A_SUCCESS: Final = 0.2
BUDGET_MAX: Final = 100.0
"""A good hour does not pay for a storm."""


class RetryBudget:
    """How many retries a client has left, for all of its threads or tasks."""

    def __init__(self) -> None:
        self._left = BUDGET_FIRST
        self._lock = threading.Lock()

    def earn(self) -> None:
        """A transaction was committed."""
        with self._lock:
            self._left = min(self._left + BUDGET_OF_A_SUCCESS, BUDGET_MAX)

    def take(self) -> bool:
        """Whether one more retry is paid for."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


async def run_transactions(
    begin: Callable[[], AsyncTransaction],
    fn: Callable[[AsyncTransaction], Awaitable[T]],
    connection: Connection,
    budget: RetryBudget,
    attempts: int,
) -> T:
    """See :meth:`AsyncClient.run`."""
    count, was_too_old = 0, False
    while True:
        try:
            async with begin() as transaction:
                awaited = fn(transaction)
                if not isinstance(awaited, Awaitable):
                    raise InvalidArgument("fn", "must be a coroutine function", type(awaited).__name__)
                result = await awaited
        except (WriteConflict, TransactionAborted, SnapshotTooOld) as error:
            refusal: CortadoError = error
        else:
            budget.earn()
            return result
        count += 1
        if was_too_old and isinstance(refusal, SnapshotTooOld):
            raise refusal
        was_too_old |= isinstance(refusal, SnapshotTooOld)
        if count >= attempts or (isinstance(refusal, Conflict) and not budget.take()):
            raise refusal
        await connection.runtime.sleep(pause_s(count, connection.environment.random()))


def pause_s(count: int, chance: float) -> float:
    """Seconds to wait after so many attempts; ``chance`` is from 0 to 1."""
    return min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0 ** min(count - 1, 20)) * chance
