"""The principal of the call that is being served, and the check of its writes where they are appended.

The server sets :data:`CALLER` before a method begins. The replica wraps each write in a check (:func:`checked`), which
decides by the grants at the write's own place in the log. So a right that was revoked before that place refuses the
write, even if the node that took the call did not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeVar

from cortado.errors import CortadoError, DataLoss, PermissionDenied, Unauthenticated
from cortado.store.auth.current import Credential, Roles
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.auth.roles import Demand, Permission, Resource, Rights
from cortado.store.auth.tokens import NO_SCHEME, token_id_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.reader import Reader

E = TypeVar("E")
R = TypeVar("R", bound=Reader)


@dataclass(slots=True)
class Caller:
    """The caller of the call, and its demands. ``stored`` finds demands that stand in a state; ``name`` is the
    principal's, once it is known, for the audit."""

    credential: Credential
    demands: Sequence[Demand]
    stored: Callable[[Reader, Asker], Sequence[Demand]] | None = None
    name: str = ""
    rights: Rights | None = None
    """The rights of the principal; None while roles are off."""
    is_denied: bool = False
    """It was denied, and that is in the audit."""
    frees: bool = False
    """Whether the call makes room on a full disk: its write may use the reserve."""
    owns_names: bool = False
    """The call names something of its principal's own. So the principal is looked up while roles are off, too."""
    hidden: Callable[[], CortadoError] | None = None
    """Makes the answer for something unknown. A caller that does not see a ``stored`` demand gets it."""

    def asker(self) -> Asker:
        """Return the caller as an owner, as of the last :func:`denial`."""
        if self.rights is None:
            return Asker(self.name)
        return Asker(self.name, is_open=False, operates=self.rights.allow(Demand(Permission.OPERATE)))


_OFF: Final = "roles are off, and this caller is served only while they are on: see cortado auth enable"

CALLER: Final[ContextVar[Caller | None]] = ContextVar("cortado_authority", default=None)
CONNECTION: Final[ContextVar[Callable[[], str]]] = ContextVar("cortado_connection", default=str)
"""Names the connection of the call that is served; empty if none is."""


def holder() -> str:
    """Return the name of the share that the served call uses: its principal, or its connection while roles are off.
    Once roles are on, all callers without a principal have one share. Empty if no call is served."""
    caller = CALLER.get()
    if caller is not None and caller.rights is not None:
        return f"principal {caller.name}" if caller.name else "callers without a principal"
    connection = CONNECTION.get()()
    return f"connection {connection}" if connection else ""


def denial(
    roles: Roles, caller: Caller, now_ms: Callable[[], int], reader: Callable[[], Reader]
) -> CortadoError | None:
    """Return the error that denies a demand of the caller; None if all are allowed, or roles are off. DataLoss, if
    damage hides the rights. ``reader`` gives the state that demands may stand in."""
    if not roles.is_enabled:
        caller.rights = None
        if caller.owns_names:
            caller.name = _name_while_off(roles, caller.credential, now_ms)
        return Unauthenticated(_OFF) if caller.credential.needs_roles else None
    try:
        known = roles.known(caller.credential, now_ms)
        if known is None:
            return Unauthenticated(_problem(caller.credential))
        caller.name, rights = known.principal.name, known.rights
        caller.rights = rights
        for demand in caller.demands:
            if not rights.allow(demand):
                return unmet(caller, demand)
        if caller.stored is not None:
            for demand in caller.stored(reader(), caller.asker()):
                if not rights.allow(demand):
                    is_hidden = caller.hidden is not None and not rights.sees(demand.resource)
                    return caller.hidden() if caller.hidden and is_hidden else unmet(caller, demand)
    except DataLoss as damage:
        return damage
    return None


def _name_while_off(roles: Roles, credential: Credential, now_ms: Callable[[], int]) -> str:
    """Return the name of the credential's principal; empty if there is no principal, or damage hides it."""
    try:
        known = roles.known(credential, now_ms)
    except DataLoss:
        return ""
    return "" if known is None else known.principal.name


def asking() -> Callable[[], Asker]:
    """Returns a function that tells the caller of the call being served. Call it where the write is evaluated."""
    caller = CALLER.get()
    return (lambda: ANYBODY) if caller is None else caller.asker


def unmet(caller: Caller, demand: Demand) -> PermissionDenied | None:
    """Why a caller that is known may not do this; None if it may."""
    if caller.rights is None or caller.rights.allow(demand):
        return None
    return PermissionDenied(caller.name, demand.permission.value, demand.resource)


def check_renamed(caller: Caller | None, then: Resource, now: Resource) -> None:
    """Check the caller of a read that named a table ``then``, which is ``now`` called something else: a role is granted
    on a name. The refusal does not tell the other name. Raises PermissionDenied."""
    if caller is not None and now != then and unmet(caller, Demand(Permission.READ, now)) is not None:
        raise PermissionDenied(caller.name, Permission.READ.value, f"the name that {then} has now")


def seen_by(caller: Caller | None) -> Rights | None:
    """By what lists are cut to the names that the caller may see; None if it sees all."""
    rights = None if caller is None else caller.rights
    return None if rights is None or rights.sees_all else rights


def _problem(credential: Credential) -> str:
    if credential.token == NO_SCHEME:
        return "the scheme of the header authorization is not known: it must be Bearer, and a token behind it"
    if credential.token and not token_id_of(credential.token):
        return "what stands behind Bearer is no token: it must look like ctd_<id>_<secret>, as cortado auth printed it"
    if credential.token:
        return "the token is not known, or is no longer valid"
    if credential.certificate:
        return f"the name in the certificate, {credential.certificate[:64]!r}, is no principal"
    return "roles are on, and there is neither a token nor a client's certificate"


def checked(
    evaluate: Callable[[R, Timestamp], E], caller: Caller | None, roles: Callable[[], Roles]
) -> Callable[[R, Timestamp], E]:
    """Return ``evaluate``, refused if the ``roles`` at its place do not allow it. Without a caller it is never refused:
    a step of a job, say."""
    if caller is None:
        return evaluate

    def evaluate_checked(reader: R, commit_ts: Timestamp) -> E:
        refusal = denial(roles(), caller, lambda: commit_ts.wall_ms, lambda: reader)
        if refusal is not None:
            raise refusal
        return evaluate(reader, commit_ts)

    return evaluate_checked
