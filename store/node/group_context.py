"""The context that the parts of one group's replica share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cortado.errors import Unavailable
from cortado.raft.group import RaftLog
from cortado.store.mvcc.store import VersionStore
from cortado.store.node.snapshots.group_range import GroupRange
from cortado.store.node.state_machine import StateMachine

if TYPE_CHECKING:
    # A host makes its replicas, and they know it: the one arrow between them that points up.
    from cortado.store.node.host import Host


@dataclass(frozen=True, slots=True)
class GroupContext:
    """``of`` is the group's range in the host's engine."""

    host: Host
    of: GroupRange
    store: VersionStore
    machine: StateMachine
    log: RaftLog

    @property
    def node_id(self) -> str:
        return self.host.identity.node_id

    @property
    def is_installing(self) -> bool:
        """True while this replica's data is no state: a snapshot replaces it."""
        return self.store.unreadable != ""

    def check_serving(self) -> None:
        """Raise Unavailable if the node stops, or the data is no state."""
        if self.host.is_stopping:
            raise Unavailable("the node is stopping", retry_delay_ms=1_000)
        if self.is_installing:
            raise Unavailable(f"this replica cannot serve: {self.store.unreadable}", retry_delay_ms=1_000)
