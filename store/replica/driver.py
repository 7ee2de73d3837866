"""The loop that drives one group's log: messages, proposals and the time go in; actions come out.

::

    receive() ─► arrived ─┐                          ┌─► outbox ─► transport       at once, or once it is durable
    propose() ─► pipeline ┼─ round: step, evaluate, ─┼─► ready ──► log thread      one write, synced
    timer ────────────────┘         append, tick     ├─► answers to callers and reads
                               ▲                     └─► committed ─► storage thread: applied, in a transaction, later
                               `── durable, applied ──────────┘

A round runs when something happened, never in between: a message, a proposal, a read, a thread's word, or the log's
timer. :mod:`cortado.store.replica.rounds` has its phases. There is at most one batch of writes at the log thread. While
it is busy, the loop evaluates what arrives into the next batch, so that a slow disk makes larger batches instead of a
queue of small ones; messages leave when they may.

- *A batch is closed* when the log thread is free and, in a group of several, when no more commands are to be waited for
  (:mod:`cortado.store.replica.write.group_commit`).
- *Not every round is whole.* If only proposals came and the open batch can't be closed yet, a round just evaluates
  them. If a thread reports and no caller waits, a round just goes on with the work that waited for it. A leader whose
  writes and reads are all answered does not wake for the last acknowledgements: they wait for the next round, but not
  for long. Together these were half of all rounds.
- *Committed entries* are applied behind the answers, in larger transactions: after a moment, when they are enough, or
  at once if a reader needs them (a scan, a watch, a new leader's first entry). Until then they are read from memory.
- *Leadership* is looked at after everything that may change it, before any answer.
- *No room.* In a group of one the log takes the entry back, since no other node holds it: its callers are refused, and
  writes evaluated on top of it are evaluated again. In a larger group it stands, and is tried again, whole, with
  everything held back; reads go on, writes are refused.
- *Any other failure* stops the node: a log never goes on if it may be ahead of its disk, or behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from cortado.errors import DataLoss, NotLeader, ResourceExhausted, Unavailable
from cortado.invariants import invariant
from cortado.raft.registry import Roster
from cortado.raft.storing import HUNG_ELECTIONS
from cortado.store.clock.timestamp import Timestamp
from cortado.store.observe.measures import RoundMeasures
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.apply.applier import Applier
from cortado.store.replica.context import GroupContext
from cortado.store.replica.feed.feed import ChangeFeed
from cortado.store.replica.inbox import Inbox
from cortado.store.replica.leadership import Elected, Established, Leadership, Lost
from cortado.store.replica.log_writer import LogWriter
from cortado.store.replica.outstanding import RETRY_MS_MAX
from cortado.store.replica.read.read_index import ReadIndex
from cortado.store.replica.rounds import ROUNDS, Phase
from cortado.store.replica.scheduler import Scheduler
from cortado.store.replica.write.group_commit import GroupCommit
from cortado.store.replica.write.pipeline import Pipeline
from cortado.store.replica.write.run import Proposed

_LOG: Final = logging.getLogger(__name__)

_DATA_STUCK: Final = "data stuck"


class Driver:
    """Drives one group's log. Every method runs on the loop; only the storage thread's applying does not."""

    failure: BaseException | None
    """Why the node stopped."""
    readable_ts: Timestamp | None
    """The linearizable read's timestamp, if it needs no wait: in a group of one, whose own log knows the commits.
    Each round's ANSWER works it out; nothing else changes it. (A second voter cannot lead without our vote, so the
    change of voters may be seen a round later.)"""

    def __init__(
        self,
        group: GroupContext,
        *,
        on_leading: Callable[[], None],
        on_lost: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``on_leading`` hears when this node may evaluate in a new term, ``on_lost`` when a term of its own ended,
        ``on_failure`` once, when the node must stop. Make it on the loop."""
        loop = asyncio.get_running_loop()
        self._group = group
        self.log = log = group.log
        self._monotonic_ms = monotonic_ms = group.process.monotonic_ms
        self._on_leading = on_leading
        self._on_lost = on_lost
        self._on_failure = on_failure
        self.feed = ChangeFeed(group.machine.state.last_ts, group.process.limits, group.machine.features.late_from)
        self.pipeline = Pipeline(group, self.feed.recent)
        self.read_index = ReadIndex(loop, log, self.pipeline.answer)
        self.on_doubts: Callable[[], None] = _nothing
        """Called when the log has doubts of followers to take."""
        self.on_configured: Callable[[Roster], None] = lambda _roster: None
        """Called with the members, in the round after which another configuration or registry is in force."""
        self.after_round: Callable[[], None] = _nothing
        """Called after each round: the snapshots look there at the log's needs."""
        self.measures = RoundMeasures()
        self.leadership = Leadership(group.node_id, log, group.process.clock_watch.knows_majority)
        self.inbox = Inbox(monotonic_ms)
        phases = self._phase_table()
        of_phases = ([phases[each] for each in round_] for round_ in ROUNDS)
        self._whole, self._proposed, self._durable, self._applied = of_phases
        self.writer = LogWriter(
            group,
            self.pipeline,
            self.read_index,
            on_durable=partial(self._go_on, self._durable),
            on_refused=self.schedule,
            on_failure=self.fail,
        )
        self.compaction = self.writer.compaction
        self.applier = Applier(
            group,
            self.pipeline,
            self.feed,
            on_applied=partial(self._go_on, self._applied),
            on_refused=self.schedule,
            on_failure=self.fail,
        )
        self._closes_batch = self._wants_storing = False
        self._group_commit = GroupCommit()
        self._is_paused = self._is_closed = self._is_stuck = False
        self._roster: Roster | None = None
        self._is_only_voter = False
        self.readable_ts = None
        self._scheduler = Scheduler(
            loop, monotonic_ms, whole=self._round, short=self._proposals_came, on_defect=self.fail
        )
        self._conditions = self._scheduler.conditions
        self.failure = None

    # --- state -------------------------------------------------------------------------------------------------

    @property
    def applied(self) -> AppliedState:
        return self.pipeline.applied

    @property
    def is_alone(self) -> bool:
        """True if this node is the group's only voter: then it committed every committed entry."""
        voters = self.log.configuration.voters
        return len(voters) == 1 and voters[0] == self._group.node_id

    @property
    def is_settled_alone(self) -> bool:
        """True for the only voter that could not store yet that it leads, for want of room. All committed entries are
        applied here, and no other node can have committed any."""
        return not self.leadership.is_ready and self.is_alone and self.log.durable_commit_index <= self.applied.index

    @property
    def _may_evaluate(self) -> bool:
        """True if this node leads, and does not hand over."""
        return self.leadership.is_ready and self.log.is_leader

    @property
    def refused_for(self) -> str:
        """Return why there is no room for writes; empty while they go well."""
        return self.writer.refused_for or self.applier.refused_for

    # --- input -------------------------------------------------------------------------------------------------

    def receive(self, sender: str, bodies: Sequence[bytes]) -> None:
        """Take messages of a peer; drop them if too many wait."""
        if self._is_closed or self.failure is not None:
            return
        self.inbox.put(sender, bodies)
        if self._may_evaluate and not self.pipeline.has_uncommitted and self._nobody_waits():
            now_ms = self._monotonic_ms()
            if self._group_commit.listen_later(now_ms):
                self._set_alarm(now_ms)
        else:
            self.schedule()

    def propose(self, proposal: Proposed) -> None:
        """Put a proposal in line; it will have its answer. Raises Unavailable once the node stopped,
        NotLeader, ResourceExhausted while a transaction waits for room."""
        self.check_running()
        if not self.leadership.is_elected and not self.is_alone:
            raise self.leadership.not_leader()
        if self.applier.is_refused or (self.writer.is_refused and not self.is_alone):
            raise ResourceExhausted(self.refused_for, retry_delay_ms=int(RETRY_MS_MAX), resource="disk")
        self.pipeline.room.admit_request(proposal, self.pipeline.appended_bytes)
        proposal.proposed_ms = self._monotonic_ms()
        self.pipeline.propose(proposal)
        self._group_commit.proposed(proposal.proposed_ms, proposal.callers)
        self._scheduler.want_short()

    def ask_read(self) -> asyncio.Future[Timestamp]:
        """Return the linearizable read's timestamp, once this node may answer at it. Raises NotLeader, Unavailable,
        then or now."""
        self.check_running()
        if not self.leadership.is_elected:
            raise self.leadership.not_leader()
        waiting = self.read_index.ask()
        if not (self.log.has_round_under_way or self._group_commit.holds_reads(self.read_index.waiting)):
            self.schedule()
        return waiting

    def check_running(self) -> None:
        """Raise Unavailable once the node stopped."""
        if self.failure is not None or self._is_closed:
            raise Unavailable("the node has stopped" + ("" if self.failure is None else f": {self.failure}"))

    def veto(self, reason: str, is_held: bool) -> bool:
        """Keep this node from leading for ``reason``, or no longer. A leader hands over if another voter can lead.
        Returns whether that is new."""
        if not self.leadership.veto(reason, is_held):
            return False
        _LOG.info("%s lead (%s)", "may not" if self.leadership.vetoes else "may", reason)
        self.schedule()
        return True

    def transferring(self, to: str) -> None:
        """Note that a transfer to ``to`` has begun: callers are sent there once this node does not lead any more."""
        self.leadership.transferring(to)
        self.schedule()

    # --- waiting -----------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` holds after a round. Raises Unavailable once the node stopped."""
        if condition():
            return
        self.check_running()
        watcher = self._conditions.wait(condition)
        self.schedule()
        await watcher
        if self.failure is not None:
            # Writes in flight were given up, and may be on the disk: the condition holds for the wrong reason.
            self.check_running()

    async def pause(self) -> None:
        """Return when neither thread has work of ours. The log is asked for none until :meth:`resume`."""
        self._is_paused = True
        self.schedule()
        await self.until(lambda: self.writer.is_free and self.applier.is_free)

    def resume(self, state: AppliedState) -> None:
        """Go on from ``state``, the engine's state by now. Raises DataLoss if the engine holds another."""
        if self._group.machine.load() != state:
            raise DataLoss("the node's state", f"the engine does not hold what was installed, {state}")
        self._group.machine.replaced()
        self.pipeline.replaced(state)
        self.feed.replaced(state.last_ts)
        self._group.process.clock.observe_log(state.last_ts)
        self.compaction.restart(state.index)
        self._is_paused = False
        self.schedule()

    async def close(self) -> None:
        """Return when every proposal has its answer, committed entries are applied (if there is room), and nothing is
        being stored; no round follows."""
        if self.failure is None and not self._is_closed:
            # A leader without its majority gives up within an election, and its appended entries with it.
            await self.until(
                lambda: (
                    self.pipeline.is_idle
                    and self.read_index.is_empty
                    and (not self.log.applying.backlog or self.applier.is_refused or self._is_paused)
                    and not (self.writer.is_busy or self.applier.is_busy)
                )
            )
        self._is_closed = True
        self._scheduler.stop()
        stopping = Unavailable("the node is stopping", retry_delay_ms=1_000)
        self.read_index.fail(stopping)
        self._conditions.fail(stopping)

    # --- the round ----------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        """Let a round follow as soon as the loop comes to it."""
        self._scheduler.want_whole()

    def _proposals_came(self) -> None:
        """Run a round after proposals alone: they join the open batch, if it is to be kept open."""
        pipeline = self.pipeline
        if self._may_evaluate and not self._is_paused and not self._is_only_voter:
            self._run(self._proposed)
            if self._scheduler.wants_whole:
                # Other tasks of the loop go on first; a whole round follows right after them.
                return
            may_close = self.writer.is_free and (self._closes_batch or not pipeline.may_append)
            if pipeline.open.commands > 0 and not may_close:
                self._set_alarm(self._monotonic_ms())
                return
        self._round()

    def _nobody_waits(self) -> bool:
        """Return whether no caller and no work here depends on the next message."""
        is_idle = not self.pipeline.has_work and self.read_index.is_idle
        return is_idle and not self._conditions.waiting and not self._is_paused and not self._scheduler.wants_whole

    def _round(self) -> None:
        self.measures.rounds += 1
        self._scheduler.wants_whole = False
        self._group_commit.round_begins()
        self._run(self._whole)

    def _phase_table(self) -> dict[Phase, Callable[[float], None]]:
        return {
            Phase.STEP: self._step,
            Phase.LEAD: self._look_at_leadership,
            Phase.EVALUATE: self._evaluate,
            Phase.CLOSE: self._close,
            Phase.APPEND: self._append,
            Phase.TICK: self._tick,
            Phase.SEND: self._send,
            Phase.STORE: self._store,
            Phase.ANSWER: self._answer,
            Phase.APPLY: self._apply,
            Phase.FOLLOW_UP: lambda _now_ms: self.after_round(),
            Phase.ALARM: self._set_alarm,
        }

    def _run(self, steps: Sequence[Callable[[float], None]]) -> None:
        now_ms = self._monotonic_ms()
        for step in steps:
            step(now_ms)

    def _step(self, now_ms: float) -> None:
        if not self.inbox.step(self.log.step, now_ms + self._group.process.limits.evaluate_slice_ms):
            self.schedule()
        if self.log.doubts:
            self.on_doubts()

    def _tick(self, now_ms: float) -> None:
        # A leader that cannot apply takes no writes: another one may.
        election_ms = self._group.process.raft.election_ms_max
        is_stuck = self.applier.is_stuck(now_ms, refused_ms=election_ms, busy_ms=HUNG_ELECTIONS * election_ms)
        if is_stuck != self._is_stuck:
            self._is_stuck = is_stuck
            self.veto(_DATA_STUCK, is_stuck)
        if self.pipeline.room.look(now_ms):
            self.compaction.make_room(self.applied.index)
        self.log.tick(now_ms)
        self._look_at_leadership(now_ms)

    def _evaluate(self, now_ms: float) -> None:
        """Evaluate waiting proposals."""
        pipeline, until_ms = self.pipeline, now_ms + self._group.process.limits.evaluate_slice_ms
        if pipeline.waiting and self._may_evaluate and not pipeline.fill(until_ms):
            # Other tasks of the loop go on first; the waiting proposals go on right after them.
            self.schedule()

    def _close(self, _now_ms: float) -> None:
        """Close the open batch if the log thread is free to store it at once and it waits for no more commands."""
        pipeline = self.pipeline
        is_filled = pipeline.open.commands > 0 and self.writer.is_free
        may_append = is_filled and self._may_evaluate and pipeline.may_append
        self._closes_batch = may_append and not self._is_paused and not self._keeps_batch_open()

    def _append(self, _now_ms: float) -> None:
        pipeline = self.pipeline
        if not self.leadership.is_ready:
            return
        if self.log.is_leader:
            # While leadership is handed over, waiting answers wait for its end.
            resting = pipeline.take_resting()
            if resting:
                self.read_index.rest(resting)
        self._begin_rounds()
        if self._closes_batch:
            self.compaction.pacing.appended(pipeline.open.size_bytes, self._monotonic_ms())
            pipeline.append_open()
            self._group_commit.closed()
            self._wants_storing = True
            if pipeline.waiting:
                self.schedule()

    def _keeps_batch_open(self) -> bool:
        """Return whether the open batch, which may be appended, should not be yet."""
        pipeline, now_ms = self.pipeline, self._monotonic_ms()
        paced_ms = self.compaction.pacing.due_ms(now_ms)
        if paced_ms > now_ms:
            self._group_commit.hold_batch(paced_ms)
            return True
        if self._is_only_voter or pipeline.waiting or pipeline.is_full or self._conditions.waiting:
            return False
        return not self._group_commit.may_close(
            pipeline.open.commands, pipeline.open.size_bytes, now_ms, uncommitted=pipeline.uncommitted_callers
        )

    def _begin_rounds(self) -> None:
        """Begin one round of heartbeats for all waiting reads, unless one is under way, or more are about to come."""
        waiting = self.read_index.waiting
        if not waiting or self.log.has_round_under_way:
            return
        is_free = self._is_only_voter or self._group.process.raft.lease
        if is_free or self._group_commit.may_read(waiting, self._monotonic_ms()):
            # While leadership is handed over, reads wait for the end of that, too.
            with suppress(NotLeader):
                self.read_index.begin(self.pipeline.acknowledged_ts)

    def _send(self, _now_ms: float) -> None:
        """Hand over the messages that may leave, and report other members than before."""
        roster = self.log.roster
        if roster is not self._roster:
            if roster != self._roster:
                self.on_configured(roster)
            self._roster = roster
            self._is_only_voter = self.is_alone
        messages = self.log.outbox()
        if messages:
            self._group.process.transport.send(self._group.of.group_id, messages)

    def _store(self, now_ms: float) -> None:
        """Hand the log's next writes to the log thread, if that is free."""
        at_once, self._wants_storing = self._wants_storing, False
        if not (self._is_paused and self.writer.is_free):
            self.writer.begin(now_ms, at_once=at_once)

    def _answer(self, _now_ms: float) -> None:
        """Answer the callers that the log's progress settles, in a term that still lasts."""
        is_current = self.leadership.is_current
        if is_current:
            answered = self.pipeline.answer_committed()
            if answered:
                self._group_commit.answered(answered, self._monotonic_ms())
                if self.pipeline.open.commands > 0:
                    # The open batch may be appended now, or must wait for the callers that were answered.
                    self.schedule()
            self.read_index.settle(self.pipeline.newest_ts)
        may_read = is_current and self._is_only_voter and self.leadership.is_ready
        self.readable_ts = self.pipeline.newest_ts if may_read else None

    def _apply(self, now_ms: float) -> None:
        """Have committed entries applied, unless they may wait, or a snapshot replaces the data."""
        if not (self._is_paused and self.applier.is_free):
            # Waiters on conditions need them applied; and a leader begins with its first entry.
            is_beginning = self.leadership.is_elected and not self.leadership.is_ready
            is_wanted = is_beginning or bool(self._conditions.waiting)
            self.applier.apply(now_ms, self._group_commit, is_wanted=is_wanted)

    def _set_alarm(self, _now_ms: float) -> None:
        due_ms = min(self.log.next_tick_ms, self._group_commit.due_ms)
        for each in (self.writer, self.applier):
            if each.retry_at_ms is not None:
                due_ms = min(due_ms, each.retry_at_ms)
        self._scheduler.alarm.set(due_ms)

    def _go_on(self, steps: Sequence[Callable[[float], None]]) -> None:
        """Go on after a thread's report: by these steps, or by a whole round, which has them, if more waits."""
        is_enough = self.inbox.is_empty and self._nobody_waits() and self.leadership.is_up_to_date
        self._run(steps) if is_enough else self._scheduler.run_whole()

    # --- leadership --------------------------------------------------------------------------------------------

    def _look_at_leadership(self, _now_ms: float) -> None:
        for event in self.leadership.observe():
            match event:
                case Lost(term):
                    self._lose(term)
                case Elected(term):
                    self.measures.terms_led += 1
                    _LOG.info("leads in term %d", term)
                case Established():
                    self._lead()

    def _lead(self) -> None:
        """Begin to lead. All before this term is applied: timestamps given out by then lie below the clock."""
        highest, clock = max(self.applied.last_ts, self.applied.ceiling), self._group.process.clock
        clock.observe_log(highest)
        invariant(clock.last >= highest, "a leader begins above the ceiling", clock.last, highest)
        self._on_leading()

    def _lose(self, term: int) -> None:
        _LOG.info("leads no longer in term %d", term)
        error = self.leadership.not_leader()
        resting = self.read_index.fail(error)
        self.pipeline.lose(resting, error, "leadership was lost before the write was committed")
        self._on_lost()

    def fail(self, error: BaseException) -> None:
        """Stop for good: a round failed, or a part reports that the node can't go on. Writes being stored may be on the
        disk or not: only a restart can tell."""
        if self.failure is not None:
            return
        self.failure = error
        self.readable_ts = None
        _LOG.critical("the node stops: a round could not be completed", exc_info=error)
        stopped = Unavailable("the node stopped before it stored the write")
        self.pipeline.lose(self.read_index.fail(stopped), stopped, "the node stopped while it stored the write")
        self._scheduler.stop()
        self.writer.stop()
        self.applier.stop()
        self._conditions.fail(Unavailable("the node has stopped: " + str(error)))
        self._on_failure(error)


def _nothing() -> None:
    """No callback is set."""
