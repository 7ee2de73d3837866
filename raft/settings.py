"""The settings of a group's log, each with its unit, its bound and its effect."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cortado.errors import InvalidArgument

# An entry's bytes are sent whole in one message, which must stay below the transport's bound of 8 MiB.
ENTRY_BYTES_LIMIT = 7 << 20


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """Timers of all members of a group should agree: stickiness and lease assume that they do."""

    heartbeat_ms: float = 100
    """A leader shows itself this often. Each heartbeat costs a message and an answer per member."""
    election_ms_min: float = 700
    """Without a word of the leader for a random time from here ... A voter that has heard of a leader within it does
    not vote for another. At least three heartbeats, so that two may be lost."""
    election_ms_max: float = 1300
    """... to here, a voter campaigns. A leader that has not heard of a majority for this long steps down."""
    lease: bool = False
    """Whether a leader answers reads within ``election_ms_min`` of its last confirmed round without a new one. True
    needs clocks that go on while a host is suspended, and drift by less than ``max_drift_ppm``."""
    max_drift_ppm: float = 10_000
    """How far apart the speeds of two hosts' monotonic clocks may be, in millionths. Shortens the lease."""
    notice_ms: float = 20
    """How long a leader waits for an entry to carry a new commit index, before it sends it alone; as entries come, at
    most twice as long. Less lets followers apply sooner; under single writes, each such apply is a sync of its own."""
    window_bytes_max: int = 16 << 20
    """Bytes of entries sent to a member and not acknowledged yet. At least one message is always allowed."""
    window_messages_max: int = 64
    """The same, as a number of messages."""
    message_bytes_max: int = 1 << 20
    """Entries are gathered into one message up to this size. A larger entry goes alone."""
    entry_bytes_max: int = 6 << 20
    """An entry's largest encoded size, at most 7 MiB; a larger entry is refused on append."""
    retain_entries: int = 10_000
    """Entries that are kept after compaction for members that are a little behind ..."""
    retain_bytes: int = 64 << 20
    """... as long as they are not more than this, in memory and on the disk."""
    caught_up_entries: int = 1_000
    """A learner that lacks no more entries than this may become a voter."""

    def check(self) -> None:
        """Raises InvalidArgument, naming the field, its value and the bound."""
        for name in ("heartbeat_ms", "election_ms_min", "election_ms_max", "max_drift_ppm", "notice_ms"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise InvalidArgument(f"raft.{name}", "must be a finite number, and not negative", str(value))
        _at_least("heartbeat_ms", self.heartbeat_ms, 1)
        _at_least("election_ms_min", self.election_ms_min, 3 * self.heartbeat_ms)
        if self.election_ms_max <= self.election_ms_min:
            problem = f"must be above election_ms_min ({self.election_ms_min})"
            raise InvalidArgument("raft.election_ms_max", problem, str(self.election_ms_max))
        if self.max_drift_ppm >= 500_000:
            raise InvalidArgument("raft.max_drift_ppm", "must be below 500000", str(self.max_drift_ppm))
        for name in ("window_bytes_max", "window_messages_max", "message_bytes_max", "entry_bytes_max"):
            _at_least(name, getattr(self, name), 1)
        for name in ("retain_entries", "retain_bytes", "caught_up_entries"):
            _at_least(name, getattr(self, name), 0)
        if self.entry_bytes_max > ENTRY_BYTES_LIMIT:
            problem = f"must be at most {ENTRY_BYTES_LIMIT} bytes"
            raise InvalidArgument("raft.entry_bytes_max", problem, str(self.entry_bytes_max))

    @property
    def retransmit_ms(self) -> float:
        """Entries that a reachable member has not acknowledged for this long are sent again."""
        return 3 * self.heartbeat_ms

    @property
    def lease_ms(self) -> float:
        """Return how long after it was sent a round of heartbeats that a majority answered keeps other leaders away."""
        return self.election_ms_min * (1 - 2 * self.max_drift_ppm / 1e6)


def _at_least(name: str, value: float, bound: float) -> None:
    if value < bound:
        raise InvalidArgument(f"raft.{name}", f"must be at least {bound}", str(value))
