"""Ids that make a repeated write have one effect.

A request id is 20 bytes: a timestamp that the server gave out (12), then random bytes (8). The server remembers the
results of recent ids and forgets the old ones; an id with a timestamp below those that it remembers is refused as
*too old*. So the timestamp must be recent. A read's reply does not tell: it carries the time of the last write. On an
idle server that was hours ago, and an id from then would be too old as soon as the next write commits. The timestamp
comes from a write's own commit, or the server's clock; when either was a while ago, the clock is asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, ZERO, Timestamp

RANDOM_BYTES: Final = 8
REQUEST_ID_BYTES: Final = TIMESTAMP_BYTES + RANDOM_BYTES

RECENT_S: Final = 5.0
"""How long a timestamp is recent enough. A server remembers ids for much longer."""
FRESH_S: Final = 0.5
"""How long a newer timestamp would add nothing."""


class RequestIds:
    """The newest timestamp seen, by any thread, and the ids made from it."""

    def __init__(self, *, monotonic_s: Callable[[], float], random_bytes: Callable[[int], bytes]) -> None:
        self._monotonic_s = monotonic_s
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._newest = ZERO
        self._newest_bytes = bytes(ZERO)
        self._seen_at_s = float("-inf")

    def observe(self, ts: Timestamp, asked_s: float) -> None:
        """Note that the server's clock gave ``ts``, or committed a write at it, for a request first sent at
        ``asked_s``.

        Older ones than the newest say nothing.
        """
        with self._lock:
            if ts >= self._newest:
                self._newest = ts
                self._newest_bytes = bytes(ts)
                self._seen_at_s = max(self._seen_at_s, asked_s)

    def forget(self) -> None:
        """Forget the time: another cluster answers now, whose time is not comparable."""
        with self._lock:
            self._newest = ZERO
            self._newest_bytes = bytes(ZERO)
            self._seen_at_s = float("-inf")

    @property
    def newest(self) -> Timestamp:
        return self._newest

    @property
    def is_recent(self) -> bool:
        """False if the server's clock must be asked before an id is made."""
        return self._monotonic_s() - self._seen_at_s <= RECENT_S

    def is_fresh(self, now_s: float) -> bool:
        """Whether the timestamp of a write that was answered now need not be observed."""
        return now_s - self._seen_at_s <= FRESH_S

    def new_if_recent(self) -> bytes:
        """Return a new id, or an empty one if the server's clock must be asked before."""
        return self.new() if self.is_recent else b""

    def new(self) -> bytes:
        """Return 20 bytes, unique."""
        return self._newest_bytes + self._random_bytes(RANDOM_BYTES)
