"""Hand the log files one batch of writes at a time, and tell whether the disk keeps up.

::

    durable        handed over          last
       | outstanding  |   the next ready  |

A disk hangs if a write takes far longer than before, or than the others' disks take for the same entries. A leader with
a hung disk gives way.
"""

from __future__ import annotations

from typing import Final

from cortado.invariants import invariant
from cortado.raft.core import Core
from cortado.raft.records import Writes
from cortado.raft.replication import Replication

# A disk hangs if a write takes this many times as long as the others' disks, or as our slowest of late if they were not
# sent the same entries; or HUNG_ELECTIONS election timeouts.
_SLOWER_THAN_USUAL: Final = 3
HUNG_ELECTIONS: Final = 10
_USUAL_FADES: Final = 0.9


class Storing:
    """Hands over writes that must become durable, and hears when they are."""

    def __init__(self, core: Core, replication: Replication) -> None:
        self._core = core
        self._replication = replication
        self._outstanding: Writes | None = None
        self._outstanding_since_ms = 0.0
        self._others_stored_ms: float | None = None

    @property
    def is_outstanding(self) -> bool:
        return self._outstanding is not None

    def ready(self) -> Writes:
        """Return the writes to make durable now, as a whole; empty if there are none, or while writes are
        outstanding."""
        core = self._core
        if self._outstanding is not None or core.is_installing or not core.journal.is_dirty:
            return []
        self._outstanding = core.journal.take_writes()
        self._outstanding_since_ms = core.now_ms
        self._others_stored_ms = None
        return self._outstanding

    def synced(self, writes: Writes) -> None:
        core = self._core
        invariant(self._outstanding is writes, "the writes that became durable are the outstanding ones")
        self._outstanding = None
        core.usual_sync_ms = max(core.now_ms - self._outstanding_since_ms, _USUAL_FADES * core.usual_sync_ms)
        core.journal.synced()

    def withdraw(self, writes: Writes) -> bool:
        core, journal = self._core, self._core.journal
        invariant(self._outstanding is writes, "the writes that are withdrawn are the outstanding ones")
        if not core.is_leading or not core.journal.configuration.is_alone(core.node_id):
            return False
        # A configuration that others may know of stands, and so do a term, a vote and a leader's first entry: once that
        # is applied, all three are durable.
        is_configured = max(journal.configuration_index, journal.registry_index) > journal.durable_index
        if is_configured or not core.has_applied_own_term:
            return False
        self._outstanding = None
        journal.withdrawn()
        commit_index = min(core.journal.commit_index, journal.last_index)
        core.engine.set_time(core.now_ms)
        core.engine.set_applied(commit_index, commit_index=commit_index)
        return True

    def leadership_ended(self) -> None:
        """Take back the commit index of entries that we counted alone and that our disk lacks: they were not committed,
        and the next leader may put others in their place."""
        core = self._core
        commit_index, durable_index = core.journal.commit_index, core.journal.durable_index
        if durable_index < commit_index:
            core.counted_alone_to = commit_index
            core.engine.set_applied(core.applied[0], commit_index=durable_index)

    # --- a disk that hangs --------------------------------------------------------------------------------------------

    def is_disk_hung(self) -> bool:
        """Return whether another node could do better than this one. A disk that is slow, and no slower than the
        others', is no reason to give way: the next leader would be deposed as we are, and the one after it. Asked at
        each tick."""
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
        return waits_ms > min(_SLOWER_THAN_USUAL * usual_ms, HUNG_ELECTIONS * election_ms)

    def _see_how_others_store(self) -> None:
        """Note how long a majority without us took for the writes that our disk still works on."""
        core = self._core
        index = core.journal.storing_to
        if not core.is_leading or self._others_stored_ms is not None or index is None:
            return
        if self._replication.is_decided_without_us(index):
            self._others_stored_ms = core.now_ms - self._outstanding_since_ms
