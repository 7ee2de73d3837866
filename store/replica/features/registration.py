"""The features of a replica, by name. A new one is a module here, and a line in the list."""

from __future__ import annotations

from collections.abc import Callable

from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Version
from cortado.store.mvcc.store import VersionStore
from cortado.store.replica.features.feature import Features
from cortado.store.replica.features.large_transactions import LargeTransactionsInLog
from cortado.store.replica.features.restore import RestoreInLog
from cortado.store.replica.features.roles import RolesInLog


class Registered(Features):
    """All of one replica's, for the readers of ``store``. ``read`` finds a key's applied version."""

    def __init__(self, store: VersionStore, read: Callable[[LogicalKey], Version | None]) -> None:
        self.roles = RolesInLog(read)
        self.large_transactions = large = LargeTransactionsInLog(store)
        # Behind them: it closes the replica while they cannot be read.
        self.restore = RestoreInLog(lambda: large.is_unreadable)
        super().__init__([self.roles, self.large_transactions, self.restore])
