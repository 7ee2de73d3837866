"""Nothing was changed, and the same request may work later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cortado.errors.root import CortadoError


@dataclass(eq=False)
class TryAgain(CortadoError):
    """Nothing was changed; the same request may work after ``retry_delay_ms``."""

    problem: str = ""
    retry_delay_ms: int = 0

    code: ClassVar[str] = "UNAVAILABLE"
    reason: ClassVar[str] = "TRY_AGAIN"

    def message(self) -> str:
        return self.problem or self.reason


@dataclass(eq=False)
class KeyLocked(TryAgain):
    """``key`` is staged by a large ``transaction`` that is open: it can be written once that has ended."""

    key: str = ""
    transaction: str = ""

    reason: ClassVar[str] = "KEY_LOCKED"

    def message(self) -> str:
        return f"{self.key} is locked by the large transaction {self.transaction}, until that has ended"


@dataclass(eq=False)
class Unavailable(TryAgain):
    """The node cannot serve now: it starts, stops, or cannot be reached."""

    reason: ClassVar[str] = "UNAVAILABLE"


@dataclass(eq=False)
class NotLeader(TryAgain):
    """This node does not lead the group; ``leader`` is an address, or empty while there is none."""

    leader: str = ""
    reason: ClassVar[str] = "NOT_LEADER"


@dataclass(eq=False)
class ResourceExhausted(TryAgain):
    """A queue, the map or the disk is full. ``resource`` says which, ``limit`` its bound."""

    resource: str = ""
    limit: int = 0

    code: ClassVar[str] = "RESOURCE_EXHAUSTED"
    reason: ClassVar[str] = "RESOURCE_EXHAUSTED"


@dataclass(eq=False)
class QuotaExceeded(ResourceExhausted):
    """The ``quota`` of a principal, a database or a namespace is used up: ``resource`` says which of its limits
    (calls_per_second, bytes_per_second, stored_bytes), and ``limit`` how much that is."""

    quota: str = ""

    reason: ClassVar[str] = "QUOTA_EXCEEDED"
