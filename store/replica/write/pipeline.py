"""A leader's proposals, from the line to the answer.

::

    propose ─► waiting ─► open batch ──append_open──► appended batches ──committed──► callers answered ──applied──► gone
               (bounded)  evaluated                   (index, term)                                    and durable
                                     `────── overlay: all that is not applied, newest on top ──────'

- *Evaluate at append.* A proposal is evaluated in order, against everything before it, at its own timestamp, and its
  batch is appended directly after the last one: nothing can come between its reads and its writes.
- *Bounded by effect.* Appended and uncommitted writes are counted in batches, unapplied ones in the bytes that they
  write. A write that the open batch has no room for begins the next one, and nothing is evaluated after it until the
  open batch is appended. So evaluating never appends, and the bounds hold however small the requests were.
- *Answered when committed.* A majority holds the entry; it is applied here a little later. Until then evaluating and
  reading find its writes in the overlay (:meth:`Pipeline.reader`), and a retry its request (``requests``).
- *An answer without an effect rests.* A refusal holds for the state that it was worked out from: it leaves with its
  batch, if that is appended after it, or else through a round (:mod:`cortado.store.replica.read.read_index`).
- *A new epoch* closes its batch, and nothing is evaluated until it is applied. The clock enters it when committed, not
  before: a full disk may take it back. So does a command if a feature says so, which may be answered once it is applied
  (:mod:`cortado.store.replica.features.feature`).
- *Leadership lost*: appended and uncommitted writes may happen or not (OutcomeUnknown); the rest did not (NotLeader).
  Nothing is kept: the next leader applies everything before it evaluates.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from itertools import chain, islice
from typing import Final

from cortado.errors import CortadoError, Internal, ResourceExhausted, TooLarge, Unavailable
from cortado.invariants import invariant
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.mvcc.drafts import Draft
from cortado.store.mvcc.evaluation import BumpEpoch, Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.seen import Seen
from cortado.store.observe.measures import WriteMeasures
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.context import GroupContext
from cortado.store.replica.features.feature import Feature
from cortado.store.replica.feed.recent import RecentChanges
from cortado.store.replica.write.batch import Answer, Batch
from cortado.store.replica.write.disk_room import DiskRoom
from cortado.store.replica.write.examining import Drawing
from cortado.store.replica.write.log_entry import command_bytes
from cortado.store.replica.write.overlay import Layers, OverlayReader
from cortado.store.replica.write.proposals import Outcome, Proposal, WriteResult
from cortado.store.replica.write.request_table.forgetting import Forgetting, Memory
from cortado.store.replica.write.request_table.records import Remembered
from cortado.store.replica.write.run import Proposed, Requests, Run

_LOG: Final = logging.getLogger(__name__)


class Pipeline:
    """One group's proposals at this node. Empty unless it leads. Every method runs on the loop."""

    def __init__(self, group: GroupContext, recent: RecentChanges) -> None:
        """``recent`` holds the latest applied changes."""
        limits = group.process.limits
        self._log = group.log
        self._clock = group.process.clock
        self._machine = machine = group.machine
        self._recent = recent
        self._limits = limits
        self._monotonic_ms = group.process.monotonic_ms
        memory = Memory(limits.remember_ms, limits.remember_requests_max, limits.remember_bytes_max)
        self._forgetting = Forgetting(machine.request_table, memory)
        self.waiting: deque[Proposed] = deque()
        """The proposals in line."""
        self._draw = Drawing(limits.examined_percent).draw
        self._of = group.of
        self.open = Batch(self._of.segment)
        """The batch that is evaluated, and not appended yet."""
        # Holds the one write that the open batch had no room for; else None.
        self._next: Batch | None = None
        self._appended: deque[Batch] = deque()
        self._appended_bytes = 0
        # How many of the appended batches, from the first on, are committed and answered.
        self._answered = 0
        self._to_answer: list[Batch] = []  # Applied, and not answered before that.
        # The last commit acknowledged in ended terms. Until it is applied, its writes are unknown here.
        self._lost_to = ZERO
        self._layers = Layers([self.open.layer])
        self.applied: AppliedState = machine.state
        self.features = machine.features
        self.requests = Requests()
        """Requests in line, in flight, or committed and not applied yet."""
        self.acknowledged_ts = ZERO
        """The last commit that a caller was told of: from then on every linearizable read sees it."""
        self.batch_bytes_max = limits.batch_bytes_max
        """The most that the open batch takes of several commands: the limit, or less while appending is slowed."""
        self.room, self.measures = DiskRoom(group), WriteMeasures()
        self._follow()

    # --- in line -----------------------------------------------------------------------------------------------

    def propose(self, proposal: Proposed) -> None:
        """Put a proposal in line; it will have its answer."""
        self.waiting.append(proposal)
        self.requests.add(proposal)

    @property
    def is_idle(self) -> bool:
        """True if every proposal has its answer, but for those that rest elsewhere."""
        return not self.waiting and not self.open.answers and not self.has_uncommitted

    @property
    def use(self) -> tuple[int, int]:
        """Return how many proposals are in line, and how many batches are appended and not committed."""
        return len(self.waiting), len(self._appended) - self._answered

    @property
    def appended_bytes(self) -> int:
        """Return the bytes that appended and unapplied batches write."""
        return self._appended_bytes

    @property
    def has_work(self) -> bool:
        """True if a proposal is in line, is not appended, or is applied and its answer has waited for that."""
        return bool(self.waiting) or self.open.commands > 0 or bool(self._to_answer)

    @property
    def is_full(self) -> bool:
        """True if a write waits for the open batch to be appended, as the head of the next one."""
        return self._next is not None

    @property
    def has_uncommitted(self) -> bool:
        """True if a batch is appended and its callers not answered."""
        return len(self._appended) > self._answered

    @property
    def uncommitted_callers(self) -> int:
        """Return how many callers wait for appended batches."""
        uncommitted = len(self._appended) - self._answered
        return sum([each.callers for each in islice(reversed(self._appended), uncommitted)]) if uncommitted else 0

    @property
    def may_append(self) -> bool:
        """False if too much is appended and not committed, or not applied, to add the open batch."""
        uncommitted = len(self._appended) - self._answered
        return uncommitted < self._limits.entries_in_flight_max and not self.is_crowded

    @property
    def is_crowded(self) -> bool:
        """True if too much is not applied to add the open batch."""
        return self._appended_bytes + self.open.size_bytes > self._limits.entries_in_flight_bytes_max

    @property
    def ceiling(self) -> Timestamp:
        """Return the committed ceiling: applied, or answered and about to be."""
        committed = [each.ceiling for each in islice(self._appended, self._answered) if each.ceiling is not None]
        return max([self.applied.ceiling, *committed])

    @property
    def awaits_applying(self) -> bool:
        """True if nothing can be evaluated before appended batches are applied."""
        return bool(self._appended) and self._appended[-1].holds_next

    @property
    def newest_ts(self) -> Timestamp:
        """Return the last commit's timestamp that can be read at: at a leader applied or not, elsewhere applied."""
        applied_ts = self.applied.last_ts
        return applied_ts if applied_ts < self._lost_to else max(applied_ts, self.acknowledged_ts)

    def reader(self, read_ts: Timestamp) -> Reader:
        """Return the state at ``read_ts``, a timestamp given out for reading: the applied state, and committed batches
        over it. Raises Unavailable if leadership, and with it those batches, was lost since."""
        applied = self._machine.snapshot(read_ts)
        if read_ts <= self.applied.last_ts:
            return applied
        if self.applied.last_ts < self._lost_to:
            raise Unavailable("leadership was lost before what was read is applied here", retry_delay_ms=50)
        seen, appended = self._answered, self._appended
        while seen and read_ts < appended[seen - 1].last_ts:
            seen -= 1
            # A layer has the newest version of each key alone.
            invariant(read_ts < appended[seen].first_ts, "a time within an entry is read once that is applied", read_ts)
        return self._layers.reader_of_first(seen, applied) if seen else applied

    @property
    def in_flight(self) -> list[Batch]:
        """Return the unapplied batches; each ``has_ended`` when it is applied, or never will be."""
        return [*self._appended, *(each for each in self._unappended() if each.commands)]

    @property
    def newest_in_flight(self) -> Batch | None:
        """Return the last unapplied batch, open or appended."""
        if self._next is not None:
            return self._next
        if self.open.commands:
            return self.open
        return self._appended[-1] if self._appended else None

    # --- evaluating --------------------------------------------------------------------------------------------

    def fill(self, until_ms: float) -> bool:
        """Evaluate into the open batch while it has room; False if time ran out before."""
        if not self.waiting:
            return True
        if not self.open.commands:
            self.open.seen = self._draw_seen()
        physical_ms = self._clock.physical_ms
        began_ms = now_ms = self._monotonic_ms()
        while self.waiting and self._has_room() and now_ms <= until_ms:
            proposal = self.waiting.popleft()
            if proposal.waiters == 0:
                self.leave(proposal, Unavailable("the caller went away"))
            else:
                self.measures.waiting.observe((now_ms - proposal.proposed_ms) / 1000, proposal.callers)
                proposal.evaluated_ms = now_ms
                self._evaluate(proposal, physical_ms)
            now_ms = self._monotonic_ms()
        self.open.evaluating_ms += now_ms - began_ms
        return now_ms <= until_ms or not self.waiting or not self._has_room()

    def take_resting(self) -> list[Answer]:
        """Take the open batch's answers, if none of its proposals changes anything."""
        return self.open.take_resting()

    def append_open(self) -> None:
        """Append the open batch to the log. If that raises, the batch is still the open one, with its callers."""
        batch = self.open
        batch.forgotten = self._forgetting.of(batch, self.applied)
        after = self._log.last
        before_ts = self._appended[-1].last_ts if self._appended else self.applied.last_ts
        rises = before_ts < batch.first_ts <= batch.last_ts
        invariant(rises, "timestamps rise along the log", before_ts, batch.first_ts, batch.last_ts)
        entry = self._log.append(batch.entry(*after), is_examined=batch.seen is not None and bool(batch.seen))
        invariant(entry.index == after[0] + 1, "an entry follows the one that it says", entry.index, *after)
        batch.index, batch.term = entry.index, entry.term
        batch.times.appended_ms = self._monotonic_ms()
        self.measures.appended(batch.commands, batch.size_bytes, batch.evaluating_ms)
        self._appended.append(batch)
        self._appended_bytes += batch.size_bytes
        self._forgetting.appended(batch)
        if self._next is None:
            self.open = Batch(self._of.segment)
            self._layers.push(self.open.layer)
        else:
            self.open, self._next = self._next, None

    def _has_room(self) -> bool:
        if self._next is not None or self.open.is_complete or self.awaits_applying:
            return False
        return self.open.has_room_for(self.waiting[0], self.batch_bytes_max, self._limits.batch_commands_max)

    def _evaluate(self, proposal: Proposed, physical_ms: int) -> None:
        try:
            ts = proposal.tick(self._clock, physical_ms)
            seen = None if self.open.seen is None else Seen(self.open.seen.collected)
            reader = self._layers.reader(self._machine.snapshot(ts, seen), seen, self._recent, self.applied.last_ts)
            if self.features.is_closed and not proposal.while_closed:
                self.features.check_open()
            if isinstance(proposal, Run):
                batch = self._accept_run(proposal, reader, ts)
            else:
                batch = self._accept(proposal, ts, self.features.add_to(reader, ts, proposal.evaluate(reader, ts)))
            if seen is not None and batch is not None and batch.seen is not None:
                if batch is not self.open:
                    # Its entry follows the open one, whose effects were not there before that.
                    seen.forget(self.open.layer.versions)
                batch.seen.add(seen)
        except CortadoError as refusal:
            self.open.answer(proposal, refusal, rests=True)
        except Exception:
            _LOG.exception("a defect in evaluating a write; nothing was changed")
            defect = Internal("evaluating the write failed; see the server's log")
            self.open.answer(proposal, defect, rests=True)

    def _accept(self, proposal: Proposal, ts: Timestamp, evaluation: Evaluation) -> Batch | None:
        """Take an evaluation into the open batch, or the next; None if it writes nothing. Raises TooLarge,
        InvalidArgument, ResourceExhausted."""
        mutations, control = evaluation.mutations, evaluation.control
        is_idle = not (len(mutations) or evaluation.restored) and control is None and evaluation.removal is None
        if isinstance(control, BumpEpoch):
            ts = self._clock.first_of(control.epoch)
        elif is_idle and not proposal.request_id:
            # Nothing to write and nothing to remember: it saw the newest state in flight.
            newest = self.newest_in_flight
            ts = self.applied.last_ts if newest is None else newest.last_ts
            result = WriteResult(ts, proposal.encode_reply(ts, evaluation.reply), evaluation.reply)
            self.open.answer(proposal, result, rests=True)
            return None
        reply = proposal.encode_reply(ts, evaluation.reply)
        size_bytes = command_bytes(evaluation, reply)
        if size_bytes > (limit := self._limits.command_bytes_max):
            raise TooLarge("request", f"one write may change at most {limit} bytes", str(size_bytes), size_bytes, limit)
        batch = self._room_for(proposal, size_bytes, is_alone=isinstance(mutations, Draft))
        items = batch.add(ts, evaluation, size_bytes)
        if touched := self.features.touched(mutations.keys):
            batch.touch(touched, mutations)
            self._follow([feature for feature, _ in touched])
        self._layers.wrote(mutations, items)
        self._layers.raised(batch.layer.safepoints)
        proposal.entry = batch.times
        if proposal.request_id:
            batch.remember(proposal.request_id, Remembered(proposal.request_hash, ts, reply))
        batch.answer(proposal, WriteResult(ts, reply, evaluation.reply), rests=False)
        return batch

    def _accept_run(self, run: Run, reader: OverlayReader, first: Timestamp) -> Batch | None:
        effects = run.effects(reader, first, self.features.parts, self._limits.command_bytes_max)
        if not effects.accepted:
            self.open.answer(run, effects.result(first), rests=True)
            return None
        batch = self._room_for(run, size_bytes := effects.size_bytes)
        self._layers.newest.wrote(effects.keys, batch.add_run(run, first, effects, size_bytes))
        return batch

    def _room_for(self, proposal: Proposed, size_bytes: int, *, is_alone: bool = False) -> Batch:
        """Return the open batch, or the next one: for effects larger than their request let expect, since an entry must
        not be, and for effects that need an entry to themselves. Raises ResourceExhausted."""
        batch = self.open
        self.room.admit_effect(proposal, size_bytes, batch.size_bytes, self._appended_bytes)
        if batch.commands and (is_alone or batch.size_bytes + size_bytes > self.batch_bytes_max):
            batch = self._next = Batch(self._of.segment, seen=self._draw_seen())
            self._layers.push(batch.layer)
        return batch

    def _draw_seen(self) -> Seen | None:
        """Draw whether a new batch carries its reads: in a group of several members, a share of all batches does."""
        # While values are moved, followers that are further, or less far, find them elsewhere.
        if len(self._log.configuration.members) < 2 or self.features.is_moving or not self._draw(self._monotonic_ms()):
            return None
        return Seen(max(self._machine.safepoints.highest, self._layers.safepoints.highest), self._of.data)

    # --- answering ---------------------------------------------------------------------------------------------

    def answer_committed(self) -> int:
        """Answer the callers of all committed batches; return how many. Only while the term of their appending
        lasts."""
        callers, committed = 0, self._log.durable_commit_index
        if self._to_answer:
            callers = self._answer_applied()
        while self._answered < len(self._appended) and self._appended[self._answered].index <= committed:
            batch = self._appended[self._answered]
            if batch.is_answered_applied:
                break
            callers += self._answer_batch(batch)
            self._answered += 1
            if batch.touched:
                self._follow([feature for feature, _ in batch.touched])
        return callers

    def _answer_batch(self, batch: Batch) -> int:
        invariant(self.acknowledged_ts < batch.last_ts, "commits are acknowledged in their order", batch.last_ts)
        self.acknowledged_ts = batch.last_ts
        if batch.epoch:
            # A caller that reads it now may come back with a time of the new epoch.
            self._clock.observe_log(batch.last_ts)
        batch.times.committed_ms = self._monotonic_ms()
        self.measures.committing.observe((batch.times.committed_ms - batch.times.appended_ms) / 1000)
        for answer in batch.answers:
            self.answer(answer)
        return batch.callers

    def _answer_applied(self) -> int:
        """Answer the callers that waited for applying."""
        applied, self._to_answer = self._to_answer, []
        return sum(map(self._answer_batch, applied))

    def stored(self) -> None:
        """Note that appended batches are durable here. A batch is stored once it is appended, one at a time."""
        for batch in reversed(self._appended):
            if batch.times.stored_ms:
                break
            batch.times.stored_ms = self._monotonic_ms()

    def answer(self, answer: Answer) -> None:
        """Give an answer. A request that changed something stays known until its change is applied."""
        if answer.rests:
            self.leave(answer.proposal, answer.outcome)
        else:
            answer.proposal.finish(answer.outcome)
            self.requests.forget_refused(answer.outcome, answer.proposal)

    def leave(self, proposal: Proposed, outcome: Outcome) -> None:
        """Answer a proposal that changed nothing, or whose outcome is unknown."""
        self.requests.forget(proposal)
        proposal.finish(outcome)

    def advance(self, state: AppliedState) -> None:
        """Note that ``state`` is applied and durable: the batches that it contains are dropped."""
        self.applied = state
        while self._appended and self._appended[0].index <= state.index:
            batch = self._appended.popleft()
            if batch.is_answered_applied:
                self._to_answer.append(batch)
            self._answered = max(self._answered - 1, 0)
            self._appended_bytes -= batch.size_bytes
            self._forgetting.applied(batch)
            batch.has_ended = True
            if batch.times.committed_ms:
                self.measures.applying.observe((self._monotonic_ms() - batch.times.committed_ms) / 1000)
            self._layers.pop_oldest()
            for answer in batch.answers:
                self.requests.forget(answer.proposal)
        if behind := self.features.behind:
            self._follow(behind)
        layers, batches = len(self._layers.all), len(self._appended) + len(self._unappended())
        invariant(layers == batches, "each batch that is not applied has its layer", layers, batches)
        is_counted = bool(self._appended) or self._appended_bytes == 0
        invariant(is_counted, "no bytes are in flight where no batch is", self._appended_bytes)

    def replaced(self, state: AppliedState) -> None:
        """Go on from ``state``, which a snapshot brought. The leader vouches for entries of ours that it lacks."""
        self.advance(state)
        self.acknowledged_ts = min(self.acknowledged_ts, state.last_ts)
        self._lost_to = min(self._lost_to, state.last_ts)

    def repaired(self) -> None:
        """Load again: stored items were changed below the log's back."""
        self._machine.mended()
        self._follow()

    # --- refusals and losses -----------------------------------------------------------------------------------

    def take_back(self, refused_to: int, resting: list[Answer], error: ResourceExhausted) -> None:
        """Refuse the entries up to ``refused_to``, for which the log had no room, and which it took back. Evaluate
        again the writes on top of them, ``resting`` answers included."""
        kept_to = self._log.last[0]
        kept = [batch for batch in self._appended if batch.index <= kept_to]
        refused = [batch for batch in self._appended if kept_to < batch.index <= refused_to]
        above = [*(batch for batch in self._appended if batch.index > refused_to), *self._unappended()]
        _LOG.warning("refused %d writes: %s", sum(batch.commands for batch in refused), error)
        again = [answer.proposal for batch in refused for answer in batch.answers if answer.rests]
        again += [answer.proposal for answer in resting]
        again += [answer.proposal for batch in above for answer in batch.answers]
        lost = [answer.proposal for batch in refused for answer in batch.answers if not answer.rests]
        self._clear(kept)
        self.waiting.extendleft(reversed(again))
        for proposal in lost:
            self.leave(proposal, error)

    def refuse_waiting(self, error: CortadoError) -> None:
        """End all proposals in line."""
        waiting, self.waiting = self.waiting, deque()
        for proposal in waiting:
            self.leave(proposal, error)

    def lose(self, resting: list[Answer], error: CortadoError, unknown: str) -> None:
        """End everything: with ``error`` if it cannot have happened, as ``unknown`` if it may have."""
        self._answer_applied()
        uncommitted = list(islice(self._appended, self._answered, None))
        self._lost_to = self.acknowledged_ts
        opened = [answer for batch in self._unappended() for answer in batch.answers]
        self._clear()
        for batch in uncommitted:
            for answer in batch.answers:
                if answer.rests:
                    self.leave(answer.proposal, error)
                else:
                    self.leave(answer.proposal, answer.proposal.unknown(unknown))
        for answer in chain(resting, opened):
            self.leave(answer.proposal, error)
        self.refuse_waiting(error)
        # Committed and not applied yet: from now on retries ask the table, once all of it is applied.
        self.requests.clear()

    def _unappended(self) -> list[Batch]:
        """Return the open batch, and the one to follow it."""
        return [self.open] if self._next is None else [self.open, self._next]

    def _clear(self, kept: Sequence[Batch] = ()) -> None:
        """Give up all batches but those ``kept``, which were appended first."""
        for batch in (*islice(self._appended, len(kept), None), *self._unappended()):
            batch.has_ended = True
        self._appended = deque(kept)
        self._appended_bytes = sum(batch.size_bytes for batch in kept)
        self._forgetting.restart(kept)
        self._answered = min(self._answered, len(kept))
        self.open, self._next = Batch(self._of.segment), None
        self._layers = Layers([*(batch.layer for batch in kept), self.open.layer])
        self._follow()

    def _follow(self, features: Sequence[Feature] | None = None) -> None:
        """Let features, or all of them, follow their changes in flight: some have changed."""
        in_flight = [batch.touched for batch in (*self._appended, *self._unappended())]
        self.features.follow(in_flight, self._answered, features)
