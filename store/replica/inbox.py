"""Peers' messages that the log has not seen yet: bounded for each peer, and stepped for a bounded time.

Each peer has a lane, and the lanes have their turns: a peer that sends more than the log can step delays and loses
messages of its own, and no other one's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

# A peer's bounds. Past them messages are dropped, as a network would; their sender sends them again.
LANE_BYTES_MAX: Final = 32 << 20
LANE_MESSAGES_MAX: Final = 4_096


@dataclass(slots=True)
class _Lane:
    bodies: deque[bytes] = field(default_factory=deque)
    size: int = 0


class Inbox:
    """Messages of each peer in the order in which they came. A single one is taken however large it is."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        # Lanes that hold messages; the first one is next.
        self._lanes: dict[str, _Lane] = {}

    @property
    def is_empty(self) -> bool:
        """True if no message waits."""
        return not self._lanes

    @property
    def use(self) -> tuple[int, int]:
        """Return how many messages wait, and their bytes."""
        lanes = self._lanes.values()
        return sum(len(each.bodies) for each in lanes), sum(each.size for each in lanes)

    def put(self, sender: str, bodies: Sequence[bytes]) -> None:
        """Take messages of a peer; drop those for which there is no room."""
        if not bodies:
            return
        lane = self._lanes.setdefault(sender, _Lane())
        for body in bodies:
            is_full = len(lane.bodies) >= LANE_MESSAGES_MAX or lane.size + len(body) > LANE_BYTES_MAX
            if is_full and lane.bodies:
                return
            lane.bodies.append(body)
            lane.size += len(body)

    def step(self, step: Callable[[str, bytes], None], until_ms: float) -> bool:
        """Give the arrived messages to ``step``, at least one. False if some are left at ``until_ms``."""
        lanes = self._lanes
        while lanes:
            sender = next(iter(lanes))
            lane = lanes.pop(sender)
            body = lane.bodies.popleft()
            lane.size -= len(body)
            if lane.bodies:
                lanes[sender] = lane
            step(sender, body)
            if lanes and self._monotonic_ms() > until_ms:
                return False
        return True
