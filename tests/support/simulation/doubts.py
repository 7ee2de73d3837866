"""Followers that doubt entries for no reason: the leader's answer to a doubt must be safe, right or wrong.

No row is hidden on these disks, so each finding of an examiner's own is a defect. The doubts made up here make leaders
disown right entries at any moment: with followers that hold them or later entries, while they are being stored, and
with a crash before or after that. Nothing acknowledged may be lost by it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from cortado.raft.group import RaftLog
from cortado.raft.log import Doubt, Entry
from cortado.store.mvcc.seen import NOTHING
from cortado.store.replica.write.examining import Examiner, _decoded
from support.simulation.loop import NodeLoop

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.process import Life

MEAN_MS: Final = 200.0
CRASHED_PART: Final = 0.4


class Doubts:
    """Runs on the world's loop until it is told to stop. ``source`` is used for nothing else."""

    def __init__(self, cluster: Cluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source
        self._until_ms: dict[str, float] = {}
        self.is_stopped = False

    async def run(self) -> None:
        while not self.is_stopped:
            await self._cluster.sleep(self._random.expovariate(1 / MEAN_MS))
            lives = self._cluster.lives()
            if lives and not self.is_stopped:
                node_id = self._random.choice(lives).node_id
                self._until_ms[node_id] = self._cluster.now_ms + self._random.uniform(50, 1_000)
                self._cluster.counts["fault: follower that doubts"] += 1
                self._cluster.note(f"{node_id} doubts")

    def of(self, node_id: str, entry: Entry) -> Doubt | None:
        """Return a doubt that a follower makes up about an entry."""
        if self.is_stopped or self._cluster.now_ms >= self._until_ms.get(node_id, 0.0):
            return None
        log_entry = _decoded(entry)
        assert log_entry is not None
        reads = log_entry.reads
        found = [key + version for key, version in zip(reads.keys, reads.versions, strict=True) if version != NOTHING]
        self._cluster.counts["entries doubted"] += 1
        return Doubt(entry.index, self._random.choice(found) if found else b"")

    def disowned(self, life: Life) -> None:
        """Note that a leader gave entries up: perhaps it dies while that is stored."""
        cluster = self._cluster
        cluster.counts["entries disowned"] += 1
        cluster.note(f"{life.node_id} disowned entries")
        if self._random.random() < CRASHED_PART and not self.is_stopped:
            cluster.world.call_later(self._random.choice((0.0, 0.3, 1.5)) / 1_000, self._crash, life)

    def _crash(self, life: Life) -> None:
        cluster = self._cluster
        if life.host.life is life:
            cluster.counts["fault: crash while entries were disowned"] += 1
            cluster.note(f"{life.node_id} crashes while it disowns")
            cluster.crash(life.node_id)
            cluster.world.call_later(self._random.uniform(0.02, 1.0), cluster.start, life.node_id)


@contextmanager
def doubting(cluster: Cluster, doubts: Doubts | None) -> Iterator[None]:
    """Watch examined and doubted entries for the time of a run; ``doubts`` adds its own."""
    examine, compare, disown = Examiner.examine, Examiner._compare, RaftLog.disown

    def examined(self: Examiner, before: Sequence[Entry], entry: Entry) -> Doubt | None:
        cluster.counts["entries examined"] += 1
        found = examine(self, before, entry)
        return doubts.of(_life().node_id, entry) if found is None and doubts is not None else found

    def compared(self: Examiner, *arguments: Any) -> Doubt | None:
        found = compare(self, *arguments)
        if found is not None:
            cluster.violation(f"{_life().node_id} doubts entry {found.index}, which was worked out rightly")
        return found

    def disowned(self: RaftLog, index: int) -> bool:
        term, last = self.term, self.last[0]
        is_done = disown(self, index)
        if is_done:
            cluster.disowned |= {(self._core.group_id, _life().node_id, each, term) for each in range(index, last + 1)}
        if is_done and doubts is not None:
            doubts.disowned(_life())
        elif not is_done:
            cluster.counts["doubts that came too late"] += 1
        return is_done

    replaced: tuple[tuple[type, str, Callable[..., Any]], ...] = (
        (Examiner, "examine", examined),
        (Examiner, "_compare", compared),
        (RaftLog, "disown", disowned),
    )
    with ExitStack() as stack:
        for owner, name, method in replaced:
            stack.enter_context(patch.object(owner, name, method))
        yield


def _life() -> Life:
    """Return the process that runs now."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, NodeLoop) and loop.life is not None
    return loop.life
