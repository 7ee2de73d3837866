"""Whether a node can serve, and if not, every reason why: ``/readyz`` and gRPC's health service say the same.

*Ready* is not *alive*: a node that is not ready is well, as a rule, and becomes ready by itself. It means that a caller
who has the choice is better off elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cortado.store.host.host import Host
from cortado.store.host.status import node_status
from cortado.store.replica.replica import Role

READY_LAG_MS_DEFAULT: Final = 10_000
# A full look asks the disk. In between, callers get the last result, at most this old.
_LOOK_AGAIN_MS: Final = 500.0


class Reason(StrEnum):
    """Why a node can't serve."""

    STARTING = "starting"
    STOPPING = "stopping"
    FAILED = "failed"
    NO_LEADER = "no_leader"
    LEADER_NOT_READY = "leader_not_ready"
    BEHIND = "behind"
    NO_ROOM = "no_room"
    INSTALLING_SNAPSHOT = "installing_snapshot"
    PORT_NOT_SERVED = "port_not_served"


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason, and a sentence about it."""

    reason: Reason
    message: str


class Readiness:
    """Looks at a node. ``lag_ms_max``: a follower that may miss entries committed this long ago is not ready."""

    def __init__(self, monotonic_ms: Callable[[], float], *, lag_ms_max: int = READY_LAG_MS_DEFAULT) -> None:
        self._monotonic_ms = monotonic_ms
        self._lag_ms_max = lag_ms_max
        self._starting: Host | None = None
        self._host: Host | None = None
        self._is_served: Callable[[], bool] = lambda: True
        self._looked_ms = float("-inf")
        self._was_ready = False

    def begin(self, host: Host, is_served: Callable[[], bool]) -> None:
        """Note that the node starts; ``is_served`` says whether clients can reach it."""
        self._starting = host
        self._is_served = is_served

    def attach(self, host: Host) -> None:
        """Note that the node has started."""
        self._host = host

    def is_ready(self) -> bool:
        """Return whether it can serve. Cheap enough for ten calls a second: a look at the disk may be 0.5 s old."""
        if self._host is None or not self._host.meta.ready or not self._is_served():
            self._looked_ms = float("-inf")
            return False
        now_ms = self._monotonic_ms()
        if now_ms - self._looked_ms > _LOOK_AGAIN_MS:
            self._looked_ms, self._was_ready = now_ms, not self.problems()
        return self._was_ready

    def problems(self) -> list[Problem]:
        """Return every reason that holds now; none if the node can serve."""
        host = self._host
        if host is None:
            found = [Problem(Reason.STARTING, "the node starts, or joins its cluster")]
            if self._starting is not None and self._starting.refused_for:
                full = f"committed entries cannot be applied yet: {self._starting.refused_for}"
                found.append(Problem(Reason.NO_ROOM, full))
            return found
        status, failure = node_status(host), host.meta.driver.failure
        if failure is not None:
            return [Problem(Reason.FAILED, f"the node has stopped: {failure}")]
        found = []
        if not self._is_served():
            found.append(Problem(Reason.PORT_NOT_SERVED, "the port for clients is not served, and is to be again"))
        if status.is_stopping:
            found.append(Problem(Reason.STOPPING, "the node is stopping"))
        if status.unreadable:
            found.append(Problem(Reason.INSTALLING_SNAPSHOT, status.unreadable))
        if status.refused_for:
            found.append(Problem(Reason.NO_ROOM, f"writes are refused: {status.refused_for}"))
        if status.role is Role.LEADER:
            if not host.meta.driver.leadership.is_ready:
                found.append(Problem(Reason.LEADER_NOT_READY, "it leads, and has not applied what came before yet"))
        elif not status.leader:
            found.append(Problem(Reason.NO_LEADER, "no leader is known"))
        else:
            found += self._behind(host)
        return found

    def _behind(self, host: Host) -> list[Problem]:
        fresh_ms = host.meta.log.fresh_as_of_ms
        if fresh_ms is None:
            return [Problem(Reason.BEHIND, "it does not know the committed entries yet")]
        lag_ms = self._monotonic_ms() - fresh_ms
        if lag_ms <= self._lag_ms_max:
            return []
        problem = f"entries committed in the last {lag_ms:.0f} ms may not be applied; {self._lag_ms_max} ms are allowed"
        return [Problem(Reason.BEHIND, problem)]
