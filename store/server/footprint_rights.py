"""The rights that the footprint of a commit needs: its caller must be allowed to read all that it names.

A footprint is opaque, and not signed: a client could make one of keys that it may not read, and learn from conflicts
which of them change. So while roles are on, its tables and namespaces are taken apart again::

    tables    reader of each; and its id is that of the name now, or the commit conflicts
    keys      of rows and entries: of one of those tables; of pairs and names of namespaces: reader of the namespace
    ranges    within one of those tables, or one namespace; any other: reader of the cluster
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from cortado.errors import CortadoError, InvalidArgument, NotFound, WriteConflict
from cortado.store.auth.caller import Caller, unmet
from cortado.store.auth.roles import CLUSTER, Demand, Permission, Resource, namespace_resource, table_resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import decode_part, end_of_parts
from cortado.store.keys.keyspace import (
    KV_SPACE,
    TABLE_SPACE,
    is_namespace_key,
    namespace_of,
    namespace_range,
    table_range,
)
from cortado.store.keys.types import LogicalKey
from cortado.store.transactions.footprint import Footprint

_TABLE_BYTES = len(TABLE_SPACE) + 4


def check_may_read(caller: Caller | None, footprint: Footprint, catalog: Catalog, start: Timestamp | None) -> None:
    """Check the rights of a footprint. Raises PermissionDenied; WriteConflict if a name means another table now,
    InvalidArgument for keys of tables that it does not name."""
    if caller is None or caller.rights is None or not footprint:
        return
    ids = {each.table_id for each in footprint.tables}
    resources = {table_resource(each.database, each.name) for each in footprint.tables}
    for prefix in {key[:_TABLE_BYTES] for key in footprint.keys if key[:1] == TABLE_SPACE}:
        _check_id(int.from_bytes(prefix[1:], "big"), ids)
    resources |= {_namespace_of(key) for key in footprint.keys if key[:1] != TABLE_SPACE}
    resources |= set(_of_ranges(footprint, ids))
    for resource in sorted(resources):
        refusal = unmet(caller, Demand(Permission.READ, resource))
        if refusal is not None:
            raise refusal
    for each in footprint.tables:
        means = 0
        with suppress(NotFound):
            means = catalog.table(each.database, each.name).table_id
        if means != each.table_id:
            name = f"{each.database}.{each.name}"
            raise WriteConflict(name, str(start), str(catalog.changed_ts), kind="table")


def _of_ranges(footprint: Footprint, ids: set[int]) -> Iterator[Resource]:
    for start, end in footprint.ranges:
        if start[:1] == TABLE_SPACE:
            table_id = int.from_bytes(start[1:_TABLE_BYTES], "big")
            if len(start) >= _TABLE_BYTES and end <= table_range(table_id)[1]:
                _check_id(table_id, ids)
                continue
        elif start[:1] == KV_SPACE:
            resource = _namespace_of(start)
            if resource != CLUSTER and end <= namespace_range(resource.partition(":")[2])[1]:
                yield resource
                continue
        yield CLUSTER


def _check_id(table_id: int, ids: set[int]) -> None:
    if table_id not in ids:
        raise InvalidArgument("footprints", "name keys of a table that they do not name")


def _namespace_of(key: LogicalKey) -> Resource:
    """Return the namespace of a pair's key, or of the beginning of one; the cluster if the key has no namespace."""
    try:
        if is_namespace_key(key):
            return namespace_resource(namespace_of(key))
        _, _, name = decode_part(key[len(KV_SPACE) : end_of_parts(key, 1, len(KV_SPACE))])
    except (CortadoError, IndexError, ValueError):
        return CLUSTER
    return namespace_resource(name) if isinstance(name, str) else CLUSTER
