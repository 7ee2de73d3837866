"""Roles in memory, at one place of the log: calls and writes are decided by them.

::

    applied       whether roles are on, from the applied state; a principal is read when it first calls
    + changes     the values that entries write which are not applied yet
    = Roles       at that place, with every principal that has called since

A decision reads a key only when a principal calls for the first time. Each change of roles makes a new :class:`Roles`,
so nothing that was read before a change is used after it.

**Closed on doubt.** The applied state says, too, whether roles are on. If it says so, and the key ``auth`` is damaged
or its loss was accepted, every call is refused. If it says that roles are off, damage of that key refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, NamedTuple

from cortado.errors import CortadoError, DataLoss
from cortado.store.auth import stored
from cortado.store.auth.roles import Rights
from cortado.store.auth.stored import Kind, Principal, StoredToken
from cortado.store.auth.tokens import digest_of, token_id_of
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.mvcc.versions import Item, newest_in

CALLERS_MAX: Final = 4_096
"""The callers of one state that are kept in memory."""
KEYS_MAX: Final = 5
"""A change writes no more: the switch, a principal, one token that comes and two that go."""
_LOST: Final = (
    "the key that switches roles on was lost, so every call is refused until they are switched off from outside"
)


class Credential(NamedTuple):
    """The credential that a caller shows: the text of a token, or the name in its certificate. Never both; both empty:
    nothing. If it ``needs_roles``, the call is refused while they are off."""

    token: str = ""
    certificate: str = ""
    needs_roles: bool = False

    def __repr__(self) -> str:
        return f"Credential({'a token' if self.token else repr(self.certificate)})"


@dataclass(frozen=True, slots=True)
class Known:
    """The principal and the rights of a credential, for as long as its token lives."""

    principal: Principal
    rights: Rights
    token: StoredToken | None = None

    def is_live(self, now_ms: Callable[[], int]) -> bool:
        return self.token is None or not self.token.expires_ms or self.token.is_live(now_ms())


@dataclass(frozen=True, slots=True, eq=False)
class AppliedRoles:
    """The applied roles. Another object, once any of it has changed: also a principal's loss."""

    is_enabled: bool
    problem: str = ""
    """Why the rights are unknown, while roles are on."""


class Roles:
    """Those at one place of the log."""

    __slots__ = ("_callers", "_changed", "_read", "is_enabled", "problem")

    def __init__(
        self,
        applied: AppliedRoles,
        read: Callable[[LogicalKey], Version | None],
        changes: Sequence[Changes] = (),
    ) -> None:
        """``read`` finds a key's version in the applied state; ``changes`` come behind that, the newest last."""
        self.is_enabled, self.problem = applied.is_enabled, applied.problem
        self._read = read
        self._changed: Mapping[LogicalKey, bytes | None] = {
            key: payload for each in changes for key, payload in zip(each.keys, each.payloads, strict=True)
        }
        self._callers: dict[Credential, Known] = {}
        switch = self._changed.get(stored.AUTH_KEY)
        if switch is not None:
            self.is_enabled, self.problem = stored.decode_switch(switch).enabled, ""

    def known(self, credential: Credential, now_ms: Callable[[], int]) -> Known | None:
        """Return the principal and rights of ``credential``; None if no principal has it, or no longer. Raises DataLoss
        if damage hides the answer."""
        found = self._callers.get(credential)
        if found is None:
            if self.problem:
                raise DataLoss("rights", self.problem)
            found = self._of_token(credential.token) if credential.token else self._of_name(credential.certificate)
            if found is None:
                # Not kept: guesses must not fill the memory.
                return None
            if len(self._callers) >= CALLERS_MAX:
                self._callers.clear()
            self._callers[credential] = found
        return found if found.is_live(now_ms) else None

    def remembers(self, credential: Credential, now_ms: Callable[[], int]) -> bool:
        """Return whether the credential was known before, and still is. If not, ask :meth:`known`."""
        found = self._callers.get(credential)
        return found is not None and found.is_live(now_ms)

    def _of_token(self, text: str) -> Known | None:
        token_id = token_id_of(text)
        owner = self._value(stored.token_key(token_id)) if token_id else None
        principal = None if owner is None else self._find(stored.decode_owner(owner))
        if principal is None or principal.kind is not Kind.TOKEN:
            return None
        digest = digest_of(text)
        for token in principal.tokens:
            if token.token_id == token_id and compare_digest(token.digest, digest):
                return Known(principal, _rights_of(principal), token)
        return None

    def _of_name(self, name: str) -> Known | None:
        principal = self._find(name) if stored.is_principal(name) else None
        if principal is None or principal.kind is not Kind.CERTIFICATE:
            return None
        return Known(principal, _rights_of(principal))

    def _find(self, name: str) -> Principal | None:
        value = self._value(stored.principal_key(name))
        return None if value is None else stored.decode_principal(value)

    def _value(self, key: LogicalKey) -> bytes | None:
        if key in self._changed:
            return self._changed[key]
        version = self._read(key)
        return None if version is None else version.payload


def _rights_of(principal: Principal) -> Rights:
    return Rights.of(principal.grants, principal=principal.name)


def changes_roles(keys: Sequence[LogicalKey]) -> bool:
    """Return whether a write of these keys changes roles."""
    return len(keys) <= KEYS_MAX and stored.AUTH_KEY in keys


def stored_roles(reader: Reader, *, is_enabled: bool) -> AppliedRoles:
    """Return the roles of a state; the applied state says beside it whether they ``is_enabled``."""
    if not is_enabled:
        return AppliedRoles(False)
    try:
        version = reader.get(stored.AUTH_KEY)
        is_said = version is not None and stored.decode_switch(version.payload).enabled
    except CortadoError as damage:
        return AppliedRoles(True, damage.message())
    return AppliedRoles(True, "" if is_said else _LOST)


def applied_roles(items: Sequence[Item]) -> AppliedRoles | None:
    """Return those that these versions, in the order of their keys, change; None if they change none. Raises
    DataLoss."""
    is_there, version = newest_in(items, stored.AUTH_KEY)
    if not is_there:
        return None
    return AppliedRoles(version is not None and stored.decode_switch(version.payload).enabled)
