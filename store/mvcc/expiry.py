"""A caller's expiry of a key: after a time, at a time, or never.

A time counts from the commit. A commit that is evaluated ahead of its turn counts from then: some milliseconds earlier.
Within one commit nothing expires: later operations see the keys that earlier ones wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.clock.timestamp import TTL_MS_MAX, WALL_MS_MAX
from cortado.store.mvcc.reader import Reader


def check_ttl(ttl_ms: int, field: str = "ttl_ms") -> None:
    """0 is for never. Raises InvalidArgument."""
    if not 0 <= ttl_ms <= TTL_MS_MAX:
        raise InvalidArgument(field, f"must be between 1 and {TTL_MS_MAX}", str(ttl_ms))


@dataclass(frozen=True, slots=True)
class Expiry:
    """``ttl_ms`` after the commit, or at the wall time ``at_ms``; both 0: never."""

    ttl_ms: int = 0
    at_ms: int = 0

    def __post_init__(self) -> None:
        check_ttl(self.ttl_ms, "expiry.ttl_ms")
        if not 0 <= self.at_ms <= WALL_MS_MAX:
            raise InvalidArgument("expiry.at_ms", f"must be between 1 and {WALL_MS_MAX}", str(self.at_ms))

    def expires_ms(self, reader: Reader) -> int:
        """Return the wall time at which written keys expire, 0 for never. The write is evaluated on ``reader``."""
        if self.at_ms:
            return self.at_ms
        return min(reader.as_of.wall_ms + self.ttl_ms, WALL_MS_MAX) if self.ttl_ms else 0


NEVER: Final = Expiry()
