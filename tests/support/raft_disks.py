"""A replica's stores: log files, modelled as the sum of their records, and behind them the data.

::

    log files    HARD_STATE behind 2 | ENTRY 3 | ENTRY 4 | ENTRY 5 | TRUNCATE 5 | ...      one batch is there or is not
    data         applied to 3, and the state that it left there                             never ahead of the log

A batch that can't follow the files' records is refused, as :mod:`cortado.store.log_files.ledger` refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cortado.raft.log import Entry, LogRecord, RecordKind, SnapshotMeta
from cortado.raft.records import HardState, StoredLog, Writes, decode_hard_state, decode_stored, reset_to

GROUP = 1


@dataclass
class LogDisk:
    """One group's part of the log files, as a start would find it. ``entries`` are by their indexes."""

    hard_state: LogRecord | None = None
    entries: dict[int, LogRecord] = field(default_factory=dict)

    def copy(self) -> LogDisk:
        return LogDisk(self.hard_state, dict(self.entries))

    def write(self, writes: Writes) -> None:
        """Write a batch, whole."""
        for record in writes:
            self._replay(record)
        terms = [self.base[1], *(self.entries[index].term for index in sorted(self.entries))]
        assert terms == sorted(terms), f"terms fall along the log: {terms}"

    def _replay(self, record: LogRecord) -> None:
        assert record.group_id == GROUP
        if record.kind is RecordKind.HARD_STATE:
            assert record.index >= self.base[0], f"the log goes back from {self.base} to {record.index}"
            self.hard_state = record
            self.entries = {index: each for index, each in self.entries.items() if index > record.index}
            return
        assert self.hard_state is not None, f"{record} comes before any hard state"
        assert record.index > self.base[0], f"{record} is not behind {self.base}"
        if record.kind is RecordKind.ENTRY:
            assert record.index <= self.last[0] + 1, f"{record} follows {self.last}"
        self.entries = {index: each for index, each in self.entries.items() if index < record.index}
        if record.kind is RecordKind.ENTRY:
            self.entries[record.index] = record
        else:
            assert not record.payload

    @property
    def base(self) -> tuple[int, int]:
        return (0, 0) if self.hard_state is None else (self.hard_state.index, self.hard_state.term)

    @property
    def last(self) -> tuple[int, int]:
        if not self.entries:
            return self.base
        record = self.entries[max(self.entries)]
        return record.index, record.term

    def term_at(self, index: int) -> int | None:
        if index == self.base[0]:
            return self.base[1]
        return self.entries[index].term if index in self.entries else None

    @property
    def state(self) -> HardState:
        return HardState() if self.hard_state is None else decode_hard_state(GROUP, self.hard_state.payload)

    def stored(self) -> StoredLog:
        """Return the log that a start decodes. Raises DataLoss."""
        return decode_stored(GROUP, self.hard_state, [self.entries[index] for index in sorted(self.entries)])


@dataclass
class Data:
    """``state`` is the state after the entries; ``reset`` is set while the log files have not followed a snapshot."""

    applied: tuple[int, int] = (0, 0)
    state: dict[int, bytes] = field(default_factory=dict)
    reset: HardState | None = None

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply entries in one transaction."""
        for entry in entries:
            assert entry.index == self.applied[0] + 1, f"{entry} is applied behind {self.applied}"
            self.applied = entry.index, entry.term
            self.state[entry.index] = entry.payload.encode()

    def install(self, meta: SnapshotMeta, state: Mapping[int, bytes], writes: Writes) -> None:
        """Run the last transaction of a snapshot: ``writes`` are how the log files are to follow."""
        self.applied, self.state = (meta.index, meta.term), dict(state)
        self.reset = decode_hard_state(GROUP, writes[-1].payload)


@dataclass
class Disk:
    """The part of a replica that survives a crash."""

    log: LogDisk = field(default_factory=LogDisk)
    data: Data = field(default_factory=Data)

    def opened(self) -> StoredLog:
        """Return the log that a start finds. If a snapshot came and the log files had not followed, they are completed
        first."""
        stored, reset = self.log.stored(), self.data.reset
        if reset is not None and stored.hard_state.base_index < reset.base_index:
            stored, writes = reset_to(GROUP, stored, reset)
            self.log.write(writes)
            again = self.log.stored()
            assert (stored.hard_state, stored.last) == (again.hard_state, again.last), "the writes say what was reset"
        self.data.reset = None
        return stored
