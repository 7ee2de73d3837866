"""The rise of safepoints: evaluated at append, when leases, tables and earlier safepoints are known.

The bounds come from clocks, one for each retention (:mod:`cortado.store.replica.collection.horizon`); no lease is
passed (G3), and nothing falls. A table with a retention of its own has a safepoint of its own. It keeps that until it
has the cluster's retention again and the cluster's safepoint has passed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.collection.leases import oldest_lease
from cortado.store.keys.keyspace import meta_range
from cortado.store.mvcc.evaluation import Evaluate, Evaluation, Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.safepoints import SAFEPOINTS_KEY, Safepoints, safepoints_of

CLUSTERS: Final = 0
"""The retention of tables that have the cluster's."""


@dataclass(frozen=True, slots=True)
class Retentions:
    """The tables' own retentions, in milliseconds by table id, dropped tables too, as the catalogue of ``changed_ts``
    has them."""

    tables: Mapping[int, int]
    changed_ts: Timestamp


def retentions_of(catalog: Catalog) -> Retentions:
    """Goes through all tables: not for the loop."""
    tables = {each.what.table_id: each.what.retention_ms for each in catalog.dropped()}
    tables.update((each.table_id, each.retention_ms) for each in catalog.tables())
    own = {table_id: retention_ms for table_id, retention_ms in tables.items() if retention_ms != CLUSTERS}
    return Retentions(own, catalog.changed_ts)


def risen(
    before: Safepoints, retentions: Retentions, bounds: Mapping[int, Timestamp], held: Timestamp | None
) -> Safepoints:
    """Return the safepoints that hold next. ``bounds`` are by retention, that of CLUSTERS among them; one that is
    missing, as KEEP_ALL always is, lets nothing rise. ``held`` is the oldest lease."""

    def rise(own: Timestamp, retention_ms: int) -> Timestamp:
        bound = bounds.get(retention_ms, ZERO)
        return max(own, bound if held is None else min(bound, held))

    cluster = rise(before.cluster, CLUSTERS)
    tables = {each: rise(before.of_table(each), retention_ms) for each, retention_ms in retentions.tables.items()}
    # Tables that have the cluster's retention again, and could be read less far back.
    tables |= {each: ts for each, ts in before.tables.items() if each not in tables and ts > cluster}
    return Safepoints(cluster, tables)


OF_THE_CLUSTER: Final = tuple(meta_range(name) for name in ("gc", "job", "lease", "leases"))
"""Ranges of the keys that the cluster keeps for itself."""


def is_own(key: bytes) -> bool:
    """Return whether the cluster keeps the key for itself."""
    return any(start <= key < end for start, end in OF_THE_CLUSTER)


def collected_below(safepoints: Safepoints, key: bytes) -> Timestamp:
    """Return the timestamp below which old versions of a key are collected: its safepoint. The cluster's own keys,
    which no caller reads in the past, go with the cluster's safepoint, however far back the catalogue can be read."""
    if is_own(key):
        return safepoints.cluster
    return safepoints.of(key)


def raise_safepoints(retentions: Retentions, bounds: Mapping[int, Timestamp]) -> Evaluate:
    """Let them rise as far as they may; replies the Safepoints that hold then. Does nothing if a retention has changed
    since."""
    assert KEEP_ALL not in bounds

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        before = safepoints_of(reader)
        oldest = oldest_lease(reader)
        after = risen(before, retentions, bounds, None if oldest is None else oldest.ts)
        mutations = Mutations()
        if after == before or Catalog(reader).changed_ts != retentions.changed_ts:
            return Evaluation(mutations, before)
        mutations.put(SAFEPOINTS_KEY, after.encode())
        return Evaluation(mutations, after, removal=Removal(safepoints=after))

    return evaluate
