"""The call ended without an answer: a write's outcome is unknown, a read was late, the caller went away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cortado.errors.root import CortadoError


@dataclass(eq=False)
class OutcomeUnknown(CortadoError):
    """The write may have happened, or may yet. Retrying with the same ``request_id`` is safe."""

    problem: str = ""
    request_id: str = ""

    code: ClassVar[str] = "UNKNOWN"
    reason: ClassVar[str] = "OUTCOME_UNKNOWN"

    def message(self) -> str:
        return f"the outcome is unknown: {self.problem}"


@dataclass(eq=False)
class DeadlineExceeded(CortadoError):
    """A read did not finish in ``timeout_ms``."""

    problem: str = ""
    timeout_ms: int = 0

    code: ClassVar[str] = "DEADLINE_EXCEEDED"
    reason: ClassVar[str] = "DEADLINE_EXCEEDED"

    def message(self) -> str:
        return self.problem or f"no answer within {self.timeout_ms} ms"


@dataclass(eq=False)
class Cancelled(CortadoError):
    """The caller went away."""

    problem: str = ""

    code: ClassVar[str] = "CANCELLED"
    reason: ClassVar[str] = "CANCELLED"

    def message(self) -> str:
        return self.problem or "the call was cancelled"
