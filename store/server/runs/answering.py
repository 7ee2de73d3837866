"""The common part of all runs: rights and quotas before the work, measures and the audit behind it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

from cortado.errors import CortadoError, Internal, PermissionDenied, Unauthenticated
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.host.host import Host
from cortado.store.observe.call import Call
from cortado.store.observe.requests import CANCELLED, OK, Requests
from cortado.store.replica.write.run import Run, RunPlace
from cortado.store.server.authority import CREDENTIAL, Authority
from cortado.store.server.permissions import rule_of
from cortado.store.server.runs.gathering import CALL_BYTES, RUN_CALLS_MIN, CallRun, Outcome, PlainCall

_LOG: Final = logging.getLogger(__name__)


class LetIn:
    """An admitted run: its caller, and its proposal, once there is one."""

    __slots__ = ("caller", "run")

    def __init__(self, caller: Caller | None) -> None:
        self.caller = caller
        self.run: Run | None = None


class RunMethod(ABC):
    """One method's plain calls. A subclass holds the work of the method itself."""

    name: ClassVar[str]
    only_reads: ClassVar[bool]

    def __init__(self, host: Host, requests: Requests, authority: Authority | None) -> None:
        self.host = host
        self._measures = requests.method(self.name)
        self._authority = authority
        self._rule = rule_of(self.name)

    @property
    @abstractmethod
    def calls_max(self) -> int:
        """See :class:`~cortado.store.server.runs.gathering.PlainMethod`."""

    @abstractmethod
    def key_of(self, call: PlainCall) -> Hashable | None:
        """See :class:`~cortado.store.server.runs.gathering.PlainMethod`."""

    @abstractmethod
    def request_id_of(self, call: PlainCall) -> bytes:
        """See :class:`~cortado.store.server.runs.gathering.PlainMethod`."""

    @abstractmethod
    def left_out(self, run: CallRun) -> frozenset[bytes]:
        """Return the ids of requests that are not known to be new. If it raises CortadoError, each call meets the error
        by itself."""

    @abstractmethod
    async def outcomes(self, run: CallRun, of: LetIn) -> Sequence[Outcome]:
        """Return the outcome of each call. Raises CortadoError if it is the same for all."""

    @property
    def bytes_max(self) -> int:
        """The bytes of a batch, and one call's at least."""
        return max(self.host.process.limits.batch_bytes_max, CALL_BYTES)

    def parts(self, run: CallRun) -> Sequence[CallRun]:
        """See :class:`~cortado.store.server.runs.gathering.PlainMethod`."""
        try:
            left_out = self.left_out(run)
        except CortadoError:
            run.alone = True
            return [run]
        parts = run.without(left_out) if left_out else [run]
        for part in parts:
            part.alone = part.alone or len(part) < RUN_CALLS_MIN or not self._lets_in(part)
        return parts

    def _lets_in(self, run: CallRun) -> bool:
        """Return whether the whole run may begin together; if so, quotas count it."""
        authority = self._authority
        if authority is None:
            run.of = LetIn(None)
            return True
        request = run.calls[0].request
        caller = authority.caller(self._rule, request, CREDENTIAL.get())
        run.of = LetIn(caller)
        return authority.lets_in(self._rule, caller, request, len(run), run.size_bytes)

    async def answer(self, run: CallRun) -> Sequence[Outcome]:
        """See :class:`~cortado.store.server.runs.gathering.PlainMethod`."""
        of: LetIn = run.of
        if of.caller is not None:
            CALLER.set(of.caller)
        call = self._measures.begin()
        try:
            outcomes: Sequence[Outcome] = await self.outcomes(run, of)
        except CortadoError as error:
            outcomes = [error] * len(run)
        except Exception as defect:
            _LOG.error("a defect in a run of %s", self.name, exc_info=defect)
            internal = Internal(f"{type(defect).__name__} in {self.name}; see the server's log")
            outcomes = [internal] * len(run)
        except BaseException:
            self._measures.end_many(call, CANCELLED, len(run))
            raise
        self._ended(run, of, call, outcomes)
        return outcomes

    def give_up(self, run: CallRun) -> None:
        """See :class:`~cortado.store.server.runs.gathering.PlainMethod`. Its place stays: another call may rest on the
        write there."""
        run.given_up += 1
        if run.of.run is not None:
            run.of.run.waiters -= 1

    def _ended(self, run: CallRun, of: LetIn, call: Call, outcomes: Sequence[Outcome]) -> None:
        sizes = [len(each) for each in outcomes if isinstance(each, bytes)]
        reply_bytes = sum(sizes)
        is_plain = len(sizes) == len(outcomes) and not self._measures.is_shown(call)
        if is_plain:
            self._measures.end_many(call, OK, len(sizes), reply_bytes)
        else:
            for place, outcome in enumerate(outcomes):
                self._ended_one(run, place, of, call, outcome)
        if self._authority is not None and of.caller is not None:
            meters, counted = self._authority.meters, self._authority.meters_of(of.caller)
            meters.take_bytes(counted, reply_bytes)
            if counted and not is_plain:
                pairs = zip(run.calls, outcomes, strict=True)
                left = [call.size_bytes for call, outcome in pairs if outcome is None]
                meters.give_back(counted, len(left), sum(left))

    def _ended_one(self, run: CallRun, place: int, of: LetIn, began: Call, outcome: Outcome) -> None:
        """Record the end of one call of a run, as of a call by itself. One that goes the general way after all has not
        ended."""
        request = run.calls[place].request
        call = Call(began.method, began.began_s)
        call.read_wait_ms = began.read_wait_ms
        call.write = None if of.run is None else RunPlace(of.run, place)
        if isinstance(outcome, bytes):
            self._measures.end(call, OK, request, len(outcome))
        elif outcome is not None:
            if isinstance(outcome, (Unauthenticated, PermissionDenied)) and of.caller and self._authority:
                of.caller.is_denied = False  # Set by the call before this one.
                self._authority.ended(self.name, self._rule, of.caller, request, outcome)
            self._measures.fail(call, outcome, request)
