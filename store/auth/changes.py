"""Changes of principals and grants. Each is evaluated like any write, and rewrites the key ``auth``.

While roles are on, a change that would leave no admin is refused. That does not look ahead to tokens that expire: an
admin's only token should have no end. The number of admins is counted when roles are switched on, and kept from then
on. Roles that were switched off from outside do not keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, TooLarge
from cortado.store.auth import stored
from cortado.store.auth.owners import has_share
from cortado.store.auth.roles import ADMIN, Grant, Rights, check_grant
from cortado.store.auth.state import AuthState
from cortado.store.auth.stored import Kind, Principal, StoredToken, Switch
from cortado.store.auth.tokens import DIGEST_BYTES, check_token_id
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader

PRINCIPALS_MAX: Final = 1_000
GRANTS_MAX: Final = 256
"""The most grants of one principal."""
TOKENS_MAX: Final = 2
LIFETIME_MS_MAX: Final = 100 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that its holder made: others get only its ``digest``. ``lifetime_ms`` 0: for ever."""

    token_id: str
    digest: bytes
    lifetime_ms: int = 0

    def check(self) -> None:
        """Raises InvalidArgument."""
        check_token_id(self.token_id)
        if len(self.digest) != DIGEST_BYTES:
            raise InvalidArgument("digest", f"must have {DIGEST_BYTES} bytes", f"{len(self.digest)} bytes")
        _check_ms("lifetime_ms", self.lifetime_ms)

    def stored(self, now_ms: int) -> StoredToken:
        return StoredToken(self.token_id, self.digest, now_ms, now_ms + self.lifetime_ms if self.lifetime_ms else 0)


class _Change:
    """A change of one state: mutations that end with the rewritten switch."""

    def __init__(self, reader: Reader) -> None:
        self.state = AuthState(reader)
        self.switch = self.state.switch()
        self.mutations = Mutations()

    def add_token(self, principal: Principal, token: NewToken, now_ms: int) -> StoredToken:
        if self.state.reader.get(stored.token_key(token.token_id)) is not None:
            raise AlreadyExists("token", token.token_id)
        self.mutations.put(stored.token_key(token.token_id), stored.encode_owner(principal.name))
        return token.stored(now_ms)

    def drop_tokens(self, tokens: tuple[StoredToken, ...]) -> None:
        for each in tokens:
            self.mutations.delete(stored.token_key(each.token_id))

    def put(self, before: Principal | None, after: Principal | None) -> None:
        """One principal as it is from now on; None: it is not."""
        name = (before or after).name  # type: ignore[union-attr]
        if after is None:
            self.mutations.delete(stored.principal_key(name))
        else:
            self.mutations.put(stored.principal_key(name), stored.encode_principal(after))
        admins = _is_admin(after) - _is_admin(before)
        principals = (after is not None) - (before is not None)
        self.switch = replace(
            self.switch,
            principals=max(self.switch.principals + principals, 0),
            admins=max(self.switch.admins + admins, 0),
        )
        if self.switch.principals > PRINCIPALS_MAX:
            count = self.switch.principals
            raise TooLarge("principal", f"there may be at most {PRINCIPALS_MAX}", str(count), count, PRINCIPALS_MAX)
        if admins < 0 and self.switch.enabled and not self.switch.admins:
            raise InvalidArgument("principal", "is the last admin: make another one first", name)

    def done(self, reply: object) -> Evaluation:
        self.mutations.put(stored.AUTH_KEY, stored.encode_switch(self.switch))
        return Evaluation(self.mutations, reply)


def enable(name: str, kind: Kind, token: NewToken | None) -> Evaluate:
    """Switch roles on, and in the same entry make ``name`` an admin. Replies with the Principal.

    One that exists keeps its grants and tokens. Raises InvalidArgument if roles are on already.
    """
    _check_new(name, kind, token)

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        change = _Change(reader)
        if change.switch.enabled:
            raise InvalidArgument("auth", "is enabled already")
        before = change.state.find(name)
        if before is not None and before.kind is not kind:
            raise InvalidArgument("kind", f"must be {before.kind.value}: principal {name} is one already", kind.value)
        after = Principal(name, kind) if before is None else before
        if token is not None:
            added = change.add_token(after, token, commit_ts.wall_ms)
            change.drop_tokens(after.tokens[: 1 - TOKENS_MAX])
            after = replace(after, tokens=(*after.tokens[1 - TOKENS_MAX :], added))
        after = replace(after, grants=_sorted((*after.grants, ADMIN)))
        change.switch = replace(change.state.counted(), enabled=True)
        change.put(before, after)
        return change.done(after)

    return evaluate


def disable() -> Evaluate:
    """Switch roles off; principals and grants stay. Replies with the Switch."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        change = _Change(reader)
        if not change.switch.enabled:
            raise InvalidArgument("auth", "is not enabled")
        change.switch = replace(change.switch, enabled=False)
        return change.done(change.switch)

    return evaluate


def switched_off() -> Evaluate:
    """As :func:`disable`, from outside: also if it cannot be read whether roles are on. Principals are counted anew
    once roles are switched on again."""

    def evaluate(_reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        mutations.put(stored.AUTH_KEY, stored.encode_switch(Switch()))
        return Evaluation(mutations, None)

    return evaluate


def create(name: str, kind: Kind, token: NewToken | None) -> Evaluate:
    """Create a principal without grants. Replies with the Principal. Raises AlreadyExists, TooLarge."""
    _check_new(name, kind, token)

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        change = _Change(reader)
        if change.state.find(name) is not None:
            raise AlreadyExists("principal", name)
        made = Principal(name, kind)
        if token is not None:
            made = replace(made, tokens=(change.add_token(made, token, commit_ts.wall_ms),))
        change.put(None, made)
        return change.done(made)

    return evaluate


def rotate(name: str, token: NewToken, overlap_ms: int) -> Evaluate:
    """Give a new token; the one before it holds for ``overlap_ms`` more at most, any older one no longer. Replies with
    the Principal. Raises NotFound, InvalidArgument."""
    token.check()
    _check_ms("overlap_ms", overlap_ms)

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        change, now_ms = _Change(reader), commit_ts.wall_ms
        before = change.state.principal(name)
        if before.kind is not Kind.TOKEN:
            raise InvalidArgument("principal", "must be one with a token: it has a certificate", name)
        kept = [each for each in before.tokens[-1:] if overlap_ms and each.is_live(now_ms)]
        change.drop_tokens(tuple(each for each in before.tokens if each not in kept))
        added = change.add_token(before, token, now_ms)
        until_ms = now_ms + overlap_ms
        ending = [replace(each, expires_ms=min(each.expires_ms or until_ms, until_ms)) for each in kept]
        after = replace(before, tokens=(*ending, added))
        change.put(before, after)
        return change.done(after)

    return evaluate


def revoke(name: str, token_id: str = "") -> Evaluate:
    """Remove a principal, its tokens and its grants, or one of its tokens. Replies with the rest: the Principal, or
    None. Raises NotFound, InvalidArgument."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        change = _Change(reader)
        before = change.state.principal(name)
        if not token_id:
            change.drop_tokens(before.tokens)
            change.put(before, None)
            return change.done(None)
        gone = tuple(each for each in before.tokens if each.token_id == token_id)
        if not gone:
            raise NotFound("token", f"{token_id} of principal {name}")
        after = replace(before, tokens=tuple(each for each in before.tokens if each not in gone))
        if change.switch.enabled and not after.tokens and _is_admin(before) and change.switch.admins == 1:
            raise InvalidArgument("token_id", "is the last token of the last admin: rotate it", token_id)
        change.drop_tokens(gone)
        change.put(before, after)
        return change.done(after)

    return evaluate


def grant(name: str, role: str, resource: str, rights: Callable[[], Rights | None] = lambda: None) -> Evaluate:
    """Give a role; again: nothing more. Replies with the Principal. Raises NotFound, InvalidArgument, TooLarge.

    ``rights`` are the giver's: None while roles are off. An owner has a share of the places, so that it keeps no
    other one from giving roles."""
    added = check_grant(role, resource)

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        change = _Change(reader)
        before = change.state.principal(name)
        grants = _sorted((*before.grants, added))
        if len(grants) > GRANTS_MAX:
            raise TooLarge("grant", f"a principal may have {GRANTS_MAX}", str(len(grants)), len(grants), GRANTS_MAX)
        if len(grants) > len(before.grants):
            _check_share(before, rights())
        after = replace(before, grants=grants)
        change.put(before, after)
        return change.done(after)

    return evaluate


def _check_share(before: Principal, giver: Rights | None) -> None:
    """Raises TooLarge."""
    if giver is None or giver.is_admin:
        return
    own = sum(giver.may_grant(each) for each in before.grants)
    if not has_share(own, len(before.grants), GRANTS_MAX):
        problem = f"{before.name} has {own} roles on what you own, and the places left are for others: revoke some"
        raise TooLarge("grant", problem, str(own + 1), own + 1, own)


def ungrant(name: str, role: str, resource: str) -> Evaluate:
    """Take a role away. Replies with the Principal. Raises NotFound, InvalidArgument."""
    gone = check_grant(role, resource)

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        change = _Change(reader)
        before = change.state.principal(name)
        if gone not in before.grants:
            raise NotFound("grant", f"of {role} on {resource} to {name}")
        after = replace(before, grants=tuple(each for each in before.grants if each != gone))
        change.put(before, after)
        return change.done(after)

    return evaluate


def _check_new(name: str, kind: Kind, token: NewToken | None) -> None:
    stored.check_principal(name)
    if (token is not None) != (kind is Kind.TOKEN):
        raise InvalidArgument("token", "must be given for a principal with a token, and for no other", kind.value)
    if token is not None:
        token.check()


def _check_ms(field: str, value: int) -> None:
    if not 0 <= value <= LIFETIME_MS_MAX:
        raise InvalidArgument(field, f"must be between 0 and {LIFETIME_MS_MAX} milliseconds", str(value))


def _is_admin(principal: Principal | None) -> bool:
    return principal is not None and ADMIN in principal.grants


def _sorted(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
    return tuple(sorted(set(grants), key=lambda each: (each.resource, each.role.value)))
