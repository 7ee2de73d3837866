"""The features of a replica, by name. A new one is a module here, and a line below."""

from __future__ import annotations

from collections.abc import Callable

from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Version
from cortado.store.node.features.feature import Features
from cortado.store.node.features.roles import RolesInLog


class Registered(Features):
    """All of one replica's. ``read`` finds a key's applied version."""

    def __init__(self, read: Callable[[LogicalKey], Version | None]) -> None:
        self.roles = RolesInLog(read)
        super().__init__([self.roles])
