"""Roles, their permissions, and their resources.

::

    reader < writer < owner      of a table, a database (and all of its tables), a namespace, or the cluster (all data)
    operator                     of the cluster: members, repairs, collection, logs, backups
    admin                        of the cluster: everything, principals and rights too

A grant names a resource: it holds for any resource of that name, now or later. So a decision needs only the grants, and
a denial does not tell whether the resource exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, NewType

from cortado.errors import InvalidArgument
from cortado.store.auth.owners import keys_namespace
from cortado.store.keys.names import check_database, check_namespace, shown, split_table_name

Resource = NewType("Resource", str)
"""``cluster``, ``database:shop``, ``table:shop.orders`` or ``namespace:carts``."""

CLUSTER: Final = Resource("cluster")
_TABLE: Final = "table:"
_DATABASE: Final = "database:"
_NAMESPACE: Final = "namespace:"


class Role(Enum):
    """The value is the stored name."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"
    OPERATOR = "operator"
    ADMIN = "admin"


class Permission(Enum):
    """The permission that a call needs. Its value says, for people, which role gives it."""

    KNOWN = "a known principal"
    HOLD = "any role on anything"
    SEE = "any role"
    READ = "reader"
    WRITE = "writer"
    DEFINE = "owner"
    VIEW = "operator or reader"
    OPERATE = "operator"
    ADMINISTER = "admin"
    NOBODY = "what no role gives"


LEVEL_OF_ROLE: Final = {Role.READER: 1, Role.WRITER: 2, Role.OWNER: 3}
_LEVEL: Final = {Permission.READ: 1, Permission.WRITE: 2, Permission.DEFINE: 3}
OF_CLUSTER_ALONE: Final = frozenset({Role.OPERATOR, Role.ADMIN})


class Grant(NamedTuple):
    """A role on a resource."""

    role: Role
    resource: Resource


ADMIN: Final = Grant(Role.ADMIN, CLUSTER)


class Demand(NamedTuple):
    """The permission that a call needs, and its resource."""

    permission: Permission
    resource: Resource = CLUSTER


@dataclass(frozen=True, slots=True)
class Rights:
    """The sum of a principal's grants."""

    levels: dict[str, int]
    """By resource: 1 reader, 2 writer, 3 owner."""
    databases: frozenset[str]
    """Those with a role on them, or on one of their tables."""
    is_operator: bool
    is_admin: bool

    @classmethod
    def of(cls, grants: Iterable[Grant], *, principal: str = "") -> Rights:
        """A ``principal`` with a right to write also has the namespace of its idempotency keys."""
        levels: dict[str, int] = {}
        roles = set()
        for role, resource in grants:
            roles.add(role)
            level = LEVEL_OF_ROLE.get(role)
            if level is not None:
                levels[resource] = max(level, levels.get(resource, 0))
        if principal and max(levels.values(), default=0) >= LEVEL_OF_ROLE[Role.WRITER]:
            own = namespace_resource(keys_namespace(principal))
            levels[own] = max(LEVEL_OF_ROLE[Role.WRITER], levels.get(own, 0))
        databases = {database_of(Resource(each)) if each.startswith(_TABLE) else each for each in levels}
        return cls(levels, frozenset(databases), Role.OPERATOR in roles, Role.ADMIN in roles)

    def allow(self, demand: Demand) -> bool:
        """Return whether these rights meet ``demand``."""
        permission, resource = demand
        if self.is_admin:
            return permission is not Permission.NOBODY
        level = _LEVEL.get(permission)
        if permission is Permission.SEE:
            return self.sees(resource)
        if level is None:
            return self._allow_on_cluster(permission)
        levels = self.levels
        if levels.get(resource, 0) >= level or levels.get(CLUSTER, 0) >= level:
            return True
        return resource.startswith(_TABLE) and levels.get(database_of(resource), 0) >= level

    def may_grant(self, grant: Grant) -> bool:
        """Return whether these rights give and take that role: an admin's do, and those of its resource's owner."""
        return self.is_admin or (grant.resource != CLUSTER and self.allow(Demand(Permission.DEFINE, grant.resource)))

    def sees(self, resource: Resource) -> bool:
        """Return whether lists show the resource of that name: to principals with any role on it, or that see the whole
        cluster."""
        if self.sees_all:
            return True
        if resource.startswith(_DATABASE):
            return resource in self.databases
        return self.allow(Demand(Permission.READ, resource))

    @property
    def sees_all(self) -> bool:
        return self.is_admin or self._allow_on_cluster(Permission.VIEW)

    def namespaces(self) -> list[str]:
        """Return those with a role on them alone, in their order."""
        return sorted(each[len(_NAMESPACE) :] for each in self.levels if each.startswith(_NAMESPACE))

    def _allow_on_cluster(self, permission: Permission) -> bool:
        if permission is Permission.KNOWN:
            return True
        if permission is Permission.HOLD:
            return self.is_operator or bool(self.levels)
        if permission is Permission.VIEW:
            return self.is_operator or self.levels.get(CLUSTER, 0) >= 1
        return permission is Permission.OPERATE and self.is_operator


def database_of(table: Resource) -> Resource:
    """Return the database that a table is in."""
    return Resource(_DATABASE + table[len(_TABLE) :].partition(".")[0])


def table_resource(database: str, table: str) -> Resource:
    """Not checked: a malformed name has no grants."""
    return Resource(f"{_TABLE}{database}.{table}")


def database_resource(database: str) -> Resource:
    return Resource(_DATABASE + database)


def namespace_resource(namespace: str) -> Resource:
    return Resource(_NAMESPACE + namespace)


def subject_resource(subject: str) -> Resource:
    """A subject that is called as a table is guarded as that; any other is the cluster's."""
    database, dot, table = subject.partition(".")
    return table_resource(database, table) if dot and database and table and "." not in table else CLUSTER


def check_resource(text: str, field: str = "resource") -> Resource:
    """``text`` as a resource. Raises InvalidArgument naming ``field``."""
    kind, colon, name = text.partition(":")
    match kind, bool(colon):
        case "cluster", False:
            pass
        case "database", True:
            check_database(name, field)
        case "table", True:
            split_table_name(name, field)
        case "namespace", True:
            check_namespace(name, field)
        case _:
            forms = "cluster, database:NAME, table:DATABASE.TABLE or namespace:NAME"
            raise InvalidArgument(field, f"must be {forms}", shown(text))
    return Resource(text)


def check_role(text: str, field: str = "role") -> Role:
    """``text`` as a role. Raises InvalidArgument naming ``field``."""
    try:
        return Role(text)
    except ValueError:
        names = ", ".join(each.value for each in Role)
        raise InvalidArgument(field, f"must be one of {names}", shown(text)) from None


def check_grant(role: str, resource: str) -> Grant:
    """Raises InvalidArgument."""
    grant = Grant(check_role(role), check_resource(resource))
    if grant.role in OF_CLUSTER_ALONE and grant.resource != CLUSTER:
        raise InvalidArgument("resource", f"must be cluster for the role {role}", shown(resource))
    return grant
