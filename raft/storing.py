"""What the disk is given: one Ready at a time, of what is to be stored and applied; and whether the disk keeps up.

::

    applied        handed over       commit index          last
       |  outstanding   |  the next Ready's  |                |
       +----------------+---- committed -----+                |
                                    its writes, up to here ───┘

A disk hangs where a transaction takes far longer than it did, or than the others' disks take for the same entries. A
leader whose disk hangs gives way.
"""

from __future__ import annotations

from typing import Final

from cortado.invariants import invariant
from cortado.raft.core import Core
from cortado.raft.log import Entry, Ready
from cortado.raft.replication import Replication

# What one Ready applies at most: a replica that learns of many committed entries at once applies them in steps.
_COMMITTED_BYTES_MAX: Final = 16 << 20
_COMMITTED_ENTRIES_MAX: Final = 4096
# A disk hangs where a transaction takes so many times as long as the others', or as the slowest of late where they are
# not asked for the same; or so many election timeouts.
_SLOWER_THAN_USUAL: Final = 3
_HUNG_ELECTIONS: Final = 10
_USUAL_FADES: Final = 0.9


class Storing:
    """``handed_index`` is the last entry that was handed over to be applied."""

    def __init__(self, core: Core, replication: Replication) -> None:
        self._core = core
        self._replication = replication
        self.handed_index = self._first_to_hand_over() - 1
        self._outstanding: Ready | None = None
        self._outstanding_since_ms = 0.0
        self._others_stored_ms: float | None = None

    def _first_to_hand_over(self) -> int:
        """After a restart: what the data contains is not applied again."""
        return self._core.applied[0] + 1

    @property
    def is_outstanding(self) -> bool:
        return self._outstanding is not None

    @property
    def has_writes(self) -> bool:
        journal = self._core.journal
        return journal.is_dirty or self._keeps_entries() != journal.keeps_entries

    def ready(self) -> Ready:
        if self._outstanding is not None:
            return Ready()
        core, journal = self._core, self._core.journal
        is_within = self.handed_index <= core.engine.commit_index <= journal.last_index
        invariant(is_within, "what is handed over is committed, and that is in the log", self.handed_index)
        committed = self._take_committed()
        if not committed and not self.has_writes:
            return Ready()
        self._outstanding = Ready(journal.take_writes(self._keeps_entries()), committed)
        self._outstanding_since_ms = core.now_ms
        self._others_stored_ms = None
        return self._outstanding

    def _take_committed(self) -> list[Entry]:
        journal = self._core.journal
        first, last = self.handed_index + 1, self._core.engine.commit_index
        if journal.keeps_entries:
            last = min(last, self.handed_index + _COMMITTED_ENTRIES_MAX)
        taken: list[Entry] = []
        size = 0
        for record in journal.records(first, last) if first <= last else ():
            taken.append(record.taken_entry())
            size += len(record)
            # What is not stored must be applied.
            if size >= _COMMITTED_BYTES_MAX and journal.keeps_entries:
                break
        self.handed_index += len(taken)
        is_next = not taken or (taken[0].index, taken[-1].index) == (first, self.handed_index)
        invariant(is_next, "entries are handed over one after the other", first, self.handed_index)
        return taken

    def _keeps_entries(self) -> bool:
        """Whether entries are stored: not where nobody else asks for them, and all are applied with this Ready."""
        core, journal = self._core, self._core.journal
        if not core.configuration.is_alone(core.node_id):
            return True
        is_all_handed = self.handed_index == journal.last_index
        return not is_all_handed if core.is_leading else journal.keeps_entries or not is_all_handed

    def synced(self, ready: Ready) -> None:
        core = self._core
        invariant(self._outstanding is ready, "the Ready that became durable is the outstanding one")
        self._outstanding = None
        core.usual_sync_ms = max(core.now_ms - self._outstanding_since_ms, _USUAL_FADES * core.usual_sync_ms)
        core.journal.synced()
        if ready.committed:
            (index, term), last = core.applied, ready.committed[-1]
            is_next = last.index == index + len(ready.committed) and last.term >= term
            invariant(is_next, "what is applied advances by the entries of the Ready", core.applied, last.index)
            core.applied = last.index, last.term
            is_within = core.journal.base[0] <= last.index <= core.journal.durable_index
            invariant(is_within, "what is applied is durable, and above the log's base", core.journal.base, last.index)
            core.freshness.applied(core.applied[0])
        if not core.journal.keeps_entries:
            core.journal.drop_to(core.applied[0])

    def withdraw(self, ready: Ready) -> bool:
        core = self._core
        invariant(self._outstanding is ready, "the Ready that is withdrawn is the outstanding one")
        # A term or a configuration that others may know of stands. So do entries that are stored: they were committed
        # while there were others, or as soon as there were none.
        if ready.writes or core.journal.keeps_entries:
            return False
        if not core.is_leading or not core.configuration.is_alone(core.node_id):
            return False
        self._outstanding = None
        core.journal.withdrawn(core.applied[0])
        core.engine.set_time(core.now_ms)
        core.engine.set_applied(core.applied[0], commit_index=core.applied[0])
        self.handed_index = core.applied[0]
        return True

    def leadership_ended(self) -> None:
        """What we counted alone and do not have on our disk was not committed: the next leader may put something else
        in its place. (What is on its way to the disk to be applied there was committed before.)"""
        core = self._core
        commit_index, durable_index = core.engine.commit_index, core.journal.durable_index
        known = max(min(commit_index, durable_index), self.handed_index)
        if known < commit_index or durable_index < commit_index:
            core.counted_alone_to = commit_index
            core.engine.set_applied(core.applied[0], commit_index=known)

    # --- a disk that hangs --------------------------------------------------------------------------------------------

    def is_disk_hung(self) -> bool:
        """Whether another node could do better than this one. A disk that is slow, and no slower than the others', is
        no reason to give way: the next leader would be deposed as we are, and the one after it. Asked at each tick."""
        core = self._core
        if self._outstanding is None:
            return False
        self._see_how_others_store()
        waits_ms, election_ms = core.now_ms - self._outstanding_since_ms, core.settings.election_ms_max
        if waits_ms <= election_ms:
            return False
        usual_ms = core.usual_sync_ms
        if core.is_leading and core.journal.storing_to is not None:
            # The others' disks tell: they were sent the same entries.
            usual_ms = waits_ms if self._others_stored_ms is None else self._others_stored_ms
        return waits_ms > min(_SLOWER_THAN_USUAL * usual_ms, _HUNG_ELECTIONS * election_ms)

    def _see_how_others_store(self) -> None:
        """How long a majority without us took for what our disk still works on."""
        core = self._core
        index = core.journal.storing_to
        if not core.is_leading or self._others_stored_ms is not None or index is None:
            return
        if self._replication.is_decided_without_us(index):
            self._others_stored_ms = core.now_ms - self._outstanding_since_ms
