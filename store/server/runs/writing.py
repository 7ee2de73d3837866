"""Runs of writes: one proposal for all of them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from cortado.errors import CortadoError
from cortado.store.replica.replica import Replica
from cortado.store.replica.run_submission import submit_run
from cortado.store.replica.write.proposals import RunResult
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES
from cortado.store.replica.write.run import EvaluateRun
from cortado.store.server.runs.answering import LetIn, RunMethod
from cortado.store.server.runs.gathering import CALL_BYTES, RUN_CALLS_MAX, CallRun, Outcome, PlainCall
from cortado.store.server.runs.wire import with_headers
from cortado.store.server.service import Service, request_hashes


class PlainWrites(RunMethod):
    """One method's writes with request ids."""

    only_reads = False
    request_bytes_max: ClassVar[int]
    """The size of the largest plain request."""

    @abstractmethod
    def key_of_request(self, request: Any) -> Hashable | None:
        """Return the key as :meth:`key_of` does, for a request that has an id and is not too large."""

    @abstractmethod
    def replica_of(self, run: CallRun) -> Replica:
        """Return the replica that all its calls write to."""

    @abstractmethod
    def evaluation(self, run: CallRun) -> EvaluateRun:
        """Return the function that evaluates the writes. Its replies leave out the headers."""

    @property
    def calls_max(self) -> int:
        limits = self.host.process.limits
        return min(RUN_CALLS_MAX, limits.batch_commands_max, limits.writes_max)

    def key_of(self, call: PlainCall) -> Hashable | None:
        bytes_max = min(self.request_bytes_max, self.host.process.limits.command_bytes_max - CALL_BYTES)
        if call.size_bytes > bytes_max or len(call.request.request_id) != REQUEST_ID_BYTES:
            return None
        return self.key_of_request(call.request)

    def request_id_of(self, call: PlainCall) -> bytes:
        request_id: bytes = call.request.request_id
        return request_id

    def left_out(self, run: CallRun) -> frozenset[bytes]:
        return self.replica_of(run).known_requests.not_new(list(run.request_ids))

    async def outcomes(self, run: CallRun, of: LetIn) -> Sequence[Outcome]:
        of.run = submitted = submit_run(
            self.replica_of(run),
            self.evaluation(run),
            size_bytes=run.size_bytes,
            request_ids=list(run.request_ids),
            hashes=request_hashes([call.request for call in run.calls]),
        )
        try:
            # Retries that have joined wait for the same future: one that is cancelled ends alone.
            await asyncio.shield(submitted.done)
        finally:
            submitted.waiters -= len(run) - run.given_up
        if submitted.parting is not None and submitted.outcome is submitted.parting:
            return [None] * len(run)
        if isinstance(outcome := submitted.outcome, RunResult):
            header = Service(self.host).header(outcome.first)
            found: list[Outcome] = [*with_headers(header, outcome.first, outcome.replies)]
            for place, refusal in outcome.refused.items():
                found[place] = refusal
            return found
        return [_refusal(submitted.outcome_at(place)) for place in range(len(run))]


def _refusal(outcome: object) -> CortadoError:
    assert isinstance(outcome, CortadoError)
    return outcome
