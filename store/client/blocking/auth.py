"""Roles, synchronous."""

from __future__ import annotations

from cortado.store.client.auth import AsyncAuth, AuthStatus, Issued, PrincipalInfo, WhoAmI
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards


@forwards(AsyncAuth)
class Auth:
    """The cluster's principals and roles. It is ``client.admin.auth``, and may be shared by threads."""

    def __init__(self, core: AsyncAuth) -> None:
        self._core = core

    def enable(self, principal: str, *, kind: str = "token") -> Issued:
        return run(self._core.enable(principal, kind=kind))

    def disable(self) -> AuthStatus:
        return run(self._core.disable())

    def status(self) -> AuthStatus:
        return run(self._core.status())

    def who_am_i(self) -> WhoAmI:
        return run(self._core.who_am_i())

    def principals(self) -> list[PrincipalInfo]:
        return run(self._core.principals())

    def create(self, principal: str, *, kind: str = "token", lifetime_ms: int = 0) -> Issued:
        return run(self._core.create(principal, kind=kind, lifetime_ms=lifetime_ms))

    def rotate(self, principal: str, *, overlap_ms: int, lifetime_ms: int = 0) -> Issued:
        return run(self._core.rotate(principal, overlap_ms=overlap_ms, lifetime_ms=lifetime_ms))

    def revoke(self, principal: str, *, token_id: str = "") -> PrincipalInfo | None:
        return run(self._core.revoke(principal, token_id=token_id))

    def grant(self, principal: str, role: str, resource: str) -> PrincipalInfo:
        return run(self._core.grant(principal, role, resource))

    def revoke_grant(self, principal: str, role: str, resource: str) -> PrincipalInfo:
        return run(self._core.revoke_grant(principal, role, resource))
