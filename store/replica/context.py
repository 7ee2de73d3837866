"""The context that the parts of one group's replica share."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.errors import Unavailable
from cortado.raft.group import RaftLog
from cortado.store.mvcc.store import VersionStore
from cortado.store.process.process import Process
from cortado.store.process.storage_thread import Storage
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.group_range import GroupRange


@dataclass(frozen=True, slots=True)
class GroupContext:
    """``of`` is the group's range in the process's engine. Two threads write: one to the log files, one to the data."""

    process: Process
    log_thread: Storage
    storage_thread: Storage
    of: GroupRange
    store: VersionStore
    machine: StateMachine
    log: RaftLog

    @property
    def node_id(self) -> str:
        return self.process.identity.node_id

    @property
    def is_installing(self) -> bool:
        """True while this replica's data is no state: a snapshot replaces it."""
        return self.store.unreadable != ""

    def check_serving(self) -> None:
        """Raise Unavailable if the node stops, or the data is no state."""
        if self.process.life.is_stopping:
            raise Unavailable("the node is stopping", retry_delay_ms=1_000)
        if self.store.unreadable:
            raise Unavailable(f"this replica cannot serve: {self.store.unreadable}", retry_delay_ms=1_000)
