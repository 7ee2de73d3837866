"""Databases that are dropped with their tables, and come back with them."""

from __future__ import annotations

from functools import partial

import pytest

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, TooLarge
from cortado.store.catalog import declare, stored
from cortado.store.catalog import drop_database as module
from cortado.store.catalog.declare import PartDeclaration, create_database
from cortado.store.catalog.drop import drop_table, undrop_table
from cortado.store.catalog.drop_database import drop_database, undrop_database
from cortado.store.catalog.dropped import begin_clearing, collectible, forget
from support.catalog_store import FLIGHT, CatalogStore

KEY = [PartDeclaration("carrier")]


@pytest.fixture
def store() -> CatalogStore:
    store = CatalogStore()
    store.register("flights", FLIGHT)
    store.write(create_database, "air")
    for name in ("a", "b", "c"):
        store.create_table("air", name, key=KEY, subject="flights")
    return store


def names(store: CatalogStore) -> list[str]:
    return [each.full_name for each in store.catalog().tables()]


def test_a_database_with_tables_stays_unless_they_are_to_go_too(store: CatalogStore) -> None:
    with pytest.raises(InvalidArgument, match=r"cascade: must be set: database air has 3 tables, such as air\.a"):
        store.write_at(drop_database, "air", cascade=False)
    store.write(create_database, "sea")
    assert store.write_at(drop_database, "sea", cascade=False).tables == ()
    for name, error in (("sea", NotFound), ("a b", InvalidArgument)):
        with pytest.raises(error):
            store.write_at(drop_database, name, cascade=True)


def test_a_database_comes_back_with_what_was_dropped_with_it(store: CatalogStore) -> None:
    ids = {each.name: each.table_id for each in store.catalog().tables()}
    store.write_at(drop_table, "air", "a")
    reply = store.write_at(drop_database, "air", cascade=True)
    assert [each.what.name for each in reply.tables] == ["air.b", "air.c"]
    assert {each.dropped_with for each in reply.tables} == {reply.dropped.number}
    assert store.catalog().databases() == []
    back = store.write_at(undrop_database, "air")
    assert (back.database, back.cleared) == ("air", ())
    assert [each.full_name for each in back.tables] == names(store) == ["air.b", "air.c"]
    assert {each.name: each.table_id for each in back.tables} == {"b": ids["b"], "c": ids["c"]}
    assert [each.what.name for each in store.catalog().dropped()] == ["air.a"]
    assert store.write_at(undrop_table, "air", "a").table.table_id == ids["a"]
    made = store.create_table("air", "new", key=KEY, subject="flights").table
    assert made.table_id == max(ids.values()) + 1, "numbers go on"


def test_a_database_whose_name_is_taken_comes_back_under_another_one(store: CatalogStore) -> None:
    number = store.catalog().database("air").number
    store.write_at(drop_database, "air", cascade=True)
    store.write(create_database, "air")
    assert store.catalog().database("air").number != number
    with pytest.raises(AlreadyExists, match="database air already exists"):
        store.write_at(undrop_database, "air")
    with pytest.raises(InvalidArgument, match="as_name"):
        store.write_at(undrop_database, "air", as_name="a.b")
    store.write_at(undrop_database, "air", as_name="sky")
    assert names(store) == ["sky.a", "sky.b", "sky.c"]
    assert store.catalog().database("sky").number == number
    assert store.catalog().table("sky", "a").database == "sky"


def test_the_newest_database_of_a_name_comes_back_or_that_of_a_number(store: CatalogStore) -> None:
    store.write_at(drop_database, "air", cascade=True)
    store.write(create_database, "air")
    store.write_at(drop_database, "air", cascade=True)
    assert store.write_at(undrop_database, "air").tables == ()
    with pytest.raises(NotFound, match="no dropped database air with number 9"):
        store.write_at(undrop_database, "air", number=9, as_name="sky")
    assert len(store.write_at(undrop_database, "air", number=1, as_name="sky").tables) == 3
    with pytest.raises(NotFound, match="no dropped database air"):
        store.write_at(undrop_database, "air", as_name="more")


def test_tables_that_are_being_cleared_stay_away(store: CatalogStore) -> None:
    reply = store.write_at(drop_database, "air", cascade=True)
    first, second, third = (each.number for each in reply.tables)
    store.apply(partial(begin_clearing, number=first))
    store.apply(partial(forget, number=first))
    store.apply(partial(begin_clearing, number=second))
    back = store.write_at(undrop_database, "air")
    assert (names(store), back.cleared) == (["air.c"], ("air.b",))
    assert [each.number for each in store.catalog().dropped()] == [second]
    assert third not in [each.number for each in collectible(store.catalog())]


def test_a_database_s_record_stays_as_long_as_one_of_its_tables(store: CatalogStore) -> None:
    reply = store.write_at(drop_database, "air", cascade=True)
    for each in reply.tables:
        assert reply.dropped.number not in [other.number for other in collectible(store.catalog())]
        store.apply(partial(forget, number=each.number))
    assert [each.number for each in collectible(store.catalog())] == [reply.dropped.number]
    store.apply(partial(begin_clearing, number=reply.dropped.number))
    with pytest.raises(InvalidArgument, match="grace is over"):
        store.write_at(undrop_database, "air")


def test_only_so_many_tables_go_in_one_commit(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CASCADE_TABLES_MAX", 2)
    with pytest.raises(TooLarge, match="2 tables can be dropped with a database"):
        store.write_at(drop_database, "air", cascade=True)
    monkeypatch.setattr(module, "CASCADE_TABLES_MAX", 3)
    monkeypatch.setattr(module, "CASCADE_BYTES_MAX", 100)
    with pytest.raises(TooLarge, match="the descriptions of its tables must have 100 bytes"):
        store.write_at(drop_database, "air", cascade=True)


def test_there_is_no_room_for_a_database_or_its_tables_too_many(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_at(drop_database, "air", cascade=True)
    store.write(create_database, "sea")
    monkeypatch.setattr(declare, "DATABASES_MAX", 1)
    with pytest.raises(TooLarge, match="1 databases"):
        store.write_at(undrop_database, "air")
    monkeypatch.setattr(declare, "DATABASES_MAX", 2)
    monkeypatch.setattr(declare, "TABLES_MAX", 2)
    with pytest.raises(TooLarge, match="no room for 3"):
        store.write_at(undrop_database, "air")


def test_what_comes_back_is_found_without_decoding_all_that_was_dropped(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        store.create_table("air", f"t{number}", key=KEY, subject="flights")
        store.write_at(drop_table, "air", f"t{number}")
    store.write(create_database, "sea")
    store.create_table("sea", "a", key=KEY, subject="flights")
    store.write_at(drop_database, "sea", cascade=True)
    decoded = []
    decode = stored.decode_dropped
    monkeypatch.setattr(stored, "decode_dropped", lambda payload: decoded.append(payload) or decode(payload))
    store.write_at(undrop_table, "air", "t7")
    assert len(decoded) <= 2
    assert store.write_at(undrop_database, "sea").tables[0].full_name == "sea.a"
    assert len(decoded) <= 5
