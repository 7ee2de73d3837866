"""Places for connections: a resting connection gives its place to a new one.

A connection *rests* while the gateway waits for its caller: for a head, for more of a body, or for the next call. It
*works* while the caller waits for the gateway. A new connection may find all places taken. Then the gateway finds the
address with the most resting connections, and ends the one that has rested longest. So a caller that opens many
connections loses some of them, and keeps no other caller out.

If every connection works, a further one has no place, and stands by until its head has arrived. A probe is answered
(:mod:`cortado.store.gateway.connections`). Beyond STANDING_BY_MAX the oldest of these connections ends.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Final, Protocol

STANDING_BY_MAX: Final = 32


class Held(Protocol):
    """A connection, as far as its place goes."""

    @property
    def address(self) -> str:
        """The caller's address."""

    def give_way(self) -> None:
        """End it: another connection has its place."""


class Places:
    """At most ``places_max`` connections, and STANDING_BY_MAX beside them."""

    def __init__(self, places_max: int) -> None:
        self.places_max = places_max
        self._taken: set[Held] = set()
        self._resting: dict[str, dict[Held, None]] = {}
        """By address; the longest resting one stands first."""
        self._standing_by: dict[Held, None] = {}

    def enter(self, it: Held) -> bool:
        """Take a place for a new connection, which rests. Returns False if it stands by."""
        if len(self._taken) >= self.places_max:
            longest = self._longest_at_rest()
            if longest is None:
                self._stand_by(it)
                return False
            self.leave(longest)
            longest.give_way()
        self._taken.add(it)
        self.rest(it)
        return True

    def rest(self, it: Held) -> None:
        """Note that the gateway waits for its caller; called again, the wait begins again."""
        if it in self._taken:
            resting = self._resting.setdefault(it.address, {})
            resting.pop(it, None)
            resting[it] = None

    def work(self, it: Held) -> None:
        """Note that its caller waits for the gateway."""
        resting = self._resting.get(it.address, {})
        if it in resting:
            del resting[it]
            if not resting:
                del self._resting[it.address]

    def leave(self, it: Held) -> None:
        """Give back its place."""
        self.work(it)
        self._taken.discard(it)
        self._standing_by.pop(it, None)

    def _stand_by(self, it: Held) -> None:
        if len(self._standing_by) >= STANDING_BY_MAX:
            oldest = next(iter(self._standing_by))
            self.leave(oldest)
            oldest.give_way()
        self._standing_by[it] = None

    def _longest_at_rest(self) -> Held | None:
        most = max(self._resting.values(), key=len, default=None)
        return None if most is None else next(iter(most))


def address_of_caller(host: str) -> str:
    """Return the unit that ``host`` counts as: an IPv4 address, or an IPv6 network of 64 bits, which one caller has
    whole."""
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"
