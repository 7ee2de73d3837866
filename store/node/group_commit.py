"""Group commit: when a leader acts on what it has, and when it waits a moment so that more is done at once.

::

    committed: 32 answered ──► they ask again, one after the other, within milliseconds
                    │ open batch: what came meanwhile  + 1 + 1 + 1 ...  ──► closed: all are back, or the time is over

What an entry costs is the same for one command and for sixty: a round, messages to and from each member, a sync on
each. A leader that closes a batch as soon as its disk is free splits callers who wait for each other's batches into
groups that never meet. So the open batch waits while an earlier one is not committed, and then for as many callers as
were just answered, but never longer than ``CLOSE_WAIT_MS`` after its first command. Measured with 64 callers on three
nodes of one machine: twice as many puts in a batch, for three quarters of the CPU time, and sooner answered.

Many callers make two batches that alternate: one is evaluated while the other is on its way to the disks, so that
neither the processors nor the disks wait for each other. So a batch that holds half of all callers there are is closed
at once, where that is at least ``HALF_CALLERS_MIN``. With 64 of them two batches did 7,000 puts a second where one did
4,900, for no more CPU time; with fewer callers what each entry costs is too much for it.

A lone caller never waits: nothing is in flight, and whoever was answered is back. Where callers do not come back soon
(half of those who were answered last did not), nobody waits for them.

Three more things wait for company, each for a moment of its own: committed entries that nobody needs applied, for a
transaction that has more to store; peers' last acknowledgements, for a round that has more to do; and reads, for one
round of heartbeats. Callers whose every call is a message of its own come one after the other, slower than a round of
heartbeats takes, so that each would get one for itself, which costs all nodes more than the read. So a round waits
until as many reads are there as the last one had, or are enough, but never longer than ``READ_WAIT_MS``. A lone reader
is not held up, but for one round of ``READ_TRIAL``, which waits for whoever else there is.

All of it is pure: times come in as monotonic milliseconds, and one deadline comes out.
"""

from __future__ import annotations

import math
from typing import Final

CLOSE_WAIT_MS: Final = 5.0
"""So long after its first command an open batch is closed in any case. More helps machines on which a client needs long
to hear its answers; it is also what a put may wait in vain."""
ENOUGH_BYTES: Final = 64 << 10
"""Beyond it what an entry costs is little beside what it holds."""
HALF_CALLERS_MIN: Final = 24
"""So many callers are enough for one of two batches. Less would pay for an entry with too few of them."""
APPLY_WAIT_MS: Final = 100.0
"""So long what is committed waits to be applied with more: many sorted items cost little more than few. A crash leaves
so much more of the log to be applied again, and a follower's reads are so much older, where nobody asks for newer."""
APPLY_ENTRIES: Final = 1_000
"""So many entries are enough for one transaction."""
APPLY_BYTES: Final = 4 << 20
"""So much is enough."""
READ_WAIT_MS: Final = 5.0
"""So long reads wait for others that are to share their round of heartbeats."""
READS_ENOUGH: Final = 24
"""So many wait for no more."""
READ_TRIAL: Final = 128
"""One round of so many waits for more reads than the last one had."""
LISTEN_WAIT_MS: Final = 2.0
"""So long what peers say waits for a round that has more to do."""


class GroupCommit:
    """Decides what waits, and until when."""

    def __init__(self) -> None:
        self._opened_ms = math.inf
        self._answered = 0
        self._answered_ms = -math.inf
        self._back = 0
        self._come_back = True
        self._close_due_ms = math.inf
        self._apply_due_ms = math.inf
        self._listen_due_ms = math.inf
        self._first_read_ms = math.inf
        self._read_rounds = 0
        self._reads_wanted = 1
        self._read_due_ms = math.inf

    # --- what it is told ---------------------------------------------------------------------------------------

    def proposed(self, now_ms: float, callers: int = 1) -> None:
        """So many callers came."""
        if now_ms < self._answered_ms + CLOSE_WAIT_MS:
            self._back += callers

    def answered(self, callers: int, now_ms: float) -> None:
        """So many callers were told that their writes are committed."""
        self._come_back = 2 * self._back >= self._answered
        self._answered, self._answered_ms, self._back = callers, now_ms, 0

    def closed(self) -> None:
        """The open batch was appended: what follows begins another one."""
        self._opened_ms = math.inf

    def round_begins(self) -> None:
        """All that waits for a round is looked at again."""
        self._close_due_ms = self._listen_due_ms = self._read_due_ms = math.inf

    # --- what it decides ---------------------------------------------------------------------------------------

    @property
    def due_ms(self) -> float:
        """When the first of what waits must be done; infinite where nothing waits."""
        return min(self._close_due_ms, self._apply_due_ms, self._listen_due_ms, self._read_due_ms)

    def holds_reads(self, reads: int) -> bool:
        """Whether so many ``reads`` wait for more to come, as :meth:`may_read` decided."""
        return self._read_due_ms < math.inf and reads < self._reads_wanted

    def hold_batch(self, due_ms: float) -> None:
        """The open batch waits until then for another reason."""
        self._close_due_ms = due_ms

    def may_close(self, commands: int, size_bytes: int, now_ms: float, *, uncommitted: int) -> bool:
        """Whether to append the open batch now. ``uncommitted`` callers wait for batches before it."""
        due_ms = self._close_at_ms(commands, size_bytes, now_ms, uncommitted)
        if due_ms <= now_ms:
            return True
        self._close_due_ms = due_ms
        return False

    def may_apply_later(self, entries: int, size_bytes: int, now_ms: float, *, is_wanted: bool) -> bool:
        """Whether to put off applying so many committed ``entries``; not where that ``is_wanted`` now. ``size_bytes``
        is about what they write, where it is known."""
        is_enough = entries >= APPLY_ENTRIES or size_bytes >= APPLY_BYTES
        if entries and self._apply_due_ms == math.inf:
            self._apply_due_ms = now_ms + APPLY_WAIT_MS
        if entries and not is_wanted and not is_enough and now_ms < self._apply_due_ms:
            return True
        self._apply_due_ms = math.inf
        return False

    def may_read(self, reads: int, now_ms: float) -> bool:
        """Whether to begin a round of heartbeats now for so many ``reads``, at least one."""
        if self._first_read_ms == math.inf:
            self._first_read_ms = now_ms
        due_ms = self._first_read_ms + READ_WAIT_MS
        if reads < self._reads_wanted and now_ms < due_ms:
            self._read_due_ms = due_ms
            return False
        self._first_read_ms = math.inf
        self._read_rounds += 1
        is_trial = self._read_rounds % READ_TRIAL == 0
        self._reads_wanted = READS_ENOUGH if is_trial else min(reads, READS_ENOUGH)
        return True

    def listen_later(self, now_ms: float) -> bool:
        """Put off looking at messages of which nothing is expected. True where they are the first that wait."""
        if self._listen_due_ms < math.inf:
            return False
        self._listen_due_ms = now_ms + LISTEN_WAIT_MS
        return True

    def _close_at_ms(self, commands: int, size_bytes: int, now_ms: float, uncommitted: int) -> float:
        """When the open batch is to be closed at the latest; ``now_ms`` where it may be closed now."""
        if self._opened_ms == math.inf:
            self._opened_ms = now_ms
        if size_bytes >= ENOUGH_BYTES or self._is_half(commands, uncommitted, now_ms):
            return now_ms
        due_ms = self._opened_ms + CLOSE_WAIT_MS
        if not uncommitted:
            if not self._come_back or self._back >= self._answered:
                return now_ms
            due_ms = min(due_ms, self._answered_ms + CLOSE_WAIT_MS)
        return max(due_ms, now_ms)

    def _is_half(self, commands: int, uncommitted: int, now_ms: float) -> bool:
        """Whether half of all callers that are known of are in the open batch."""
        coming = self._answered - self._back if now_ms < self._answered_ms + CLOSE_WAIT_MS else 0
        return commands >= HALF_CALLERS_MIN and commands >= uncommitted + max(coming, 0)
