"""Tables that are dropped, come back, begin anew or get another name; and every reason to refuse it."""

from __future__ import annotations

from functools import partial

import pytest

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, TooLarge
from cortado.store.catalog import declare, dropped
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, TableTimes, alter_table, create_database
from cortado.store.catalog.deletion import delete_versions
from cortado.store.catalog.descriptors import DropKind, TableDescriptor
from cortado.store.catalog.drop import drop_table, rename_table, truncate_table, undrop_table
from cortado.store.catalog.drop_database import drop_database, undrop_database
from cortado.store.catalog.dropped import begin_clearing, collectible, drop_of_index, drop_ranges, forget
from cortado.store.catalog.registry import check_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import ID_MAX, index_prefix, row_prefix
from cortado.store.mvcc.mutations import Mutations
from support.catalog_store import FLIGHT, CatalogStore

KEY = [PartDeclaration("carrier")]
BY_TAIL = IndexDeclaration("by_tail", (PartDeclaration("tailnum"),))


@pytest.fixture
def store() -> CatalogStore:
    store = CatalogStore()
    store.write(create_database, "air")
    store.register("air.flights", FLIGHT)
    store.create_table("air", "flights", key=KEY, indexes=[BY_TAIL], times=TableTimes(5_000))
    return store


def flights(store: CatalogStore) -> TableDescriptor:
    return store.catalog().table("air", "flights")


def test_a_dropped_table_is_gone_and_its_record_says_how_it_comes_back(store: CatalogStore) -> None:
    table = flights(store)
    record = store.write_at(drop_table, "air", "flights").dropped
    with pytest.raises(NotFound, match=r"no table air\.flights"):
        flights(store)
    assert store.catalog().tables() == []
    assert store.catalog().dropped() == [record]
    assert (record.number, record.what.kind, record.what.name) == (1, DropKind.TABLE, "air.flights")
    assert (record.what.table_id, record.what.retention_ms) == (table.table_id, 5_000)
    assert record.dropped_ts == store.store.now
    ((start, end),) = record.what.ranges
    assert start <= index_prefix(table.table_id, 1) < row_prefix(table.table_id) < end
    assert not start <= row_prefix(table.table_id + 1) < end
    assert not start <= row_prefix(table.table_id - 1) < end


def test_an_undropped_table_is_what_it_was(store: CatalogStore) -> None:
    before = flights(store)
    store.write_at(drop_table, "air", "flights")
    back = store.write_at(undrop_table, "air", "flights").table
    assert back == flights(store)
    assert (back.table_id, back.key, back.indexes) == (before.table_id, before.key, before.indexes)
    assert (back.next_index_id, back.retention_ms) == (before.next_index_id, 5_000)
    assert (back.version, back.named_ts) == (before.version + 1, store.store.now)
    assert store.catalog().dropped() == []
    with pytest.raises(NotFound, match=r"no dropped table air\.flights"):
        store.write_at(undrop_table, "air", "flights")


def test_a_name_that_is_taken_again_is_refused_and_another_one_works(store: CatalogStore) -> None:
    before = flights(store)
    store.write_at(drop_table, "air", "flights")
    store.create_table("air", "flights", key=KEY)
    with pytest.raises(AlreadyExists, match=r"table air\.flights already exists"):
        store.write_at(undrop_table, "air", "flights")
    with pytest.raises(AlreadyExists):
        store.write_at(undrop_table, "air", "flights", as_name="flights")
    with pytest.raises(InvalidArgument, match="as_name"):
        store.write_at(undrop_table, "air", "flights", as_name="a b")
    back = store.write_at(undrop_table, "air", "flights", as_name="old").table
    assert (back.table_id, back.full_name) == (before.table_id, "air.old")
    assert flights(store).table_id != before.table_id


def test_the_newest_of_a_name_comes_back_or_the_one_of_a_number(store: CatalogStore) -> None:
    ids = []
    for _ in range(3):
        ids.append(flights(store).table_id)
        store.write_at(drop_table, "air", "flights")
        store.create_table("air", "flights", key=KEY)
    assert len({*ids, flights(store).table_id}) == 4, "no number is given twice"
    assert store.write_at(undrop_table, "air", "flights", number=1, as_name="a").table.table_id == ids[0]
    assert store.write_at(undrop_table, "air", "flights", as_name="b").table.table_id == ids[2]
    assert store.write_at(undrop_table, "air", "flights", as_name="c").table.table_id == ids[1]
    with pytest.raises(NotFound, match=r"no dropped table air\.flights with number 1"):
        store.write_at(undrop_table, "air", "flights", number=1, as_name="d")


def test_once_clearing_has_begun_nothing_comes_back(store: CatalogStore) -> None:
    store.write_at(drop_table, "air", "flights")
    store.apply(partial(begin_clearing, number=1))
    with pytest.raises(InvalidArgument, match="its grace is over, and its rows are being cleared"):
        store.write_at(undrop_table, "air", "flights")
    assert [each.is_clearing for each in store.catalog().dropped()] == [True]
    store.apply(partial(forget, number=1))
    assert store.catalog().dropped() == []
    for gone in (begin_clearing, forget):
        with pytest.raises(NotFound, match="no dropped number 1"):
            gone(store.catalog(), 1)


def test_a_truncated_table_is_empty_and_what_it_was_comes_back_under_another_name(store: CatalogStore) -> None:
    before = flights(store)
    made = store.write_at(truncate_table, "air", "flights")
    assert made.table == flights(store)
    assert made.table.table_id != before.table_id
    assert (made.table.key, made.table.indexes, made.table.subject) == (before.key, before.indexes, before.subject)
    assert (made.table.retention_ms, made.table.named_ts) == (5_000, store.store.now)
    assert (made.dropped.what.kind, made.dropped.what.table_id) == (DropKind.TRUNCATED, before.table_id)
    with pytest.raises(InvalidArgument, match=r"as_name: must be given: air\.flights was truncated"):
        store.write_at(undrop_table, "air", "flights")
    back = store.write_at(undrop_table, "air", "flights", as_name="before").table
    assert (back.table_id, back.full_name) == (before.table_id, "air.before")


def test_a_dropped_table_comes_before_what_was_truncated_unless_a_name_is_given(store: CatalogStore) -> None:
    first = flights(store).table_id
    store.write_at(drop_table, "air", "flights")
    store.create_table("air", "flights", key=KEY)
    store.write_at(truncate_table, "air", "flights")
    store.write_at(rename_table, "air", "flights", "other")
    assert store.write_at(undrop_table, "air", "flights").table.table_id == first


def test_a_renamed_table_keeps_its_id_and_its_name_is_free(store: CatalogStore) -> None:
    before = flights(store)
    renamed = store.write_at(rename_table, "air", "flights", "trips").table
    assert (renamed.table_id, renamed.full_name, renamed.subject) == (before.table_id, "air.trips", "air.flights")
    assert renamed.named_ts == store.store.now
    assert [each.full_name for each in store.catalog().tables()] == ["air.trips"]
    store.create_table("air", "flights", key=KEY)
    for taken in ("flights", "trips"):
        with pytest.raises(AlreadyExists):
            store.write_at(rename_table, "air", "trips", taken)
    with pytest.raises(InvalidArgument, match="new_name"):
        store.write_at(rename_table, "air", "trips", "a.b")


def test_a_table_takes_the_name_of_another_one_which_is_dropped_in_the_same_commit(store: CatalogStore) -> None:
    old = flights(store)
    store.create_table("air", "fresh", subject="air.flights", key=KEY)
    fresh = store.catalog().table("air", "fresh")
    for wrong in (0, fresh.table_id, old.table_id + 1):
        with pytest.raises(AlreadyExists, match=r"table air\.flights already exists"):
            store.write_at(rename_table, "air", "fresh", "flights", replaces=wrong)
    with pytest.raises(NotFound, match=r"air\.gone, which was to be replaced"):
        store.write_at(rename_table, "air", "fresh", "gone", replaces=old.table_id)
    with pytest.raises(AlreadyExists):
        store.write_at(rename_table, "air", "flights", "flights", replaces=old.table_id)
    named = store.write_at(rename_table, "air", "fresh", "flights", replaces=old.table_id)
    assert (named.table.table_id, named.table.named_ts) == (fresh.table_id, store.store.now)
    assert (named.replaced.what.kind, named.replaced.what.table_id) == (DropKind.TABLE, old.table_id)
    assert [each.full_name for each in store.catalog().tables()] == ["air.flights"]
    with pytest.raises(AlreadyExists):
        store.write_at(undrop_table, "air", "flights")
    assert store.write_at(undrop_table, "air", "flights", as_name="before").table.table_id == old.table_id


def test_names_that_are_not_there_or_could_never_be_are_refused(store: CatalogStore) -> None:
    commands = [drop_table, truncate_table, undrop_table, lambda *args, **ts: rename_table(*args, "x", **ts)]
    for command in commands:
        with pytest.raises(NotFound, match="no database sea"):
            store.write_at(command, "sea", "flights")
        with pytest.raises(NotFound, match=r"air\.ships"):
            store.write_at(command, "air", "ships")
        for database, name in (("a.b", "flights"), ("air", ""), ("air", "x" * 65), ("air", "-x")):
            with pytest.raises(InvalidArgument):
                store.write_at(command, database, name)


def test_a_dropped_table_comes_back_into_its_own_database_alone(store: CatalogStore) -> None:
    store.write_at(drop_table, "air", "flights")
    store.write_at(drop_database, "air", cascade=False)
    with pytest.raises(NotFound, match="no database air"):
        store.write_at(undrop_table, "air", "flights")
    store.write(create_database, "air")
    with pytest.raises(NotFound, match=r"no dropped table air\.flights"):
        store.write_at(undrop_table, "air", "flights")
    store.write_at(undrop_database, "air", as_name="sky")
    assert store.write_at(undrop_table, "sky", "flights").table.full_name == "sky.flights"


def test_only_so_many_dropped_things_are_kept(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped, "DROPPED_MAX", 1)
    store.write_at(truncate_table, "air", "flights")
    with pytest.raises(TooLarge, match="there are 1 dropped things whose grace is not over"):
        store.write_at(drop_table, "air", "flights")
    store.apply(partial(forget, number=1))
    store.write_at(drop_table, "air", "flights")
    assert [each.number for each in store.catalog().dropped()] == [2]


def test_a_drop_goes_through_no_records_of_others(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be twenty thousand."""
    store.write(alter_table, "air", "flights", retention_ms=0)
    monkeypatch.setattr(Catalog, "dropped", None)
    store.write_at(truncate_table, "air", "flights")
    store.write_at(drop_table, "air", "flights")
    assert store.catalog().counters.dropped == 2


def test_the_numbers_of_records_end(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_at(truncate_table, "air", "flights")
    monkeypatch.setattr(dropped, "ID_MAX", 2)
    with pytest.raises(TooLarge, match="all 2 numbers are given away"):
        store.write_at(drop_table, "air", "flights")
    assert ID_MAX > 2


def test_there_is_no_room_for_a_table_too_many_to_come_back(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_at(drop_table, "air", "flights")
    store.create_table("air", "other", key=KEY, subject="air.flights")
    monkeypatch.setattr(declare, "TABLES_MAX", 1)
    with pytest.raises(TooLarge, match="there are 1 tables already"):
        store.write_at(undrop_table, "air", "flights")


def test_no_more_tables_are_truncated_than_may_keep_a_retention_of_their_own(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declare, "RETENTIONS_MAX", 2)
    store.write_at(truncate_table, "air", "flights")
    with pytest.raises(TooLarge, match="retention"):
        store.write_at(truncate_table, "air", "flights")


def test_what_a_dropped_table_follows_stays(store: CatalogStore) -> None:
    store.write_at(drop_table, "air", "flights")
    with pytest.raises(InvalidArgument, match=r"the dropped table air\.flights follows it, and may be undropped"):
        store.write(delete_versions, "air.flights", 0, permanent=False)
    other_key = FLIGHT.replace('{"name": "carrier", "type": "string"}', '{"name": "carrier", "type": "bytes"}')
    assert not check_schema(store.catalog(), "air.flights", other_key).compatible
    store.apply(partial(begin_clearing, number=1))
    store.apply(partial(forget, number=1))
    store.write(delete_versions, "air.flights", 0, permanent=False)


def test_a_read_at_an_earlier_time_finds_the_table_of_that_time(store: CatalogStore) -> None:
    first, made_ts = flights(store), store.store.now
    store.write_at(truncate_table, "air", "flights")
    second, truncated_ts = flights(store), store.store.now
    store.write_at(rename_table, "air", "flights", "trips")
    renamed_ts = store.store.now
    store.write_at(drop_table, "air", "trips")
    newest = store.catalog()
    assert newest.named_as_in(store.catalog(made_ts)).table("air", "flights") == first
    assert newest.named_as_in(store.catalog(truncated_ts)).table("air", "flights") == second
    assert newest.named_as_in(store.catalog(renamed_ts)).table("air", "trips").table_id == second.table_id
    with pytest.raises(NotFound) as missing:
        newest.named_as_in(store.catalog(renamed_ts)).table("air", "flights")
    assert (missing.value.name, missing.value.at) == ("air.flights", str(renamed_ts))
    before = newest.named_as_in(store.catalog(Timestamp(0, 1, 0)))
    for look in (before.database, before.tables, lambda name: before.table(name, "flights")):
        with pytest.raises(NotFound, match=r"no database air at 1970-01-01T00:00:00\.001Z$"):
            look("air")
    assert newest.named_as_in(newest) is newest
    then = newest.named_as_in(store.catalog(made_ts))
    assert then.tables() == then.tables("air") == [first]
    assert then.databases() == ["air"]


def test_schemas_of_a_read_in_the_past_are_the_newest(store: CatalogStore) -> None:
    then = store.catalog()
    wider = FLIGHT.replace('{"name": "tags"', '{"name": "seats", "type": "int", "default": 0}, {"name": "tags"')
    registered = store.register("air.flights", wider)
    seen = store.catalog().named_as_in(then)
    assert seen.newest_schema("air.flights")[0] == registered.version.schema.schema_id
    assert then.newest_schema("air.flights")[0] != registered.version.schema.schema_id


def test_the_records_of_indexes_hold_their_entries(store: CatalogStore) -> None:
    table = flights(store)
    with pytest.raises(NotFound, match=r"no index air\.flights\.by_x"):
        drop_of_index(table, "by_x")
    mutations = Mutations()
    (made,) = drop_ranges(store.catalog(), mutations, [drop_of_index(table, "by_tail")], store.store.tick())
    store.store.apply(mutations, store.store.now)
    assert collectible(store.catalog()) == [made]
    ((start, end),) = made.what.ranges
    assert start == index_prefix(table.table_id, 1)
    assert not start <= row_prefix(table.table_id) < end
    assert not start <= index_prefix(table.table_id, 2) < end
    assert store.catalog().dropped_tables_of("air.flights") == []
