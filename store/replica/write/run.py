"""A run: many small writes that stand in line as one proposal, with a place for each.

::

    Proposal    one evaluation, one timestamp,   one future for each waiter
    Run         one evaluation, n timestamps,    one future        RunPlace: one of its writes, for a retry that joins

A run's part of an entry, and the records of its requests, are byte for byte those of the same writes one by one at the
same timestamps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple, TypeAlias

from cortado.errors import CortadoError, Internal, OutcomeUnknown, Unavailable
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import EXPIRY_BYTES, NO_EXPIRIES, Expiries
from cortado.store.observe.measures import EntryTimes
from cortado.store.replica.write.log_entry import COMMAND_OVERHEAD_BYTES, MUTATION_OVERHEAD_BYTES
from cortado.store.replica.write.overlay import OverlayReader
from cortado.store.replica.write.proposals import NONE_REFUSED, Outcome, Place, Proposal, RunResult, WriteResult


class RunEffects(NamedTuple):
    """The effects of a run's writes, by columns. Each write has a timestamp of its own, and one of the ``replies``. Its
    changes come behind those of the write before it. A payload of None deletes its key. A write that is ``refused``
    changes nothing, and its reply is empty."""

    keys: Sequence[LogicalKey]
    payloads: Sequence[bytes | None]
    replies: Sequence[bytes]
    places: Sequence[int] | None = None
    """For each of the keys, which write changes it; None where each write changes one."""
    expiries: Expiries = NO_EXPIRIES
    refused: Mapping[int, CortadoError] = NONE_REFUSED

    @property
    def accepted(self) -> Sequence[int]:
        """Return the places of the writes that are not refused."""
        places = range(len(self.replies))
        return [place for place in places if place not in self.refused] if self.refused else places

    def result(self, first: Timestamp) -> RunResult:
        """Return the run's result, for a first write at ``first``."""
        return RunResult(first, self.replies, self.refused)

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes they take in an entry: the same as separate commands."""
        overhead_bytes = COMMAND_OVERHEAD_BYTES * len(self.accepted) + MUTATION_OVERHEAD_BYTES * len(self.keys)
        overhead_bytes += EXPIRY_BYTES * len(self.expiries)
        return overhead_bytes + sum(map(len, chain(self.keys, filter(None, self.payloads), self.replies)))


EvaluateRun: TypeAlias = Callable[[OverlayReader, Timestamp], RunEffects | None]
"""From the state and the first timestamp to the effects of all writes of a run. It may refuse all of them, or some;
None if each has to be evaluated by itself."""


@dataclass(slots=True, eq=False)
class Run:
    """Many small writes that stand in line as one proposal: one evaluation, one outcome, a place for each.

    A write that may do more than its effects say parts the run: it is refused with its ``parting``, and each write is
    submitted by itself. Writes that were refused share its end: if it is taken back, or lost, they are told the same.
    ``waiters`` counts the callers that still want an answer; one that leaves keeps the place.
    ``done`` is set with the outcome.
    """

    evaluate: EvaluateRun
    size_bytes: int
    request_ids: Sequence[bytes]
    hashes: Sequence[bytes]
    done: asyncio.Future[None]
    places: Sequence[Place] = ()
    waiters: int = 0
    outcome: Outcome | None = None
    proposed_ms: float = 0.0
    evaluated_ms: float = 0.0
    entry: EntryTimes | None = None
    frees: bool = False
    parting: CortadoError | None = None
    while_closed: ClassVar[bool] = False
    is_own: ClassVar[bool] = False

    @property
    def callers(self) -> int:
        return len(self.request_ids)

    def tick(self, clock: Clock, physical_ms: int) -> Timestamp:
        """Return the timestamp of its first write."""
        first = clock.tick_many(self.callers, physical_ms)
        if first is None:
            # The millisecond has too few left. The next one has enough.
            first = clock.tick_many(self.callers, clock.last.wall_ms + 1)
        assert first is not None
        return first

    def effects(
        self, reader: OverlayReader, first: Timestamp, parts: Callable[[Sequence[LogicalKey]], bool], bytes_max: int
    ) -> RunEffects:
        """Evaluate the run. Raises the refusal; the ``parting`` if the effects have more than ``bytes_max``, or
        ``parts`` says of their keys that the writes must be evaluated one by one."""
        effects = self.evaluate(reader, first)
        if effects is None or effects.size_bytes > bytes_max or parts(effects.keys):
            self.parting = Unavailable("the writes of a message have to be evaluated one by one", retry_delay_ms=1)
            raise self.parting
        return effects

    def unknown(self, problem: str) -> OutcomeUnknown:
        """Return the outcome of a run that may have happened; :meth:`outcome_at` names each request."""
        return OutcomeUnknown(problem)

    def place_of(self, request_id: bytes) -> RunPlace:
        """Return the place of one of its requests."""
        return RunPlace(self, self.request_ids.index(request_id))

    def outcome_at(self, place: int) -> Outcome | None:
        """Return the outcome of the write at ``place``; None while the run has none."""
        outcome = self.outcome
        if isinstance(outcome, RunResult):
            if place in outcome.refused:
                return outcome.refused[place]
            first = outcome.first
            ts = Timestamp(first.epoch, first.wall_ms, first.logical + place)
            return WriteResult(ts, outcome.replies[place])
        if isinstance(outcome, OutcomeUnknown):
            return OutcomeUnknown(outcome.problem, self.request_ids[place].hex())
        return outcome

    def finish(self, outcome: Outcome) -> None:
        """Answer the whole run, once."""
        if self.outcome is None:
            self.outcome = outcome
            self.evaluate = _run_evaluated
            for place in self.places:
                place.leave()
            self.places = ()
            if not self.done.done():
                self.done.set_result(None)


@dataclass(slots=True, eq=False)
class RunPlace:
    """One write of a run, for a retry that joins it, and for those who look at single calls."""

    run: Run
    place: int

    @property
    def request_id(self) -> bytes:
        return self.run.request_ids[self.place]

    @property
    def request_hash(self) -> bytes:
        return self.run.hashes[self.place]

    @property
    def outcome(self) -> Outcome | None:
        return self.run.outcome_at(self.place)

    @property
    def proposed_ms(self) -> float:
        return self.run.proposed_ms

    @property
    def evaluated_ms(self) -> float:
        return self.run.evaluated_ms

    @property
    def entry(self) -> EntryTimes | None:
        return self.run.entry

    @property
    def waiters(self) -> int:
        return self.run.waiters

    @waiters.setter
    def waiters(self, count: int) -> None:
        self.run.waiters = count

    async def answer(self, _loop: asyncio.AbstractEventLoop) -> WriteResult:
        """Wait for the outcome. A cancelled waiter does not end the others."""
        await asyncio.shield(self.run.done)
        outcome = self.outcome
        if isinstance(outcome, WriteResult):
            return outcome
        assert isinstance(outcome, CortadoError)
        raise outcome


def _run_evaluated(_reader: OverlayReader, _first: Timestamp) -> RunEffects | None:
    raise Internal("a run that has its outcome cannot be evaluated again")


Proposed: TypeAlias = Proposal | Run
"""A proposal or run that stands in line."""


class Requests(dict[bytes, Proposed]):
    """Proposals by the ids of their requests; a run under the id of each."""

    def add(self, proposal: Proposed) -> None:
        """Add a proposal's requests."""
        for request_id in proposal.request_ids:
            self[request_id] = proposal

    def forget(self, proposal: Proposed) -> None:
        """Remove a proposal's requests, if they are still its own."""
        for request_id in proposal.request_ids:
            if self.get(request_id) is proposal:
                del self[request_id]

    def forget_refused(self, outcome: Outcome, proposal: Proposed) -> None:
        """Remove the requests that a run's ``outcome`` refuses: each is told now, and not remembered."""
        if isinstance(outcome, RunResult):
            for place in outcome.refused:
                self.pop(proposal.request_ids[place], None)

    def first(self, request_id: bytes) -> Proposal | RunPlace | None:
        """Return the one write with this id."""
        found = self.get(request_id)
        return found.place_of(request_id) if isinstance(found, Run) else found
