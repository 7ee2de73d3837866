"""One load, in turns: a round of one system, a round of the other, and again.

The other system rests meanwhile. Its callers stay connected and wait for their next round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from benchmarks.cluster.drivers import Driver, Seen
from benchmarks.cluster.members import Cluster, Member, Meter, Use

SETTLE_S: Final = 0.3
"""The time between two rounds, for background work that the last one left."""

Open = Callable[[Cluster, Member], Driver]
"""Opens the callers of a cluster that has this leader."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Calls a second, latencies in milliseconds, and costs: cores of CPU, and memory at its highest."""

    rate: float
    p50_ms: float
    p99_ms: float
    leader: Use
    followers: tuple[Use, ...]
    client_cores: float
    failed: int


class _Contestant:
    """A system, and its callers as long as it has the same leader."""

    def __init__(self, cluster: Cluster, opens: Open) -> None:
        self._cluster = cluster
        self._open = opens
        self._leader: Member | None = None
        self._driver: Driver | None = None

    def round(self, seconds: float) -> Outcome:
        leader = self._cluster.leader()
        if leader is None:
            raise RuntimeError(f"{self._cluster.name} has no leader")
        if self._driver is None or leader is not self._leader:
            self.close()
            self._leader, self._driver = leader, self._open(self._cluster, leader)
        self._driver.begin(seconds)
        members = [leader, *(member for member in self._cluster.members if member is not leader)]
        meters = [Meter(member.pid) for member in members]
        time.sleep(seconds)
        uses = [meter.read() for meter in meters]
        return _outcome(self._driver.end(), uses, seconds)

    def settle(self) -> None:
        self._cluster.settle()
        time.sleep(SETTLE_S)

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None


def in_turns(clusters: Sequence[Cluster], opens: Open, rounds: int, seconds: float) -> dict[str, list[Outcome]]:
    """Return the outcomes of each system's rounds. Raises RuntimeError if one fails as a whole."""
    outcomes: dict[str, list[Outcome]] = {cluster.name: [] for cluster in clusters}
    with ExitStack() as stack:
        contestants = {cluster.name: stack.enter_context(closing(_Contestant(cluster, opens))) for cluster in clusters}
        for _ in range(rounds):
            for name, contestant in contestants.items():
                contestant.settle()
                outcomes[name].append(contestant.round(seconds))
    return outcomes


def _outcome(seen: Seen, uses: Sequence[Use], seconds: float) -> Outcome:
    return Outcome(
        rate=seen.calls / seconds,
        p50_ms=seen.p50_us / 1_000,
        p99_ms=seen.p99_us / 1_000,
        leader=uses[0],
        followers=tuple(uses[1:]),
        client_cores=seen.cpu_s / seconds,
        failed=seen.failed,
    )


def middle(rounds: Sequence[Outcome]) -> Outcome:
    """Return the median of each number, and the sum of failures."""
    followers = zip(*(each.followers for each in rounds), strict=True)
    return Outcome(
        rate=statistics.median(each.rate for each in rounds),
        p50_ms=statistics.median(each.p50_ms for each in rounds),
        p99_ms=statistics.median(each.p99_ms for each in rounds),
        leader=_middle([each.leader for each in rounds]),
        followers=tuple(_middle(uses) for uses in followers),
        client_cores=statistics.median(each.client_cores for each in rounds),
        failed=sum(each.failed for each in rounds),
    )


def _middle(uses: Sequence[Use]) -> Use:
    return Use(statistics.median(use.cores for use in uses), max(use.memory_mib for use in uses))
