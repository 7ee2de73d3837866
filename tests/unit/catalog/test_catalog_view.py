"""The catalogue as a view: at any time, through any overlay, and never an old answer from the cache."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss, NotFound
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import STATES_MAX, Catalog, CatalogCache
from cortado.store.catalog.declare import PartDeclaration, create_database
from cortado.store.catalog.drop import truncate_table
from cortado.store.catalog.registry import set_compatibility, set_default_compatibility
from cortado.store.keys.keyspace import table_id_of
from cortado.store.mvcc.mutations import Mutations
from support.catalog_store import FLIGHT, CatalogStore


@pytest.fixture
def store() -> CatalogStore:
    store = CatalogStore()
    store.write(create_database, "air")
    store.register("air.flights", FLIGHT)
    return store


def test_a_catalogue_over_an_old_state_shows_that_state(store: CatalogStore) -> None:
    before = store.store.now
    store.create_table("air", "flights", key=[PartDeclaration("carrier")])
    store.write(set_compatibility, "air.flights", CompatibilityMode.NONE)
    old = Catalog(store.store.snapshot(before), store.cache)
    assert store.catalog().table("air", "flights").table_id == table_id_of(1, 1)
    assert old.tables() == []
    with pytest.raises(NotFound):
        old.table("air", "flights")
    assert old.subject("air.flights").mode is None
    assert store.catalog().subject("air.flights").mode is CompatibilityMode.NONE


def test_an_empty_store_has_an_empty_catalogue() -> None:
    catalog = CatalogStore().catalog()
    assert (catalog.databases(), catalog.tables(), catalog.subjects()) == ([], [], [])
    for missing in (lambda: catalog.table("a", "b"), lambda: catalog.schema(1), lambda: catalog.subject("s")):
        with pytest.raises(NotFound):
            missing()


def test_every_change_changes_what_the_cache_goes_by(store: CatalogStore) -> None:
    seen = [store.catalog().changed_ts]
    store.write(create_database, "sea")
    seen.append(store.catalog().changed_ts)
    store.create_table("air", "flights", key=[PartDeclaration("carrier")])
    seen.append(store.catalog().changed_ts)
    store.register("s", FLIGHT)
    seen.append(store.catalog().changed_ts)
    store.register("t", FLIGHT)
    seen.append(store.catalog().changed_ts)
    store.write(set_compatibility, "s", CompatibilityMode.FULL)
    seen.append(store.catalog().changed_ts)
    store.write(set_default_compatibility, CompatibilityMode.FULL)
    seen.append(store.catalog().changed_ts)
    store.write(set_default_compatibility, None)
    seen.append(store.catalog().changed_ts)
    assert seen == sorted(set(seen))


def test_a_lookup_is_read_once_and_then_answered_from_the_cache(store: CatalogStore) -> None:
    store.create_table("air", "flights", key=[PartDeclaration("carrier")])
    first = store.catalog()
    table, newest = first.table("air", "flights"), first.newest_schema("air.flights")
    again = store.catalog()
    again.reader = None  # type: ignore[assignment]  # reads fail now
    assert again.table("air", "flights") is table
    assert again.newest_schema("air.flights") == newest


def test_a_parsed_schema_is_shared_by_all_states(store: CatalogStore) -> None:
    schema = store.catalog().schema(1)
    store.write(create_database, "more")
    assert store.catalog().schema(1) is schema


def test_the_cache_keeps_the_last_states_only(store: CatalogStore) -> None:
    cache = CatalogCache()
    for i in range(STATES_MAX + 5):
        store.write(create_database, f"d{i}")
        Catalog(store.store.snapshot(), cache).databases()
    assert len(cache._states) == STATES_MAX


def test_what_a_lost_leader_evaluated_is_forgotten_when_it_is_told_so(store: CatalogStore) -> None:
    fork = CatalogStore()
    fork.cache = store.cache
    fork.write(create_database, "air")
    fork.register("air.flights", FLIGHT)  # the same timestamps, another history
    store.create_table("air", "flights", key=[PartDeclaration("carrier")])
    fork.write(create_database, "only_here")
    assert store.catalog().table("air", "flights").table_id == table_id_of(1, 1)
    store.cache.clear()
    with pytest.raises(NotFound):
        fork.catalog().table("air", "flights")


def test_a_damaged_value_is_data_loss_and_not_a_traceback(store: CatalogStore) -> None:
    for key, damaged in (
        (stored.database_key("air"), b"\xff"),
        (stored.subject_key("air.flights"), b"\x12\x05WRONG"),
        (stored.schema_key(1), b"\x12\x01{"),
        (stored.COMPATIBILITY_KEY, b"\x0a\x05WRONG"),
        (stored.table_key("air", "t"), b"\x2a\x07\x12\x05WRONG"),
    ):
        mutations = Mutations()
        mutations.put(key, damaged)
        mutations.put(stored.COUNTERS_KEY, stored.encode_counters(store.catalog().counters))
        store.store.apply(mutations, store.store.tick())
    for read in (
        lambda: store.catalog().databases(),
        lambda: store.catalog().subject("air.flights"),
        lambda: store.catalog().schema(1),
        lambda: store.catalog().default_mode,
        lambda: store.catalog().table("air", "t"),
    ):
        with pytest.raises(DataLoss):
            read()


def test_what_is_behind_a_name_is_the_rest_of_the_list(store: CatalogStore) -> None:
    for database in ("air-2", "air2"):
        store.write(create_database, database)
    for number, database in enumerate(["air2", "air", "air-2", "air", "air2"]):
        store.register(f"{database}.t{number}", FLIGHT)
        store.create_table(database, f"t{number}", key=[PartDeclaration("carrier")])
    catalog = store.catalog()
    names = [each.full_name for each in catalog.tables()]
    assert names == ["air.t1", "air.t3", "air-2.t2", "air2.t0", "air2.t4"]
    for place, name in enumerate(names):
        assert [each.full_name for each in catalog.tables_behind(name)] == names[place + 1 :]
    assert [each.full_name for each in catalog.tables_behind("air.t2")] == names[1:]
    assert [each.full_name for each in catalog.tables_behind("air.t1", "air")] == ["air.t3"]
    assert [each.full_name for each in catalog.tables_behind("air2.t9", "air")] == []
    assert [each.full_name for each in catalog.tables_behind("a.t1", "air")] == ["air.t1", "air.t3"]
    subjects = [each.subject for each in catalog.subjects()]
    for place, name in enumerate(subjects):
        assert [each.subject for each in catalog.subjects_behind(name)] == subjects[place + 1 :]
    assert catalog.count_subjects() == len(subjects)
    assert catalog.tables_by_subject() == {name: [name] for name in names}


def test_drops_are_listed_from_a_number_on(store: CatalogStore) -> None:
    store.create_table("air", "flights", key=[PartDeclaration("carrier")])
    for _ in range(3):
        store.write_at(truncate_table, "air", "flights")
    numbers = [each.number for each in store.catalog().dropped()]
    assert len(numbers) == 3
    assert [each.number for each in store.catalog().dropped_behind(numbers[0])] == numbers[1:]
    assert [each.number for each in store.catalog().dropped_behind(0)] == numbers
