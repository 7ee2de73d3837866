"""The roles in force at each place of a leader's log: a mirror in memory of the keys that say so.

::

    applied ── batches that are committed ──► committed: decides a call, at the serving replica
       └─────── all batches, the open one ──► appended: decides a write, at evaluation

A follower has nothing in flight: both equal its applied roles. The mirror is worked out anew if one of its parts
changes: a batch takes a change of roles, or is committed, applied or given up, or the applied state is replaced. All
other events leave it as it is, so no check looks into batches in flight. It always equals the result of reading the
keys: ``tests/property/node/test_roles_against_keys.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from cortado.store.auth.current import KEYS_MAX, AppliedRoles, Roles, applied_roles, changes_roles, stored_roles
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.mvcc.versions import Item
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.features.feature import Effect, Feature

_LOG: Final = logging.getLogger(__name__)


class RolesInLog(Feature):
    """One group's. ``read`` finds a key's applied version."""

    name: ClassVar[str] = "roles"
    keys_max: ClassVar[int] = KEYS_MAX

    def __init__(self, read: Callable[[LogicalKey], Version | None]) -> None:
        self._read = read
        self._applied = self._followed = AppliedRoles(False)
        self._newly: AppliedRoles | None = None
        self.committed = self.appended = Roles(self._applied, read)

    @property
    def is_behind(self) -> bool:
        return self._applied is not self._followed

    def load(self, newest: Reader, state: AppliedState) -> None:
        """Load as :meth:`Feature.load`. Roles that damage hides refuse every call, and nothing is raised."""
        self._applied = stored_roles(newest, is_enabled=state.roles_on)
        if self._applied.problem:
            _LOG.error("the rights of callers cannot be read, so no call is served: %s", self._applied.problem)

    def mended(self, newest: Reader, state: AppliedState) -> None:
        self.load(newest, state)

    def touches(self, keys: Sequence[LogicalKey]) -> Effect:
        return Effect.FOLLOWED if changes_roles(keys) else Effect.NONE

    def follow(self, committed: Sequence[Changes], uncommitted: Sequence[Changes]) -> None:
        self._followed = self._applied
        self.committed = self.appended = Roles(self._applied, self._read, committed)
        if uncommitted:
            self.appended = Roles(self._applied, self._read, [*committed, *uncommitted])

    def begin(self) -> None:
        self._newly = None

    def apply(self, items: Sequence[Item], state: AppliedState) -> AppliedState:
        roles = applied_roles(items)
        if roles is None:
            return state
        self._newly = roles
        return replace(state, roles_on=roles.is_enabled)

    def settle(self) -> None:
        if self._newly is not None:
            self._applied = self._newly
