"""The data's side of a replica's disk: apply committed entries behind the log, some in one transaction.

::

    committed, and durable in the log files ──► taken, after a moment ──► one transaction ──► readers, watches

A transaction waits for more entries, since many sorted items cost little more than few, unless a caller needs it now
(:meth:`GroupCommit.may_apply_later`). Until then the leader reads them from memory. A transaction ends behind about a
thousand requests, so that callers do not wait long for one under way; the rest of the taken entries follows at once.
If there is no room, nothing new is taken into the log: committed entries stand, and are tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from cortado.errors import ResourceExhausted
from cortado.invariants import invariant
from cortado.raft.log import Entry
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.context import GroupContext
from cortado.store.replica.feed.feed import ChangeFeed
from cortado.store.replica.feed.recent import Applied
from cortado.store.replica.outstanding import Outstanding
from cortado.store.replica.write.group_commit import GroupCommit
from cortado.store.replica.write.pipeline import Pipeline

_LOG: Final = logging.getLogger(__name__)

Committed: TypeAlias = "tuple[AppliedState, Sequence[Entry]]"
"""Entries to be applied, and the state that they follow."""


class Applier(Outstanding[Committed, AppliedState]):
    """``on_applied`` is called when all parts know it, ``on_refused`` after there was no room."""

    def __init__(
        self,
        group: GroupContext,
        pipeline: Pipeline,
        feed: ChangeFeed,
        *,
        on_applied: Callable[[], None],
        on_refused: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        super().__init__(group.storage_thread, group.process.monotonic_ms, on_failure=on_failure)
        self._log = group.log
        self._machine = group.machine
        self._clock = group.process.clock
        self._pipeline = pipeline
        self._feed = feed
        self.heard: Callable[[Sequence[Applied]], None] = _nothing
        """Hears the changes of every applied entry."""
        self._on_applied = on_applied
        self._on_refused = on_refused
        # Entries taken from the log that are behind the end of the last transaction.
        self._rest: Sequence[Entry] = ()

    @property
    def is_free(self) -> bool:
        """True if every entry taken from the log is applied."""
        return self._work is None and not self._rest

    def apply(self, now_ms: float, group_commit: GroupCommit, *, is_wanted: bool) -> None:
        """Begin a transaction, if the thread is free and committed entries need not wait."""
        if self.is_free:
            pipeline, applying = self._pipeline, self._log.applying
            entries = applying.backlog
            if entries <= 0:
                group_commit.applied_all()
                return
            is_wanted = is_wanted or pipeline.awaits_applying or pipeline.is_crowded or self._feed.ranges > 0
            if group_commit.may_apply_later(entries, applying.backlog_bytes, now_ms, is_wanted=is_wanted):
                return
        self.begin(now_ms)

    def take(self) -> Committed | None:
        entries, self._rest = self._rest or self._log.applying.take(), ()
        return (self._pipeline.applied, entries) if entries else None

    def run(self, work: Committed) -> AppliedState:
        return self._machine.apply(*work)

    def done(self, work: Committed, outcome: AppliedState) -> None:
        (before, entries), state = work, outcome
        applied, self._rest = entries[: state.index - before.index], entries[state.index - before.index :]
        is_next = bool(applied) and applied[-1].index == state.index and state.is_after(before)
        invariant(is_next, "the state that was stored is the next one", before, state)
        committed = self._log.durable_commit_index
        invariant(state.index <= committed, "what is applied is committed", state.index, committed)
        self._log.applying.applied(applied)
        self._clock.observe_log(state.last_ts)
        self._machine.settle(state)
        self._pipeline.advance(state)
        self._feed.applied(self._machine.newly_applied, state.last_ts, self._machine.features.broken())
        self.heard(self._machine.newly_applied)
        self._machine.features.announce()
        self._on_applied()

    def no_room(self, _work: Committed, error: ResourceExhausted) -> bool:
        if not self.refused_for:
            _LOG.warning("committed entries cannot be applied: %s", error)
        self._pipeline.refuse_waiting(error)
        self._on_refused()
        return False


def _nothing(_entries: Sequence[Applied]) -> None:
    """No listener is set."""
