"""Nothing was changed: the state is not what the caller believed. Read again, and retry from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cortado.errors.root import CortadoError


@dataclass(eq=False)
class Conflict(CortadoError):
    """Nothing was changed. What the caller believed is no longer true: read again and retry from the start."""

    code: ClassVar[str] = "ABORTED"
    reason: ClassVar[str] = "CONFLICT"


@dataclass(eq=False)
class ConditionFailed(Conflict):
    """A condition on ``key`` did not hold: ``expected`` and ``actual`` are "absent", "present", or an etag."""

    key: str
    expected: str
    actual: str
    row: int = 0
    reason: ClassVar[str] = "CONDITION_FAILED"

    def message(self) -> str:
        return f"{self.key}: expected {self.expected}, found {self.actual}"


@dataclass(eq=False)
class OutOfBounds(ConditionFailed):
    """An add to ``key`` would come to ``actual``, and ``expected`` is the bound, such as "at least 0"."""

    reason: ClassVar[str] = "OUT_OF_BOUNDS"

    def message(self) -> str:
        return f"{self.key}: would be {self.actual}, and must be {self.expected}"


@dataclass(eq=False)
class UniqueViolation(Conflict):
    """``values`` of the unique ``index`` belong to the row ``existing_key`` already."""

    index: str
    values: str
    key: str
    existing_key: str
    row: int = 0

    code: ClassVar[str] = "ALREADY_EXISTS"
    reason: ClassVar[str] = "UNIQUE_VIOLATION"

    def message(self) -> str:
        return f"unique index {self.index}: {self.values} of row {self.key} already belongs to row {self.existing_key}"


@dataclass(eq=False)
class WriteConflict(Conflict):
    """Another write came first: ``key`` changed at ``conflict_ts``, after ``start_ts`` (timestamps as text).

    ``kind`` says what the transaction had to do with it: it wrote the key ("write"), read it ("read"), or read a range
    that holds it ("range"); or ``key`` is the name of a table or of a namespace that did not mean then what it means
    now ("table", "namespace").
    """

    key: str
    start_ts: str
    conflict_ts: str
    row: int = 0
    kind: str = "write"
    reason: ClassVar[str] = "WRITE_CONFLICT"

    def message(self) -> str:
        if self.kind == "table":
            return f"table {self.key} was dropped, made or named at {self.conflict_ts}, after {self.start_ts}"
        if self.kind == "namespace":
            return f"namespace {self.key} was dropped or undropped at {self.conflict_ts}, after {self.start_ts}"
        what = {"read": ", which was read,", "range": ", in a range that was read,"}.get(self.kind, "")
        return f"{self.key}{what} was written at {self.conflict_ts}, after {self.start_ts}"


@dataclass(eq=False)
class TransactionAborted(Conflict):
    """It has ended without a commit, for the reason ``cause``: "settled" (somebody asked for its outcome before it had
    one); of a large one "expired" (nobody kept it alive), "operator", "table" (one of its tables, or an index, was
    dropped), "repeated" (its application has committed it before), "superseded" (its application has begun another
    one). Nothing of it happened, or ever will."""

    cause: str
    reason: ClassVar[str] = "TRANSACTION_ABORTED"

    def message(self) -> str:
        return f"the transaction was aborted: {self.cause}"
