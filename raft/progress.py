"""What a leader knows of one member: how far it is, what is under way to it, and whether it can be sent to at all.

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

# So often the wait doubles before entries are sent again.
_RETRANSMIT_DOUBLINGS_MAX: Final = 3


class Progress:
    """``match_index`` is what the member's own acknowledgements in this term proved; it never falls."""

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
        # What answers an earlier message of ours speaks of another member, which had this id before.
        self.began_ms = now_ms
        self.match_index = 0
        # What of it the engine was told: never more than is durable at the leader.
        self.counted_index = 0
        self.is_probing = True
        self.probe_prev = 0
        self.needs_snapshot = False
        # (last index, bytes) of each message with entries that is not acknowledged.
        self.in_flight: deque[tuple[int, int]] = deque()
        self.in_flight_bytes = 0
        self.moved_ms = now_ms
        # How often what is under way was sent again since it moved.
        self.resent = 0
        self.heard_ms: float | None = None
        # What it may still store, as it said last; None where it said nothing.
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
        """Whether a message with entries may be sent."""
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
        """The member holds, durably, what we hold up to ``index``."""
        if index > self.match_index:
            self.match_index = index
            self.moved_ms = now_ms
            self.resent = 0
        while self.in_flight and self.in_flight[0][0] <= self.match_index:
            self.in_flight_bytes -= self.in_flight.popleft()[1]
        if self.is_probing and not self.in_flight:
            self.is_probing = False

    def is_stale_rejection(self, prev_index: int) -> bool:
        """Whether a message that did not fit behind ``prev_index`` was sent before what we know now."""
        if self.is_probing:
            return prev_index != self.probe_prev
        return prev_index <= self.match_index

    def is_overdue(self, settings: RaftSettings, now_ms: float) -> bool:
        """Whether what is under way should be sent again. Each time later: what a member cannot take, for it is
        damaged here or there, would be sent for ever."""
        wait_ms = settings.retransmit_ms * (1 << min(self.resent, _RETRANSMIT_DOUBLINGS_MAX))
        return bool(self.in_flight) and now_ms - self.moved_ms >= wait_ms

    def probe(self) -> None:
        """Begin again with one message: what is under way will not be answered, or does not fit."""
        self.is_probing = True
        self.in_flight.clear()
        self.in_flight_bytes = 0

    def was_heard_within(self, duration_ms: float, now_ms: float) -> bool:
        return self.heard_ms is not None and now_ms - self.heard_ms <= duration_ms
