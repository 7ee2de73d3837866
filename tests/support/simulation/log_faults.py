"""Damage of log files, and the operator's answer: a replica that can't trust its log is replaced.

One disk at a time, as with disks that die: a majority can't survive more, and that has tests of its own.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from support.simulation.log_lies import LogLies

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.faults import Nemesis

ENABLED_PART: Final = 0.4
STARTS_MS: Final = 60_000.0
NOTHING_LOST: Final[Mapping[int, int]] = {}


class LogFaults:
    """``source`` is used for nothing else, so that it changes no other draws."""

    def __init__(self, cluster: Cluster, nemesis: Nemesis, source: random.Random) -> None:
        self._cluster = cluster
        self._nemesis = nemesis
        self._random = source
        self._lies = LogLies(source)

    def kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"damaged log": self._damaged_log, "lost end of the log": self._lost_end}

    def enabled(self) -> list[str]:
        """Return the log faults of a run."""
        return [kind for kind in self.kinds() if self._random.random() < ENABLED_PART]

    async def _damaged_log(self) -> None:
        """Damage a log. It shows at the next start, unless nothing needs the damaged file any more by then."""
        cluster, nemesis = self._cluster, self._nemesis
        with nemesis.losing_a_disk() as may_lose:
            if not may_lose:
                return
            host = cluster.hosts[self._random.choice(nemesis.voters())]
            way = self._lies.strike(host.disk.log)
            if way:
                nemesis.note(way, host.node_id)
                await cluster.sleep(self._random.choice((0.0, self._random.uniform(0, 3_000))))
                await self._start_again(host.node_id)

    async def _lost_end(self) -> None:
        cluster, nemesis = self._cluster, self._nemesis
        with nemesis.losing_a_disk() as may_lose:
            leaders = cluster.leaders()
            if not may_lose or leaders is None:
                return
            voters = leaders[0].configuration
            node_id = self._random.choice(nemesis.voters())
            host = cluster.hosts[node_id]
            cluster.crash(node_id)
            others = [cluster.hosts[each].disk.log for each in voters.voters if each != node_id]
            lost = self._lies.lose_end(host.disk.log, others, voters.majority)
            if lost:
                nemesis.note("end of the log lost", f"{node_id} {lost}")
                for group_id, indexes in lost.items():
                    cluster.on_lost_entries(host, group_id, indexes)
            await self._start_again(node_id, {group_id: max(indexes) for group_id, indexes in lost.items()})

    async def _start_again(self, node_id: str, lost: Mapping[int, int] = NOTHING_LOST) -> None:
        """Start a node until it serves, and has its ``lost`` entries again, the last one of each group. If it
        refuses its log, replace it."""
        cluster = self._cluster
        host = cluster.hosts[node_id]
        cluster.crash(node_id)
        await cluster.sleep(self._random.uniform(20, 500))
        cluster.start(node_id)
        until_ms = cluster.now_ms + STARTS_MS
        while cluster.now_ms < until_ms:
            if host.is_log_refused:
                await self._nemesis.replace(node_id)
                return
            life = host.life
            if (
                life is not None
                and life.is_listening
                and all(life.node.replicas[group_id].log.last[0] >= index for group_id, index in lost.items())
            ):
                host.disk.log.has_lost_end = False
                return
            await cluster.sleep(50)
