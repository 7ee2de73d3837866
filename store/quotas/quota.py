"""A quota: its target, and its limits.

A target is a name, like the resource of a role: the quota holds for any target of that name, now or later. A limit of
None is no limit; a quota has at least one limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NewType

from cortado.errors import InvalidArgument
from cortado.store.auth.stored import check_principal
from cortado.store.keys.names import check_database, check_namespace, shown
from cortado.store.quotas.limits import BYTES_PER_SECOND_MAX, CALLS_PER_SECOND_MAX, STORED_BYTES_MAX

Target = NewType("Target", str)
"""``principal:reports``, ``database:shop`` or ``namespace:carts``: the latter two are named as resources in roles."""

PRINCIPAL: Final = "principal:"
DATABASE: Final = "database:"
NAMESPACE: Final = "namespace:"

KINDS: Final = ("principal", "database", "namespace")


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one target; None: no limit. The first two hold on each node, a second; the third bounds the stored
    bytes."""

    target: Target
    calls_per_second: int | None = None
    bytes_per_second: int | None = None
    stored_bytes: int | None = None

    def check(self) -> Quota:
        """Itself. Raises InvalidArgument naming the field, the value and the bound."""
        check_target(self.target)
        _check_limit("calls_per_second", self.calls_per_second, CALLS_PER_SECOND_MAX)
        _check_limit("bytes_per_second", self.bytes_per_second, BYTES_PER_SECOND_MAX)
        _check_limit("stored_bytes", self.stored_bytes, STORED_BYTES_MAX)
        if self.stored_bytes is not None and self.target.startswith(PRINCIPAL):
            problem = "must be a limit of a database or a namespace: nothing is stored by a principal"
            raise InvalidArgument("stored_bytes", problem, str(self.stored_bytes))
        if self.calls_per_second is None and self.bytes_per_second is None and self.stored_bytes is None:
            raise InvalidArgument("quota", "must limit calls_per_second, bytes_per_second or stored_bytes")
        return self


def check_target(text: str, field: str = "target") -> Target:
    """``text`` as a target. Raises InvalidArgument naming ``field``."""
    kind, colon, name = text.partition(":")
    match kind + colon:
        case "principal:":
            check_principal(name, field)
        case "database:":
            check_database(name, field)
        case "namespace:":
            check_namespace(name, field)
        case _:
            raise InvalidArgument(field, "must be principal:NAME, database:NAME or namespace:NAME", shown(text))
    return Target(text)


def kind_of(target: Target) -> str:
    """``principal``, ``database`` or ``namespace``."""
    return target.partition(":")[0]


def name_of(target: Target) -> str:
    """Return the name that it is on."""
    return target.partition(":")[2]


def _check_limit(field: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise InvalidArgument(field, f"must be between 1 and {most}", str(value))
