"""Room for the bodies of calls: bytes that arrive or are processed, with a share for each caller.

A slow body holds its first bytes until its last one arrives. So a body that still arrives gives way when another one
needs its room, by two rules::

    stalled     it is a second old, and arrives slower than 64 KiB a second: the oldest such body ends
    a share     no body has stalled: one ends of the caller with the most bytes, if the new one's caller has fewer

Both rules begin with the caller that holds the most bytes. A body that has arrived is never taken away.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

GRACE_S: Final = 1.0
PACE_BYTES_PER_S: Final = 64 << 10


@dataclass(slots=True, eq=False)
class Body:
    """A body of ``caller``. ``give_way`` ends its arrival; it is called at most once."""

    caller: str
    give_way: Callable[[], None]
    began_s: float
    size_bytes: int = 0
    received_bytes: int = 0
    """Its arrived bytes, also after it gave way."""
    gave_way: bool = False


class Bodies:
    """At most ``bytes_max`` of them. Everything here runs on the loop."""

    def __init__(self, bytes_max: int, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self.bytes_max = bytes_max
        self.size_bytes = 0
        """The sum of all bodies."""
        self._monotonic_s = monotonic_s
        self._held_bytes: Counter[str] = Counter()
        self._arriving: dict[Body, None] = {}
        """The oldest first."""

    def begin(self, caller: str, give_way: Callable[[], None]) -> Body:
        """Return a new body, still empty."""
        body = Body(caller, give_way, self._monotonic_s())
        self._arriving[body] = None
        return body

    def take(self, body: Body, size_bytes: int) -> bool:
        """Count that many more bytes of it. Returns False if there is no room for them."""
        while self.size_bytes + size_bytes > self.bytes_max:
            giving = self._giving_way_to(body, size_bytes)
            if giving is None:
                return False
            giving.gave_way = True
            self.end(giving)
            giving.give_way()
        self._hold(body, size_bytes)
        body.received_bytes += size_bytes
        return True

    def arrived(self, body: Body) -> None:
        """Note that the body arrives no longer, and so no longer gives way."""
        self._arriving.pop(body, None)

    def end(self, body: Body) -> None:
        """Release its bytes."""
        self._arriving.pop(body, None)
        self._hold(body, -body.size_bytes)

    def _hold(self, body: Body, size_bytes: int) -> None:
        body.size_bytes += size_bytes
        self.size_bytes += size_bytes
        self._held_bytes[body.caller] += size_bytes
        if not self._held_bytes[body.caller]:
            del self._held_bytes[body.caller]

    def _giving_way_to(self, asking: Body, size_bytes: int) -> Body | None:
        """Return the body that ends; None if all others may stay."""
        others = [each for each in self._arriving if each is not asking and each.size_bytes]
        first = max(self._stalled(others), key=self._held_by, default=None)
        if first is not None:
            return first
        first = max(others, key=self._held_by, default=None)
        if first is None or self._held_by(first) <= self._held_by(asking) + size_bytes:
            return None
        return first

    def _stalled(self, bodies: list[Body]) -> Iterator[Body]:
        now_s = self._monotonic_s()
        for each in bodies:
            age_s = now_s - each.began_s
            if age_s >= GRACE_S and each.received_bytes < PACE_BYTES_PER_S * age_s:
                yield each

    def _held_by(self, body: Body) -> int:
        return self._held_bytes[body.caller]
