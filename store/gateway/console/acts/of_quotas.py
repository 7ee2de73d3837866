"""Acts on quotas: limits of principals, databases and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cortado.store.gateway.console.acts.act import Act, Done, Input, Sight, Texts, nothing, number
from cortado.store.gateway.console.acts.of_principals import ROLES
from cortado.store.settings.kinds import SIZE

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient


def _roles(_target: Texts) -> str:
    return ROLES


async def _quota(client: AsyncClient, target: Texts) -> Sight:
    found = await client.admin.quotas.get(target["target"])
    limits = (
        ("Calls per second", found.calls_per_second),
        ("Bytes per second", found.bytes_per_second),
        ("Stored bytes", found.stored_bytes),
    )
    told = tuple((name, "no limit" if value is None else f"{value:,}") for name, value in limits)
    told = (("Of", found.target), *told)
    return Sight(told, str(told))


def _size(given: str, field: str) -> int | None:
    """Return a size; None for a field that was left empty. Raises InvalidArgument."""
    text = given.strip()
    return SIZE.read(field, text) if text else None


async def _set(client: AsyncClient, _target: Texts, given: Texts) -> Done:
    target, calls = given["target"].strip(), given["calls"].strip()
    await client.admin.quotas.set(
        target,
        calls_per_second=number(calls, "calls") if calls else None,
        bytes_per_second=_size(given["rate"], "rate"),
        stored_bytes=_size(given["stored"], "stored"),
    )
    return Done(f"{target} has this quota.", ROLES)


async def _remove(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    await client.admin.quotas.remove(target["target"])
    return Done(f"{target['target']} has no quota any more.", ROLES)


ACTS: Final = (
    Act(
        "set-quota", "Set a quota", "Set it",
        "It takes the place of the one before. What is over it is refused, with a time to wait; the rates hold on each "
        "node by itself.",
        nothing, _set, _roles,
        inputs=(
            Input("target", "Of", hint="principal:NAME, database:NAME or namespace:NAME", required=True),
            Input("calls", "Calls per second", hint="empty: no limit"),
            Input("rate", "Bytes per second", hint="such as 10MiB; empty: no limit"),
            Input("stored", "Stored bytes", hint="such as 100GiB; empty: no limit"),
        ),
    ),
    Act(
        "remove-quota", "Remove a quota", "Remove it", "Nothing limits its use from then on.",
        _quota, _remove, _roles, ("target",),
    ),
)  # fmt: skip
