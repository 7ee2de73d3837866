"""The permissions of grants, against a twin that asks every grant in turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.auth.roles import (
    CLUSTER,
    Demand,
    Grant,
    Permission,
    Resource,
    Rights,
    Role,
    database_resource,
    namespace_resource,
    table_resource,
)

_NAMES = ("a", "b", "a.b")
_RESOURCES: list[Resource] = [
    CLUSTER,
    *map(database_resource, _NAMES[:2]),
    *(table_resource(database, table) for database in _NAMES[:2] for table in _NAMES[:2]),
    *map(namespace_resource, _NAMES),
]
_ORDER = (Role.READER, Role.WRITER, Role.OWNER)
_NEEDED = {Permission.READ: Role.READER, Permission.WRITE: Role.WRITER, Permission.DEFINE: Role.OWNER}


def _grants(grant: Grant, demand: Demand) -> bool:
    """Return whether one grant, read by a person, meets a demand."""
    permission, resource = demand
    if permission is Permission.NOBODY:
        return False
    if grant.role is Role.ADMIN:
        return True
    if permission is Permission.SEE:
        return _shows(grant, resource)
    if permission is Permission.HOLD:
        return True
    if permission is Permission.VIEW:
        return grant.role is Role.OPERATOR or grant.resource == CLUSTER
    if permission is Permission.OPERATE:
        return grant.role is Role.OPERATOR
    needed = _NEEDED.get(permission)
    if needed is None or grant.role not in _ORDER or _ORDER.index(grant.role) < _ORDER.index(needed):
        return False
    if grant.resource in (resource, CLUSTER):
        return True
    kind, _, name = resource.partition(":")
    return kind == "table" and grant.resource == f"database:{name.split('.')[0]}"


def _shows(grant: Grant, resource: Resource) -> bool:
    """Return whether lists show the name to a caller with this one grant."""
    if grant.resource == CLUSTER or grant.resource == resource:
        return True
    kind, _, name = resource.partition(":")
    if kind == "database":
        return grant.resource.startswith(f"table:{name}.")
    return kind == "table" and grant.resource == f"database:{name.split('.')[0]}"


def _all_grants() -> list[Grant]:
    data = [Grant(role, resource) for role in _ORDER for resource in _RESOURCES]
    return [*data, Grant(Role.OPERATOR, CLUSTER), Grant(Role.ADMIN, CLUSTER)]


@given(st.lists(st.sampled_from(_all_grants()), max_size=6))
def test_rights_are_what_some_grant_gives(grants: list[Grant]) -> None:
    rights = Rights.of(grants)
    for permission in Permission:
        for resource in _RESOURCES:
            demand = Demand(permission, resource)
            expected = permission is Permission.KNOWN or any(_grants(each, demand) for each in grants)
            assert rights.allow(demand) == expected, (grants, demand)
    assert rights.sees_all == any(each.resource == CLUSTER for each in grants)
    if not rights.sees_all:
        assert [namespace_resource(each) for each in rights.namespaces()] == [
            each for each in sorted(map(namespace_resource, _NAMES)) if rights.sees(each)
        ]
