"""How far this node's physical clock is from those of its peers, and whether it may lead with it.

Every batch of messages carries the sender's physical clock, and echoes ours; so each exchange bounds the offset (the
peer's clock minus ours) by an interval ``[low, high]``, as wide as the round trip. A wide one says little: it is out of
bounds only where no clock within it could be right::

    bound       -250 ms |------------ 0 ------------| +250 ms
    in bounds             [------]            [----------]       touches it
    out of bounds                                        [---]   entirely outside

One clock of three that is wrong is seen by two others, and sees two others far away. So a node that is out of bounds
with a majority of the group does not lead. Of two nodes nobody can say which is right, and both may lead: timestamps
stay above the log's in any case, and only the wall time in them would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# A narrow interval is believed for so long against newer, wider ones; clocks drift, and are set.
KEPT_MS: Final = 2_000.0
# A peer that was silent for longer says nothing about our clock.
FORGOTTEN_MS: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The peer's physical clock minus ours lies between these, in milliseconds, as it was observed at ``at_ms``
    (monotonic)."""

    node_id: str
    low_ms: float
    high_ms: float
    at_ms: float

    def is_beyond(self, bound_ms: float) -> bool:
        """No offset of at most ``bound_ms`` is possible."""
        return self.low_ms > bound_ms or self.high_ms < -bound_ms


class PeerClocks:
    """What was observed of each peer."""

    def __init__(self, max_offset_ms: float) -> None:
        self._max_offset_ms = max_offset_ms
        self._offsets: dict[str, ClockOffset] = {}

    def observe(self, node_id: str, low_ms: float, high_ms: float, now_ms: float) -> bool:
        """One exchange with a peer. True where it says something new: mostly it is wider than what is known already.
        An interval that is empty is ignored: a clock was set while it was measured."""
        if not low_ms <= high_ms:
            return False
        known = self._offsets.get(node_id)
        is_narrower = known is None or high_ms - low_ms <= known.high_ms - known.low_ms
        is_apart = known is not None and (low_ms > known.high_ms or high_ms < known.low_ms)
        is_new = known is None or is_narrower or is_apart or now_ms - known.at_ms > KEPT_MS
        if is_new:
            self._offsets[node_id] = ClockOffset(node_id, low_ms, high_ms, now_ms)
        return is_new

    def offsets(self, now_ms: float) -> list[ClockOffset]:
        """What is known of peers that were heard of lately, in the order of their ids."""
        return sorted(
            (each for each in self._offsets.values() if now_ms - each.at_ms <= FORGOTTEN_MS),
            key=lambda offset: offset.node_id,
        )

    def is_out_of_bounds(self, voters: Iterable[str], now_ms: float) -> bool:
        """Whether our clock is too far from those of a majority of ``voters`` (we are one of them)."""
        group = set(voters)
        beyond = sum(
            1 for each in self.offsets(now_ms) if each.node_id in group and each.is_beyond(self._max_offset_ms)
        )
        return 2 * beyond > len(group)
