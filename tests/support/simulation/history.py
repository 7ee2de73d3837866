"""The calls of clients and their answers, in true time. Nothing here is known to the nodes.

``floor`` of a call is the largest commit timestamp that *any* client had been told before the call began: since
timestamps rise along the log, a linearizable call must come out above it, and a write strictly so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, TypeAlias

from cortado.store.clock.timestamp import ZERO, Timestamp

WriteKind: TypeAlias = Literal["put", "delete", "cas", "append", "insert", "batch", "commit"]
Outcome: TypeAlias = Literal["open", "acknowledged", "refused", "unknown", "did not happen"]
ReadKind: TypeAlias = Literal["linearizable", "at", "ahead", "stale"]


@dataclass(slots=True, eq=False)
class WriteCall:
    """One write with all its attempts. ``value`` is written by no other call; None for a delete. A commit is of a
    transaction that ``began`` at that time, and nobody may have written its keys since then."""

    client: str
    kind: WriteKind
    keys: tuple[bytes, ...]
    value: bytes | None
    expected: bytes | None
    start_ms: float
    floor: Timestamp
    end_ms: float = inf
    outcome: Outcome = "open"
    ts: Timestamp = ZERO
    reply: bytes = b""
    attempts: int = 0
    repeated: bool = False
    began: Timestamp = ZERO


@dataclass(slots=True, eq=False)
class ReadCall:
    """One answered read: the value of each key at ``ts``, as ``node`` told it. ``stale_ms`` bounds a stale one."""

    client: str
    kind: ReadKind
    node: str
    ts: Timestamp
    values: Mapping[bytes, bytes | None]
    start_ms: float
    end_ms: float
    floor: Timestamp
    stale_ms: float = 0.0


@dataclass
class History:
    """Everything that clients did in one run."""

    writes: list[WriteCall] = field(default_factory=list)
    reads: list[ReadCall] = field(default_factory=list)
    acknowledged_max: Timestamp = ZERO
    _floors_ms: list[float] = field(default_factory=list)
    _floors: list[Timestamp] = field(default_factory=list)

    def acknowledged(self, ts: Timestamp, now_ms: float) -> None:
        """Note that a client was told that there is a commit at ``ts``."""
        if ts > self.acknowledged_max:
            self.acknowledged_max = ts
            self._floors_ms.append(now_ms)
            self._floors.append(ts)

    def floor_at(self, at_ms: float) -> Timestamp:
        """Return the largest timestamp that was acknowledged until ``at_ms``."""
        place = bisect_right(self._floors_ms, at_ms)
        return self._floors[place - 1] if place else ZERO
