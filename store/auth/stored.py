"""Keys and stored values of principals and grants (``docs/formats/auth.md``).

=============================  ==================  ====================================================
key, in the space ``m``        value               holds
=============================  ==================  ====================================================
``auth``                       StoredAuth          whether roles are on; rewritten by *every* change
``auth`` ``principal`` name    StoredPrincipal     its kind, tokens and grants
``auth`` ``token`` id          StoredTokenOwner    whose a token is
=============================  ==================  ====================================================

They concern one cluster alone: no backup has them, and a restore leaves them alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cortado.errors import DataLoss, InvalidArgument
from cortado.proto.internal import auth_pb2 as pb
from cortado.store.auth.roles import Grant, Resource, Role
from cortado.store.keys.keyspace import KeyRange, meta_key, meta_range
from cortado.store.keys.names import shown
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.stored_messages import decode_stored, encode_stored

AUTH_KEY: Final = meta_key("auth")
PRINCIPAL_CHARS_MAX: Final = 64
_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]*")


class Kind(Enum):
    """How a principal proves its identity."""

    CERTIFICATE = "certificate"
    TOKEN = "token"


@dataclass(frozen=True, slots=True)
class Switch:
    """Whether roles are on, and the counts of principals and admins."""

    enabled: bool = False
    principals: int = 0
    admins: int = 0


@dataclass(frozen=True, slots=True)
class StoredToken:
    """The stored part of a token. ``expires_ms`` is wall time, 0 for never."""

    token_id: str
    digest: bytes
    created_ms: int
    expires_ms: int = 0

    def is_live(self, now_ms: int) -> bool:
        return not self.expires_ms or now_ms < self.expires_ms


@dataclass(frozen=True, slots=True)
class Principal:
    """A principal and its grants. ``tokens`` are at most two, the newest last."""

    name: str
    kind: Kind
    tokens: tuple[StoredToken, ...] = ()
    grants: tuple[Grant, ...] = ()


def check_principal(name: str, field: str = "principal") -> str:
    """Return ``name`` if it may name a principal: lower-case ASCII, so that no two look alike. Raises InvalidArgument
    naming ``field``."""
    if not name:
        raise InvalidArgument(field, "must not be empty")
    if len(name) > PRINCIPAL_CHARS_MAX:
        raise InvalidArgument(field, f"must have at most {PRINCIPAL_CHARS_MAX} characters", shown(name))
    if _NAME.fullmatch(name) is None:
        rule = "lower-case letters a to z, digits, '_', '-' and '.', and begin with no '-' or '.'"
        raise InvalidArgument(field, f"must have only {rule}", shown(name))
    return name


def is_principal(name: str) -> bool:
    """Return whether ``name`` may name a principal."""
    return len(name) <= PRINCIPAL_CHARS_MAX and _NAME.fullmatch(name) is not None


def principal_key(name: str) -> LogicalKey:
    return meta_key("auth", "principal", name)


def principals_range() -> KeyRange:
    return meta_range("auth", "principal")


def token_key(token_id: str) -> LogicalKey:
    return meta_key("auth", "token", token_id)


def encode_switch(switch: Switch) -> bytes:
    return encode_stored(pb.StoredAuth(enabled=switch.enabled, principals=switch.principals, admins=switch.admins))


def decode_switch(payload: bytes) -> Switch:
    stored = decode_stored(pb.StoredAuth, payload, "rights")
    return Switch(stored.enabled, stored.principals, stored.admins)


def encode_principal(principal: Principal) -> bytes:
    return encode_stored(
        pb.StoredPrincipal(
            name=principal.name,
            kind=principal.kind.value,
            tokens=[
                pb.StoredToken(
                    token_id=each.token_id, digest=each.digest, created_ms=each.created_ms, expires_ms=each.expires_ms
                )
                for each in principal.tokens
            ],
            grants=[pb.StoredGrant(role=role.value, resource=resource) for role, resource in principal.grants],
        )
    )


def decode_principal(payload: bytes) -> Principal:
    stored = decode_stored(pb.StoredPrincipal, payload, "rights")
    try:
        kind = Kind(stored.kind)
        grants = tuple(Grant(Role(each.role), Resource(each.resource)) for each in stored.grants)
    except ValueError as unknown:
        raise DataLoss("rights", f"of principal {stored.name}: {unknown}") from unknown
    tokens = tuple(StoredToken(each.token_id, each.digest, each.created_ms, each.expires_ms) for each in stored.tokens)
    return Principal(stored.name, kind, tokens, grants)


def encode_owner(principal: str) -> bytes:
    return encode_stored(pb.StoredTokenOwner(principal=principal))


def decode_owner(payload: bytes) -> str:
    return decode_stored(pb.StoredTokenOwner, payload, "rights").principal
