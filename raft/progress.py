"""One member as its leader knows it: its matched index, the messages under way to it, and whether it can be sent
entries.

::

    probing      one message under way, to find where the logs agree
       |  ^
   ack |  | a message did not fit, or was not answered
       v  |
    streaming    up to a window of messages under way

    waiting for a snapshot: its next entry is gone from our log
"""

from __future__ import annotations

from collections import deque
from typing import Final

from cortado.raft.log import Room
from cortado.raft.settings import RaftSettings

# How often the wait before a retransmission doubles.
_RETRANSMIT_DOUBLINGS_MAX: Final = 3


class Progress:
    """``match_index`` is the last entry that the member acknowledged in this term; it never falls."""

    __slots__ = (
        "began_ms",
        "counted_index",
        "echoed_ms",
        "fresh_incarnation",
        "fresh_ms",
        "fresh_round",
        "heard_ms",
        "in_flight",
        "in_flight_bytes",
        "is_probing",
        "match_index",
        "moved_ms",
        "needs_snapshot",
        "node_id",
        "pending_fresh",
        "probe_prev",
        "resent",
        "room",
        "round",
        "told_commit",
    )

    def __init__(self, node_id: str, now_ms: float) -> None:
        self.node_id = node_id
        # An answer to an earlier message of ours is from another member, which had this id before.
        self.began_ms = now_ms
        self.match_index = 0
        # The part of it that the engine was told: never more than is durable at the leader.
        self.counted_index = 0
        self.is_probing = True
        self.probe_prev = 0
        self.needs_snapshot = False
        # (last index, bytes) of each message with entries that is not acknowledged.
        self.in_flight: deque[tuple[int, int]] = deque()
        self.in_flight_bytes = 0
        self.moved_ms = now_ms
        # How often the entries under way were sent again since ``moved_ms``.
        self.resent = 0
        self.heard_ms: float | None = None
        # The bytes that it may still store, as it said last; None if it said nothing.
        self.room: Room | None = None
        self.told_commit = 0
        # The last round that it answered, and the newest send time of ours that it echoed.
        self.round = 0
        self.echoed_ms = float("-inf")
        # A time of the member's and the incarnation it is of, the round that makes it valid, and the newest valid one.
        self.pending_fresh = (0.0, 0)
        self.fresh_round = 0
        self.fresh_ms = 0.0
        self.fresh_incarnation = 0

    def has_window(self, settings: RaftSettings) -> bool:
        """Return whether a message with entries may be sent."""
        if self.needs_snapshot:
            return False
        if not self.in_flight:
            return True
        return (
            not self.is_probing
            and len(self.in_flight) < settings.window_messages_max
            and self.in_flight_bytes < settings.window_bytes_max
        )

    def sent(self, prev_index: int, last_index: int, size_bytes: int, now_ms: float) -> None:
        if not self.in_flight:
            self.moved_ms = now_ms
        if self.is_probing:
            self.probe_prev = prev_index
        self.in_flight.append((last_index, size_bytes))
        self.in_flight_bytes += size_bytes

    def matched(self, index: int, now_ms: float) -> None:
        """Record that the member durably holds our entries up to ``index``."""
        if index > self.match_index:
            self.match_index = index
            self.moved_ms = now_ms
            self.resent = 0
        while self.in_flight and self.in_flight[0][0] <= self.match_index:
            self.in_flight_bytes -= self.in_flight.popleft()[1]
        if self.is_probing and not self.in_flight:
            self.is_probing = False

    def is_stale_rejection(self, prev_index: int) -> bool:
        """Return whether a message that did not fit behind ``prev_index`` was sent before we knew the member's current
        place."""
        if self.is_probing:
            return prev_index != self.probe_prev
        return prev_index <= self.match_index

    def is_overdue(self, retransmit_ms: float, now_ms: float) -> bool:
        """Return whether the entries under way should be sent again. The wait doubles: entries that a member cannot
        take, damaged here or there, would be sent for ever."""
        if not self.in_flight:
            return False
        wait_ms = retransmit_ms * (1 << min(self.resent, _RETRANSMIT_DOUBLINGS_MAX))
        return now_ms - self.moved_ms >= wait_ms

    def probe(self) -> None:
        """Begin again with one message: messages under way will not be answered, or do not fit."""
        self.is_probing = True
        self.in_flight.clear()
        self.in_flight_bytes = 0

    def was_heard_within(self, duration_ms: float, now_ms: float) -> bool:
        return self.heard_ms is not None and now_ms - self.heard_ms <= duration_ms
