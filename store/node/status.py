"""What a node says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cortado.store.node.admission import GateUse


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """``refused_for`` says why the last turn of writes was refused for want of room; empty when writes go well."""

    refused_for: str
    is_stopping: bool
    leader: str
    applied_index: int
    uptime_ms: int
    map_used_bytes: int
    map_limit_bytes: int
    disk_free_bytes: int
    queues: Sequence[GateUse]
    loop_lag_ms_max: int

    @property
    def state(self) -> str:
        """``serving``, ``stopping``, or ``read-only:`` with the reason."""
        if self.is_stopping:
            return "stopping"
        return f"read-only: {self.refused_for}" if self.refused_for else "serving"
