"""The window of a group's log: what it begins after, when entries go, and the state that takes their place.

::

    gone          base                      last
      ··············|··  entries held  ······|
                    └─ moves on by compact(), and by a snapshot that is installed

    leader      a member's next entry is gone ─► needs ─► offer(), again with each heartbeat ─► it is told
    receiver    offered ─► install(): writes of one transaction ─► it is durable ─► installed()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cortado.invariants import invariant
from cortado.raft.configuration import Configuration
from cortado.raft.core import Core
from cortado.raft.following import Following
from cortado.raft.log import SnapshotMeta, SnapshotOffer
from cortado.raft.records import Writes
from cortado.raft.replication import Replication
from cortado.raft.storing import Storing


class LogWindow:
    """``changed`` is called after what may have moved the engine."""

    def __init__(
        self, core: Core, replication: Replication, following: Following, storing: Storing, changed: Callable[[], None]
    ) -> None:
        self._core = core
        self._replication = replication
        self._following = following
        self._storing = storing
        self._changed = changed
        self._is_suffix_kept = True

    # --- what the log holds -------------------------------------------------------------------------------------------

    @property
    def base(self) -> tuple[int, int]:
        """Index and term that the log begins after: entries up to there are gone."""
        return self._core.journal.base

    @property
    def size(self) -> tuple[int, int]:
        """How many entries the log holds in memory, and the bytes of those that are stored."""
        journal = self._core.journal
        return journal.last_index - journal.base[0], journal.size_bytes

    def term_at(self, index: int) -> int | None:
        """The term of an entry that the log holds, or begins after."""
        return self._core.journal.term_at(index)

    def configuration_at(self, index: int) -> Configuration:
        """The one in force at entry ``index``, which the log holds or begins after: a snapshot's."""
        return self._core.journal.configuration_at(index)

    def compact(self, index: int) -> None:
        """Entries up to ``index``, which are applied here, may go, but for those kept for followers that are a little
        behind. The deletes come with a later Ready."""
        core, journal = self._core, self._core.journal
        if not journal.keeps_entries:
            return
        index = min(index, core.applied[0], journal.durable_index)
        new_base = journal.base[0]
        lowest = self._replication.lowest_match() if core.is_leading else None
        count, size = journal.last_index - new_base, journal.size_bytes
        while new_base < index:
            is_wanted = not core.is_leading or (lowest is not None and lowest <= new_base)
            if is_wanted and count <= core.settings.retain_entries and size <= core.settings.retain_bytes:
                break
            new_base += 1
            count -= 1
            size -= len(journal.record_at(new_base))
        if new_base > journal.base[0]:
            journal.drop_to(new_base)
            if core.is_leading:
                self._replication.log_moved()

    # --- snapshots ----------------------------------------------------------------------------------------------------

    @property
    def snapshot_needs(self) -> Sequence[str]:
        """At the leader: members whose next entry is gone."""
        return self._replication.snapshot_needs() if self._core.is_leading else ()

    def offer_snapshot(self, to: str, meta: SnapshotMeta) -> None:
        """Tell a member, again and again until it needs it no longer, where to fetch a state."""
        if self._core.is_leading:
            self._replication.offer(to, meta)

    @property
    def snapshot_offer(self) -> SnapshotOffer | None:
        """On a replica that fell behind: what the leader of its term offers now."""
        core, offer = self._core, self._following.offer
        if offer is None or offer.sender != core.engine.leader or offer.meta.index <= core.durable_commit_index:
            return None
        return offer

    def install(self, meta: SnapshotMeta) -> Writes:
        """The writes that reset the log to ``meta``, for the last transaction of an installation. Nothing changes in
        memory before :meth:`installed`. No Ready may be outstanding."""
        core = self._core
        invariant(not self._storing.is_outstanding, "no Ready is outstanding where a snapshot is installed")
        is_ahead = meta.index > core.applied[0]
        invariant(is_ahead, "a snapshot that is installed is ahead of what is applied", meta.index, core.applied)
        writes, self._is_suffix_kept = core.journal.reset_writes(meta.index, meta.term, meta.configuration)
        return writes

    def installed(self, meta: SnapshotMeta) -> None:
        """That transaction is durable: the log begins after ``meta.index``, and goes on from there."""
        core, commit_index = self._core, self._core.engine.commit_index
        core.engine.set_time(core.now_ms)
        if meta.term > core.journal.term:
            # The disk says so already. A lower term, stored later, would contradict the log.
            core.engine.step_down(meta.term)
        core.journal.reset(meta.index, meta.term, meta.configuration, was_kept=self._is_suffix_kept)
        core.applied = meta.index, meta.term
        self._storing.handed_index = meta.index
        core.engine.set_applied(meta.index, commit_index=max(meta.index, min(commit_index, core.journal.last_index)))
        core.freshness.applied(meta.index)
        self._changed()
        self._following.installed()
