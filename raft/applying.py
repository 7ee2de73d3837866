"""Hand committed entries to the data, in the order of the log and in bounded steps.

::

    applied        handed over    durable commit index       last
       | outstanding   |  the next to apply  |                 |

Applying follows the log files, and never leads: an entry is handed over once it is committed *and* durable here. So
after a crash the log reaches at least as far as the data (:meth:`RaftLog.__init__` refuses any other state). Entries
that the data lacks are applied again from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cortado.invariants import invariant
from cortado.raft.core import Core
from cortado.raft.log import Entry

# Bounds of one step: a replica that learns of many committed entries applies them in steps.
_BYTES_MAX: Final = 4 << 20
_ENTRIES_MAX: Final = 4096


class Applying:
    """``handed_index`` is the last entry that was handed over."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # After a restart, entries that the data contains are not applied again.
        self.handed_index = self._counted_to = core.applied[0]
        self._backlog_bytes = 0

    @property
    def backlog(self) -> int:
        """Return the number of entries that may be applied and are not handed over."""
        return self._core.appliable_index - self.handed_index

    @property
    def backlog_bytes(self) -> int:
        """Return the bytes that these entries take in the log. Each is counted once."""
        last = self._core.appliable_index
        if last > self._counted_to:
            self._backlog_bytes += sum(map(len, self._core.journal.records(self._counted_to + 1, last)))
            self._counted_to = last
        return self._backlog_bytes

    def take(self) -> Sequence[Entry]:
        """Return the next entries to apply, which are committed and durable here. Empty if there are none, or while
        those taken last are not applied yet. Each is handed over once, in the order of the log."""
        core, backlog_bytes = self._core, self.backlog_bytes
        first, last = self.handed_index + 1, min(core.appliable_index, self.handed_index + _ENTRIES_MAX)
        if self.handed_index > core.applied[0] or core.is_installing or first > last:
            return ()
        taken: list[Entry] = []
        size = 0
        for record in core.journal.records(first, last):
            taken.append(record.taken_entry())
            size += len(record)
            if size >= _BYTES_MAX:
                break
        self.handed_index += len(taken)
        self._backlog_bytes = backlog_bytes - size
        is_next = (taken[0].index, taken[-1].index) == (first, self.handed_index)
        invariant(is_next, "entries are handed over one after the other", first, self.handed_index)
        return taken

    def applied(self, entries: Sequence[Entry]) -> None:
        """Record that ``entries`` are durably applied: all entries that were taken last, or the first of them."""
        core = self._core
        (index, term), last = core.applied, entries[-1]
        is_next = last.index == index + len(entries) <= self.handed_index and last.term >= term
        invariant(is_next, "what is applied advances by the entries that were taken", core.applied, last.index)
        core.applied = last.index, last.term
        is_within = core.journal.base[0] <= last.index <= core.journal.durable_index
        invariant(is_within, "what is applied is durable, and above the log's base", core.journal.base, last.index)
        core.freshness.applied(last.index)

    def installed(self, index: int) -> None:
        """A snapshot brought the data to ``index``."""
        self.handed_index = self._counted_to = index
        self._backlog_bytes = 0
