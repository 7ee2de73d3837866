"""How fast a leader appends while a member catches up: as fast as it can, until the log that is held for it grows long.

A member that fell behind is brought a snapshot, and then the writes since. The log is held that long, in memory and on
the disk, so its length is bounded. Past the bound it is dropped, and the member needs another snapshot, which takes as
long again. Under steady load it would never catch up. So the leader slows down::

    held for members    0 ─── begins ──────────────────────── held_bytes_max ──► dropped: another try
    bytes a second        any    64 MiB ... ever less ... 2 MiB

The leader finds the rate at which a slow member keeps up, since the held log stops growing there. The rate is bounded:
never slower than the last of these, which halves with each failed try. After ``TRIES_MAX`` the leader gives up slowing
down, for a member that cannot keep up at all must not hold the others.
"""

from __future__ import annotations

import math
from typing import Final

FASTEST_S: Final = 4.0
"""At the rate at which slowing begins, the bound of the held log is filled in this time."""
SLOWEST_S: Final = 128.0
"""The same at the slowest rate."""
TRIES_MAX: Final = 3
DELAY_MS_MAX: Final = 2_000.0
"""No entry waits longer, however large the one before it was."""
BURST_MS: Final = 250.0
"""A batch holds about the bytes that may be written in this time."""


def append_rate(held_bytes: int, begins_bytes: int, held_bytes_max: int, failed_tries: int) -> float:
    """Return the bytes a second that may be appended; infinite if there is no need to slow down."""
    if held_bytes <= begins_bytes or failed_tries > TRIES_MAX:
        return math.inf
    share = min((held_bytes - begins_bytes) / max(held_bytes_max - begins_bytes, 1), 1.0)
    fastest, slowest = held_bytes_max / FASTEST_S, held_bytes_max / SLOWEST_S / 2**failed_tries
    return float(fastest * (slowest / fastest) ** share)


class Pacing:
    """Keeps the leader's appends to a rate. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self.rate = math.inf
        """Bytes a second."""
        self.delayed_ms = 0.0
        """How long appending was put off, since the start."""
        self._due_ms = -math.inf

    def appended(self, size_bytes: int, now_ms: float) -> None:
        """Note that ``size_bytes`` were appended: the next entry's wait follows from it."""
        delay_ms = 0.0 if math.isinf(self.rate) else min(size_bytes / self.rate * 1_000, DELAY_MS_MAX)
        self.delayed_ms += delay_ms
        self._due_ms = now_ms + delay_ms

    def due_ms(self, now_ms: float) -> float:
        """Return when the next entry may be appended; ``now_ms`` if at once."""
        return now_ms if math.isinf(self.rate) else max(self._due_ms, now_ms)

    def batch_bytes(self, batch_bytes_max: int) -> int:
        """Return the most that one batch should hold."""
        return batch_bytes_max if math.isinf(self.rate) else min(batch_bytes_max, int(self.rate * BURST_MS / 1_000) + 1)
