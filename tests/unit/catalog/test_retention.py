"""How long old versions of a table are kept: the permitted periods, and how many tables may have their own."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument, NotFound, TooLarge
from cortado.store.catalog import declare
from cortado.store.catalog.declare import PartDeclaration, TableTimes, alter_table, create_database
from cortado.store.catalog.descriptors import DropKind
from cortado.store.catalog.dropped import drop_of_table, drop_ranges
from cortado.store.clock import retentions
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.mvcc.mutations import Mutations
from support.catalog_store import FLIGHT, CatalogStore

KEY = [PartDeclaration("carrier")]


@pytest.fixture
def store() -> CatalogStore:
    store = CatalogStore()
    store.write(create_database, "air")
    store.register("air.flights", FLIGHT)
    return store


@pytest.mark.parametrize("retention_ms", [0, KEEP_ALL, 1_000, 7 * 86_400_000, retentions.MS_MAX])
def test_a_table_keeps_the_retention_that_it_is_made_with(store: CatalogStore, retention_ms: int) -> None:
    store.create_table("air", "flights", key=KEY, times=TableTimes(retention_ms))
    assert store.catalog().table("air", "flights").retention_ms == retention_ms


@pytest.mark.parametrize("retention_ms", [-2, 1, 999, retentions.MS_MAX + 1, -(1 << 63), (1 << 63) - 1])
def test_a_retention_out_of_bounds_is_refused(store: CatalogStore, retention_ms: int) -> None:
    with pytest.raises(InvalidArgument, match="retention_ms: must be 0, -1, or between 1000 and 3153600000000"):
        store.create_table("air", "flights", key=KEY, times=TableTimes(retention_ms))
    store.create_table("air", "flights", key=KEY)
    with pytest.raises(InvalidArgument, match="retention_ms: must be"):
        store.write(alter_table, "air", "flights", retention_ms=retention_ms)


def test_a_retention_is_altered_and_the_description_s_version_grows(store: CatalogStore) -> None:
    store.create_table("air", "flights", key=KEY)
    before = store.catalog().table("air", "flights")
    altered = store.write(alter_table, "air", "flights", retention_ms=5_000).table
    assert (altered.retention_ms, altered.version) == (5_000, before.version + 1)
    assert (altered.table_id, altered.named_ts) == (before.table_id, before.named_ts)
    assert store.catalog().table("air", "flights") == altered
    assert store.write(alter_table, "air", "flights", retention_ms=5_000).table == altered
    assert store.write(alter_table, "air", "flights", retention_ms=0).table.retention_ms == 0


def test_what_is_not_there_cannot_be_altered(store: CatalogStore) -> None:
    for database, name in (("air", "flights"), ("sea", "ships")):
        with pytest.raises(NotFound):
            store.write(alter_table, database, name, retention_ms=5_000)
    with pytest.raises(InvalidArgument, match="database"):
        store.write(alter_table, "a.b", "c", retention_ms=5_000)


def test_only_so_many_tables_have_a_retention_of_their_own(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declare, "RETENTIONS_MAX", 2)
    store.create_table("air", "a", key=KEY, subject="air.flights", times=TableTimes(KEEP_ALL))
    store.create_table("air", "b", key=KEY, subject="air.flights")
    table = store.catalog().table("air", "a")
    drops = [drop_of_table(table, DropKind.TABLE)]
    with_one_dropped = Mutations()
    drop_ranges(store.catalog(), with_one_dropped, drops, store.store.tick())
    store.store.apply(with_one_dropped, store.store.now)
    with pytest.raises(TooLarge, match="2 tables with a retention of their own"):
        store.write(alter_table, "air", "b", retention_ms=1_000)
    with pytest.raises(TooLarge, match="2 tables with a retention of their own"):
        store.create_table("air", "c", key=KEY, subject="air.flights", times=TableTimes(1_000))
    store.create_table("air", "c", key=KEY, subject="air.flights")
    store.write(alter_table, "air", "a", retention_ms=2_000)
