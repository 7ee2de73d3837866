"""Ids that make a repeated write have one effect.

A request id is 20 bytes: a timestamp that the server gave out (12), then random bytes (8). The server remembers the
results of recent ids and forgets the old ones; an id whose timestamp lies below what it still remembers is refused as
*too old*. So the timestamp must be recent: it is the newest that any reply carried, and when that was a while ago, the
server's clock is asked first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from cortado.store.clock.timestamp import ZERO, Timestamp

RANDOM_BYTES: Final = 8

RECENT_S: Final = 5.0
"""How long a timestamp is recent enough. A server remembers ids for much longer."""


class RequestIds:
    """The newest timestamp seen, by any thread, and the ids made from it."""

    def __init__(self, *, monotonic_s: Callable[[], float], random_bytes: Callable[[int], bytes]) -> None:
        self._monotonic_s = monotonic_s
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._newest = ZERO
        self._seen_at_s = float("-inf")

    def observe(self, ts: Timestamp) -> None:
        """A reply carried ``ts``. Older ones than the newest (a read in the past) say nothing."""
        now_s = self._monotonic_s()
        with self._lock:
            if ts >= self._newest:
                self._newest = ts
                self._seen_at_s = now_s

    def forget(self) -> None:
        """Another cluster answers now, whose time is not comparable."""
        with self._lock:
            self._newest = ZERO
            self._seen_at_s = float("-inf")

    @property
    def newest(self) -> Timestamp:
        return self._newest

    @property
    def is_recent(self) -> bool:
        """False where the server's clock must be asked before an id is made."""
        return self._monotonic_s() - self._seen_at_s <= RECENT_S

    def new(self) -> bytes:
        """20 bytes that no one else has."""
        return bytes(self._newest) + self._random_bytes(RANDOM_BYTES)
