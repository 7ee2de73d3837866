"""Drops that are not cleared yet: records of ranges of keys that are read only at earlier times.

A drop of any size is quick: a descriptor goes away, and a record comes in its place. Rows and entries stay where they
are. Reads at a time before the drop find them, and the descriptor that the catalogue had then::

    descriptor ──drop──► record ──the grace is over──► record, clearing ──all ranges are empty──► nothing
        ▲                  │
        └─────undrop───────┘

- The *grace* is the time for which old versions of the table are kept. It is over once the safepoint of the table has
  passed ``dropped_ts``: then no read may want the keys of the ranges.
- Clearing asks :func:`collectible`, writes :func:`begin_clearing`, clears, and then writes :func:`forget`. Undrop and
  the beginning of the clearing are writes of one log, so one of them comes first, and the other one sees that.
- A table that keeps all versions never gets past its grace: undrop it, give it a retention, and drop it again.
- A drop is :func:`drop_of_table` or :func:`drop_of_index`, and :func:`drop_ranges` writes its record in the same commit
  that removes the descriptor. Ranges of several records may overlap: a range may be cleared twice.
- A database's record has no ranges; it stays as long as one of a table that was dropped with it.

Numbers of records come from a counter of the catalogue's and are never used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cortado.errors import NotFound, TooLarge
from cortado.invariants import invariant
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import Drop, DropKind, Dropped, TableDescriptor
from cortado.store.catalog.shares import check_share_of, count_dropped_by
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import ID_MAX, index_range, table_range
from cortado.store.mvcc.mutations import Mutations

DROPPED_MAX: Final = 20_000
"""Records at a time."""


def drop_ranges(
    catalog: Catalog, mutations: Mutations, drops: Sequence[Drop], commit_ts: Timestamp, *, together: bool = False
) -> list[Dropped]:
    """Add to ``mutations`` one record for each of ``drops``, and the counters, which the caller then does not write.

    Nothing else: the descriptors are the caller's. If they are dropped ``together``, all are with the first one. Raises
    TooLarge above DROPPED_MAX, and ResourceExhausted if the caller has its share of these.
    """
    count = catalog.counters.dropped
    principal = catalog.asker.principal
    own = count_dropped_by(catalog, principal)
    if count + len(drops) > DROPPED_MAX:
        problem = f"there are {count} dropped things whose grace is not over, and there may be {DROPPED_MAX}"
        raise TooLarge("dropped", problem, length=count + len(drops), limit=DROPPED_MAX)
    check_share_of(catalog, principal, "dropped things", lambda: own, count, DROPPED_MAX, len(drops))
    first = catalog.counters.next_dropped_number
    if first + len(drops) > ID_MAX:
        raise TooLarge("dropped", f"all {ID_MAX} numbers are given away, and none is used again", limit=ID_MAX)
    made = [
        Dropped(first + i, drop, commit_ts, first if together and i else 0, principal=principal)
        for i, drop in enumerate(drops)
    ]
    for each in made:
        mutations.put(stored.dropped_key(each.number), stored.encode_dropped(each))
    if principal:
        mutations.put(stored.dropped_by_key(principal), stored.encode_share(own + len(drops)))
    counters = replace(catalog.counters, next_dropped_number=first + len(drops), dropped=count + len(drops))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(counters))
    return made


def drop_of_table(table: TableDescriptor, kind: DropKind) -> Drop:
    """Return a drop of all keys of a table, with its descriptor."""
    ranges = (table_range(table.table_id),)
    return Drop(kind, table.full_name, table.table_id, table.retention_ms, ranges, stored.encode_table(table))


def drop_of_index(table: TableDescriptor, name: str) -> Drop:
    """Return a drop of all entries of one of the table's indexes; nothing of it can be put back. Raises NotFound."""
    index = table.index(name)
    if index is None:
        raise NotFound("index", f"{table.full_name}.{name}")
    ranges = (index_range(table.table_id, index.index_id, index.parts),)
    return Drop(DropKind.INDEX, f"{table.full_name}.{name}", table.table_id, table.retention_ms, ranges)


def collectible(catalog: Catalog) -> list[Dropped]:
    """Return the drops that are to be cleared once their grace is over, and then to be forgotten, in the order of the
    numbers."""
    records = catalog.dropped()
    held = {each.dropped_with for each in records}
    return [each for each in records if each.number not in held]


def begin_clearing(catalog: Catalog, number: int) -> Mutations:
    """Before the first key is cleared: from here on it cannot be put back. Raises NotFound."""
    record = replace(catalog.dropped_record(number), is_clearing=True)
    mutations = Mutations()
    mutations.put(stored.dropped_key(number), stored.encode_dropped(record))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return mutations


def forget(catalog: Catalog, number: int) -> Mutations:
    """After the last key was cleared. Raises NotFound."""
    mutations = Mutations()
    delete_records(catalog, mutations, [catalog.dropped_record(number)])
    return mutations


def delete_records(catalog: Catalog, mutations: Mutations, records: Sequence[Dropped]) -> None:
    """Add to ``mutations`` that they go, and the counters, which the caller then does not write."""
    left = catalog.counters.dropped - len(records)
    invariant(left >= 0, "all records of drops are counted", left, len(records))
    for each in records:
        mutations.delete(stored.dropped_key(each.number))
    for principal, gone in Counter(each.principal for each in records if each.principal).items():
        own = count_dropped_by(catalog, principal) - gone
        invariant(own >= 0, "all records of a principal's drops are counted", principal, own)
        if own:
            mutations.put(stored.dropped_by_key(principal), stored.encode_share(own))
        else:
            mutations.delete(stored.dropped_by_key(principal))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(replace(catalog.counters, dropped=left)))
