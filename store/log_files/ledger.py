"""The sum of the log's records: where each group's log begins and ends, and which segments hold entries that it needs.

A :class:`Ledger` is the same for a process that appends and for one that recovers: it takes records in their order,
refuses those that can't follow a group's last one, and says up to which segment nothing is needed any more. It holds no
entries. Per segment and group it knows the first and last index of the live ones: they follow each other, since a group
appends only behind its last entry.

An entry is live until its group's base reaches it, or a later record replaces or truncates it. A segment is needed
while it holds a live entry; the current one always is. The oldest go first, so no record about an entry goes before
that entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cortado.raft.log import LogRecord, RecordKind


class Place(NamedTuple):
    """The bounds of a group's log: it begins after ``hard_state.index`` and ends with ``last``."""

    hard_state: LogRecord
    last: int


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of records on their groups."""

    places: dict[int, Place]
    cuts: dict[int, int]
    """The lowest index that was written or truncated: live entries of before are below."""
    firsts: dict[int, int]
    """The lowest index that was written."""


@dataclass(slots=True)
class Held:
    """A segment, and the first and last live entry that it holds of each group, as far as it is known to have any."""

    number: int
    size_bytes: int
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)


class Ledger:
    """All groups and all segments; the last one is the current."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.segments: deque[Held] = deque()

    def after(self, records: Iterable[LogRecord]) -> Change:
        """Return the effect of these records. Raises ValueError if one does not follow."""
        places: dict[int, Place] = {}
        cuts: dict[int, int] = {}
        firsts: dict[int, int] = {}
        for record in records:
            group_id, index, kind = record.group_id, record.index, record.kind
            places[group_id] = _next(places.get(group_id) or self.places.get(group_id), record)
            if kind is not RecordKind.HARD_STATE and index < cuts.get(group_id, index + 1):
                cuts[group_id] = index
            if kind is RecordKind.ENTRY and index < firsts.get(group_id, index + 1):
                firsts[group_id] = index
        return Change(places, cuts, firsts)

    def oldest_needed(self, change: Change) -> int:
        """Return the number of the oldest segment that is needed once ``change`` is made."""
        for held in self.segments:
            if held is self.segments[-1] or self._is_needed(held, change):
                return held.number
        return 0

    def _is_needed(self, held: Held, change: Change) -> bool:
        for group_id, (first, last) in held.spans.items():
            place = change.places.get(group_id) or self.places[group_id]
            last = min(last, change.cuts.get(group_id, last + 1) - 1)
            if last >= first and last > place.hard_state.index:
                return True
        return False

    def make(self, change: Change) -> None:
        """The records are in the current segment."""
        for group_id, cut in change.cuts.items():
            before = self.places.get(group_id)
            if before is not None and cut <= before.last:
                self._cut(group_id, cut)
        self.places |= change.places
        spans = self.segments[-1].spans
        for group_id, first in change.firsts.items():
            last = self.places[group_id].last
            if first <= last:
                spans[group_id] = (min(first, spans.get(group_id, (first, 0))[0]), last)
        self._forget(self.segments[0])

    def _cut(self, group_id: int, cut: int) -> None:
        for held in self.segments:
            first, last = held.spans.get(group_id, (0, -1))
            if last >= cut:
                if cut > first:
                    held.spans[group_id] = (first, cut - 1)
                else:
                    del held.spans[group_id]

    def _forget(self, held: Held) -> None:
        """Forget groups that need the segment no longer, up to the first that does, so that asking is cheap for many
        groups."""
        while held.spans:
            group_id = next(iter(held.spans))
            if held.spans[group_id][1] > self.places[group_id].hard_state.index:
                return
            del held.spans[group_id]

    # --- the first frame of a segment ------------------------------------------------------------------------------

    def state(self) -> list[LogRecord]:
        """Return every group's hard state and, if it has entries, a truncation behind the last one."""
        records = []
        for group_id, place in sorted(self.places.items()):
            records.append(place.hard_state)
            if place.last > place.hard_state.index:
                records.append(LogRecord(RecordKind.TRUNCATE, group_id, place.last + 1, 0))
        return records

    def begin(self, state: Sequence[LogRecord]) -> None:
        """Begin with the first frame of the oldest segment, in place of all records before it. Raises ValueError."""
        for record in state:
            place = self.places.get(record.group_id)
            if record.kind is RecordKind.HARD_STATE:
                self.places[record.group_id] = _next(place, record)
            elif place is not None and record.kind is RecordKind.TRUNCATE:
                self.places[record.group_id] = Place(place.hard_state, record.index - 1)
        if self.state() != list(state):
            raise ValueError("its first frame is of a kind that begins no segment")


def _next(place: Place | None, record: LogRecord) -> Place:
    """Return the bounds of the group's log after ``record``. Raises ValueError if that can't follow."""
    if place is not None and record.kind is RecordKind.ENTRY and record.index == place.last + 1:
        return Place(place.hard_state, record.index)
    if record.kind is RecordKind.HARD_STATE:
        if place is not None and record.index < place.hard_state.index:
            raise ValueError(f"{_named(record)} goes back behind {place.hard_state.index}, where its log begins")
        return Place(record, record.index if place is None else max(place.last, record.index))
    if place is None:
        raise ValueError(f"{_named(record)} comes before any hard state of its group")
    if record.index <= place.hard_state.index:
        raise ValueError(f"{_named(record)} is not behind {place.hard_state.index}, where its log begins")
    if record.kind is RecordKind.TRUNCATE:
        return Place(place.hard_state, min(place.last, record.index - 1))
    if record.index > place.last + 1:
        raise ValueError(f"{_named(record)} follows {place.last}: entries between are missing")
    return Place(place.hard_state, record.index)


def _named(record: LogRecord) -> str:
    return f"{record.kind.name} {record.index} of group {record.group_id}"
