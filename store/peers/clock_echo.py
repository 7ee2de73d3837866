"""How far two hosts' physical clocks are apart, from messages that flow anyway.

::

        we                    peer
    t0  |--- monotonic t0 --->|            t0, t1 on our monotonic clock
        |                     |  age: how long the peer kept t0, on its own
    t1  |<-- P, t0, age ------|  P: its physical clock when this left

The peer read P at some time of ours between ``t1 - (t1 - t0 - age)`` and ``t1``, so its physical clock minus our
monotonic one lies between ``P - t1`` and ``P - t1 + round trip``. P is in whole milliseconds, cut off: that widens it
by one. A slow network makes the bounds wide, never wrong.

Our own physical clock has no part in it. It may jump between the exchange and the report of it, and the peer's would
seem to have jumped along: a wrong clock would confirm itself.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from cortado.proto.internal.peers_pb2 import PeerBatch

ROUND_TRIP_MS_MAX: Final = 60_000.0
# The narrowest bounds of so long are reported; under load a round trip includes queues.
WINDOW_MS: Final = 200.0


class Bounds(NamedTuple):
    """The peer's physical clock minus our monotonic one, in milliseconds."""

    low_ms: float
    high_ms: float


class ClockEcho:
    """The clock bounds of one stream. Callers give the times: ``now_ms`` monotonic, ``physical_ms`` since 1970."""

    def __init__(self) -> None:
        self._theirs_ms = 0.0
        self._came_ms = 0.0
        self._best: Bounds | None = None
        self._window_ends_ms = 0.0

    def stamp(self, batch: PeerBatch, now_ms: float, physical_ms: int) -> None:
        """Put our clocks, and the echo of theirs, into a batch that leaves now."""
        batch.physical_ms = max(physical_ms, 0)
        batch.monotonic_ms = now_ms
        if self._theirs_ms > 0:
            batch.echo_monotonic_ms = self._theirs_ms
            batch.echo_age_ms = now_ms - self._came_ms

    @staticmethod
    def left_ms(batch: PeerBatch, now_ms: float) -> float:
        """Return a time on our clock after which the peer sent a batch, by the echo in it, however long it lay in a
        buffer since; minus infinity without an echo."""
        left_ms = batch.echo_monotonic_ms + batch.echo_age_ms
        # Not so if a number is missing, not a number, or made up.
        is_one = batch.echo_monotonic_ms > 0 and batch.echo_age_ms >= 0 and left_ms <= now_ms
        return left_ms if is_one else -math.inf

    def arrived(self, batch: PeerBatch, now_ms: float) -> Bounds | None:
        """Take a batch's clocks. The narrowest bounds of the last window at its end, else None."""
        if 0 < batch.monotonic_ms < float("inf"):
            self._theirs_ms, self._came_ms = batch.monotonic_ms, now_ms
        round_trip_ms = now_ms - self.left_ms(batch, now_ms)
        if round_trip_ms <= ROUND_TRIP_MS_MAX:
            offset_ms = batch.physical_ms - now_ms
            found = Bounds(offset_ms, offset_ms + 1.0 + round_trip_ms)
            if self._best is None or found.high_ms - found.low_ms < self._best.high_ms - self._best.low_ms:
                self._best = found
        if self._best is None or now_ms < self._window_ends_ms:
            return None
        best, self._best = self._best, None
        self._window_ends_ms = now_ms + WINDOW_MS
        return best
