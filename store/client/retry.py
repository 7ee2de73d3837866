"""Repetition of failed calls: when a call may be made again, and how it ends if it may not.

One call of the client is one or more *attempts* within one deadline. After each failed attempt
:meth:`Attempts.delay_after` decides, as a pure function of the failure and the time, between three endings::

    again after a pause ........ nothing was changed, or the request id makes a second try have one effect
    the failure itself ......... the server decided: bad input, a conflict, damage
    OutcomeUnknown ............. a write was sent, and no answer came in time

Only a refusal that the server itself sent proves that an attempt of a write did nothing. A connection that breaks after
sending proves nothing, nor does a server that ends while it stores the write and says so; both are tried again, since
the id makes it one request. How the call can end from then on depends on the place of the open attempt::

    in a leader's log ..... the server said that it does not know. A server that refuses a later attempt has applied all
                            entries decided before its term; the others can't be decided any more: a conflict is final
    on its way ............ nothing was answered. It may lie in a socket's buffer, and be read after a change of the
                            state that a later attempt was refused for: only a success is final
    nowhere ............... it never left, or was refused

All other ends are OutcomeUnknown. A change without an id (of members, of the leader) has no first answer that a second
try would get. Once an attempt may have been made, no refusal is final, since the change itself may be in the way ("is
not a member"). The place of the next attempt is not decided here, only that one to a leader that is known needs no
pause. Source of the backoff: *Exponential Backoff And Jitter*, Brooker 2015 ("full jitter").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from cortado.errors import (
    Cancelled,
    Conflict,
    CortadoError,
    DataLoss,
    DeadlineExceeded,
    DidNotHappen,
    Internal,
    KeyLocked,
    OutcomeUnknown,
    QuotaExceeded,
    ResourceExhausted,
    TryAgain,
    Unavailable,
)

BACKOFF_FIRST_S: Final = 0.02
BACKOFF_MAX_S: Final = 1.0
SEARCH_BACKOFF_MAX_S: Final = 0.2
"""With several nodes: one of them may lead again at any moment."""
QUOTA_AGAIN_S: Final = 1.0
"""The longest pause for a quota, even if the server names a longer one: its limit may have been raised or removed."""
QUOTA_SPREAD_S: Final = 0.5
"""A call that waits for a quota comes at a random time within this after there is room, however often it was refused. A
pause that grew would favour the calls served last, and starve those that wait longest. The rate is kept: a quota holds
a second's worth."""
CONNECT_S: Final = 3.0
"""How long an endpoint that was never reached is tried: a wrong address should be reported before a long timeout is
over."""
MOVES_MAX: Final = 6
"""How often a call goes without a pause to a leader that was named to it."""
ATTEMPT_S_MIN: Final = 0.05
"""With less time than this no further attempt is begun: it would be late, and the outcome of a write unknown."""
_LATE: Final = "no answer within the deadline"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. ``answered``: a Cortado server ended it. ``sent``: the request may have reached a server."""

    error: CortadoError
    answered: bool
    sent: bool

    @property
    def is_refusal(self) -> bool:
        """A server decided that this attempt changes nothing."""
        return self.answered and not isinstance(self.error, OutcomeUnknown | DeadlineExceeded | Cancelled | Internal)

    @property
    def may_have_happened(self) -> bool:
        """Of a write: it was done, or may yet be."""
        return self.sent and not self.is_refusal

    def of_any_member(self) -> Failure:
        """Return the failure for a call that any member may answer: data damaged here may be whole at the leader."""
        return replace(self, error=Unavailable(str(self.error))) if isinstance(self.error, DataLoss) else self


@contextmanager
def before_a_write() -> Iterator[None]:
    """Wrap the reads that a write makes before it is sent. A read that is late there is a write that did not happen."""
    try:
        yield
    except DeadlineExceeded as late:
        raise Unavailable(f"the write was not sent: {late.message()}") from None


class Failed(Exception):
    """An attempt failed. It does not leave the client: see :class:`Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(slots=True)
class Attempts:
    """The attempts of one call. ``request_id`` is empty for a read, and for a call that ``changes`` without one.
    Times are seconds on a monotonic clock."""

    request_id: bytes
    started_s: float
    timeout_s: float
    random: Callable[[], float]
    changes: bool = False
    stays: bool = False
    """Whether it is meant for the one node that the caller named."""
    waits_for_quotas: bool = True
    """Whether a quota that is used up is waited for."""
    count: int = 0
    maybe_happened: bool = field(default=False, init=False)
    """Of a write: an attempt may have done it, or may do it yet."""
    was_sent: bool = field(default=False, init=False)
    """An attempt may have reached a server."""
    may_yet_arrive: bool = field(default=False, init=False)
    """An unanswered attempt of a write may still be on its way."""
    _moves: int = field(default=0, init=False)
    _tried: dict[str, str] | None = field(default=None, init=False)

    @property
    def is_write(self) -> bool:
        return self.changes or self.request_id != b""

    @property
    def deadline_s(self) -> float:
        return self.started_s + self.timeout_s

    def _note(self, failure: Failure) -> None:
        self.was_sent |= failure.sent
        if self.is_write and failure.may_have_happened:
            self.maybe_happened = True
            self.may_yet_arrive |= not failure.answered

    def delay_after(
        self,
        failure: Failure,
        now_s: float,
        address: str = "",
        *,
        is_known: bool = False,
        has_others: bool = False,
        was_reached: bool = True,
    ) -> float:
        """Return the seconds to wait before the next attempt. Raises the call's end if there is no next one.

        The attempt was made at ``address``; ``is_known``: it is known that another node leads; ``has_others``:
        there are other nodes that may come to lead; ``was_reached``: a node has answered this client, by now.
        """
        self.count += 1
        error = failure.error
        self._tried = self._tried or {}
        self._tried[address] = str(error) if failure.answered else f"cannot reach it: {error}"
        self._note(failure)
        if not isinstance(error, TryAgain | OutcomeUnknown):
            raise self._ending(error, failure)
        if isinstance(error, QuotaExceeded) and not self.waits_for_quotas:
            raise self._ending(error, failure)
        # If this node has no room, no other has; a key that another transaction holds is held at every node.
        is_search = has_others and not isinstance(error, ResourceExhausted | KeyLocked)
        delay_s = self._delay_s(error, is_known, is_search)
        deadline_s = self.deadline_s
        if not (self.was_sent or was_reached):
            deadline_s = min(deadline_s, self.started_s + CONNECT_S)
        if now_s + delay_s >= deadline_s:
            raise self._ending(error, failure)
        if isinstance(error, QuotaExceeded) and delay_s:
            return self._for_quota_s(error, delay_s, deadline_s - now_s)
        return delay_s

    def check_time_left(self, failure: Failure, now_s: float) -> None:
        """Raise the call's end, after the pause that followed ``failure``, if an attempt would be late."""
        if self.deadline_s - now_s < min(ATTEMPT_S_MIN, self.timeout_s / 4):
            raise self._ending(failure.error, failure)

    def _for_quota_s(self, error: QuotaExceeded, asked_s: float, left_s: float) -> float:
        """Return a random pause, since all that wait for a quota were refused within the same moments."""
        chance = self.random()
        spread_s = min(QUOTA_SPREAD_S * (1 - 1 / max(error.limit, 1)), (left_s - asked_s) / 2)
        return min(asked_s + spread_s * chance, QUOTA_AGAIN_S * (1 + chance) / 2)

    def _delay_s(self, error: CortadoError, is_known: bool, is_search: bool) -> float:
        if is_known and self._moves < MOVES_MAX:
            self._moves += 1
            return 0.0
        if isinstance(error, QuotaExceeded):
            return max(1, error.retry_delay_ms) / 1000
        backoff_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(self.count - 1, 10))
        asked_s = error.retry_delay_ms / 1000 if isinstance(error, TryAgain) else 0.0
        if is_search:
            backoff_s, asked_s = min(backoff_s, SEARCH_BACKOFF_MAX_S), min(asked_s, SEARCH_BACKOFF_MAX_S)
        return max(backoff_s * self.random(), asked_s)

    def unanswered(self, problem: str) -> CortadoError | None:
        """Return the end of a write that is given up between two attempts; None if it did not happen."""
        return OutcomeUnknown(problem, self.request_id.hex()) if self.maybe_happened else None

    def _ending(self, error: CortadoError, failure: Failure) -> CortadoError:
        is_late = isinstance(error, DeadlineExceeded)
        if self.maybe_happened and not self._is_decided(failure):
            if isinstance(error, OutcomeUnknown):
                return OutcomeUnknown(error.problem, error.request_id or self.request_id.hex())
            problem = self._late() if is_late else self._why(failure)
            if failure.is_refusal and not isinstance(error, TryAgain):
                first = "one attempt was not answered, and may still arrive"
                if not self.may_yet_arrive:
                    first = "one attempt may have done it"
                problem = f"{first}, and another was refused: {problem}"
            return OutcomeUnknown(problem, self.request_id.hex())
        if is_late and self.is_write:
            return Unavailable(f"the write was not sent: {self._late()}")
        if is_late:
            problem = self._late()
            return DeadlineExceeded("" if problem == self._late_alone else problem, self._timeout_ms)
        if isinstance(error, OutcomeUnknown):
            return Unavailable(self._why(failure))  # An error of a read.
        if isinstance(error, TryAgain):
            # A new error: threads whose stream broke together share the old one.
            return replace(error, problem=self._why(failure))
        return error

    def _is_decided(self, failure: Failure) -> bool:
        """Whether this refusal speaks for all attempts: each of the others is decided or void if this one is."""
        is_final = failure.is_refusal and isinstance(failure.error, DidNotHappen | Conflict)
        return is_final and self.request_id != b"" and not self.may_yet_arrive

    def _why(self, failure: Failure) -> str:
        """Return the problem as it was for one address, or each with its address."""
        tried = self._tried or {}
        if len(tried) > 1:
            return "; ".join(f"{address}: {why}" for address, why in tried.items())
        [address] = tried
        problem = str(failure.error)
        return problem if failure.answered or not address else f"cannot reach {address}: {problem}"

    def _late(self) -> str:
        others = [f"{address}: {why}" for address, why in list((self._tried or {}).items())[:-1]]
        return "; ".join([self._late_alone, *others])

    @property
    def _late_alone(self) -> str:
        return f"no answer within {self._timeout_ms} ms"

    @property
    def _timeout_ms(self) -> int:
        return round(self.timeout_s * 1000)
