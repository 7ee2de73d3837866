"""Roles: principals, their tokens and their rights.

A token is made here, by its holder's client: the cluster gets its digest and never its text
(:mod:`cortado.store.auth.tokens`). So a call may be repeated, and no reply or log has anything to give away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.proto.v1 import auth_pb2 as pb
from cortado.store.auth.tokens import Token, make_token
from cortado.store.client.arguments import text, whole
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face

_MS_MAX: Final = 100 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token's metadata; ``expires_ms`` is wall time, 0 for never."""

    token_id: str
    created_ms: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role on a resource: ``cluster``, ``database:NAME``, ``table:DATABASE.TABLE`` or ``namespace:NAME``."""

    role: str
    resource: str


@dataclass(frozen=True, slots=True)
class PrincipalInfo:
    """A principal, its tokens and its grants. ``kind`` is certificate or token."""

    name: str
    kind: str
    tokens: tuple[TokenInfo, ...]
    grants: tuple[RoleGrant, ...]


@dataclass(frozen=True, slots=True)
class AuthStatus:
    """Whether roles are on, how many principals there are, and how many of them are admins."""

    enabled: bool
    principals: int
    admins: int


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """The caller that the call's credentials identify; None if unauthenticated, as may be while roles are off."""

    enabled: bool
    principal: PrincipalInfo | None


@dataclass(frozen=True, slots=True)
class Issued:
    """A principal, and its new token: the only place that has the text. None of a principal with a certificate."""

    principal: PrincipalInfo
    token: Token | None


@public_face
class AsyncAuth:
    """The cluster's principals and roles."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._stub = connection.stubs.auth

    async def enable(self, principal: str, *, kind: str = "token") -> Issued:
        """Switch roles on, and make ``principal`` an admin in the same step. From then on only granted calls are
        allowed. Raises InvalidArgument if roles are on already."""
        request = pb.EnableAuthRequest(principal=text(principal, "principal"), kind=text(kind, "kind"))
        token = self._new_token(request, 0) if kind == "token" else None
        return Issued(await self._change(self._stub.Enable, request), token)

    async def disable(self) -> AuthStatus:
        """Switch roles off: every caller that reaches the cluster may do everything. Principals and grants stay."""
        reply = await self._connection.write(self._stub.Disable, pb.DisableAuthRequest(), timeout_s=self._timeout_s)
        return _status(reply)

    async def status(self) -> AuthStatus:
        """Return whether roles are on, with the counts of principals and admins."""
        return _status(
            await self._connection.call(self._stub.Status, pb.AuthStatusRequest(), timeout_s=self._timeout_s)
        )

    async def who_am_i(self) -> WhoAmI:
        """Return the principal that the cluster takes this client for."""
        reply = await self._connection.call(self._stub.WhoAmI, pb.WhoAmIRequest(), timeout_s=self._timeout_s)
        return WhoAmI(reply.enabled, _principal(reply.principal) if reply.HasField("principal") else None)

    async def principals(self) -> list[PrincipalInfo]:
        """Return all principals, by name."""
        found: list[PrincipalInfo] = []
        request = pb.ListPrincipalsRequest()
        while True:
            reply = await self._connection.call(self._stub.ListPrincipals, request, timeout_s=self._timeout_s)
            found += map(_principal, reply.principals)
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def create(self, principal: str, *, kind: str = "token", lifetime_ms: int = 0) -> Issued:
        """Create a principal without grants. Its token holds for ``lifetime_ms``, 0 for ever. Raises AlreadyExists."""
        request = pb.CreatePrincipalRequest(principal=text(principal, "principal"), kind=text(kind, "kind"))
        if kind != "token" and lifetime_ms:
            raise InvalidArgument("lifetime_ms", "must be 0 for a principal without a token", str(lifetime_ms))
        token = self._new_token(request, lifetime_ms) if kind == "token" else None
        return Issued(await self._change(self._stub.CreatePrincipal, request), token)

    async def rotate(self, principal: str, *, overlap_ms: int, lifetime_ms: int = 0) -> Issued:
        """Issue a new token; the one before it holds for ``overlap_ms`` more. Raises NotFound."""
        request = pb.RotateTokenRequest(
            principal=text(principal, "principal"), overlap_ms=whole(overlap_ms, "overlap_ms", 0, _MS_MAX)
        )
        token = self._new_token(request, lifetime_ms)
        return Issued(await self._change(self._stub.RotateToken, request), token)

    async def revoke(self, principal: str, *, token_id: str = "") -> PrincipalInfo | None:
        """Remove ``principal``, or one of its tokens: then return the principal that is left. Raises NotFound."""
        request = pb.RevokePrincipalRequest(principal=text(principal, "principal"), token_id=text(token_id, "token_id"))
        reply = await self._connection.write(self._stub.RevokePrincipal, request, timeout_s=self._timeout_s)
        return _principal(reply.principal) if reply.HasField("principal") else None

    async def grant(self, principal: str, role: str, resource: str) -> PrincipalInfo:
        """Grant a role. Raises NotFound."""
        return await self._change(self._stub.Grant, _grant(principal, role, resource))

    async def revoke_grant(self, principal: str, role: str, resource: str) -> PrincipalInfo:
        """Revoke a role; calls that run by it end within a second. Raises NotFound."""
        return await self._change(self._stub.RevokeGrant, _grant(principal, role, resource))

    def _new_token(self, request: Any, lifetime_ms: int) -> Token:
        token = make_token(self._connection.environment.random_bytes)
        request.token.token_id = token.token_id
        request.token.digest = token.digest
        request.token.lifetime_ms = whole(lifetime_ms, "lifetime_ms", 0, _MS_MAX)
        return token

    async def _change(self, method: Any, request: Any) -> PrincipalInfo:
        return _principal((await self._connection.write(method, request, timeout_s=self._timeout_s)).principal)


def _grant(principal: str, role: str, resource: str) -> pb.GrantRequest:
    return pb.GrantRequest(
        principal=text(principal, "principal"), role=text(role, "role"), resource=text(resource, "resource")
    )


def _status(reply: pb.AuthStatusResponse) -> AuthStatus:
    return AuthStatus(reply.enabled, reply.principals, reply.admins)


def _principal(principal: pb.Principal) -> PrincipalInfo:
    return PrincipalInfo(
        principal.name,
        principal.kind,
        tuple(TokenInfo(each.token_id, each.created_ms, each.expires_ms) for each in principal.tokens),
        tuple(RoleGrant(each.role, each.resource) for each in principal.grants),
    )
