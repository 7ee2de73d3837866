"""The restore under way, if there is one: beside it nothing else is read or written.

The protocol is :mod:`cortado.store.replica.features.restoring`'s. A state that is damaged, or may be, closes the
replica too: no call is served until it is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from cortado.errors import CortadoError
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.versions import Item
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.features.feature import Effect, Feature
from cortado.store.replica.features.restoring import (
    CHANGED_KEYS_MAX,
    UNREADABLE,
    RestoreState,
    applied_restore,
    changes_restore,
    restore_of,
)


class RestoreInLog(Feature):
    """One group's."""

    name: ClassVar[str] = "a restore"
    keys_max: ClassVar[int] = CHANGED_KEYS_MAX

    def __init__(self, is_doubted: Callable[[], bool]) -> None:
        """``is_doubted`` says whether another feature cannot be read, so that no call may be served either."""
        self._is_doubted = is_doubted
        self.state: RestoreState | None = None
        """The restore under way, by the applied state; UNREADABLE if no call may be served."""
        # By the entries that are applied, or just being applied; of these the storage thread decides.
        self._applied: RestoreState | None = None
        self._changes = 0
        self._before: tuple[RestoreState | None, int] = None, 0
        self._settled = 0

    @property
    def is_closed(self) -> bool:
        return self.state is not None

    def refusal(self) -> CortadoError:
        assert self.state is not None
        return self.state.refusal()

    @property
    def progress(self) -> str:
        assert self.state is not None
        return self.state.progress

    @property
    def is_unordered(self) -> bool:
        return self._applied is not None

    @property
    def disruptions(self) -> int:
        return self._settled

    def load(self, newest: Reader, _state: AppliedState) -> None:
        self.state = self._applied = self._stored(newest)

    def unread(self) -> None:
        self.state = self._applied = UNREADABLE

    def repaired(self, newest: Reader, _state: AppliedState) -> None:
        if self._applied is UNREADABLE:
            self._applied = self._stored(newest)

    def mended(self, _newest: Reader, _state: AppliedState) -> None:
        self.state = self._applied

    def _stored(self, newest: Reader) -> RestoreState | None:
        found = restore_of(newest)
        return UNREADABLE if self._is_doubted() else found

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        return Effect.CLOSES if changes_restore(keys) else Effect.NONE

    def begin(self) -> None:
        self._before = self._applied, self._changes

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        restore = applied_restore(items, self._applied)
        self._changes += (restore is None) != (self._applied is None)
        self._applied = restore
        return state

    def take_back(self) -> None:
        self._applied, self._changes = self._before

    def settle(self) -> None:
        self.state, self._settled = self._applied, self._changes
