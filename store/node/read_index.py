"""Linearizable answers: what a leader must hear before it may say what it sees.

A leader that was cut off does not know it. So before it answers from its state it asks, in one round of heartbeats,
for all who wait, whether a majority still follows it. What was committed when the round began is what a read must see::

    ask() ─┐ all that arrived      begin()                    settle()
    ask() ─┼────────────────► round 7, index 41 ── confirmed ──► read: at the last timestamp that is committed
    rest() ┘                                      (same term) `─► refusal: once 41 is committed

- *A read* is answered at the timestamp of the last commit that this leader knows. Whatever was acknowledged before the
  read was asked for is committed, here or by an earlier leader; of the latter everything is applied before this
  leader's first own entry. What is not applied yet is read from memory (:meth:`Pipeline.reader`).
- *A refusal, and a write without an effect*, is a read too: it says something about the newest state, appended entries
  included. It rests on all that was appended when it was worked out, so it waits until that is committed, and for a
  round that began after. (An entry that it rests on being committed is not enough: a majority may have acknowledged it
  before another leader came, which changed what the refusal speaks of.)

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
from cortado.store.node.batch import Answer

Waiting: TypeAlias = "asyncio.Future[Timestamp]"


@dataclass(slots=True, eq=False)
class _Round:
    """``appended`` is the last index at its beginning, ``acknowledged_ts`` the last commit that a caller had been told
    of."""

    number: int
    appended: int
    acknowledged_ts: Timestamp
    reads: Sequence[Waiting]
    refusals: Sequence[Answer]


@dataclass(slots=True, eq=False)
class ReadIndex:
    """Everybody who waits for a round. ``leave`` gives a resting answer to its proposal."""

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
        """True where no answer rests here. (Reads may.)"""
        return not self._resting and not self._refusals and not any(each.refusals for each in self._rounds)

    @property
    def is_idle(self) -> bool:
        """True where nobody waits here at all."""
        return not (self._asked or self._resting or self._rounds or self._refusals)

    @property
    def waiting(self) -> int:
        """How many want a round that has not begun."""
        return len(self._asked) + len(self._resting)

    def ask(self) -> Waiting:
        """A read that wants a round of its own time."""
        waiting: Waiting = self.loop.create_future()
        self._asked.append(waiting)
        return waiting

    def rest(self, answers: Sequence[Answer]) -> None:
        """Answers that were worked out from all that is appended now, and from nothing else."""
        self._resting += answers

    def begin(self, acknowledged_ts: Timestamp) -> None:
        """One round for all that arrived. Only for a leader that may evaluate. Raises NotLeader."""
        log = self.log
        begun = _Round(log.read_round(), log.last[0], acknowledged_ts, self._asked, self._resting)
        self._asked, self._resting = [], []
        self._rounds.append(begun)
        self.begun += 1

    def settle(self, newest_ts: Timestamp) -> None:
        """Answer what may be answered. ``newest_ts`` is the last commit's timestamp, by what the log says now."""
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
        """Take back the answers that rest: some of what they were worked out from was taken back."""
        resting = [answer for each in (*self._refusals, *self._rounds) for answer in each.refusals] + self._resting
        self._resting = []
        self._refusals.clear()
        for each in self._rounds:
            each.refusals = ()
        return resting

    def fail(self, error: CortadoError) -> list[Answer]:
        """End all reads with ``error``; returns the answers that rested, which must not be given."""
        reads = [read for each in self._rounds for read in each.reads] + self._asked
        resting = self.withdraw()
        self._asked = []
        self._rounds.clear()
        for waiting in reads:
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()
        return resting
