"""What the parts of one group's replica share."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from cortado.raft.group import RaftLog
from cortado.store.mvcc.store import VersionStore
from cortado.store.node.driver import Driver
from cortado.store.node.host import Host
from cortado.store.node.snapshots.group_range import GroupRange
from cortado.store.node.storage_thread import Storage
from cortado.store.node.transport import Transport


@dataclass(frozen=True, slots=True)
class GroupContext:
    """``of`` is where the group's items lie in the engine; ``random`` draws what must not follow from it."""

    node_id: str
    of: GroupRange
    host: Host
    store: VersionStore
    log: RaftLog
    driver: Driver
    storage: Storage
    transport: Transport
    random: Random
