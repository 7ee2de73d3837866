"""The large transactions that have not ended, for readers, writers and watches (:mod:`cortado.store.staging.records`).

Readers know a committed one before any read at its time, and a resolved one until that is durable (L3). So the version
store's are those of the entries just being applied, too; :attr:`LargeTransactionsInLog.durable` are those of the
durable state alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.staged import NOTHING_UNRESOLVED, LargeTransaction, Unresolved, moves_staged
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.features.feature import Effect, Feature
from cortado.store.staging.records import CHANGED_KEYS_MAX, applied_records, changes_records, unresolved_of
from cortado.store.staging.stage import past_staged


class LargeTransactionsInLog(Feature):
    """One group's, for the readers of ``store``."""

    name: ClassVar[str] = "large transactions"
    keys_max: ClassVar[int] = CHANGED_KEYS_MAX

    def __init__(self, store: VersionStore) -> None:
        self._store = store
        self.durable = NOTHING_UNRESOLVED
        """Those of the durable state: all staged values of the ended ones among them can be read."""
        self.is_unreadable = False
        """Whether damage hides them."""
        self.moved_ts = ZERO
        """When a write last moved staged values."""
        self._applying = NOTHING_UNRESOLVED
        self._newly_committed: list[LargeTransaction] = []

    @property
    def is_moving(self) -> bool:
        return bool(self._store.unresolved)

    def load(self, newest: Reader, _state: AppliedState) -> None:
        unresolved = unresolved_of(newest)
        self.durable = self._applying = self._store.unresolved = unresolved
        self.is_unreadable = False

    def unread(self) -> None:
        self.durable, self.is_unreadable = NOTHING_UNRESOLVED, True

    def repaired(self, newest: Reader, state: AppliedState) -> None:
        if self.is_unreadable:
            self.load(newest, state)

    def add_to(self, reader: Reader, ts: Timestamp, evaluation: Evaluation) -> Evaluation:
        """Add the staged values that a write moves. Raises KeyLocked."""
        if unresolved := self._store.unresolved:
            evaluation = past_staged(reader, unresolved, evaluation)
            if len(evaluation.mutations) and evaluation.removal is not None and moves_staged(evaluation.removal):
                self.moved_ts = ts
        return evaluation

    def parts(self, keys: Sequence[LogicalKey]) -> bool:
        return self._store.unresolved.meets(keys)

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        # Only once it is applied can readers see the rows that it made visible (L1).
        return Effect.ANSWERED_APPLIED if changes_records(keys) else Effect.NONE

    def begin(self) -> None:
        # After a transaction that was not stored, too: readers may go on to know more than is durable.
        self._applying, self._newly_committed = self.durable, []

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        before, after = self._applying, applied_records(items, self._applying)
        if after is not before:
            known = {each.transaction_id for each in before.committed}
            self._newly_committed += [each for each in after.committed if each.transaction_id not in known]
            self._store.unresolved = Unresolved({**self._store.unresolved.all, **after.all}.values())
            self._applying = after
        return state

    def settle(self) -> None:
        # Moved values are in their place now: until then they had to be looked for.
        self.durable = self._store.unresolved = self._applying

    def late_from(self, start: bytes, end: bytes) -> Timestamp | None:
        late = [each.commit_ts for each in self._store.unresolved.committed if each.overlaps(start, end)]
        return min([ts for ts in late if ts is not None], default=None)

    def broken(self) -> Sequence[KeyRange]:
        return [bounds for each in self._newly_committed for bounds in each.ranges]
