"""Which roles hold at which place of a leader's log: a mirror in memory of the keys that say so.

::

    applied ── batches that are committed ──► committed: what a call is decided by, where it is served
       └─────── all batches, the open one ──► appended: what a write is decided by, where it is evaluated

A follower has nothing in flight: both are what it has applied. The mirror is worked out anew where one of its parts
changes: a batch takes a change of roles, or is committed, applied or given up, or the applied state is replaced. All
else leaves it as it is, and so no check looks into what is in flight. It is what a reader of the keys would find there,
always: ``tests/property/node/test_roles_against_keys.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from cortado.store.auth.current import AppliedRoles, Roles
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Version
from cortado.store.node.batch import Batch


class RolesInLog:
    """One group's. ``read`` finds a key's version in what is applied."""

    def __init__(self, applied: AppliedRoles, read: Callable[[LogicalKey], Version | None]) -> None:
        self._applied = applied
        self._read = read
        self.committed = self.appended = Roles(applied, read)

    def is_behind(self, applied: AppliedRoles) -> bool:
        """Whether something else is applied than it knows of."""
        return applied is not self._applied

    def follow(self, applied: AppliedRoles, batches: Sequence[Batch], committed: int) -> None:
        """What is ``applied``, and the batches behind it, oldest first, of which so many are ``committed``."""
        self._applied = applied
        self.committed = self.appended = self._behind(batches[:committed])
        if any(batch.role_changes for batch in batches[committed:]):
            self.appended = self._behind(batches)

    def _behind(self, batches: Sequence[Batch]) -> Roles:
        changes: list[Mutations] = list(chain.from_iterable(batch.role_changes for batch in batches))
        return Roles(self._applied, self._read, changes)
