"""The reads of a commit: the group that holds them, and the search for changes of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import is_namespace_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.changed import changed_since, changed_within
from cortado.store.mvcc.transacting import conflict_of
from cortado.store.replica.replica import Replica
from cortado.store.transactions.footprint import Footprint

_SLICE_KEYS: Final = 100
"""The keys looked up at once beside the loop; each may have a value of a mebibyte."""


def replica_of_commit(host: Host, operations: Sequence[common_pb2.Operation], footprint: Footprint) -> Replica:
    """Return the replica of the group that holds all that a commit writes and has read. Raises InvalidArgument if
    several groups hold it."""
    if len(host.replicas) == 1:
        return host.meta
    # The mark of a namespace is the catalog's; its pairs are what a transaction has read.
    read = [key for key in footprint.keys if not is_namespace_key(key)]
    found = {host.replica_of(key) for key in (*read, *[start for start, _ in footprint.ranges])}
    found |= {_replica_of(host, each) for each in operations if each.WhichOneof("operation") is not None}
    if len(found) > 1:
        raise InvalidArgument("operations", "must be of keys in one group, together with what the transaction has read")
    return found.pop() if found else host.meta


def _replica_of(host: Host, message: common_pb2.Operation) -> Replica:
    each: Any = getattr(message, message.WhichOneof("operation") or "")
    if "namespace" in each.DESCRIPTOR.fields_by_name:
        return host.replica_of_namespace(each.namespace)
    return host.replica_of_table(each.database, each.table)


async def search_changes(replica: Replica, footprint: Footprint, start: Timestamp, since: Timestamp) -> Timestamp:
    """Search the footprint for changes above ``since``, in slices beside the loop. Return the timestamp that it
    searched up to, without a change; later changes are in memory. Raises WriteConflict."""
    up_to = replica.applied.last_ts
    with replica.process.scans.place():
        for first in range(0, len(footprint.keys), _SLICE_KEYS):
            keys = footprint.keys[first : first + _SLICE_KEYS]
            changed = await replica.process.scan(partial(changed_since, replica.store, keys, (), since, up_to))
            conflict_of(changed, start, "read", footprint.names)
        for begin, end in footprint.ranges:
            resume: LogicalKey | None = begin
            while resume is not None:
                slice_of_it = partial(changed_within, replica.store, resume, end, since, up_to)
                changed, resume = await replica.process.scan(slice_of_it)
                conflict_of(changed, start, "range", footprint.names)
    return up_to
