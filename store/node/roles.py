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

from collections.abc import Callable, Sequence
from itertools import chain

from cortado.store.auth.current import AppliedRoles, Roles
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Version
from cortado.store.node.batch import Batch


class RolesInLog:
    """One group's. ``read`` finds a key's applied version."""

    def __init__(self, applied: AppliedRoles, read: Callable[[LogicalKey], Version | None]) -> None:
        self._applied = applied
        self._read = read
        self.committed = self.appended = Roles(applied, read)

    def is_behind(self, applied: AppliedRoles) -> bool:
        """Return whether the applied roles differ from those that it knows."""
        return applied is not self._applied

    def follow(self, applied: AppliedRoles, batches: Sequence[Batch], committed: int) -> None:
        """Follow the ``applied`` roles and the batches behind them, oldest first; the first ``committed`` of these are
        committed."""
        self._applied = applied
        self.committed = self.appended = self._behind(batches[:committed])
        if any(batch.role_changes for batch in batches[committed:]):
            self.appended = self._behind(batches)

    def _behind(self, batches: Sequence[Batch]) -> Roles:
        changes: list[Changes] = list(chain.from_iterable(batch.role_changes for batch in batches))
        return Roles(self._applied, self._read, changes)
