"""The window of a group's log: its base, when entries go, and the snapshot that takes their place.

::

    gone          base                      last
      ··············|··  entries held  ······|
                    └─ moves on by compact(), and by a snapshot that is installed

    leader      a member's next entry is gone ─► needs ─► offer(), again with each heartbeat ─► it is told
    receiver    offered ─► install(): writes, durable right after the data ─► installed()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cortado.invariants import invariant
from cortado.raft.applying import Applying
from cortado.raft.core import Core
from cortado.raft.following import Following
from cortado.raft.log import Entry, LogRecord, SnapshotMeta, SnapshotOffer
from cortado.raft.records import HardState, Writes
from cortado.raft.registry import Roster
from cortado.raft.replication import Replication
from cortado.raft.storing import Storing


class LogWindow:
    """``changed`` is called after each call that may have moved the engine."""

    def __init__(
        self,
        core: Core,
        replication: Replication,
        following: Following,
        storing: Storing,
        applying: Applying,
        changed: Callable[[], None],
    ) -> None:
        self._core = core
        self._replication = replication
        self._following = following
        self._storing = storing
        self._applying = applying
        self._changed = changed
        self._is_suffix_kept = True

    # --- held entries -------------------------------------------------------------------------------------------------

    @property
    def base(self) -> tuple[int, int]:
        """Index and term that the log begins after: entries up to there are gone."""
        return self._core.journal.base

    @property
    def size(self) -> tuple[int, int]:
        """Return how many entries the log holds in memory, and the bytes of those that are stored."""
        journal = self._core.journal
        return journal.last_index - journal.base[0], journal.size_bytes

    def term_at(self, index: int) -> int | None:
        """Return the term of an entry that the log holds, or begins after."""
        return self._core.journal.term_at(index)

    def entry_at(self, index: int) -> Entry | None:
        """Return an entry that the log holds; None if it does not (any more)."""
        journal = self._core.journal
        return journal.record_at(index).held_entry if journal.base[0] < index <= journal.last_index else None

    def roster_at(self, index: int) -> Roster:
        """Return a snapshot's roster: the one in force at entry ``index``, which the log holds or begins after."""
        return self._core.journal.roster_at(index)

    @property
    def hard_state(self) -> HardState:
        """Term, vote and base as they are in memory: the last change of them may be on its way to the disk."""
        return self._core.journal.hard_state

    @property
    def durable(self) -> tuple[int, int]:
        """Return the first and the last entry that are held and durable; (0, 0) if there is none."""
        journal = self._core.journal
        first, last = journal.base[0] + 1, journal.durable_index
        return (first, last) if first <= last else (0, 0)

    def durable_entries(self, first: int, last: int, *, bytes_max: int) -> list[LogRecord]:
        """Return the durable entries that are held from ``first`` to ``last``, in their stored form: up to the one that
        reaches ``bytes_max``."""
        journal, found, left = self._core.journal, list[LogRecord](), bytes_max
        first, last = max(first, journal.base[0] + 1), min(last, journal.durable_index)
        for index in range(first, last + 1):
            found.append(journal.record_at(index).log_record(journal.group_id))
            left -= len(found[-1].payload)
            if left <= 0:
                break
        return found

    def compact(self, index: int, *, for_nobody: bool = False, retain_bytes: int | None = None) -> None:
        """Drop entries up to ``index``, which are applied here. Entries that followers a little behind still need stay,
        at most ``retain_bytes`` (by the settings); with ``for_nobody``, none stay. The log files hear of it with later
        writes."""
        core, journal = self._core, self._core.journal
        if retain_bytes is None:
            retain_bytes = core.settings.retain_bytes
        index = min(index, core.applied[0], journal.durable_index)
        new_base = journal.base[0]
        lowest = self._replication.lowest_match() if core.is_leading else None
        count, size = journal.last_index - new_base, journal.size_bytes
        while new_base < index:
            is_wanted = not core.is_leading or (lowest is not None and lowest <= new_base)
            is_wanted &= not for_nobody
            if is_wanted and count <= core.settings.retain_entries and size <= retain_bytes:
                break
            new_base += 1
            count -= 1
            size -= len(journal.record_at(new_base))
        if new_base > journal.base[0]:
            journal.drop_to(new_base)
            if core.is_leading:
                self._replication.log_moved()

    def drop_applied(self) -> None:
        """Drop every applied entry, even if a follower lacks it, and let the log files hear of it now. Does nothing if
        the log has not begun, or a snapshot takes its place."""
        core = self._core
        if core.journal.base[0] > 0 and not core.is_installing:
            self.compact(core.applied[0], for_nobody=True)
            core.journal.is_hard_state_dirty = True

    # --- snapshots ----------------------------------------------------------------------------------------------------

    @property
    def snapshot_needs(self) -> Sequence[str]:
        """Return, at the leader, the members with a next entry that is gone from the log."""
        return self._replication.snapshot_needs() if self._core.is_leading else ()

    def offer_snapshot(self, to: str, meta: SnapshotMeta) -> None:
        """Tell a member, again and again until it needs it no longer, where to fetch a state."""
        if self._core.is_leading:
            self._replication.offer(to, meta)

    @property
    def snapshot_offer(self) -> SnapshotOffer | None:
        """Return, on a replica that fell behind, the snapshot that the leader of its term offers now."""
        core, offer = self._core, self._following.offer
        if offer is None or offer.sender != core.engine.leader or offer.meta.index <= core.durable_commit_index:
            return None
        return offer

    def install(self, meta: SnapshotMeta) -> Writes:
        """Return the writes that reset the log to ``meta``. Nothing changes in memory before :meth:`installed`, and
        until then nothing is handed over. Nothing may be outstanding: neither writes nor entries that are being
        applied."""
        core = self._core
        invariant(not self._storing.is_outstanding, "nothing is stored where a snapshot is installed")
        is_settled = self._applying.handed_index == core.applied[0]
        invariant(is_settled, "nothing is applied where a snapshot is installed", self._applying.handed_index)
        is_ahead = meta.index > core.applied[0]
        invariant(is_ahead, "a snapshot that is installed is ahead of what is applied", meta.index, core.applied)
        core.is_installing = True
        writes, self._is_suffix_kept = core.journal.reset_writes(meta.index, meta.term, meta.roster)
        return writes

    def installed(self, meta: SnapshotMeta) -> None:
        """The data is the snapshot's, and those writes are durable: the log begins after ``meta.index``."""
        core, commit_index = self._core, self._core.journal.commit_index
        core.is_installing = False
        core.engine.set_time(core.now_ms)
        if meta.term > core.journal.term:
            # The disk says so already. A lower term, stored later, would contradict the log.
            core.engine.step_down(meta.term)
        core.journal.reset(meta.index, meta.term, meta.roster, was_kept=self._is_suffix_kept)
        core.applied = meta.index, meta.term
        self._applying.installed(meta.index)
        core.engine.set_applied(meta.index, commit_index=max(meta.index, min(commit_index, core.journal.last_index)))
        core.freshness.applied(meta.index)
        self._changed()
        self._following.installed()
