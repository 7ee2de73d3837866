"""What an operator is needed for: damage, wrong clocks, strange peers, and defects of Cortado's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cortado.errors.root import CortadoError


@dataclass(eq=False)
class Broken(CortadoError):
    """Something that an operator must look at."""


@dataclass(eq=False)
class DataLoss(Broken):
    """A checksum failed: ``what`` was damaged, ``detail`` says where."""

    what: str
    detail: str = ""

    code: ClassVar[str] = "DATA_LOSS"
    reason: ClassVar[str] = "DATA_LOSS"

    def message(self) -> str:
        return f"damaged data: {self.what}" + (f" ({self.detail})" if self.detail else "")


@dataclass(eq=False)
class DataDirectoryError(Broken):
    """The data directory ``path`` cannot be used: damaged, of another format version, or in use by another process."""

    path: str
    problem: str

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "DATA_DIRECTORY"

    def message(self) -> str:
        return f"data directory {self.path}: {self.problem}"


@dataclass(eq=False)
class ClockOutOfBounds(Broken):
    """A wall time ``ahead_ms`` ahead of the local physical clock, over ``limit_ms``, or what ``problem`` says."""

    ahead_ms: int
    limit_ms: int
    problem: str = ""

    code: ClassVar[str] = "FAILED_PRECONDITION"
    reason: ClassVar[str] = "CLOCK_OUT_OF_BOUNDS"

    def message(self) -> str:
        if self.problem:
            return self.problem
        return f"the remote wall time is {self.ahead_ms} ms ahead of this clock, the limit is {self.limit_ms} ms"


@dataclass(eq=False)
class PeerRefused(Broken):
    """A node that is no member, of another cluster, with another data directory, or without a peer's certificate.

    ``replaced`` is its id where another process speaks for it."""

    problem: str
    replaced: str = ""

    code: ClassVar[str] = "PERMISSION_DENIED"
    reason: ClassVar[str] = "PEER_REFUSED"

    def message(self) -> str:
        return self.problem


@dataclass(eq=False)
class Internal(Broken):
    """A defect of Cortado's."""

    problem: str = ""
    reason: ClassVar[str] = "INTERNAL"

    def message(self) -> str:
        return f"internal error: {self.problem}"
