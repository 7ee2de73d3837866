"""The steps of an aggregate: one thread reads on from the front, and idle ones read parts behind it.

::

    keys of the range      │ front, read to here ─────►        │ part ─────►   │ part, read │ part        │
    groups                 │ of the rows since the last reply  │ its own       │ its own    │ none        │
    threads                │ that of the step                  │ an idle one   │            │ next of all │

A reply has the groups of the front alone, and the token of its place: so all that was said of replies holds, whatever
lies behind. Once the front reaches a part, it takes that part's groups over, and goes on from that part's place. Parts
are made at the second step, so a short range has none.

If a part cannot be read (damage, a group that no page holds), it is left to the front, which meets the same, at the
same place as without parts; or not, if it was repaired meanwhile. All threads work between the beginning and the end of
a step: nothing goes on behind a step's back. Parts have half of the bounds on groups, and the front has the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Lock
from typing import Final, Protocol, TypeAlias

from cortado.errors import CortadoError
from cortado.store.aggregate.partial import GROUPS_BYTES_MAX, GROUPS_MAX, PartialGroups
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.kept import KeptTable
from cortado.store.mvcc.paging import PageToken
from cortado.store.mvcc.reader import ScanSource
from cortado.store.tables.aggregate import AggregatePage, AggregatePlan
from cortado.store.tables.aggregate_slices import read_slice
from cortado.store.tables.scan import Budget, first_key

REPLY_MS: Final = 1_000.0
"""This long after the last reply, the groups so far leave: a caller waits for each reply, and does not wait for
ever."""

Divide: TypeAlias = Callable[[KeyRange], Sequence[LogicalKey]]
"""Returns keys that cut a range into parts, ascending; none if that is not worth it."""


class Lent(Protocol):
    def join(self) -> None:
        """Wait for the end of all that began."""


class Lender(Protocol):
    """Threads that would be idle otherwise."""

    def spare(self) -> int:
        """Return how many it could lend now."""

    def lend(self, most: int, work: Callable[[Callable[[], bool]], None]) -> Lent:
        """Begin ``work`` on some of them, at most ``most``; it is told by a function whether it may go on."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The means to read parts on other threads."""

    divide: Divide
    threads: Lender


class Part:
    """The rows of ``[..., position)`` are in ``groups``; those of ``[position, end)`` are to be read."""

    __slots__ = ("end", "groups", "is_left", "is_taken", "position")

    def __init__(self, groups: PartialGroups, position: LogicalKey, end: LogicalKey) -> None:
        self.groups = groups
        self.position = position
        self.end = end
        self.is_taken = False
        """Whether a thread is reading it."""
        self.is_left = False
        """Whether it can be read by the front alone."""

    @property
    def is_read(self) -> bool:
        return self.position >= self.end


@dataclass(slots=True)
class AggregateState:
    """Between steps: the front, with the groups of the rows since ``began_ms``, and the parts behind it."""

    front: Part
    began_ms: float
    kept: KeptTable | None = None
    """The columns that are kept of the table's rows, if it can use some."""
    parts: list[Part] = field(default_factory=list)
    is_begun: bool = False
    is_divided: bool = False
    lock: Lock = field(default_factory=Lock, repr=False)
    """Guards ``parts``, and who takes which."""

    @property
    def is_read(self) -> bool:
        """Whether all rows are in the front's groups."""
        return self.front.is_read and not self.parts


def begin_aggregate(
    plan: AggregatePlan, token: PageToken | None, now_ms: float, kept: KeptTable | None = None
) -> AggregateState:
    """From ``token`` on, or from the beginning. Raises InvalidPageToken."""
    start, end = plan.scan.range
    position = first_key(plan.scan)
    if token is not None and start < end:
        position = token.resume_within(start, end)
    return AggregateState(Part(PartialGroups(plan.aggregation), LogicalKey(position), end), now_ms, kept)


def aggregate_step(
    source: ScanSource, plan: AggregatePlan, state: AggregateState, budget: Budget, beside: Beside | None = None
) -> AggregatePage | None:
    """Read on for as long as the budget's time lasts; with ``beside``, parts on idle threads, too. Returns a page if
    one is due.

    Raises DataLoss, SnapshotTooOld, TooLarge for a group that no page holds.
    """
    reading = _Reading(source, plan, state, budget)
    if beside is None:
        reading.front()
    else:
        reading.side_by_side(beside)
    state.is_begun = True
    now_ms = budget.clock_ms()
    groups = state.front.groups
    if not state.is_read and not groups.is_full and now_ms - state.began_ms < REPLY_MS:
        return None
    state.began_ms = now_ms
    following = None if state.is_read else PageToken(plan.scan.read_ts, state.front.position)
    return AggregatePage(*groups.take(), following)


class _Reading:
    """One step, on all of its threads."""

    def __init__(self, source: ScanSource, plan: AggregatePlan, state: AggregateState, budget: Budget) -> None:
        self._source = source
        self._plan = plan
        self._state = state
        self._clock_ms = budget.clock_ms
        self._until_ms = budget.clock_ms() + budget.ms

    def side_by_side(self, beside: Beside) -> None:
        """Read on at the front, and parts on threads that ``beside`` lends."""
        state = self._state
        if state.is_begun and not state.is_divided and beside.threads.spare():
            self._divide(beside.divide)
        if not state.parts:
            self.front()
            return
        lent = beside.threads.lend(len(state.parts), self.help)
        try:
            self.front()
            # The next part is in another thread's hands, or there is no time left.
            if state.front.is_read:
                self.help(_always)
        finally:
            lent.join()
        self._advance()

    def _divide(self, divide: Divide) -> None:
        state, plan = self._state, self._plan
        state.is_divided = True
        front = state.front
        cuts = divide((front.position, front.end))
        if state.kept is not None:
            cuts = [each for each in state.kept.aligned(cuts) if each > front.position]
        if not cuts:
            return
        state.parts = [Part(PartialGroups(plan.aggregation), start, end) for start, end in pairwise([*cuts, front.end])]
        front.end = cuts[0]
        for each in (front, *state.parts):
            each.groups.share = 2

    # --- the front

    def front(self) -> None:
        """Read on from the front's place: one slice at least, if there is any."""
        front = self._state.front
        self._advance()
        while not front.is_read and not front.groups.is_full:
            self._read(front)
            self._advance()
            if self._clock_ms() >= self._until_ms:
                return

    def _advance(self) -> None:
        """Take over the parts that the front has reached, but for one that another thread is reading."""
        state, front = self._state, self._state.front
        while front.is_read and not front.groups.is_full:
            with state.lock:
                if not state.parts or state.parts[0].is_taken:
                    return
                reached = state.parts.pop(0)
            front.position, front.end = reached.position, reached.end
            front.groups.share = 2 if state.parts else 1
            front.groups.absorb(reached.groups)

    # --- parts

    def help(self, may_go_on: Callable[[], bool]) -> None:
        """Read parts until the step's time is over, the groups have no room, or no part is free."""
        while may_go_on() and self._has_room() and self._clock_ms() < self._until_ms:
            part = self._take()
            if part is None:
                return
            try:
                while not part.is_read and may_go_on() and self._has_room() and self._clock_ms() < self._until_ms:
                    self._read(part)
                part.groups.join()
            except CortadoError:
                part.is_left = True
            finally:
                part.is_taken = False

    def _take(self) -> Part | None:
        state = self._state
        with state.lock:
            for part in state.parts:
                if not (part.is_taken or part.is_left or part.is_read):
                    part.is_taken = True
                    return part
        return None

    def _has_room(self) -> bool:
        """Whether parts hold less than half of the groups that may be held, and all together less than all of those."""
        state = self._state
        with state.lock:
            held = [part.groups.held for part in state.parts]
        count, size_bytes = map(sum, zip((0, 0), *held, strict=True))
        all_count, all_bytes = map(sum, zip((count, size_bytes), state.front.groups.held, strict=True))
        return max(2 * count, all_count) < GROUPS_MAX and max(2 * size_bytes, all_bytes) < GROUPS_BYTES_MAX

    def _read(self, part: Part) -> None:
        within = part.position, part.end
        part.position = read_slice(self._source, self._plan, part.groups, within, self._state.kept)


def _always() -> bool:
    return True
