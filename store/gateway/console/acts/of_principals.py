"""Acts on principals, their tokens and their grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cortado.errors import NotFound
from cortado.store.auth.roles import Role
from cortado.store.client.auth import PrincipalInfo
from cortado.store.gateway.console.acts.act import Act, Done, Input, Sight, Texts, nothing, span_ms

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

ROLES: Final = "/ui/roles"
_HOUR_MS: Final = 3_600_000


def _roles(_target: Texts) -> str:
    return ROLES


async def _found(client: AsyncClient, name: str) -> PrincipalInfo:
    found = next((each for each in await client.admin.auth.principals() if each.name == name), None)
    if found is None:
        raise NotFound("principal", name)
    return found


async def _principal(client: AsyncClient, target: Texts) -> Sight:
    found = await _found(client, target["principal"])
    grants = ", ".join(f"{each.role} of {each.resource}" for each in found.grants)
    facts = (("Principal", found.name), ("Shows", found.kind), ("May be", grants or "nothing"))
    return Sight(facts, " ".join((found.kind, *(each.token_id for each in found.tokens))))


async def _create(client: AsyncClient, _target: Texts, given: Texts) -> Done:
    name, is_token = given["principal"].strip(), given["kind"] == "token"
    lifetime_ms = span_ms(given["expires"], "expires")
    issued = await client.admin.auth.create(name, kind=given["kind"], lifetime_ms=lifetime_ms)
    shows = "" if is_token else " It shows a certificate of that name."
    secret = "" if issued.token is None else issued.token.text
    return Done(f"Principal {name} was created, and may do nothing yet.{shows}", ROLES, secret)


async def _rotate(client: AsyncClient, target: Texts, given: Texts) -> Done:
    overlap_ms = span_ms(given["overlap"], "overlap", empty=_HOUR_MS)
    lifetime_ms = span_ms(given["expires"], "expires")
    issued = await client.admin.auth.rotate(target["principal"], overlap_ms=overlap_ms, lifetime_ms=lifetime_ms)
    secret = "" if issued.token is None else issued.token.text
    return Done(f"{target['principal']} has another token.", ROLES, secret)


async def _revoke(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    await client.admin.auth.revoke(target["principal"])
    return Done(f"{target['principal']} is no principal any more. What ran by it ends within a second.", ROLES)


async def _grant(client: AsyncClient, _target: Texts, given: Texts) -> Done:
    name, role, resource = given["principal"].strip(), given["role"], given["resource"].strip()
    await client.admin.auth.grant(name, role, resource)
    return Done(f"{name} is {role} of {resource}.", ROLES)


async def _revoke_grant(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    name, role, resource = target["principal"], target["role"], target["resource"]
    await client.admin.auth.revoke_grant(name, role, resource)
    return Done(f"{name} is {role} of {resource} no more. What ran by it ends within a second.", ROLES)


async def _granted(client: AsyncClient, target: Texts) -> Sight:
    found = await _found(client, target["principal"])
    if not any((each.role, each.resource) == (target["role"], target["resource"]) for each in found.grants):
        raise NotFound("grant", f"{target['role']} of {target['resource']} to {found.name}")
    return Sight((("Principal", found.name), ("Role", target["role"]), ("On", target["resource"])), found.kind)


_EXPIRES: Final = Input("expires", "The token holds for", hint="such as 90d; empty: for ever")

ACTS: Final = (
    Act(
        "create-principal", "Create a principal", "Create it",
        "It may do nothing until it is granted a role. Its token is shown once, on the next page.",
        nothing, _create, _roles,
        inputs=(
            Input("principal", "Name", hint="such as reports", required=True),
            Input("kind", "It shows", "choice", choices=("token", "certificate")),
            _EXPIRES,
        ),
    ),
    Act(
        "grant", "Grant a role", "Grant it",
        "The resource need not exist yet: the role holds for its name.",
        nothing, _grant, _roles,
        inputs=(
            Input("principal", "Principal", hint="such as reports", required=True),
            Input("role", "Role", "choice", choices=tuple(each.value for each in Role)),
            Input(
                "resource", "On", hint="cluster, database:NAME, table:DATABASE.TABLE, namespace:NAME", required=True
            ),
        ),
    ),
    Act(
        "revoke-grant", "Revoke a role", "Revoke it",
        "The principal loses its right within a second, in running streams, too.",
        _granted, _revoke_grant, _roles, ("principal", "role", "resource"),
    ),
    Act(
        "rotate-token", "Give a principal another token", "Rotate",
        "The new token is shown once, on the next page. The one before it holds for the overlap.",
        _principal, _rotate, _roles, ("principal",),
        (Input("overlap", "The one before holds for", hint="such as 30m; empty: one hour"), _EXPIRES),
    ),
    Act(
        "delete-principal", "Delete a principal", "Delete it",
        "Its tokens are known no more, its grants are gone, and what runs by it ends within a second.",
        _principal, _revoke, _roles, ("principal",), typed="principal",
    ),
)  # fmt: skip
