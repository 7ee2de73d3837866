"""Whether a request was asked before: in flight, remembered in the table, or new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cortado.errors import ClockOutOfBounds, Unavailable
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.driver import Driver
from cortado.store.replica.write.proposals import Proposal, WriteResult
from cortado.store.replica.write.request_table.records import (
    Remembered,
    check_form,
    check_not_ahead,
    check_owner,
    check_same_request,
    is_cancelled,
)
from cortado.store.replica.write.request_table.table import RequestTable
from cortado.store.replica.write.run import RunPlace


@dataclass(frozen=True, slots=True)
class Cancelling:
    """The record that uses a request's id up is in flight. Until it is committed, another leader may not know of it, so
    the request is refused after that, and not before."""

    cancel: Proposal


Submitted: TypeAlias = Proposal | RunPlace | WriteResult | Cancelling
"""A write in line, an earlier answer, or the cancelling after which the write is refused."""


class KnownRequests:
    """At the leader: no request is unknown between its flight and its application."""

    def __init__(self, driver: Driver, table: RequestTable, clock: Clock) -> None:
        self._driver = driver
        self._table = table
        self._clock = clock

    def find(self, request_id: bytes, request_hash: bytes) -> Submitted | None:
        """Return the first call with this id, or its answer; None for a new request.

        Raises as :meth:`first`, TransactionAborted and InvalidArgument as ``check_same_request``.
        """
        first = self.first(request_id, request_hash)
        if first is None:
            return None
        if isinstance(first, Proposal) and is_cancelled(first.request_hash) and not is_cancelled(request_hash):
            first.waiters += 1
            return Cancelling(first)
        check_same_request(request_hash, first.request_hash)
        if isinstance(first, Remembered):
            return WriteResult(first.ts, first.reply, repeated=True)
        first.waiters += 1
        return first

    def first(self, request_id: bytes, request_hash: bytes) -> Proposal | RunPlace | Remembered | None:
        """Return the first call with this id, while it has no outcome; its answer; None if there was none.

        Raises as ``answer_of`` and ``check_owner``, and NotLeader or Unavailable if the table may lack another leader's
        records.
        """
        first = self._first(request_id)
        if first is not None:
            check_owner(request_hash, first.request_hash)
        return first

    def _first(self, request_id: bytes) -> Proposal | RunPlace | Remembered | None:
        driver = self._driver
        if not driver.leadership.is_elected and not driver.is_alone:
            raise driver.leadership.not_leader()
        first = driver.pipeline.requests.first(request_id)
        if first is not None:
            if isinstance(outcome := first.outcome, WriteResult):
                # Committed, and not applied yet: soon the table says the same.
                return Remembered(first.request_hash, outcome.ts, outcome.reply)
            return first
        check_form(request_id)
        self._check_knows()
        return self._table.find(request_id)

    def not_new(self, request_ids: Sequence[bytes]) -> frozenset[bytes]:
        """Return which of these, each of ``REQUEST_ID_BYTES``, are not new for certain: asked before, forgotten, or
        from ahead of this node's clock. :meth:`find` tells what becomes of one. Raises NotLeader, Unavailable."""
        self._check_knows()
        known = self._driver.pipeline.requests.keys() & request_ids
        return self._table.not_new(request_ids, ahead_of=bytes(self._clock.last)) | known

    def _check_knows(self) -> None:
        """Raises NotLeader or Unavailable if the table may lack what another leader has done."""
        driver = self._driver
        if not driver.leadership.is_elected and not driver.is_alone:
            raise driver.leadership.not_leader()
        if not driver.leadership.is_ready and not driver.is_settled_alone:
            raise Unavailable("the new leader is not ready yet", retry_delay_ms=50)

    def admit(self, evaluate: Evaluate, request_id: bytes) -> Evaluate:
        """Return the evaluation of a new request: ``evaluate``, or a refusal of its id. The refusal is given like all
        that rest on this node's knowledge: once a majority says that it leads."""
        try:
            check_not_ahead(request_id, self._clock)
        except ClockOutOfBounds as error:
            ahead = error
        else:
            return evaluate

        def refuse(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            raise ahead

        return refuse
