"""A commit's request and reply: plain values, independent of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.batches import KvBatch
from cortado.store.kv.operations import KvAdd, KvCheck, KvDelete, KvPut
from cortado.store.tables import operations as tables
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.limits import LARGEST, TransactionLimits


class Isolation(StrEnum):
    """The isolation of a transaction: see ``cortado.v1.Isolation``."""

    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"


@dataclass(frozen=True, slots=True)
class OnPairs:
    """An operation on pairs of a namespace. A batch counts as many operations as it holds."""

    namespace: str
    operation: KvPut | KvDelete | KvAdd | KvCheck | KvBatch

    @property
    def count(self) -> int:
        return len(self.operation) if isinstance(self.operation, KvBatch) else 1


Operation: TypeAlias = tables.Operation | OnPairs


@dataclass(frozen=True, slots=True)
class Commit:
    """All of ``operations``, in their order, or none.

    Without ``start`` it rests on no earlier read. With it, nothing that it writes and nothing of its ``footprint`` may
    have changed since. The footprint is known not to have up to ``unchanged_to``. It is within ``limits``, as the
    operations are to be.
    """

    operations: Iterable[Operation]
    start: Timestamp | None = None
    isolation: Isolation = Isolation.SNAPSHOT
    footprint: Footprint = field(default_factory=Footprint)
    unchanged_to: Timestamp | None = None
    limits: TransactionLimits = LARGEST


@dataclass(frozen=True, slots=True)
class Committed:
    """Done at ``ts``, which is also the etag of all written rows and pairs. ``sums``: the result of each add."""

    ts: Timestamp
    sums: Sequence[int] = ()
