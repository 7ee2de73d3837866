"""Disks of followers that have nothing left but their reserves, beside a leader that has room.

Writes use up a reserve, and a disk without one stores nothing more. That may happen to single members. If the other
members are no majority, nothing is ever stored again, not even a write that frees room: the leader, which was told,
should have refused writes before.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from support.simulation.disk import Scarcity
from support.simulation.groups import any_group

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.faults import Nemesis

ENABLED_PART: Final = 0.3
RESERVE_BYTES: Final = 96 << 10
"""Writes in flight, deletes and the leader's own writes take up to half of it; unrefused writes take all of it."""


class RoomFaults:
    """``source`` is used for nothing else, so that it changes no other draws."""

    def __init__(self, cluster: Cluster, nemesis: Nemesis, source: random.Random) -> None:
        self._cluster = cluster
        self._nemesis = nemesis
        self._random = source

    def kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"scarce disks of followers": self._scarce_disks}

    def enabled(self) -> list[str]:
        """Return the room faults of a run."""
        return [kind for kind in self.kinds() if self._random.random() < ENABLED_PART]

    async def _scarce_disks(self) -> None:
        cluster, nemesis = self._cluster, self._nemesis
        leader, voters = cluster.leader(any_group(cluster.groups, self._random)), nemesis.voters()
        if leader is None or len(voters) < 2 or any(each.disk.scarcity for each in cluster.hosts.values()):
            return
        others = [each for each in voters if each != leader.node_id]
        chosen = self._random.sample(others, self._random.randint(len(voters) - _majority(voters) + 1, len(others)))
        nemesis.note("scarce disks of followers", f"{sorted(chosen)} beside {leader.node_id}")
        disks = [cluster.hosts[each].disk for each in chosen]
        for disk in disks:
            disk.scarcity = Scarcity(RESERVE_BYTES, self._judge)
        await cluster.sleep(self._random.uniform(1_000, 6_000))
        for disk in disks:
            disk.scarcity = None

    def _judge(self) -> None:
        """One more disk has nothing left."""
        voters = self._nemesis.voters()
        scarce = [self._cluster.hosts[each].disk.scarcity for each in voters]
        filled = sum(each is not None and each.is_used_up for each in scarce)
        self._cluster.counts["disks used up"] += 1
        if voters and len(voters) - filled < _majority(voters):
            self._cluster.violation(f"the disks of {filled} of {len(voters)} voters were filled to the last byte")


def _majority(voters: list[str]) -> int:
    return len(voters) // 2 + 1
