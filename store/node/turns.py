"""The node's turns: from proposals to durable entries, two turns deep.

::

    propose() ─► waiting ─► evaluated into the open turn ──seal──► storing turn ──synced──► callers answered
                 (bounded)  (overlay: open + storing)    append,   (storage thread,
                                                         ready     one transaction)

All proposals of a turn become one entry of the log and one synced transaction. While the storage thread is busy with a
turn, the loop evaluates what arrives into the next one, so that a slow disk gathers larger turns instead of a queue of
small ones. There is never more than one turn on the storage thread.

- *Evaluate at append.* A proposal is evaluated in order, against everything before it, at its own timestamp, and the
  entry is appended at once after the last one: nothing can come between what was read and what is written.
- *A refusal rests on what is in flight.* It may be due to a write that is not durable yet, so it is held until that is.
- *No room.* An entry that the engine has no room for is taken back (nobody else holds it): its callers are refused, and
  what was evaluated on top of it is evaluated again.
- *A new epoch* closes its turn, and nothing is evaluated until it is durable: the clock must not enter an epoch that a
  full disk then takes back.
- *Anything else that goes wrong* while applying stops the node: it never goes on with an engine that may be ahead of
  its log, or behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Final

from cortado.errors import (
    CortadoError,
    Internal,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    Unavailable,
)
from cortado.raft.log import Ready, ReplicatedLog
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import EPOCH_MAX, Timestamp
from cortado.store.mvcc.evaluation import BumpEpoch, Evaluation
from cortado.store.node.commands import Command, LogEntry, command_bytes
from cortado.store.node.limits import NodeLimits
from cortado.store.node.overlay import OverlayReader
from cortado.store.node.proposals import Answer, Outcome, Proposal, Turn, WriteResult
from cortado.store.node.state import AppliedState
from cortado.store.node.state_machine import StateMachine
from cortado.store.node.storage import StorageThread

_LOG: Final = logging.getLogger(__name__)


class Turns:
    """The pipeline of one group. Every method runs on the loop, except where the storage thread applies."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        log: ReplicatedLog,
        clock: Clock,
        machine: StateMachine,
        storage: StorageThread,
        limits: NodeLimits,
        monotonic_ms: Callable[[], float],
        on_finished: Callable[[Proposal], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``on_finished`` hears of each proposal once, when it leaves; ``on_failure`` once, when the node must stop."""
        self._loop = loop
        self._log = log
        self._clock = clock
        self._machine = machine
        self._storage = storage
        self._limits = limits
        self._monotonic_ms = monotonic_ms
        self._on_finished = on_finished
        self._on_failure = on_failure
        self._waiting: deque[Proposal] = deque()
        self._open = Turn()
        self._storing: Turn | None = None
        self._is_scheduled = False
        self._failure: BaseException | None = None
        self.applied: AppliedState = machine.state
        self.refused_for: str = ""

    # --- what the node asks for --------------------------------------------------------------------------------

    def propose(self, proposal: Proposal) -> None:
        """Put a proposal in line; ``proposal.done`` will have the answer. Raises Unavailable once the node stopped."""
        if self._failure is not None:
            raise Unavailable("the node has stopped: " + str(self._failure))
        self._waiting.append(proposal)
        self._schedule()

    def in_flight_ended(self) -> asyncio.Future[None] | None:
        """Done when everything evaluated until now is durable or was taken back; None where nothing is in flight."""
        newest = self._newest_turn()
        if newest is None:
            return None
        future: asyncio.Future[None] = self._loop.create_future()
        newest.ended.append(future)
        return future

    @property
    def is_idle(self) -> bool:
        """True where nothing waits and nothing is in flight."""
        return not self._waiting and self._newest_turn() is None

    async def drained(self) -> None:
        """Return once every proposal has its answer (or the node failed)."""
        while not self.is_idle and self._failure is None:
            ended = self.in_flight_ended()
            if ended is not None:
                await ended
            else:
                await asyncio.sleep(0)

    # --- the turn ----------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._is_scheduled and self._failure is None:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Evaluate what waits, and hand the open turn over if the storage thread is free; then go on with the next."""
        self._is_scheduled = False
        slice_ends_ms = self._monotonic_ms() + self._limits.evaluate_slice_ms
        while self._failure is None:
            self._fill(slice_ends_ms)
            if self._storing is not None or not self._open.commands:
                break
            self._seal()

    def _fill(self, slice_ends_ms: float) -> None:
        """Evaluate into the open turn while it has room, for a bounded time."""
        while self._waiting and self._has_room():
            if self._monotonic_ms() > slice_ends_ms:
                # Others of the loop get their turn; what waits goes on right after them.
                self._schedule()
                return
            proposal = self._waiting.popleft()
            if proposal.waiters == 0:
                self._leave(proposal, Unavailable("the caller went away"))
            else:
                self._evaluate(proposal)

    def _has_room(self) -> bool:
        turn = self._open
        if turn.is_closed or (self._storing is not None and self._storing.is_closed):
            return False
        if not turn.commands:
            return len(turn.answers) < self._limits.turn_commands_max
        return (
            turn.size_bytes + self._waiting[0].size_bytes <= self._limits.turn_bytes_max
            and len(turn.commands) < self._limits.turn_commands_max
        )

    def _seal(self) -> None:
        """Append the open turn as one entry, and give it to the storage thread."""
        turn, self._open = self._open, Turn()
        after_index, after_term = self._log.last
        self._log.append(LogEntry(after_index, after_term, turn.commands))
        self._log.tick(int(self._monotonic_ms()))
        ready = self._log.ready()
        self._storing = turn
        machine, state = self._machine, self.applied
        self._storage.submit(
            lambda: machine.apply(state, ready.committed), lambda outcome: self._stored(ready, outcome)
        )

    def _stored(self, ready: Ready, outcome: object) -> None:
        """The storage thread's word on the turn that it was given."""
        turn, self._storing = self._storing, None
        assert turn is not None
        if isinstance(outcome, AppliedState):
            self._durable(turn, ready, outcome)
        elif isinstance(outcome, ResourceExhausted) and self._log.withdraw(ready):
            self._taken_back(turn, outcome)
        else:
            assert isinstance(outcome, BaseException)
            self._fail(turn, outcome)
        self._turn()

    def _durable(self, turn: Turn, ready: Ready, state: AppliedState) -> None:
        self._log.synced(ready)
        self.applied = state
        self.refused_for = ""
        self._clock.observe_log(state.last_ts)
        for answer in turn.answers:
            self._leave(answer.proposal, answer.outcome)
        turn.end()

    def _taken_back(self, turn: Turn, error: ResourceExhausted) -> None:
        """Refuse what did not fit, and evaluate again what was worked out on top of it."""
        _LOG.warning("refused %d writes: %s", len(turn.commands), error)
        self.refused_for = error.message()
        above, self._open = self._open, Turn()
        again = [answer.proposal for answer in chain(turn.answers, above.answers) if answer.rests]
        again += [answer.proposal for answer in above.answers if not answer.rests]
        self._waiting.extendleft(reversed(again))
        for answer in turn.answers:
            if not answer.rests:
                self._leave(answer.proposal, error)
        turn.end()
        above.end()

    def _fail(self, turn: Turn, error: BaseException) -> None:
        """Stop for good. What was being stored may be on the disk or not: only a restart can tell."""
        self._failure = error
        _LOG.critical("the node stops: a turn could not be applied", exc_info=error)
        for answer in turn.answers:
            self._leave(answer.proposal, OutcomeUnknown("the node stopped while it stored the write"))
        for proposal in chain((answer.proposal for answer in self._open.answers), self._waiting):
            self._leave(proposal, Unavailable("the node stopped before it stored the write"))
        turn.end()
        self._open.end()
        self._on_failure(error)

    # --- one proposal ------------------------------------------------------------------------------------------

    def _evaluate(self, proposal: Proposal) -> None:
        try:
            ts = self._clock.tick()
            layers = [self._open.layer] if self._storing is None else [self._storing.layer, self._open.layer]
            reader = OverlayReader(self._machine.snapshot(ts), layers)
            self._accept(proposal, ts, proposal.evaluate(reader, ts))
        except CortadoError as refusal:
            self._rest(proposal, refusal)
        except Exception:
            _LOG.exception("a defect in evaluating a write; nothing was changed")
            self._rest(proposal, Internal("evaluating the write failed; see the server's log"))

    def _accept(self, proposal: Proposal, ts: Timestamp, evaluation: Evaluation) -> None:
        """Take an evaluation into the open turn. Raises TooLarge, InvalidArgument."""
        mutations = evaluation.mutations
        if isinstance(evaluation.control, BumpEpoch):
            ts = self._first_of_epoch(evaluation.control.epoch)
        elif not mutations.keys and evaluation.control is None and not proposal.request_id:
            # Nothing to write and nothing to remember: what it saw is the newest state in flight.
            ts = self._newest_ts()
            reply = proposal.encode_reply(ts, evaluation.reply)
            self._rest(proposal, WriteResult(ts, reply, evaluation.reply))
            return
        reply = proposal.encode_reply(ts, evaluation.reply)
        size_bytes = command_bytes(mutations, reply)
        if size_bytes > self._limits.command_bytes_max:
            limit = self._limits.command_bytes_max
            raise TooLarge("request", f"one write may change at most {limit} bytes", str(size_bytes), size_bytes, limit)
        turn = self._open
        kept_reply = reply if proposal.request_id else b""
        turn.commands.append(
            Command(ts, mutations, proposal.request_id, proposal.request_hash, kept_reply, evaluation.control)
        )
        turn.layer.add(mutations, ts)
        turn.size_bytes += size_bytes
        turn.answers.append(Answer(proposal, WriteResult(ts, reply, evaluation.reply), rests=False))
        turn.is_closed = isinstance(evaluation.control, BumpEpoch)

    def _first_of_epoch(self, epoch: int) -> Timestamp:
        """The first timestamp of the next epoch. The clock follows when it is durable."""
        current = self._clock.epoch
        if epoch != current + 1 or epoch > EPOCH_MAX:
            raise InvalidArgument("epoch", f"must be {current + 1}, the one after the current epoch", str(epoch))
        return Timestamp(epoch, self._clock.physical_ms, 0)

    def _rest(self, proposal: Proposal, outcome: Outcome) -> None:
        """Give an answer that changes nothing: at once, or when what it rests on is durable."""
        newest = self._newest_turn()
        if newest is None:
            self._leave(proposal, outcome)
        else:
            newest.answers.append(Answer(proposal, outcome, rests=True))

    def _newest_turn(self) -> Turn | None:
        return self._open if self._open.commands else self._storing

    def _newest_ts(self) -> Timestamp:
        newest = self._newest_turn()
        return self.applied.last_ts if newest is None else newest.last_ts

    def _leave(self, proposal: Proposal, outcome: Outcome) -> None:
        self._on_finished(proposal)
        proposal.finish(outcome)
