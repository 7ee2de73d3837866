"""Group commit: when a leader acts on its work at hand, and when it waits a moment so that more is done at once.

::

    committed: 32 answered ──► they ask again, one after the other, within milliseconds
                    │ open batch: later arrivals  + 1 + 1 + 1 ...  ──► closed: all are back, or the time is over

An entry costs the same for one command and for sixty: a round, messages to and from each member, a sync on each. A
leader that closes a batch as soon as its disk is free splits callers who wait for each other's batches into groups that
never meet. So the open batch waits while an earlier one is not committed, and then for as many callers as were just
answered. It never waits longer than ``CLOSE_WAIT_MS`` after its first command. Measured with 64 callers on three nodes
of one machine: twice as many puts in a batch, for three quarters of the CPU time, and sooner answered.

Many callers make two batches that alternate: one is evaluated while the other is on its way to the disks, so that
neither the processors nor the disks wait for each other. So a batch that holds half of all callers is closed at once,
if that is at least ``HALF_CALLERS_MIN``. With 64 callers two batches did 7,000 puts a second and one did 4,900, for no
more CPU time. With fewer callers, an entry costs too much for them.

A lone caller never waits: nothing is in flight, and every answered caller is back. If callers do not come back soon
(half of the last answered ones did not), the batch does not wait for them.

Three more things wait for company, each for a moment of its own. Committed entries that no caller needs applied wait
for a transaction that has more to store. Peers' last acknowledgements wait for a round that has more to do. Reads wait
for one round of heartbeats. Callers whose every call is a message of its own arrive more slowly than a round of
heartbeats takes. Each would get a round for itself, which costs all nodes more than the read. So a round waits until as
many reads are there as the last one had, or are enough, but never longer than ``READ_WAIT_MS``. A lone reader is not
held up, but for one round of ``READ_TRIAL``, which waits for any other readers.

The decisions are pure: times come in as monotonic milliseconds, and one deadline comes out.
"""

from __future__ import annotations

import math
from typing import Final

CLOSE_WAIT_MS: Final = 5.0
"""An open batch is closed this long after its first command in any case. More helps on machines whose clients need long
to hear their answers; but a put may wait this long in vain."""
ENOUGH_BYTES: Final = 64 << 10
"""Beyond this size an entry's fixed cost is little beside its contents."""
HALF_CALLERS_MIN: Final = 24
"""This many callers are enough for one of two batches. With fewer, an entry costs too much for them."""
APPLY_WAIT_MS: Final = 100.0
"""Committed entries wait this long to be applied with more: many sorted items cost little more than few. A crash leaves
that much more of the log to apply again, and a follower's reads are that much older, unless a caller asks for newer."""
APPLY_ENTRIES: Final = 1_000
"""This many entries are enough for one transaction."""
APPLY_BYTES: Final = 4 << 20
"""This many bytes are enough for one transaction."""
READ_WAIT_MS: Final = 5.0
"""Reads wait this long for others to share their round of heartbeats."""
READS_ENOUGH: Final = 24
"""This many reads wait for no more."""
READ_TRIAL: Final = 128
"""One in this many rounds waits for more reads than the last one had."""
LISTEN_WAIT_MS: Final = 2.0
"""Peers' messages wait this long for a round that has more to do."""


class GroupCommit:
    """Decides which work waits, and until when."""

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

    # --- events ------------------------------------------------------------------------------------------------

    def proposed(self, now_ms: float, callers: int = 1) -> None:
        """Note that ``callers`` more came."""
        if now_ms < self._answered_ms + CLOSE_WAIT_MS:
            self._back += callers

    def answered(self, callers: int, now_ms: float) -> None:
        """Note that ``callers`` were told that their writes are committed."""
        self._come_back = 2 * self._back >= self._answered
        self._answered, self._answered_ms, self._back = callers, now_ms, 0

    def closed(self) -> None:
        """Note that the open batch was appended: the next command opens another one."""
        self._opened_ms = math.inf

    def applied_all(self) -> None:
        """Note that no committed entry waits to be applied."""
        self._apply_due_ms = math.inf

    def round_begins(self) -> None:
        """Forget the deadlines of work that waits for a round: it is looked at again."""
        self._close_due_ms = self._listen_due_ms = self._read_due_ms = math.inf

    # --- decisions ---------------------------------------------------------------------------------------------

    @property
    def due_ms(self) -> float:
        """Return when the first waiting work must be done; infinite if none waits."""
        return min(self._close_due_ms, self._apply_due_ms, self._listen_due_ms, self._read_due_ms)

    def holds_reads(self, reads: int) -> bool:
        """Return whether these ``reads`` wait for more to come, as :meth:`may_read` decided."""
        return self._read_due_ms < math.inf and reads < self._reads_wanted

    def hold_batch(self, due_ms: float) -> None:
        """Keep the open batch waiting until ``due_ms`` for another reason."""
        self._close_due_ms = due_ms

    def may_close(self, commands: int, size_bytes: int, now_ms: float, *, uncommitted: int) -> bool:
        """Return whether to append the open batch now. ``uncommitted`` callers wait for batches before it."""
        due_ms = self._close_at_ms(commands, size_bytes, now_ms, uncommitted)
        if due_ms <= now_ms:
            return True
        self._close_due_ms = due_ms
        return False

    def may_apply_later(self, entries: int, size_bytes: int, now_ms: float, *, is_wanted: bool) -> bool:
        """Return whether to put off applying these committed ``entries`` (at least one); False if ``is_wanted`` now.
        ``size_bytes`` is about the bytes that they write, if known."""
        is_enough = entries >= APPLY_ENTRIES or size_bytes >= APPLY_BYTES
        if self._apply_due_ms == math.inf:
            self._apply_due_ms = now_ms + APPLY_WAIT_MS
        if not is_wanted and not is_enough and now_ms < self._apply_due_ms:
            return True
        self._apply_due_ms = math.inf
        return False

    def may_read(self, reads: int, now_ms: float) -> bool:
        """Return whether to begin a round of heartbeats now for these ``reads``, at least one."""
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
        """Put off looking at messages that no work depends on. True if they are the first that wait."""
        if self._listen_due_ms < math.inf:
            return False
        self._listen_due_ms = now_ms + LISTEN_WAIT_MS
        return True

    def _close_at_ms(self, commands: int, size_bytes: int, now_ms: float, uncommitted: int) -> float:
        """Return when the open batch is to be closed at the latest; ``now_ms`` if it may be closed now."""
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
        """Return whether half of all known callers are in the open batch."""
        coming = self._answered - self._back if now_ms < self._answered_ms + CLOSE_WAIT_MS else 0
        return commands >= HALF_CALLERS_MIN and commands >= uncommitted + max(coming, 0)
