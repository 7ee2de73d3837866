"""The verdict over one group of a run: the versions that it stores in the end, against its answers to callers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cortado.errors import CortadoError
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import user_key_of
from cortado.store.keys.types import LogicalKey
from cortado.store.replica.group_range import GroupRange
from support.simulation.changes import check_changes
from support.simulation.checkers import check_linearizable, check_lists, check_reads, check_writes, truth_of
from support.simulation.collected import check_left
from support.simulation.expiring import Expirer, check_expiring
from support.simulation.groups import namespace_of
from support.simulation.history import History
from support.simulation.watchers import Watcher, check_watched
from support.simulation.workload import LISTS, REGISTERS, Client, appended

if TYPE_CHECKING:
    from support.simulation.cluster import Cluster
    from support.simulation.process import Life


@dataclass
class Part:
    """One group of a run: the callers that use its pairs, and all that they did."""

    of: GroupRange
    history: History
    clients: list[Client]
    watchers: list[Watcher]
    expirers: list[Expirer]


class Evidence:
    """The versions of one group: all that were applied in the run, and the ones that its leader has in the end."""

    def __init__(self, of: GroupRange, leader: Life, applied: Mapping[bytes, bytes]) -> None:
        self.leader = leader
        self.applied = applied
        stored = leader.host.disk.spaces[Space.DATA].values
        self.left = {key: value for key, value in stored.items() if _is_own(of, key)}
        # Keys that an operator gave up count as they are stored now.
        self.items = {**applied, **self.left}
        self.truth = truth_of(self.items, _user_key_of)

    def problems(self, part: Part, cluster: Cluster) -> Iterator[str]:
        """Yield the promises that the group broke, a sentence each."""
        of, truth, replica = part.of, self.truth, self.leader.node.replicas[part.of.group_id]
        strays = {each.node_id for each in replica.roster.registry.nodes} - set(replica.configuration.members)
        if strays:
            yield f"{strays} are in the registry, and in no configuration"
        for key in self.applied:
            if not _is_own(of, key):
                yield f"group {of.group_id} applied {key!r}, which is not its own"
        yield from check_left(self.applied, self.left, replica.store.safepoints)
        yield from check_writes(truth, part.history.writes)
        yield from check_reads(truth, part.history.reads)
        yield from check_lists(truth, LISTS, appended)
        yield from check_linearizable(truth, part.history, REGISTERS)
        yield from check_expiring(self.items, part.expirers, namespace_of(of))
        yield from check_watched(truth, part.watchers)
        yield from check_changes(cluster, of, random.Random(f"changes/{cluster.seed}"))


def _is_own(of: GroupRange, key: bytes) -> bool:
    return of.overlaps(Space.DATA, key, key + b"\x00")


def _user_key_of(key: bytes) -> bytes | None:
    try:
        return user_key_of(LogicalKey(key))
    except CortadoError:
        return None
