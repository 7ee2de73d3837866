"""``cortado.v1.Auth``: principals, their tokens and grants.

No token's text ever comes here: the caller that makes a token keeps it, and sends its digest. So neither the log nor
the table of requests has a secret to give away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from cortado.errors import InvalidArgument
from cortado.proto.v1 import auth_pb2 as pb
from cortado.store.auth import changes
from cortado.store.auth.caller import CALLER, Caller
from cortado.store.auth.changes import NewToken
from cortado.store.auth.roles import Rights
from cortado.store.auth.state import AuthState
from cortado.store.auth.stored import Kind, Principal, Switch
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluate
from cortado.store.server.authority import CREDENTIAL
from cortado.store.server.listing import behind, next_page
from cortado.store.server.service import Service


class AuthService(Service):
    """The right to call these methods is checked before (:mod:`cortado.store.server.authority`)."""

    async def enable(self, request: pb.EnableAuthRequest) -> bytes:
        evaluate = changes.enable(request.principal, _kind(request.kind), _token(request))
        return await self._change(request, evaluate)

    async def disable(self, request: pb.DisableAuthRequest) -> bytes:
        return await self.change(request, changes.disable(), Switch, _status)

    async def status(self, _request: pb.AuthStatusRequest) -> Message:
        read_ts = await self.newest()
        state = self._state(read_ts)
        switch = state.switch()
        status = _status(switch if switch.enabled else state.counted())
        status.header.CopyFrom(self.header(read_ts))
        return status

    async def who_am_i(self, _request: pb.WhoAmIRequest) -> Message:
        read_ts = await self.newest()
        roles = self.host.meta.roles.committed
        known = roles.known(CREDENTIAL.get(), lambda: self.host.process.clock.reading().wall_ms)
        principal = None if known is None else _message(known.principal)
        return pb.WhoAmIResponse(header=self.header(read_ts), enabled=roles.is_enabled, principal=principal)

    async def list_principals(self, request: pb.ListPrincipalsRequest) -> Message:
        with self.host.process.reads.place():
            read_ts, principals, token = next_page(
                request,
                newest=await self.newest(),
                items=lambda ts, after: behind(after, self._state(ts).principals(), attrgetter("name")),
                name=attrgetter("name"),
                size_bytes=lambda principal: _message(principal).ByteSize(),
            )
        header = self.header(read_ts)
        return pb.ListPrincipalsResponse(
            header=header, principals=[_message(each) for each in principals], next_page_token=token
        )

    async def create_principal(self, request: pb.CreatePrincipalRequest) -> bytes:
        evaluate = changes.create(request.principal, _kind(request.kind), _token(request))
        return await self._change(request, evaluate)

    async def rotate_token(self, request: pb.RotateTokenRequest) -> bytes:
        token = _token(request)
        if token is None:
            raise InvalidArgument("token", "must be given")
        return await self._change(request, changes.rotate(request.principal, token, request.overlap_ms))

    async def revoke_principal(self, request: pb.RevokePrincipalRequest) -> bytes:
        return await self._change(request, changes.revoke(request.principal, request.token_id))

    async def grant(self, request: pb.GrantRequest) -> bytes:
        evaluate = changes.grant(request.principal, request.role, request.resource, _rights(CALLER.get()))
        return await self._change(request, evaluate)

    async def revoke_grant(self, request: pb.GrantRequest) -> bytes:
        evaluate = changes.ungrant(request.principal, request.role, request.resource)
        return await self._change(request, evaluate)

    def _state(self, ts: Timestamp) -> AuthState:
        return AuthState(self.host.meta.reader(ts))

    async def _change(self, request: Any, evaluate: Evaluate) -> bytes:
        rights = _rights(CALLER.get())

        def reply(changed: object) -> Message:
            seen = _message(_seen(changed, rights())) if isinstance(changed, Principal) else None
            return pb.PrincipalResponse(principal=seen)

        return await self.change(request, evaluate, object, reply)


def _rights(caller: Caller | None) -> Callable[[], Rights | None]:
    """Returns a function that tells the caller's rights. Call it when the change is evaluated, or later."""
    return lambda: None if caller is None else caller.rights


def _seen(principal: Principal, rights: Rights | None) -> Principal:
    """Return a principal as an owner that gives it a role sees it: without its tokens, and its roles on others'
    resources."""
    if rights is None or rights.is_admin:
        return principal
    return replace(principal, tokens=(), grants=tuple(filter(rights.may_grant, principal.grants)))


def _kind(kind: str) -> Kind:
    try:
        return Kind(kind)
    except ValueError:
        names = " or ".join(each.value for each in Kind)
        raise InvalidArgument("kind", f"must be {names}", repr(kind[:80])) from None


def _token(request: pb.EnableAuthRequest | pb.CreatePrincipalRequest | pb.RotateTokenRequest) -> NewToken | None:
    if not request.HasField("token"):
        return None
    token = request.token
    return NewToken(token.token_id, token.digest, token.lifetime_ms)


def _status(switch: Switch) -> pb.AuthStatusResponse:
    return pb.AuthStatusResponse(enabled=switch.enabled, principals=switch.principals, admins=switch.admins)


def _message(principal: Principal) -> pb.Principal:
    return pb.Principal(
        name=principal.name,
        kind=principal.kind.value,
        tokens=[
            pb.TokenState(token_id=each.token_id, created_ms=each.created_ms, expires_ms=each.expires_ms)
            for each in principal.tokens
        ],
        grants=[pb.RoleGrant(role=role.value, resource=resource) for role, resource in principal.grants],
    )
