"""The log of one group: a window of entries in memory, and the part that is still to be written.

::

    base          applied        durable      last
     |  entries stored  |            |          |
     +---------------------------------+--------+
                                       dirty_from ..  are written next

PySyncObj reads and writes it as its journal, by positions: a list, at whose position 0 is the base, the place that the
log begins after.
Writes are not queued one by one. The journal remembers which indexes are stored and from which one on memory differs,
and writes the difference. So entries that are appended and truncated again within a round cost nothing.

Entries dropped from the front (:meth:`Journal.drop_to`) are not deleted one by one either: the hard state names the
base, and the log files let go of the entries before it.
"""

from __future__ import annotations

from cortado.errors import DataLoss, Internal
from cortado.invariants import invariant
from cortado.raft.in_force import InForce
from cortado.raft.log import LogRecord, RecordKind
from cortado.raft.records import (
    KIND_CONFIGURATION,
    KIND_REGISTRY,
    HardState,
    Record,
    StoredLog,
    Writes,
    nothing,
)
from cortado.raft.registry import Roster

EngineEntry = tuple[Record, int, int]


class Journal(list[EngineEntry]):
    """Indexes count from the base; writes are outstanding once at a time."""

    def __init__(self, group_id: int, stored: StoredLog, applied: tuple[int, int]) -> None:
        """``applied`` is the last entry that the data contains (index, term). Raises DataLoss if the log does not reach
        it."""
        state = stored.hard_state
        self._owner = state.owner
        self.group_id = group_id
        self.term = state.term
        self.voted_for = state.voted_for
        _check_applied(group_id, stored, applied)
        self.base = (state.base_index, state.base_term)
        """Index and term that the log begins after."""
        self.last = self.base
        """Index and term of the last entry."""
        self.last_index = self.base[0]
        self._configurations = InForce(state.base_roster.configuration)
        self._registries = InForce(state.base_roster.registry)
        self.roster = state.base_roster
        """The newest configuration and registry, committed or not: the same object as long as both are."""
        self.configuration = self.roster.configuration
        super().__init__([(nothing(*self.base), *self.base)])
        self._bytes = 0
        self.pushed_bytes = 0
        """The bytes of all entries that this process ever appended."""
        for record in stored.records:
            self._push(record)
            self._count(record)
        # The last index that the disk has, or will with the writes that were taken last; and before those.
        self._stored_to = self._stored_before = self.last_index
        self._dirty_from = self.last_index + 1
        self.durable_index = self.last_index
        self.is_hard_state_dirty = False
        self.commit_index = applied[0]
        """PySyncObj's commit index: it begins with this one, and tells each change (syncobj.py:676, 1035)."""
        # Writes are numbered: the next ones, the last ones that are durable, those that hold the term and vote.
        self.open_sequence = 1
        self.synced_sequence = 0
        self.vote_sequence = 0
        self._handed_to: int | None = None

    # --- the places ---------------------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        return self.is_hard_state_dirty or self._dirty_from <= self.last_index or self._stored_to > self.last_index

    @property
    def storing_to(self) -> int | None:
        """Return the last entry of the writes that were taken last and are not durable yet; None if they hold none."""
        is_any = self._handed_to is not None and self._handed_to > self.durable_index
        return self._handed_to if is_any else None

    @property
    def is_vote_durable(self) -> bool:
        """Return whether the disk has our term and vote."""
        return self.vote_sequence <= self.synced_sequence

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the stored entries in the window."""
        return self._bytes

    def term_at(self, index: int) -> int | None:
        """Return the term of the entry at ``index``, or of the base; None if it is not held."""
        if not self.base[0] <= index <= self.last_index:
            return None
        return self[index - self.base[0]][2]

    def record_at(self, index: int) -> Record:
        return self[index - self.base[0]][0]

    def records(self, first: int, last: int) -> list[Record]:
        """Return the records at ``first`` to ``last``, both included, which must be held."""
        start = first - self.base[0]
        return [each[0] for each in self[start : start + last - first + 1]]

    def bytes_after(self, index: int) -> int:
        """Return the bytes of the held entries behind ``index``."""
        first = max(index, self.base[0]) + 1
        return sum(map(len, self.records(first, self.last_index))) if first <= self.last_index else 0

    @property
    def configuration_index(self) -> int:
        """Return the index of the newest configuration; the base's index if it is not an entry of the window."""
        return max(self._configurations.places, default=self.base[0])

    @property
    def registry_index(self) -> int:
        """Return the index of the newest registry, as :attr:`configuration_index` does."""
        return max(self._registries.places, default=self.base[0])

    def roster_at(self, index: int) -> Roster:
        """Return the roster in force at ``index``, which is not before the base: earlier rosters are gone with their
        entries."""
        invariant(index >= self.base[0], "a roster that is asked for is not gone", index, self.base)
        return Roster(self._configurations.at(index), self._registries.at(index))

    def rosters_from(self, index: int) -> list[Roster]:
        """Return the roster in force at ``index`` (at the base, if that is later) and after each later change of either
        part, in order."""
        index = max(index, self.base[0])
        changes = {at for at in (*self._configurations.places, *self._registries.places) if at > index}
        return [self.roster_at(each) for each in (index, *sorted(changes))]

    def sequence_of(self, index: int) -> int:
        """Return the number of the writes after which ``index``, the term and the vote are durable."""
        if index <= self.durable_index:
            return self.vote_sequence
        if self._handed_to is not None and index <= self._handed_to:
            return max(self.vote_sequence, self.open_sequence - 1)
        return self.open_sequence

    # --- what PySyncObj calls -------------------------------------------------------------------------------------

    def add(self, command: Record | bytes, idx: int, term: int) -> None:
        """Append. Bytes are PySyncObj's own first entry of a term."""
        record = nothing(idx, term) if isinstance(command, bytes) else command
        last_index, last_term = self.last
        invariant(idx == last_index + 1, "an entry follows the last one of the log", idx, last_index)
        invariant(last_term <= term <= self.term, "terms do not fall along the log", last_term, term, self.term)
        invariant((record.index, record.term) == (idx, term), "an entry is appended where it says", record.index, idx)
        self._push(record)

    def deleteEntriesFrom(self, position: int) -> None:
        self.truncate(self.base[0] + position)

    def deleteEntriesTo(self, _position: int) -> None:
        raise Internal("compaction is not PySyncObj's business")

    def clear(self) -> None:
        raise Internal("snapshots are not PySyncObj's business")

    def setCurrentTerm(self, term: int, voted_for: str | None) -> None:
        is_vote = term == self.term and bool(voted_for) and self.voted_for in ("", voted_for)
        invariant(term > self.term or is_vote, "a term does not fall, and has one vote", self.term, term, voted_for)
        self.term = term
        self.voted_for = voted_for or ""
        self.is_hard_state_dirty = True
        self.vote_sequence = self.open_sequence

    def getCurrentTerm(self) -> int:
        return self.term

    def getVotedForNodeId(self) -> str | None:
        return self.voted_for or None

    def setRaftCommitIndex(self, index: int) -> None:
        """Keep it in memory alone: after a restart everything up to the applied index is committed, and a leader tells
        the rest."""
        self.commit_index = index

    def getRaftCommitIndex(self) -> int:
        """Return the commit index at the start: the data's, or a higher one if there is no other voter."""
        return self.commit_index

    def onOneSecondTimer(self) -> None:
        """Nothing to flush."""

    # --- changes -----------------------------------------------------------------------------------------------

    def truncate(self, index: int) -> None:
        """Remove the entries from ``index`` on, which must be above the base."""
        invariant(index > self.base[0], "what is truncated lies above the log's base", index, self.base)
        position = index - self.base[0]
        for record, _, _ in self[position:]:
            self._uncount(record)
        del self[position:]
        self._configurations.truncate(index)
        self._registries.truncate(index)
        self._note_end()
        self._note_roster()
        self._dirty_from = min(self._dirty_from, index)
        self.durable_index = min(self.durable_index, index - 1)
        if self._handed_to is not None:
            self._handed_to = min(self._handed_to, index - 1)

    def drop_to(self, index: int) -> None:
        """Let the log begin after ``index``, which is held, applied and durable."""
        if index <= self.base[0]:
            return
        term = self.term_at(index)
        assert term is not None
        gone = index - self.base[0] + 1
        for record, _, _ in self[:gone]:
            self._uncount(record)
        self._set_base((index, term), self.roster_at(index))
        self[:gone] = [(nothing(index, term), index, term)]
        self._dirty_from = max(self._dirty_from, index + 1)

    def reset(self, index: int, term: int, roster: Roster, *, was_kept: bool) -> None:
        """Begin after a snapshot's place, whose reset of the disk (:meth:`reset_writes`) is durable. Entries behind it
        that agree with it stay."""
        if self.term_at(index) == term:
            self.drop_to(index)
            self._set_base((index, term), roster)
        else:
            self[:], self._bytes = [(nothing(index, term), index, term)], 0
            self._configurations.truncate(0)
            self._registries.truncate(0)
            self._note_end()
            self._set_base((index, term), roster)
        if not was_kept:
            self._stored_to = index
            self._dirty_from = index + 1
            self.durable_index = index
        self._stored_to = max(self._stored_to, index)
        self._dirty_from = max(self._dirty_from, index + 1)
        self.durable_index = max(self.durable_index, index)
        is_base = self.base == (index, term)
        invariant(is_base, "the log begins after the snapshot that was installed", self.base, index, term)

    def reset_writes(self, index: int, term: int, roster: Roster) -> tuple[Writes, bool]:
        """Return the writes of a reset, and whether the stored entries behind ``index`` stay."""
        is_kept = self.term_at(index) == term
        # Stored entries that memory has replaced may lie behind the new base, with no later write to replace them.
        kept_to = min(self._stored_to, self._dirty_from - 1) if is_kept else self.base[0]
        writes: Writes = []
        if self._stored_to > kept_to:
            writes.append(LogRecord(RecordKind.TRUNCATE, self.group_id, kept_to + 1, 0))
        state = HardState(
            max(self.term, term), self.voted_for if self.term >= term else "", index, term, roster, self._owner
        )
        return [*writes, state.log_record(self.group_id)], is_kept

    # --- durability ----------------------------------------------------------------------------------------------

    def take_writes(self) -> Writes:
        """Return the writes that bring the disk up to memory."""
        invariant(self._handed_to is None, "writes are outstanding once at a time", self._handed_to)
        writes: Writes = []
        if self.is_hard_state_dirty:
            writes.append(self.hard_state.log_record(self.group_id))
            self.is_hard_state_dirty = False
        last = self.last_index
        if self._stored_to > last and self._dirty_from > last:
            writes.append(LogRecord(RecordKind.TRUNCATE, self.group_id, last + 1, 0))
        for record in self.records(self._dirty_from, last) if self._dirty_from <= last else ():
            writes.append(record.log_record(self.group_id))
            self._count(record)
        self._stored_before, self._stored_to = self._stored_to, last
        self._dirty_from = last + 1
        self._handed_to = last
        self.open_sequence += 1
        return writes

    def synced(self) -> None:
        """The writes taken last are durable."""
        handed_to, self._handed_to = self._handed_to, None
        invariant(handed_to is not None, "writes become durable once")
        self.durable_index = max(self.durable_index, handed_to or 0)
        is_within = self.base[0] <= self.durable_index <= self.last_index
        invariant(is_within, "what is durable lies within the log", self.base, self.durable_index, self.last_index)
        self.synced_sequence = self.open_sequence - 1

    def withdrawn(self) -> None:
        """Take the last writes back: they never happened, and all entries above the durable ones are gone."""
        self._handed_to = None
        self.synced_sequence = self.open_sequence - 1
        if self.durable_index < self.last_index:
            self.truncate(self.durable_index + 1)
        self._stored_to = self._stored_before
        self._dirty_from = self.durable_index + 1
        # The base may have been among them.
        self.is_hard_state_dirty = True

    @property
    def hard_state(self) -> HardState:
        last_term = self.last[1]
        invariant(self.term >= last_term, "the stored term is the last entry's, or later", self.term, last_term)
        base_roster = Roster(self._configurations.base, self._registries.base)
        return HardState(self.term, self.voted_for, *self.base, base_roster, self._owner)

    def _set_base(self, base: tuple[int, int], roster: Roster) -> None:
        self.base = base
        self._configurations.begin(base[0], roster.configuration)
        self._registries.begin(base[0], roster.registry)
        self._note_roster()
        self.is_hard_state_dirty = True

    def _push(self, record: Record) -> None:
        self.pushed_bytes += len(record)
        self.append((record, record.index, record.term))
        self.last_index, self.last = record.index, (record.index, record.term)
        if record.kind == KIND_CONFIGURATION:
            self._configurations.put(record.index, record.configuration)
            self._note_roster()
        elif record.kind == KIND_REGISTRY:
            self._registries.put(record.index, record.registry)
            self._note_roster()

    def _note_end(self) -> None:
        """Follow a change of the window's end."""
        _, index, term = self[-1]
        self.last_index, self.last = index, (index, term)

    def _note_roster(self) -> None:
        """Follow a change of a configuration or registry."""
        self.configuration, registry = self._configurations.newest, self._registries.newest
        if self.roster.configuration is not self.configuration or self.roster.registry is not registry:
            self.roster = Roster(self.configuration, registry)

    def _count(self, record: Record) -> None:
        if not record.is_counted:
            record.is_counted = True
            self._bytes += len(record)

    def _uncount(self, record: Record) -> None:
        if record.is_counted:
            record.is_counted = False
            self._bytes -= len(record)


def _check_applied(group_id: int, stored: StoredLog, applied: tuple[int, int]) -> None:
    """Raise DataLoss if the log contradicts ``applied``."""
    place = f"the log of group {group_id}"
    state, last = stored.hard_state, stored.last
    base = (state.base_index, state.base_term)
    if applied[0] < base[0]:
        raise DataLoss(place, f"it begins after entry {base[0]}, but only {applied[0]} is applied")
    if applied[0] > last[0]:
        raise DataLoss(place, f"it ends at entry {last[0]}, but entry {applied[0]} is applied")
    at_applied = base
    if applied[0] > base[0]:
        at_applied = (applied[0], stored.records[applied[0] - base[0] - 1].term)
    if at_applied != applied:
        raise DataLoss(place, f"entry {applied[0]} is of term {at_applied[1]}, but was applied as one of {applied[1]}")
