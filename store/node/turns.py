"""The node's turns: what arrived, what was proposed and the time go into the log; what must be done comes out.

::

    receive() ─► arrived ─┐                              ┌─► outbox ─► transport      at once, or once it is synced
    propose() ─► pipeline ┼─ turn: step, fill, append, ──┼─► ready ──► storage thread: one transaction, synced
    timer ────────────────┘        tick                  └─► decided ► callers answered; rounds ► reads answered
                                     ▲                                          │
                                     `──────────── synced ◄─────────────────────┘

A turn runs when something happened, never in between: a message, a proposal, a read, the storage thread's word, or the
log's timer. There is at most one Ready at the storage thread. While it is busy, the loop evaluates what arrives into
the next turn, so that a slow disk gathers larger turns instead of a queue of small ones; messages leave when they may.

- *A turn is closed* when the storage thread is free and, in a group of several, when who asks about now is in it
  (:mod:`cortado.store.node.gathering`).
- *Not every turn is whole.* Where nothing came but proposals, and the open turn can't be closed yet, they are
  evaluated, and that is all. Where the storage thread reports and nobody waits, the next Ready is looked at, and that
  is all. A leader whose writes and reads are all answered does not get up for the last acknowledgements: they wait for
  the next turn, but not for long. Together these were half of all turns.
- *What is decided* is applied together with the next entry of ours, in the same transaction, unless somebody waits for
  it: a sync of its own, right after the callers were answered, would stand in the way of what they ask for next.
- *Leadership* is looked at after everything that may change it, before anything is answered: what was appended in a
  term that is over is never answered from ``decided``, which may speak of other entries by now.
- *No room.* In a group of one the log takes the entry back, since nobody else holds it: its callers are refused, and
  what was evaluated on top of it is evaluated again. In a larger group it stands, and is tried again, whole, with
  everything held back; reads go on, writes are refused.
- *Anything else that goes wrong* stops the node: it never goes on with an engine that may be ahead of its log, or
  behind it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from cortado.errors import CortadoError, DataLoss, NotLeader, OutcomeUnknown, ResourceExhausted, Unavailable
from cortado.invariants import invariant
from cortado.raft.configuration import Configuration
from cortado.raft.log import Ready, ReplicatedLog
from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import Timestamp
from cortado.store.node.alarm import Alarm
from cortado.store.node.compaction import Compaction
from cortado.store.node.gathering import Gathering
from cortado.store.node.inbox import Inbox
from cortado.store.node.limits import NodeLimits
from cortado.store.node.pipeline import Pipeline
from cortado.store.node.proposals import Proposal
from cortado.store.node.rounds import ReadRounds
from cortado.store.node.state import AppliedState
from cortado.store.node.state_machine import StateMachine
from cortado.store.node.storage import Storage
from cortado.store.node.storing import RETRY_MS_MAX, Storing
from cortado.store.node.transport import Transport
from cortado.store.node.watchers import Watchers
from cortado.store.node.watching.feed import ChangeFeed
from cortado.store.observe.call import CURRENT
from cortado.store.observe.measures import StoringMeasures, TurnMeasures

_LOG: Final = logging.getLogger(__name__)

# So long what is decided waits for an entry to be stored with it, where nobody waits to see it applied.
APPLY_WAIT_MS: Final = 10.0
# So long what peers say waits for a turn that has more to do, where a leader waits for nothing that they could say.
LISTEN_WAIT_MS: Final = 2.0


class Turns:
    """Drives one group's log. Every method runs on the loop, except where the storage thread applies."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        node_id: str,
        group_id: int,
        log: ReplicatedLog,
        clock: Clock,
        machine: StateMachine,
        storage: Storage,
        transport: Transport,
        limits: NodeLimits,
        compaction: Compaction,
        monotonic_ms: Callable[[], float],
        on_leading: Callable[[], None],
        on_lost: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``on_leading`` hears when this node may evaluate in a new term, ``on_lost`` when a term of its own ended;
        ``on_failure`` once, when the node must stop.
        """
        self.log = log
        self._loop = loop
        self._node_id = node_id
        self._group_id = group_id
        self._clock = clock
        self._machine = machine
        self._storage = storage
        self._transport = transport
        self._limits = limits
        self.compaction = compaction
        self._monotonic_ms = monotonic_ms
        self._on_leading = on_leading
        self._on_lost = on_lost
        self._on_failure = on_failure
        self.pipeline = Pipeline(
            log=log,
            clock=clock,
            machine=machine,
            limits=limits,
            monotonic_ms=monotonic_ms,
        )
        self._rounds = ReadRounds(loop, log, self.pipeline.answer)
        self.on_doubt: Callable[[bytes], None] = _nothing_of
        """Called with a stored key that another member has, and this one lost."""
        self.on_configured: Callable[[], None] = _nothing
        """Called in the turn after which another configuration is in force."""
        self.after_turn: Callable[[], None] = _nothing
        """Called after each turn: there the snapshots look at what the log needs."""
        self.feed: ChangeFeed = ChangeFeed(machine.state.last_ts, limits)
        """What watches are told of: everything that is applied, in the order of the log."""
        self.refused_for: str = ""
        """Why there is no room for writes; empty while they go well."""
        self.measures = TurnMeasures()
        self._seen_leader = ""
        self._inbox = Inbox(monotonic_ms)
        self._storing = Storing(
            log=log,
            machine=machine,
            storage=storage,
            monotonic_ms=monotonic_ms,
            on_durable=self._durable,
            on_taken_back=self._taken_back,
            on_refused=self._refused,
            on_failure=self.fail,
        )
        self._wants_storing = False
        self._apply_due_ms = math.inf
        self._gathering = Gathering()
        self._gather_due_ms = math.inf
        self._listen_due_ms = math.inf
        self._is_scheduled = False
        self._wants_whole_turn = False
        self._alarm = Alarm(loop, monotonic_ms, self._alarm_turn)
        self._is_paused = False
        self._is_closed = False
        self._led_term: int | None = None
        self._is_leading = False
        self._handed_to = ""
        self._held_back: set[str] = set()
        self._configuration: Configuration | None = None
        self._is_only_voter = False
        self._readable: Timestamp | None = None
        self._watchers = Watchers(loop)
        self.failure: BaseException | None = None
        """Why the node stopped."""

    # --- what it knows -----------------------------------------------------------------------------------------

    @property
    def applied(self) -> AppliedState:
        return self.pipeline.applied

    @property
    def leads(self) -> bool:
        """True from the election to its loss; evaluating begins later, with the first own entry applied."""
        return self._led_term is not None

    @property
    def may_evaluate(self) -> bool:
        """True from the first own entry of the term that is applied."""
        return self._is_leading

    @property
    def led_term(self) -> int | None:
        """The term that this node leads, None where it does not."""
        return self._led_term

    @property
    def is_alone(self) -> bool:
        """This node is the group's only voter: whatever was decided, it decided."""
        voters = self.log.configuration.voters
        return len(voters) == 1 and voters[0].node_id == self._node_id

    @property
    def is_settled_alone(self) -> bool:
        """The only voter, which could not store yet that it leads, for want of room: what was decided is applied here,
        and nobody else can have decided anything."""
        return not self._is_leading and self.is_alone and self.log.decided <= self.applied.index

    @property
    def storing_measures(self) -> StoringMeasures:
        return self._storing.measures

    @property
    def rounds_begun(self) -> int:
        """Rounds of heartbeats that reads and refusals waited for, since the start."""
        return self._rounds.begun

    @property
    def held_back(self) -> frozenset[str]:
        """Why this node may not lead; empty where it may."""
        return frozenset(self._held_back)

    @property
    def inbox_use(self) -> tuple[int, int]:
        """Messages of peers that the log has not seen yet, and their bytes."""
        return self._inbox.use

    @property
    def is_paused(self) -> bool:
        """True while a snapshot is being installed."""
        return self._is_paused

    @property
    def is_waiting_for_room(self) -> bool:
        """True where the last transaction was refused, and is to be tried again whole."""
        return self._storing.is_refused

    def not_leader(self) -> NotLeader:
        """The error for a caller who must go elsewhere, with the leader's address as far as it is known."""
        leader = self.log.leader
        if leader in ("", self._node_id):
            leader = self._handed_to
        member = self.log.configuration.member(leader)
        if member is None:
            return NotLeader("no leader is known here")
        return NotLeader("this node does not lead", leader=member.address)

    # --- what comes in -----------------------------------------------------------------------------------------

    def receive(self, sender: str, bodies: Sequence[bytes]) -> None:
        """Messages of a peer; dropped where too many wait."""
        if self._is_closed or self.failure is not None:
            return
        self._inbox.put(sender, bodies)
        if self._is_leading and self.log.is_leader and not self.pipeline.has_undecided and self._nobody_waits():
            if self._listen_due_ms == math.inf:
                self._listen_due_ms = self._monotonic_ms() + LISTEN_WAIT_MS
                self._set_alarm()
        else:
            self.schedule()

    def propose(self, proposal: Proposal) -> None:
        """Put a proposal in line; it will have its answer. Raises Unavailable once the node stopped,
        NotLeader, ResourceExhausted while a transaction waits for room."""
        self.check_running()
        if not self.leads and not self.is_alone:
            raise self.not_leader()
        if self.is_waiting_for_room and not self.is_alone:
            raise ResourceExhausted(self.refused_for, retry_delay_ms=int(RETRY_MS_MAX), resource="disk")
        proposal.proposed_ms = self._monotonic_ms()
        self.pipeline.propose(proposal)
        self._gathering.proposed(proposal.proposed_ms)
        self._schedule()

    def read_now(self) -> Timestamp | None:
        """The linearizable read's timestamp, where nothing needs to be waited for: in a group of one.

        There is nobody to ask, and what is decided is applied: one transaction does both. But what waited for another
        voter when that was removed is decided at once, and applied later: until then a read takes the long way. Worked
        out at the end of each turn, in which alone any of this changes. (But for who is a voter: who becomes the second
        one cannot lead without our vote, so it does not matter that this is seen a turn later.)
        """
        return self._readable

    async def read(self) -> Timestamp:
        """The linearizable read's timestamp, once this node may answer at it. Raises NotLeader, Unavailable."""
        self.check_running()
        if self.is_settled_alone:
            return self.applied.last_ts
        if not self.leads:
            raise self.not_leader()
        waiting = self._rounds.ask()
        self.schedule()
        asked_ms = self._monotonic_ms()
        try:
            read_ts = await waiting
        except CortadoError:
            self.measures.reads_failed += 1
            raise
        waited_ms = self._monotonic_ms() - asked_ms
        self.measures.read_waits.observe(waited_ms / 1000)
        call = CURRENT.get()
        if call is not None:
            call.read_wait_ms = waited_ms
        return read_ts

    def check_running(self) -> None:
        """Raises Unavailable once the node stopped."""
        if self.failure is not None:
            raise Unavailable("the node has stopped: " + str(self.failure))
        if self._is_closed:
            raise Unavailable("the node has stopped")

    def hold_back(self, reason: str, held: bool) -> bool:
        """Keep this node from leading for ``reason``, or no longer. A leader hands over where another voter can. True
        where that is new."""
        if held == (reason in self._held_back):
            return False
        (self._held_back.add if held else self._held_back.discard)(reason)
        self.log.may_lead = not self._held_back
        _LOG.info("%s lead (%s)", "may not" if self._held_back else "may", reason)
        self.schedule()
        return True

    def handing_over(self, to: str) -> None:
        """A transfer to ``to`` has begun: callers are sent there as soon as this node does not lead any more."""
        self._handed_to = to
        self.schedule()

    # --- waiting -----------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` holds after a turn. Raises Unavailable once the node stopped."""
        if condition():
            return
        self.check_running()
        watcher = self._watchers.wait(condition)
        self.schedule()
        await watcher

    async def applied_at(self, index: int, term: int) -> None:
        """Return once the entry at ``index``, which this node appended in ``term``, is applied.

        Raises OutcomeUnknown where leadership was lost before.
        """
        await self.until(lambda: self._led_term != term or self.applied.index >= index)
        if self._led_term != term:
            raise OutcomeUnknown("leadership was lost before the change was decided")

    async def pause(self) -> None:
        """Return when no Ready is outstanding; none will be asked of the log until :meth:`resume`."""
        self._is_paused = True
        self.schedule()
        await self.until(lambda: self._storing.is_free)

    def resume(self, state: AppliedState) -> None:
        """Go on from ``state``, which is what the engine holds now. Raises DataLoss where it holds another."""
        if self._machine.load() != state:
            raise DataLoss("the node's state", f"the engine does not hold what was installed, {state}")
        self.pipeline.replaced(state)
        self.feed.replaced(state.last_ts)
        self._clock.observe_log(state.last_ts)
        self.compaction.restart(state.index)
        self._is_paused = False
        self.schedule()

    def fail(self, error: BaseException) -> None:
        """The node can't go on, for a reason of somebody else's."""
        self._fail(error)

    async def close(self) -> None:
        """Return when every proposal has its answer and nothing is being stored; no turn follows."""
        if self.failure is None and not self._is_closed:
            # A leader whose majority went away gives up within an election, and what it appended with it.
            await self.until(lambda: self.pipeline.is_idle and self._rounds.is_empty and not self._storing.is_busy)
        self._is_closed = True
        self._alarm.cancel()
        stopping = Unavailable("the node is stopping", retry_delay_ms=1_000)
        self._rounds.fail(stopping)
        self._watchers.fail(stopping)

    # --- the turn ----------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        """Let a turn follow as soon as the loop comes to it."""
        self._wants_whole_turn = True
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled and self.failure is None and not self._is_closed:
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled_turn)

    def _scheduled_turn(self) -> None:
        self._is_scheduled = False
        if self.failure is None and not self._is_closed:
            self._guarded(self._turn if self._wants_whole_turn else self._turn_of_proposals)

    def _guarded_turn(self) -> None:
        self._guarded(self._turn)

    def _guarded(self, turn: Callable[[], None]) -> None:
        try:
            turn()
        except Exception as defect:
            # Whatever was half done is not known any more.
            self._fail(defect)
        self._watchers.look()

    def _turn_of_proposals(self) -> None:
        """Where nothing but proposals came: a whole turn, unless the open one can't be appended yet."""
        if not self._evaluates_into_waiting_turn():
            self._turn()
        elif self._storing.is_free:
            self._set_alarm()

    def _evaluates_into_waiting_turn(self) -> bool:
        """Evaluate what waits; False where there is more to do than that."""
        pipeline = self.pipeline
        if not self._is_leading or not self.log.is_leader or self._is_paused or self._is_only_voter:
            return False
        if not pipeline.fill(self._monotonic_ms() + self._limits.evaluate_slice_ms):
            # Others of the loop get their turn; a whole one follows right after them.
            self.schedule()
            return True
        if not pipeline.has_commands:
            return False
        return not self._storing.is_free or (pipeline.may_append and self._waits_for_company())

    def _nobody_waits(self) -> bool:
        """Whether nothing here depends on what comes next."""
        pipeline = self.pipeline
        is_idle = not pipeline.has_waiting and not pipeline.has_commands and self._rounds.is_idle
        return is_idle and self._watchers.is_empty and not self._is_paused and not self._wants_whole_turn

    def _turn(self) -> None:
        self.measures.turns += 1
        now_ms = self._monotonic_ms()
        slice_ends_ms = now_ms + self._limits.evaluate_slice_ms
        self._wants_whole_turn = False
        self._gather_due_ms = self._listen_due_ms = math.inf
        if not self._inbox.step(self.log.step, slice_ends_ms):
            self.schedule()
        self._hear_doubts()
        self._look_at_leadership()
        if self._is_leading:
            self._evaluate(slice_ends_ms)
        self.log.tick(now_ms)
        self._look_at_leadership()
        self._send()
        self._store(now_ms)
        self._answer()
        self._look_what_is_readable()
        self.after_turn()
        self._set_alarm()

    def _hear_doubts(self) -> None:
        """What a follower did not keep was worked out without something that is lost here: nothing may come of it."""
        for doubt in self.log.take_doubts():
            _LOG.critical(
                "entry %d was worked out without %s, which a follower has", doubt.index, doubt.stored_key.hex()
            )
            self.on_doubt(doubt.stored_key)
            if self.log.disown(doubt.index):
                self.measures.entries_disowned += 1

    def _evaluate(self, until_ms: float) -> None:
        """Evaluate what waits, and append it where the storage thread is free to store it at once."""
        pipeline = self.pipeline
        if self.log.is_leader:
            if not pipeline.fill(until_ms):
                # Others of the loop get their turn; what waits goes on right after them.
                self.schedule()
            resting = pipeline.take_resting()
            if resting:
                self._rounds.rest(resting)
            self._begin_rounds()
            may_append = pipeline.has_commands and pipeline.may_append and self._storing.is_free
            if may_append and not self._is_paused and not self._waits_for_company():
                self.compaction.pacing.appended(pipeline.open_bytes, self._monotonic_ms())
                pipeline.append_open()
                self._gathering.closed()
                self._wants_storing = True
                if pipeline.has_waiting:
                    self.schedule()
        else:
            # A hand-over is under way. What is in line waits for its end.
            self._begin_rounds()

    def _waits_for_company(self) -> bool:
        """Whether the open turn, which may be appended, should not be yet."""
        pipeline, now_ms = self.pipeline, self._monotonic_ms()
        paced_ms = self.compaction.pacing.due_ms(now_ms)
        if paced_ms > now_ms:
            self._gather_due_ms = paced_ms
            return True
        if self._is_only_voter or pipeline.has_waiting or pipeline.is_full or not self._watchers.is_empty:
            return False
        due_ms = self._gathering.due_ms(
            pipeline.open_commands, pipeline.open_bytes, now_ms, undecided=pipeline.undecided_callers
        )
        if due_ms <= now_ms:
            return False
        self._gather_due_ms = due_ms
        return True

    def _begin_rounds(self) -> None:
        # While leadership is handed over, reads wait for the end of that, too.
        with suppress(NotLeader):
            self._rounds.begin(self.pipeline.acknowledged_ts)

    def _send(self) -> None:
        """Hand over what may leave, and say whom to be connected to."""
        configuration = self.log.configuration
        if configuration is not self._configuration:
            if configuration != self._configuration:
                self._transport.configure(configuration)
                self.on_configured()
            self._configuration = configuration
            self._is_only_voter = self.is_alone
        messages = self.log.outbox()
        if messages:
            self._transport.send(self._group_id, messages)

    def _store(self, now_ms: float) -> None:
        """Hand the next Ready to the storage thread, if that is free."""
        at_once, self._wants_storing = self._wants_storing, False
        if self._storing.is_free and (self._is_paused or self._may_apply_later(now_ms)):
            return
        self._storing.store(self.applied, now_ms, at_once=at_once)

    def _may_apply_later(self, now_ms: float) -> bool:
        """Whether there is nothing to store but what is decided, and that for nobody, and not for long."""
        waits = (
            self._is_leading
            and not self._is_only_voter
            and self.log.decided > self.applied.index
            and not self.log.has_writes
            and not self.pipeline.has_waiting
            and (not self.pipeline.has_commands or self._gather_due_ms < math.inf)
            and not self._rounds.has_reads
            and self._watchers.is_empty
        )
        if waits and self._apply_due_ms == math.inf:
            self._apply_due_ms = now_ms + APPLY_WAIT_MS
        if waits and now_ms < self._apply_due_ms:
            return True
        self._apply_due_ms = math.inf
        return False

    def _answer(self) -> None:
        """Answer whom the log's progress allows to answer, in a term that still lasts."""
        if self._led_term is not None:
            self._answer_decided()
            self._rounds.settle(self.applied)

    def _answer_decided(self) -> None:
        answered = self.pipeline.answer_decided()
        if answered:
            self._gathering.answered(answered, self._monotonic_ms())
            if self.pipeline.has_commands:
                # What waited for this may be appended now, or must wait for those who were answered.
                self.schedule()

    def _look_what_is_readable(self) -> None:
        applied = self.pipeline.applied
        may_read = self._is_only_voter and self._is_leading and self.log.decided <= applied.index
        is_seen = not may_read or self.pipeline.acknowledged_ts <= applied.last_ts
        invariant(is_seen, "what is read at once is all that was acknowledged", applied)
        self._readable = applied.last_ts if may_read else None

    def _set_alarm(self) -> None:
        due_ms = min(self.log.next_tick_ms, self._apply_due_ms, self._gather_due_ms, self._listen_due_ms)
        retry_at_ms = self._storing.retry_at_ms
        if retry_at_ms is not None:
            due_ms = min(due_ms, retry_at_ms)
        self._alarm.set(due_ms)

    def _alarm_turn(self) -> None:
        if self.failure is None and not self._is_closed:
            self._guarded_turn()

    # --- the storage thread's word -----------------------------------------------------------------------------

    def _durable(self, ready: Ready, state: AppliedState) -> None:
        self.refused_for = ""
        self.pipeline.stored()
        # What waited for this is on its way to the peers before the callers are looked at.
        self._send()
        if self._led_term is not None and self.log.leader == self._node_id and self.log.term == self._led_term:
            self._answer_decided()
        if ready.committed:
            applied = self.applied
            is_next = state.index == applied.index + len(ready.committed) and state.is_after(applied)
            invariant(is_next, "the state that was stored is the next one", applied, state)
            invariant(state.index <= self.log.decided, "what is applied is decided", state.index, self.log.decided)
            self._clock.observe_log(state.last_ts)
            self.pipeline.advance(state)
            self.feed.applied(self._machine.newly_applied, state.last_ts)
        self.compaction.durable(ready, self.applied.index)
        self.pipeline.turn_bytes_max = self.compaction.pacing.turn_bytes(self._limits.turn_bytes_max)
        if self._inbox.is_empty and self._nobody_waits() and self._is_leadership_known():
            self._store(self._monotonic_ms())
            self._set_alarm()
        else:
            self._guarded_turn()

    def _taken_back(self, index: int, error: ResourceExhausted) -> None:
        """The log took its entries back: refuse what did not fit, and evaluate again what was built on it."""
        self.refused_for = error.message()
        self.pipeline.take_back(index, self._rounds.withdraw(), error)
        self._guarded_turn()

    def _refused(self, error: ResourceExhausted) -> None:
        """There is no room, and what the log asked for stands."""
        if not self.refused_for:
            _LOG.warning("nothing can be stored: %s", error)
        self.refused_for = error.message()
        if self.is_alone:
            # Nobody takes over, so nothing in line would come to its turn before there is room.
            self.pipeline.refuse_waiting(error)
        self._guarded_turn()

    # --- leadership --------------------------------------------------------------------------------------------

    def _look_at_leadership(self) -> None:
        log = self.log
        leader = log.leader
        leads = leader == self._node_id
        if leader and leader != self._seen_leader:
            self._seen_leader = leader
            self.measures.leader_changes += 1
        if self._led_term is not None and not (leads and log.term == self._led_term):
            self._lose()
        if leads:
            if self._led_term is None:
                self._led_term = log.term
                self.measures.terms_led += 1
                _LOG.info("leads in term %d", log.term)
            if not self._is_leading and log.is_leader:
                self._lead()
        elif leader:
            self._handed_to = ""

    def _is_leadership_known(self) -> bool:
        """Whether a group of several is led as it was when leadership was looked at last."""
        log, leader = self.log, self.log.leader
        if self._is_only_voter or not leader or leader != self._seen_leader:
            return False
        if leader != self._node_id:
            return self._led_term is None
        return self._is_leading and log.is_leader and log.term == self._led_term

    def _lead(self) -> None:
        """Everything before this term is applied: what may have been given out of time lies below the clock."""
        self._is_leading = True
        self._handed_to = ""
        highest = max(self.applied.last_ts, self.applied.ceiling)
        self._clock.observe_log(highest)
        invariant(self._clock.last >= highest, "a leader begins above the ceiling", self._clock.last, highest)
        self._on_leading()

    def _lose(self) -> None:
        _LOG.info("leads no longer in term %s", self._led_term)
        self._led_term = None
        self._is_leading = False
        error = self.not_leader()
        resting = self._rounds.fail(error)
        self.pipeline.lose(resting, error, "leadership was lost before the write was decided")
        self._on_lost()

    def _fail(self, error: BaseException) -> None:
        """Stop for good. What was being stored may be on the disk or not: only a restart can tell."""
        if self.failure is not None:
            return
        self.failure = error
        self._readable = None
        _LOG.critical("the node stops: a turn could not be completed", exc_info=error)
        stopped = Unavailable("the node stopped before it stored the write")
        self.pipeline.lose(self._rounds.fail(stopped), stopped, "the node stopped while it stored the write")
        self._alarm.cancel()
        self._watchers.fail(Unavailable("the node has stopped: " + str(error)))
        self._on_failure(error)


def _nothing() -> None:
    """Nobody asked to be called."""


def _nothing_of(_key: bytes) -> None:
    """Nobody asked to be told."""
