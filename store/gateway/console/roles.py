"""``/ui/roles``: principals, their tokens, grants and quotas; for a visitor that is no admin, its own principal."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from cortado.errors import CortadoError
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.parts import part_of
from cortado.store.gateway.console.visitor import Visitor


async def roles(call: Call, visitor: Visitor) -> Response:
    """Return the page."""
    auth = call.client.admin.auth
    me, principals, quotas = await asyncio.gather(
        auth.who_am_i(), tried(auth.principals()), tried(call.client.admin.quotas.all())
    )
    return page(
        visitor,
        "roles.html",
        area="roles",
        is_on=me.enabled,
        me=me.principal,
        principals=principals,
        part=part_of(call, [] if isinstance(principals, CortadoError) else principals, lambda each: each.name),
        quotas=quotas,
    )
