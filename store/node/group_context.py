"""What the parts of one group's replica share."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from cortado.raft.group import RaftLog
from cortado.raft.settings import RaftSettings
from cortado.store.log_files.log_files import LogFiles
from cortado.store.mvcc.store import VersionStore
from cortado.store.node.host import Host
from cortado.store.node.snapshots.group_range import GroupRange
from cortado.store.node.state_machine import StateMachine
from cortado.store.node.storage_thread import Storage
from cortado.store.node.transport import Transport


@dataclass(frozen=True, slots=True)
class GroupContext:
    """``of`` is where the group's items lie in the engine; ``random`` draws what nobody may foresee."""

    cluster_id: str
    node_id: str
    of: GroupRange
    settings: RaftSettings
    host: Host
    store: VersionStore
    machine: StateMachine
    log: RaftLog
    log_files: LogFiles
    log_thread: Storage
    storage: Storage
    transport: Transport
    random: Random
