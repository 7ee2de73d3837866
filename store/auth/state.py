"""One state of principals and grants, read through a cache: who a credential is, and what it may.

::

    AuthState(reader, cache)
      `- one point read of the key `auth` -> the timestamp of the last change -> what is cached under it

As with the catalogue, nobody has to tell the cache of a change, and a state with writes in flight never mixes with one
of what is applied.

Damage may hide the key, and then nobody can say here who may do what. But whether roles are on is said once more beside
all that is applied (:func:`applied_roles`): where they are off, damage of something else stops nobody.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final, NamedTuple

from cortado.errors import DataLoss, NotFound
from cortado.store.auth import stored
from cortado.store.auth.roles import Rights
from cortado.store.auth.stored import Kind, Principal, StoredToken, Switch
from cortado.store.auth.tokens import digest_of, token_id_of
from cortado.store.mvcc.reader import Reader, Version
from cortado.store.mvcc.versions import Item, newest_in

STATES_MAX: Final = 4
CALLERS_MAX: Final = 4_096
"""Of one state, kept in mind."""


class Credential(NamedTuple):
    """What a caller shows: the text of a token, or the name in its certificate. Never both; both empty: nothing.
    Where it ``needs_roles``, the call is refused while they are off."""

    token: str = ""
    certificate: str = ""
    needs_roles: bool = False

    def __repr__(self) -> str:
        return f"Credential({'a token' if self.token else repr(self.certificate)})"


@dataclass(frozen=True, slots=True)
class Known:
    """Whose a credential is, and what it may, for as long as its token lives."""

    principal: Principal
    rights: Rights
    token: StoredToken | None = None

    def is_live(self, now_ms: Callable[[], int]) -> bool:
        return self.token is None or not self.token.expires_ms or self.token.is_live(now_ms())


@dataclass(slots=True)
class _Cached:
    switch: Switch
    callers: dict[Credential, Known] = field(default_factory=dict)


class AuthCache:
    """States by the timestamp of their last change. ``applied_on`` says whether roles are on by what is applied."""

    def __init__(self, applied_on: Callable[[], bool] = lambda: True) -> None:
        self.applied_on = applied_on
        self._states: OrderedDict[bytes, _Cached] = OrderedDict()

    def state_of(self, version: Version | None) -> _Cached:
        """That of which ``version`` is the key ``auth``. Its suffix tells it apart, and costs less than a timestamp."""
        suffix = b"" if version is None else version.suffix
        cached = self._states.get(suffix)
        if cached is None:
            switch = Switch() if version is None else stored.decode_switch(version.payload)
            cached = self._states[suffix] = _Cached(switch)
            while len(self._states) > STATES_MAX:
                self._states.popitem(last=False)
        return cached

    def clear(self) -> None:
        """Forget all: what was evaluated ahead of the log may never have happened."""
        self._states = OrderedDict()


class AuthState:
    """That of ``reader``, which must not change while this is used. Raises DataLoss for what does not decode, or is
    hidden by damage while roles are on, as the cache says; while they are off, what is hidden is not there."""

    __slots__ = ("_callers", "is_enabled", "reader", "switch")

    def __init__(self, reader: Reader, cache: AuthCache | None = None) -> None:
        self.reader = reader
        cache = AuthCache() if cache is None else cache
        try:
            switch = reader.get(stored.AUTH_KEY)
        except DataLoss:
            if cache.applied_on():
                raise
            switch = None
        cached = cache.state_of(switch)
        self._callers = cached.callers
        self.switch = cached.switch
        self.is_enabled = cached.switch.enabled

    def known(self, credential: Credential, now_ms: Callable[[], int]) -> Known | None:
        """Whose ``credential`` is; None where nobody's, or not any more."""
        callers = self._callers
        found = callers.get(credential)
        if found is None:
            found = self._of_token(credential.token) if credential.token else self._of_name(credential.certificate)
            if found is None:
                # Not kept: whoever guesses must not fill the memory.
                return None
            if len(callers) >= CALLERS_MAX:
                callers.clear()
            callers[credential] = found
        return found if found.is_live(now_ms) else None

    def _of_token(self, text: str) -> Known | None:
        token_id = token_id_of(text)
        owner = self.reader.get(stored.token_key(token_id)) if token_id else None
        principal = None if owner is None else self.find(stored.decode_owner(owner.payload))
        if principal is None or principal.kind is not Kind.TOKEN:
            return None
        digest = digest_of(text)
        for token in principal.tokens:
            if token.token_id == token_id and compare_digest(token.digest, digest):
                return Known(principal, Rights.of(principal.grants), token)
        return None

    def _of_name(self, name: str) -> Known | None:
        principal = self.find(name) if stored.is_principal(name) else None
        if principal is None or principal.kind is not Kind.CERTIFICATE:
            return None
        return Known(principal, Rights.of(principal.grants))

    def find(self, name: str) -> Principal | None:
        """The principal of that name."""
        version = self.reader.get(stored.principal_key(name))
        return None if version is None else stored.decode_principal(version.payload)

    def principal(self, name: str) -> Principal:
        """Raises NotFound, InvalidArgument."""
        found = self.find(stored.check_principal(name))
        if found is None:
            raise NotFound("principal", name)
        return found

    def principals(self) -> Iterator[Principal]:
        """All, by name."""
        for _, version in self.reader.scan(*stored.principals_range()):
            yield stored.decode_principal(version.payload)


def applied_roles(items: Sequence[Item], *, before: bool) -> bool:
    """Whether roles are on once these versions, in the order of their keys, are applied. Raises DataLoss."""
    is_there, version = newest_in(items, stored.AUTH_KEY)
    if not is_there:
        return before
    return version is not None and stored.decode_switch(version.payload).enabled
