"""The time of a host with a wall clock that may jump: the wall clock, checked against a monotonic one and against
peers'.

::

                     wall within step_ms_max of the line
                   ┌────────────────────────────────────┐
                   ▼                                    │
    start ──► FOLLOWING ── wall leaves the line ──► HELD ──► FOLLOWING, on a new line
              the line is slewed       (a jump)          the line is moved to the wall clock:
              to the wall clock                          most voters' clocks agree with it, or none
                                                         could and it stands for alone_ms

The *line* is the time that goes on from the start by the monotonic clock. A wall clock that leaves it has jumped: it
was set, rightly or wrongly, or the host stood still in a way that its monotonic clock does not count. This host cannot
know the cause. Its peers do, so a jump is followed once they confirm it, and not before.

Three more rules keep a wrong time out, however it came in (a host may *start* with a wrong clock, and then its line is
wrong as well):

- *Never ahead of both own clocks*: a host without peers to ask takes the earlier of line and wall clock. To be behind
  is harmless: a hybrid clock stands still until it is overtaken. To be ahead stays until an epoch ends.
- *Never far ahead of most voters.* Of N voters, take the (N/2 + 1)th smallest clock; those that are not known count as
  the smallest. While a majority of the clocks is right, it is not ahead of a right one. No more than ``max_offset_ms``
  above it is issued. A leader that knows too few clocks does not serve yet.
- *Small steps are slewed* (chrony and ntpd step a little at a start): the line moves to the wall clock by at most one
  part in twenty of the time that went by. Steps that follow each other faster than that become a jump.

So the time is at most ``max_offset_ms``, and the round trip by which the peers' clocks were read, ahead of the truth,
while a majority of the voters' clocks is right. Nothing here touches order, which is the hybrid clock's.

Source of the majority: *Maintaining the Time in a Distributed System*, Marzullo and Owicki 1983.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

SLEW: Final = 0.05
"""By so much of the time that went by, the line may move towards the wall clock."""
ALONE_MS: Final = 600_000.0
"""A jump that no peer could confirm or deny is followed once the wall clock went on evenly for this long."""
# Clocks are read in whole milliseconds, so the line and the wall clock differ by up to one.
_ROUNDING_MS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Majority:
    """The majority's clock, from peers' clocks: among all voters' clocks in order, ours counts if it lies between these
    two, and else the nearer one of them. Both are wall time minus our monotonic clock."""

    low_ms: float
    high_ms: float

    def of(self, own_ms: float) -> float:
        return min(max(own_ms, self.low_ms), self.high_ms)


def majority_of(peers_ms: Sequence[float], voters: int) -> Majority | None:
    """Return the majority's clock of ``voters`` voters, ourselves included. ``peers_ms`` are the known clocks of
    others.

    Returns None if too few are known.
    """
    known = sorted(peers_ms)
    unknown = voters - 1 - len(known)
    place = voters // 2 + 1 - unknown
    if voters < 2 or place < 1:
        return None
    low_ms = known[place - 2] if place >= 2 else -math.inf
    high_ms = known[place - 1] if place <= len(known) else math.inf
    return Majority(low_ms, high_ms)


class HostTime:
    """``wall_ms`` reads the wall clock, in milliseconds since 1970, and ``monotonic_ms`` one that is never set: best
    one that goes on while the host sleeps. No lock: all calls come from the node's loop."""

    def __init__(
        self,
        wall_ms: Callable[[], int],
        monotonic_ms: Callable[[], float],
        *,
        max_offset_ms: float,
        slew: float = SLEW,
        alone_ms: float = ALONE_MS,
    ) -> None:
        """``max_offset_ms`` is how far clocks may be apart: a larger step is a jump, a smaller one is slewed."""
        self.wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms
        self._max_offset_ms = max_offset_ms
        self._slew = slew
        self._alone_ms = alone_ms
        self._looked_ms = monotonic_ms()
        self._line_ms: float = wall_ms() - self._looked_ms
        self._majority: Majority | None = None
        self._jump_ms = 0.0
        self._jumped_ms = math.inf

    def now_ms(self) -> int:
        """Return the time, in milliseconds since 1970. It goes back if it is found to have been ahead."""
        wall_ms = self._look()
        own_ms = min(wall_ms, self._line_ms)
        if self._majority is not None:
            own_ms = min(self._line_ms, self._majority.of(own_ms) + self._max_offset_ms)
        # A wall clock that is followed to the millisecond is given as it was read.
        return round(self._looked_ms + own_ms) if own_ms == wall_ms else math.floor(self._looked_ms + own_ms)

    def jump_ms(self) -> float:
        """Return how far the wall clock is from the time that is kept instead of it; 0 while it is followed."""
        self._look()
        return self._jump_ms

    def peers_say(self, majority: Majority | None) -> None:
        """Take the majority's clock as it is known now; None if too few clocks are known, or there is no other
        voter."""
        self._majority = majority

    def offsets_ms(self) -> tuple[float, float]:
        """Return the wall clock and the line, each minus the monotonic clock, to be compared with peers' clocks."""
        return self._look(), self._line_ms

    def follow_wall(self) -> None:
        """The wall clock is right: the line goes on from it."""
        self._line_ms = self._look()
        self._jump_ms, self._jumped_ms = 0.0, math.inf

    def follow_wall_alone(self) -> bool:
        """Follow a jump that stands for long enough, when no peer can say which clock is right. Returns True if it is
        followed."""
        self._look()
        if self._looked_ms - self._jumped_ms < self._alone_ms:
            return False
        self.follow_wall()
        return True

    def _look(self) -> float:
        """Read both clocks and move the line; the wall clock minus the monotonic one."""
        now_ms = self._monotonic_ms()
        elapsed_ms, self._looked_ms = max(now_ms - self._looked_ms, 0.0), now_ms
        wall_ms = self.wall_ms() - now_ms
        apart_ms = wall_ms - self._line_ms
        if abs(apart_ms) > self._max_offset_ms:
            if abs(apart_ms - self._jump_ms) > self._max_offset_ms:
                # Also if it jumps again: nothing is known of its new place.
                self._jumped_ms = now_ms
                self._jump_ms = apart_ms
            return wall_ms
        self._jump_ms, self._jumped_ms = 0.0, math.inf
        if abs(apart_ms) > _ROUNDING_MS:
            slewed_ms = max(elapsed_ms, 1e-9) * self._slew
            self._line_ms = (
                wall_ms if slewed_ms >= abs(apart_ms) else self._line_ms + math.copysign(slewed_ms, apart_ms)
            )
        return wall_ms
