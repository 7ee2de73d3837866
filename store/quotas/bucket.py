"""A token bucket: it fills at a rate, holds one second's worth at most, and may be overdrawn.

::

    tokens   rate ┤■■■■■■■■┐                    a burst: a second's worth at once
                  │        └┐  ┌──┐             then at the rate
                0 ┼─────────┼──┘  └─┐   ┌───
                  │         taken    └──┘       overdrawn: calls are refused until it is above 0 again

The state is one number, the time at which the bucket will be full. Taking a token moves that time on by the interval
between two tokens. So no sum drifts, and reading the state changes nothing. (*Generic cell rate algorithm*, ATM Forum
1996.) Time is monotonic, and passed in.
"""

from __future__ import annotations

from typing import Final

DEPTH_MS: Final = 1_000.0
"""The contents of a full bucket, in milliseconds of its rate."""
_SLACK_MS: Final = 1e-3
"""A caller that waits as long as it was told is not refused for a rounding error."""


class Bucket:
    """Full at the beginning. ``rate`` is tokens a second, 1 or more. There is a token if ``full_ms`` is no more than
    ``spare_ms`` ahead: hot paths look there themselves, since to ask takes as long as the look."""

    __slots__ = ("full_ms", "rate", "spare_ms")

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.full_ms = float("-inf")
        self.spare_ms = DEPTH_MS - 1_000 / rate + _SLACK_MS
        """With one token left, so long it takes to be full."""

    def take(self, count: int, now_ms: float) -> None:
        """Take tokens, also if there are fewer: the rest is owed. A negative ``count`` gives tokens back."""
        full_ms = self.full_ms
        self.full_ms = (full_ms if full_ms > now_ms else now_ms) + count * 1_000 / self.rate

    def has(self, count: int, now_ms: float) -> bool:
        """Return whether there are ``count`` tokens."""
        full_ms = self.full_ms
        return (full_ms if full_ms > now_ms else now_ms) + count * 1_000 / self.rate <= now_ms + DEPTH_MS + _SLACK_MS

    def wait_ms(self, now_ms: float) -> float:
        """Return how long until there is a token; 0 if there is one."""
        wait_ms = self.full_ms - now_ms - self.spare_ms
        return wait_ms + _SLACK_MS if wait_ms > 0 else 0.0
