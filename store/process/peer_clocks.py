"""The offsets of this node's physical clock from its peers', and whether it may lead with its own.

Every batch of messages carries the sender's physical clock, and echoes ours; so each exchange bounds the offset (the
peer's clock minus ours) by an interval ``[low, high]``, as wide as the round trip. A wide one says little: it is out of
bounds only if no clock within it could be right::

    bound       -250 ms |------------ 0 ------------| +250 ms
    in bounds             [------]            [----------]       touches it
    out of bounds                                        [---]   entirely outside

If one clock of three is wrong, two others see it, and it sees two others far away. So a node that is out of bounds with
a majority of the group does not lead. With two nodes either may be right, and both may lead.

For each peer its clock minus *our monotonic clock* (which is never set) is kept. So a jump of our own wall clock does
not move the known offsets, and shows beside them at once. ``own_ms`` is a clock of ours minus the monotonic one.
:mod:`cortado.store.clock.host_time` draws the conclusions for the time that we use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from cortado.store.clock.host_time import Majority, majority_of

# A narrow interval is believed this long against newer, wider ones; clocks drift, and are set.
KEPT_MS: Final = 2_000.0
# A peer that was silent for longer, and for two elections, says nothing about our clock.
FORGOTTEN_MS: Final = 10_000.0
# A peer that was silent for longer confirms no jump: its clock may have been set right since. It still holds our time
# back, since we may lead without it for a while.
CONFIRMS_MS: Final = 2_500.0


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The peer's physical clock minus one of ours lies between these, in milliseconds, as it was observed at ``at_ms``
    (monotonic)."""

    node_id: str
    low_ms: float
    high_ms: float
    at_ms: float

    def is_beyond(self, bound_ms: float) -> bool:
        """Return whether no offset of at most ``bound_ms`` is possible."""
        return self.low_ms > bound_ms or self.high_ms < -bound_ms

    def beside(self, own_ms: float) -> ClockOffset:
        """Return the kept offset minus another clock of ours."""
        return replace(self, low_ms=self.low_ms - own_ms, high_ms=self.high_ms - own_ms)

    @property
    def middle_ms(self) -> float:
        return (self.low_ms + self.high_ms) / 2


class PeerClocks:
    """The observed offsets of each peer."""

    def __init__(self, max_offset_ms: float, *, election_ms_max: float) -> None:
        self._max_offset_ms = max_offset_ms
        self._forgotten_ms = max(FORGOTTEN_MS, 2 * election_ms_max)
        self._kept: dict[str, ClockOffset] = {}
        self._heard_ms: dict[str, float] = {}
        """When each peer last said what agrees with its kept offset, or more."""

    def observe(self, node_id: str, low_ms: float, high_ms: float, now_ms: float) -> bool:
        """Take one exchange with a peer, whose clock minus our monotonic one lies between the two. True if it says
        something new: mostly it is wider than the known one. An empty interval is ignored."""
        if not low_ms <= high_ms:
            return False
        known = self._kept.get(node_id)
        found = ClockOffset(node_id, low_ms, high_ms, now_ms)
        is_narrower = known is None or high_ms - low_ms <= known.high_ms - known.low_ms
        is_apart = known is not None and (found.low_ms > known.high_ms or found.high_ms < known.low_ms)
        is_new = known is None or is_narrower or is_apart or now_ms - known.at_ms > KEPT_MS
        self._heard_ms[node_id] = now_ms
        if is_new:
            self._kept[node_id] = found
        return is_new

    def offsets(self, now_ms: float, own_ms: float) -> list[ClockOffset]:
        """Return the offsets of recently heard peers, in the order of their ids."""
        return sorted(self._heard(now_ms, own_ms, self._forgotten_ms), key=lambda offset: offset.node_id)

    def _heard(self, now_ms: float, own_ms: float, within_ms: float) -> list[ClockOffset]:
        heard_ms = self._heard_ms
        return [each.beside(own_ms) for name, each in self._kept.items() if now_ms - heard_ms[name] <= within_ms]

    def is_out_of_bounds(self, voters: Iterable[str], now_ms: float, own_ms: float) -> bool:
        """Return whether our clock is too far from those of a majority of ``voters`` (we are one of them)."""
        group = set(voters)
        beyond = sum(
            1 for each in self.offsets(now_ms, own_ms) if each.node_id in group and each.is_beyond(self._max_offset_ms)
        )
        return 2 * beyond > len(group)

    def are_for(self, voters: Iterable[str], now_ms: float, own_ms: float, other_ms: float) -> bool:
        """Return whether a majority of ``voters``, we among them, has a clock like our ``own_ms``, not ``other_ms``."""
        group = set(voters)
        is_like = sum(
            1
            for each in self._heard(now_ms, own_ms, CONFIRMS_MS)
            if each.node_id in group
            and not each.is_beyond(self._max_offset_ms)
            and abs(each.middle_ms) < abs(each.middle_ms + own_ms - other_ms)
        )
        return is_like > 0 and 2 * (is_like + 1) > len(group)

    def majority(self, others: Iterable[str], now_ms: float) -> Majority | None:
        """Return the clock of a majority of us and ``others``, if known. Each counts as late as it may be."""
        group = set(others)
        known = [each.high_ms for each in self.offsets(now_ms, 0.0) if each.node_id in group]
        return majority_of(known, len(group) + 1)
