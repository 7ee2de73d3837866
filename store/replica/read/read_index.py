"""Linearizable answers: a leader hears from a majority before it answers from its state.

A leader that was cut off does not know it. So before it answers from its state it asks, in one round of heartbeats for
all waiting reads, whether a majority still follows it. A read must see all commits from before its round::

    ask() ─┐ all that arrived      begin()                    settle()
    ask() ─┼────────────────► round 7, index 41 ── confirmed ──► read: at the last timestamp that is committed
    rest() ┘                                      (same term) `─► refusal: once 41 is committed

- *A read* is answered at the timestamp of the last commit that this leader knows. Every write acknowledged before the
  read is committed, here or by an earlier leader; an earlier leader's writes are all applied before this leader's first
  own entry. Committed writes that are not applied yet are read from memory (:meth:`Pipeline.reader`).
- *A refusal, and a write without an effect*, is a read too: it says something about the newest state, appended entries
  included. It rests on all entries appended when it was worked out. So it waits until they are committed, and for a
  round that began after. (Their commit alone is not enough: a majority may have acknowledged them before another leader
  came, which changed the state that the refusal speaks of.)

Leadership lost ends all of them with NotLeader. A group of one confirms each round at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cortado.errors import CortadoError
from cortado.invariants import invariant
from cortado.raft.group import RaftLog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.replica.write.batch import Answer

Waiting: TypeAlias = "asyncio.Future[Timestamp]"


@dataclass(slots=True, eq=False)
class _Round:
    """``appended`` is the last index at its beginning, ``acknowledged_ts`` the last commit acknowledged to a caller by
    then."""

    number: int
    appended: int
    acknowledged_ts: Timestamp
    reads: Sequence[Waiting]
    refusals: Sequence[Answer]


@dataclass(slots=True, eq=False)
class ReadIndex:
    """All reads and answers that wait for a round. ``leave`` gives a resting answer to its proposal."""

    loop: asyncio.AbstractEventLoop
    log: RaftLog
    leave: Callable[[Answer], None]
    begun: int = 0
    """Rounds since the start."""
    _asked: list[Waiting] = field(default_factory=list)
    _resting: list[Answer] = field(default_factory=list)
    _rounds: deque[_Round] = field(default_factory=deque)
    _refusals: deque[_Round] = field(default_factory=deque)

    @property
    def is_empty(self) -> bool:
        """True if no answer rests here. (Reads may.)"""
        return not self._resting and not self._refusals and not any(each.refusals for each in self._rounds)

    @property
    def is_idle(self) -> bool:
        """True if neither a read nor an answer waits here."""
        return not (self._asked or self._resting or self._rounds or self._refusals)

    @property
    def waiting(self) -> int:
        """Return how many want a round that has not begun."""
        return len(self._asked) + len(self._resting)

    def ask(self) -> Waiting:
        """Ask for a read, with a round that begins after this."""
        waiting: Waiting = self.loop.create_future()
        self._asked.append(waiting)
        return waiting

    def rest(self, answers: Sequence[Answer]) -> None:
        """Take answers that rest on all entries appended now, and on nothing else."""
        self._resting += answers

    def begin(self, acknowledged_ts: Timestamp) -> None:
        """Begin one round for all waiting reads and answers. Only for a leader that may evaluate. Raises NotLeader."""
        log = self.log
        begun = _Round(log.read_round(), log.last[0], acknowledged_ts, self._asked, self._resting)
        self._asked, self._resting = [], []
        self._rounds.append(begun)
        self.begun += 1

    def settle(self, newest_ts: Timestamp) -> None:
        """Give the answers that the log allows. ``newest_ts`` is the last commit's timestamp, by the log as of now."""
        rounds = self._rounds
        if rounds:
            confirmed = self.log.confirmed_round
            while rounds and rounds[0].number <= confirmed:
                each = rounds.popleft()
                self._read(each, newest_ts)
                if each.refusals:
                    self._refusals.append(each)
        while self._refusals and self._refusals[0].appended <= self.log.durable_commit_index:
            for answer in self._refusals.popleft().refusals:
                self.leave(answer)

    def _read(self, confirmed: _Round, newest_ts: Timestamp) -> None:
        is_seen = confirmed.acknowledged_ts <= newest_ts
        invariant(is_seen, "a read sees what was acknowledged before its round", confirmed.acknowledged_ts, newest_ts)
        for waiting in confirmed.reads:
            if not waiting.done():
                waiting.set_result(newest_ts)

    def withdraw(self) -> list[Answer]:
        """Take back the resting answers: some of the entries that they rest on were taken back."""
        resting = [answer for each in (*self._refusals, *self._rounds) for answer in each.refusals] + self._resting
        self._resting = []
        self._refusals.clear()
        for each in self._rounds:
            each.refusals = ()
        return resting

    def fail(self, error: CortadoError) -> list[Answer]:
        """End all reads with ``error``. Returns the resting answers, which must not be given."""
        reads = [read for each in self._rounds for read in each.reads] + self._asked
        resting = self.withdraw()
        self._asked = []
        self._rounds.clear()
        for waiting in reads:
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()
        return resting
