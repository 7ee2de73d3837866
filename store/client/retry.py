"""When a failed call may be made again, and what its caller is told when it may not.

One call of the client is one or more *attempts* within one deadline. After each failed attempt
:meth:`Attempts.delay_after` decides, as a pure function of the failure and the time, between three endings::

    again in so many seconds ... nothing was changed, or the request id makes a second try have one effect
    the failure itself ......... the server decided: bad input, a conflict, damage
    OutcomeUnknown ............. a write was sent, and no answer came in time

Only a refusal that the server itself sent proves that a write did not happen. A connection that breaks after sending
proves nothing, nor does a server that ends while it stores the write and says so; both are tried again, since the id
makes it one request. From then on the call can end as a success or as a refusal of the server's, and otherwise only as
OutcomeUnknown. Source of the backoff: *Exponential Backoff And Jitter*, Brooker 2015 ("full jitter").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import grpc

from cortado.errors import (
    Cancelled,
    CortadoError,
    DeadlineExceeded,
    Internal,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    TryAgain,
)
from cortado.store.rpc_errors import from_rpc_error, was_answered

BACKOFF_FIRST_S: Final = 0.02
BACKOFF_MAX_S: Final = 1.0

# How gRPC's core words that no connection could be made, so that nothing was sent.
_NEVER_SENT: Final = ("failed to connect to all addresses", "DNS resolution failed")


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. ``answered``: a Cortado server ended it. ``sent``: the request may have reached a server."""

    error: CortadoError
    answered: bool
    sent: bool


def failure_of(error: grpc.RpcError) -> Failure:
    """What gRPC reports about an attempt, in our terms."""
    answered = was_answered(error)
    problem = str(error.details() or "")
    sent = answered or not problem.startswith(_NEVER_SENT)
    translated = from_rpc_error(error)
    if not answered and isinstance(translated, ResourceExhausted):
        # Without our details it is gRPC's own bound on a message, which no retry gets under.
        translated = TooLarge("request", f"is larger than a message may be: {problem}")
        return Failure(translated, answered=True, sent=sent)
    return Failure(translated, answered, sent)


@dataclass(slots=True)
class Attempts:
    """The attempts of one call. ``request_id`` is empty for a read. Times are seconds on a monotonic clock.

    ``connect_deadline_s`` bounds how long an endpoint is tried that was never reached at all: a wrong address should
    not take the whole of a long timeout to be reported.
    """

    request_id: bytes
    started_s: float
    timeout_s: float
    random: Callable[[], float]
    connect_deadline_s: float | None = None
    count: int = 0
    maybe_happened: bool = field(default=False, init=False)

    @property
    def deadline_s(self) -> float:
        return self.started_s + self.timeout_s

    def delay_after(self, failure: Failure, now_s: float) -> float:
        """Seconds to wait before the next attempt. Raises how the call ends, where there is none."""
        self.count += 1
        error = failure.error
        if self.request_id and failure.sent and not (failure.answered and not isinstance(error, OutcomeUnknown)):
            self.maybe_happened = True
        if not isinstance(error, TryAgain | OutcomeUnknown):
            raise self._ending(error, failure.answered)
        backoff_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(self.count - 1, 10)) * self.random()
        delay_s = max(backoff_s, error.retry_delay_ms / 1000 if isinstance(error, TryAgain) else 0.0)
        deadline_s = self.deadline_s
        if not failure.sent and self.connect_deadline_s is not None:
            deadline_s = min(deadline_s, self.connect_deadline_s)
        if now_s + delay_s >= deadline_s:
            raise self._ending(error, failure.answered)
        return delay_s

    def _ending(self, error: CortadoError, answered: bool) -> CortadoError:
        if isinstance(error, OutcomeUnknown):
            return OutcomeUnknown(error.problem, error.request_id or self.request_id.hex())
        proven = answered and not isinstance(error, TryAgain | DeadlineExceeded | Cancelled | Internal)
        if self.maybe_happened and not proven:
            problem = f"no answer within {self._timeout_ms} ms" if isinstance(error, DeadlineExceeded) else str(error)
            return OutcomeUnknown(problem, self.request_id.hex())
        if isinstance(error, DeadlineExceeded):
            if self.request_id:
                return OutcomeUnknown(f"no answer within {self._timeout_ms} ms", self.request_id.hex())
            return DeadlineExceeded(timeout_ms=self._timeout_ms)
        return error

    @property
    def _timeout_ms(self) -> int:
        return round(self.timeout_s * 1000)
