"""Principals and grants of one state, read key by key: for changes, and for lists.

Calls are decided by :mod:`cortado.store.auth.current`, from memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from cortado.errors import NotFound
from cortado.store.auth import stored
from cortado.store.auth.roles import ADMIN
from cortado.store.auth.stored import Principal, Switch
from cortado.store.mvcc.reader import Reader


class AuthState:
    """That of ``reader``, which must not change while this is used. Reads raise DataLoss for values that do not decode,
    or are hidden by damage."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def switch(self) -> Switch:
        """Return whether roles are on, and the counts of principals and admins."""
        version = self.reader.get(stored.AUTH_KEY)
        return Switch() if version is None else stored.decode_switch(version.payload)

    def counted(self) -> Switch:
        """Return the same for roles that are off, counted: the stored counts may be lower."""
        found = list(self.principals())
        return Switch(False, len(found), sum(ADMIN in each.grants for each in found))

    def find(self, name: str) -> Principal | None:
        """Return the principal of that name."""
        version = self.reader.get(stored.principal_key(name))
        return None if version is None else stored.decode_principal(version.payload)

    def principal(self, name: str) -> Principal:
        """Raises NotFound, InvalidArgument."""
        found = self.find(stored.check_principal(name))
        if found is None:
            raise NotFound("principal", name)
        return found

    def principals(self) -> Iterator[Principal]:
        """Yield all, by name."""
        for _, version in self.reader.scan(*stored.principals_range()):
            yield stored.decode_principal(version.payload)
