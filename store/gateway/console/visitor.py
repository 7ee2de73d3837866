"""The visitor of a page, and the acts that a page offers to it. The cluster decides its rights; this module decides
which acts get a link."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cortado.errors import CortadoError, Unauthenticated
from cortado.store.auth.roles import Demand, Permission, Rights, check_grant, database_resource, table_resource
from cortado.store.auth.tokens import token_of
from cortado.store.client.auth import WhoAmI
from cortado.store.client.authorization import ON_BEHALF
from cortado.store.gateway.calls import Call

WAIT_S: Final = 2.0
"""How long a page waits to learn its visitor's principal."""
NO_RIGHTS: Final = Rights.of(())


@dataclass(frozen=True, slots=True)
class Visitor:
    """``name`` is the principal's, empty while roles are off, and ``secret`` its credential. ``may_act``: whether any
    act is open to it."""

    name: str
    has_roles: bool
    may_act: bool
    rights: Rights
    secret: bytes = field(default=b"", repr=False)
    problem: CortadoError | None = None
    """Why the visitor's principal is unknown: then pages offer no act, and show only the rows that the nodes let it
    read."""

    @property
    def operates(self) -> bool:
        """Whether it may act on members, holds and garbage collection."""
        return self.may(Demand(Permission.OPERATE))

    @property
    def administers(self) -> bool:
        """Whether it may act on principals, rights and quotas."""
        return self.may(Demand(Permission.ADMINISTER))

    def defines(self, name: str) -> bool:
        """Acts on a database, or a table by its full name."""
        database, dot, table = name.partition(".")
        resource = table_resource(database, table) if dot else database_resource(database)
        return self.may(Demand(Permission.DEFINE, resource))

    def may(self, demand: Demand) -> bool:
        return self.may_act and (not self.has_roles or self.rights.allow(demand))


NOBODY: Final = Visitor("", has_roles=False, may_act=False, rights=NO_RIGHTS)
"""The visitor of an error's page."""


async def visitor_of(call: Call) -> Visitor:
    """Return the visitor. Raises Unauthenticated if roles are on, and the visitor has not signed in."""
    try:
        who: WhoAmI = await call.client.with_timeout(WAIT_S).admin.auth.who_am_i()
    except Unauthenticated:
        raise
    except CortadoError as error:
        # Without a leader, the pages of the cluster are wanted most.
        return Visitor("", has_roles=False, may_act=False, rights=NO_RIGHTS, problem=error)
    if not who.enabled:
        return Visitor("", has_roles=False, may_act=call.forms.without_roles, rights=NO_RIGHTS)
    if who.principal is None:
        return Visitor("", has_roles=True, may_act=False, rights=NO_RIGHTS)
    rights = Rights.of(check_grant(each.role, each.resource) for each in who.principal.grants)
    secret = token_of(ON_BEHALF.get()).encode()
    return Visitor(who.principal.name, has_roles=True, may_act=True, rights=rights, secret=secret)
