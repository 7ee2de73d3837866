"""Watch whether this host's clock may be believed, by its peers' clocks, and act on it.

A jump of the wall clock is followed only once most nodes' clocks confirm it. A node whose clock is out of bounds with
most of them does not lead (docs/adr/0002).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from typing import Final

from cortado.store.clock.host_time import HostTime, Majority
from cortado.store.clock.spans import exact_span_text
from cortado.store.process.peer_clocks import ClockOffset, PeerClocks

_LOG: Final = logging.getLogger(__name__)

_LOOK_MS: Final = 500.0


class ClockWatch:
    """Compares clocks when a peer tells its own, when the voters change, and now and then."""

    def __init__(
        self,
        node_id: str,
        host_time: HostTime,
        monotonic_ms: Callable[[], float],
        *,
        max_offset_ms: float,
        election_ms_max: float,
    ) -> None:
        self._node_id = node_id
        self._time = host_time
        self._monotonic_ms = monotonic_ms
        self._peers = PeerClocks(max_offset_ms, election_ms_max=election_ms_max)
        self._said_jump = False
        self._alarm: asyncio.TimerHandle | None = None
        self._voters: Callable[[], Set[str]] = frozenset
        self._on_bounds: Callable[[bool], bool]

    def start(self, voters: Callable[[], Set[str]], on_bounds: Callable[[bool], bool]) -> None:
        """Look from now on. ``voters`` are those of the group, this node among them if it is one. ``on_bounds`` hears
        at each look whether this clock is out of bounds, and returns whether that is new."""
        self._voters = voters
        self._on_bounds = on_bounds
        self._look()

    def stop(self) -> None:
        """Stop looking."""
        if self._alarm is not None:
            self._alarm.cancel()

    def observe(self, node_id: str, low_ms: float, high_ms: float) -> None:
        """Note that a peer's physical clock minus our monotonic one lies between these."""
        if self._peers.observe(node_id, low_ms, high_ms, self._monotonic_ms()):
            self.compare()

    def offsets(self) -> list[ClockOffset]:
        """Return the clock of each recently heard peer, beside ours."""
        return self._peers.offsets(self._monotonic_ms(), self._time.offsets_ms()[0])

    def knows_majority(self) -> bool:
        """Return whether enough voters' clocks are known to bound the time that this node issues. It leads no earlier:
        a wrong clock of its own would go unnoticed until then."""
        return self._majority(self._voters()) is not None or not self._voters() - {self._node_id}

    def _majority(self, voters: Set[str]) -> Majority | None:
        """Return the majority's clock; None if too few clocks are known, or if there is no other voter to be one of."""
        others = voters - {self._node_id}
        return self._peers.majority(others, self._monotonic_ms()) if len(others) < len(voters) else None

    def compare(self) -> None:
        """Follow a jump that a majority confirms. Do not lead with a clock that is out of bounds with a majority."""
        now_ms, clocks, time = self._monotonic_ms(), self._peers, self._time
        wall_ms, line_ms = time.offsets_ms()
        voters = self._voters()
        others = voters - {self._node_id}
        if time.jump_ms() and clocks.are_for(voters, now_ms, wall_ms, line_ms):
            time.follow_wall()
            _LOG.warning("the wall clock was set, as most nodes' clocks confirm: it is followed")
        elif not others and time.follow_wall_alone():
            _LOG.warning("the wall clock was set, and went on evenly since then: it is followed")
        time.peers_say(self._majority(voters))
        is_off = clocks.is_out_of_bounds(voters, now_ms, wall_ms)
        if self._on_bounds(is_off) and is_off:
            _LOG.warning("this host's clock is off by more than max-clock-offset-ms from most nodes': set it right")
        self._say_jump()

    def _look(self) -> None:
        """Compare now and then, even if no caller asks for the time and no peer speaks."""
        self.compare()
        self._alarm = asyncio.get_running_loop().call_later(_LOOK_MS / 1000, self._look)

    def _say_jump(self) -> None:
        jump_ms = self._time.jump_ms()
        if jump_ms and not self._said_jump:
            _LOG.warning(
                "the wall clock jumped by %s, which the monotonic clock does not confirm: it is not followed before "
                "most nodes' clocks confirm it",
                exact_span_text(round(jump_ms)),
            )
        self._said_jump = jump_ms != 0
