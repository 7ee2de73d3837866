"""Databases and tables: permitted declarations, their results, and the names in each refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cortado.errors import AlreadyExists, Internal, InvalidArgument, NotFound, TooLarge
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog import declare, stored
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database
from cortado.store.catalog.descriptors import DatabaseDescriptor, IndexDescriptor, TableDescriptor
from cortado.store.catalog.registry import set_compatibility
from cortado.store.keys.keyspace import NUMBER_MAX, show_table_id, table_id_of
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.mutations import Mutations
from support.catalog_store import FLIGHT, CatalogStore


def parts(*paths: str) -> tuple[PartDeclaration, ...]:
    """Return the parts of ``"a"``, or ``"a desc"``."""
    return tuple(PartDeclaration(path.removesuffix(" desc"), path.endswith(" desc")) for path in paths)


@pytest.fixture
def store() -> CatalogStore:
    store = CatalogStore()
    store.write(create_database, "air")
    store.register("air.flights", FLIGHT)
    return store


def test_a_table_s_types_follow_from_its_schema(store: CatalogStore) -> None:
    indexes = [
        IndexDeclaration("by_tail", parts("tailnum")),
        IndexDeclaration("by_city", parts("origin.city", "flight desc"), unique=True),
    ]
    store.create_table("air", "flights", key=parts("time_hour", "carrier", "flight desc"), indexes=indexes)
    assert store.catalog().table("air", "flights") == TableDescriptor(
        table_id=table_id_of(1, 1),
        database="air",
        name="flights",
        subject="air.flights",
        key=(
            KeyPart("time_hour", KeyType.TIMESTAMP),
            KeyPart("carrier", KeyType.STRING),
            KeyPart("flight", KeyType.INT64, descending=True),
        ),
        indexes=(
            IndexDescriptor(1, "by_tail", (KeyPart("tailnum", KeyType.STRING),)),
            IndexDescriptor(
                2,
                "by_city",
                (KeyPart("origin.city", KeyType.STRING), KeyPart("flight", KeyType.INT64, descending=True)),
                unique=True,
            ),
        ),
        next_index_id=3,
        named_ts=store.store.now,
    )


def test_two_tables_may_follow_one_subject_and_each_has_its_own_id(store: CatalogStore) -> None:
    store.write(create_database, "sea")
    for database, name in (("air", "a"), ("sea", "c"), ("air", "b"), ("sea", "d")):
        store.create_table(database, name, key=parts("carrier"), subject="air.flights")
    tables = store.catalog().tables_of("air.flights")
    assert [(table.full_name, show_table_id(table.table_id)) for table in tables] == [
        ("air.a", "1.1"),
        ("air.b", "1.2"),
        ("sea.c", "2.1"),
        ("sea.d", "2.2"),
    ]


def forget(store: CatalogStore, *keys: LogicalKey) -> None:
    """Drop objects for which there is no command yet, and leave the counters as they are."""
    mutations = Mutations()
    for key in keys:
        mutations.delete(key)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(store.catalog().counters))
    store.store.apply(mutations, store.store.tick())


def test_no_number_comes_back_whatever_was_dropped(store: CatalogStore) -> None:
    store.write(create_database, "sea")
    store.create_table("air", "a", key=parts("carrier"), subject="air.flights")
    forget(store, stored.table_key("air", "a"), stored.database_key("sea"))
    store.create_table("air", "a", key=parts("carrier"), subject="air.flights")
    store.write(create_database, "sea")
    assert store.catalog().table("air", "a").table_id == table_id_of(1, 2)
    assert store.catalog().database("sea").number == 3


def test_there_is_an_end_to_numbers_which_says_so(store: CatalogStore) -> None:
    mutations = Mutations()
    counters = replace(store.catalog().counters, next_database_number=NUMBER_MAX)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(counters))
    full = DatabaseDescriptor("air", 1, next_table_number=NUMBER_MAX)
    mutations.put(stored.database_key("air"), stored.encode_database(full))
    store.store.apply(mutations, store.store.tick())

    store.write(create_database, "last")
    store.create_table("air", "last", key=parts("carrier"), subject="air.flights")
    assert store.catalog().table("air", "last").table_id == 0x1FFFF
    before = dict(store.store.versions)
    with pytest.raises(TooLarge, match="all 65535 numbers for databases are given away, and none is used again"):
        store.write(create_database, "more")
    with pytest.raises(TooLarge, match="all 65535 numbers for tables of database air are given away") as refused:
        store.create_table("air", "more", key=parts("carrier"), subject="air.flights")
    assert (refused.value.field, refused.value.length, refused.value.limit) == ("table", NUMBER_MAX, NUMBER_MAX)
    assert store.store.versions == before
    store.create_table("last", "first", key=parts("carrier"), subject="air.flights")
    assert store.catalog().table("last", "first").table_id == 0xFFFF0001


def test_an_index_s_id_that_was_given_before_is_a_defect(store: CatalogStore) -> None:
    index = IndexDeclaration("by_tail", parts("tailnum"))
    store.create_table("air", "flights", key=parts("carrier"), indexes=[index])
    table = store.catalog().table("air", "flights")
    with pytest.raises(Internal, match="an index's id is never used again: 1, 1"):
        stored.encode_table(replace(table, next_index_id=1))
    dropped = replace(table, indexes=())
    assert stored.decode_table(stored.encode_table(dropped)).next_index_id == 2


@pytest.mark.parametrize(
    ("root", "named"),
    [
        ('"string"', "string"),
        ('{"type": "enum", "name": "Color", "symbols": ["RED"]}', "enum Color"),
        ('{"type": "array", "items": "long"}', "array of long"),
    ],
)
def test_a_table_takes_no_subject_with_a_version_that_is_no_record(store: CatalogStore, root: str, named: str) -> None:
    store.write(set_compatibility, "air.keys", CompatibilityMode.NONE)
    store.register("air.keys", root)
    for _ in range(2):
        with pytest.raises(InvalidArgument) as refused:
            store.create_table("air", "keys", key=parts("carrier"))
        problem = f"version 1 is of type {named}, and documents are records"
        assert (refused.value.field, refused.value.problem) == ("subject", problem)
        store.register("air.keys", FLIGHT)
    assert store.catalog().tables() == []


def test_a_name_is_taken_once_and_by_case(store: CatalogStore) -> None:
    with pytest.raises(AlreadyExists) as refused:
        store.write(create_database, "air")
    assert (refused.value.kind, refused.value.name) == ("database", "air")
    store.write(create_database, "Air")
    store.create_table("air", "flights", key=parts("carrier"))
    with pytest.raises(AlreadyExists) as refused:
        store.create_table("air", "flights", key=parts("flight"))
    assert (refused.value.kind, refused.value.name) == ("table", "air.flights")
    assert store.catalog().databases() == ["Air", "air"]


def test_what_a_table_needs_must_exist(store: CatalogStore) -> None:
    with pytest.raises(NotFound) as missing:
        store.create_table("sea", "ships", key=parts("carrier"))
    assert (missing.value.kind, missing.value.name) == ("database", "sea")
    with pytest.raises(NotFound) as missing:
        store.create_table("air", "ships", key=parts("carrier"))
    assert (missing.value.kind, missing.value.name) == ("subject", "air.ships")


@pytest.mark.parametrize(
    ("key", "field", "problem"),
    [
        ((), "key", "at least one part"),
        (("carrier", "carrier"), "key[1].path", "named twice"),
        (("carrier", "carrier desc"), "key[1].path", "named twice"),
        (("carrier", "nope"), "key[1].path", "nope"),
        (("",), "key[0].path", ""),
        (("carrier.x",), "key[0].path", "has no fields"),
        (("origin",), "key[0].path", "cannot be part of a key"),
        (("tags",), "key[0].path", "cannot be part of a key"),
        (("either",), "key[0].path", "cannot be part of a key"),
        (("chain.value",), "key[0].path", "leads through chain, of type Link, which may hold itself"),
        (("x" * 201,), "key[0].path", "at most 200 characters"),
        (tuple(f"f{i}" for i in range(17)), "key", "at most 16 parts"),
    ],
)
def test_a_bad_key_is_refused_by_its_part(store: CatalogStore, key: Sequence[str], field: str, problem: str) -> None:
    index = IndexDeclaration("i", parts(*key))
    for keys, indexes, where in (
        (parts(*key), [], field),
        (parts("carrier"), [index], f"indexes[0].parts{field.removeprefix('key')}"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            store.create_table("air", "flights", key=keys, indexes=indexes)
        assert refused.value.field == where
        assert problem in refused.value.problem
        assert len(str(refused.value)) < 400
    assert store.catalog().tables() == []


def test_index_names_are_names_and_unique_in_their_table(store: CatalogStore) -> None:
    twice = [IndexDeclaration("i", parts("tailnum")), IndexDeclaration("i", parts("flight"))]
    many = [IndexDeclaration(f"i{i}", parts("tailnum")) for i in range(65)]
    for indexes, field in ((twice, "indexes[1].name"), ([IndexDeclaration("a b", parts("flight"))], "indexes[0].name")):
        with pytest.raises(InvalidArgument) as refused:
            store.create_table("air", "flights", key=parts("carrier"), indexes=indexes)
        assert refused.value.field == field
    with pytest.raises(TooLarge) as too_many:
        store.create_table("air", "flights", key=parts("carrier"), indexes=many)
    assert (too_many.value.length, too_many.value.limit) == (65, 64)
    store.create_table("air", "flights", key=parts("carrier"), indexes=many[:64])


@pytest.mark.parametrize("bad", ["", "a.b", "a b", "x" * 65, "é"])
def test_bad_names_are_refused_wherever_they_are_used(store: CatalogStore, bad: str) -> None:
    for refuse in (
        lambda: store.write(create_database, bad),
        lambda: store.create_table(bad, "t", key=parts("carrier")),
        lambda: store.create_table("air", bad, key=parts("carrier")),
        lambda: store.catalog().table(bad, "t"),
        lambda: store.catalog().table("air", bad),
        lambda: store.catalog().tables(bad),
    ):
        with pytest.raises(InvalidArgument):
            refuse()


def test_there_is_an_end_to_databases_and_tables(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declare, "DATABASES_MAX", 1)
    monkeypatch.setattr(declare, "TABLES_MAX", 0)
    with pytest.raises(TooLarge):
        store.write(create_database, "more")
    with pytest.raises(TooLarge):
        store.create_table("air", "flights", key=parts("carrier"))


def test_among_thousands_of_tables_few_are_decoded(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that happens at once is evaluated on the loop: to decode ten thousand descriptors holds it for long."""
    for number in range(30):
        store.create_table("air", f"t{number}", key=parts("carrier"), subject="air.flights")
    wanted = store.catalog().table("air", "t7")
    decoded: list[bytes] = []
    decode = stored.decode_table
    monkeypatch.setattr(stored, "decode_table", lambda payload: decoded.append(payload) or decode(payload))
    store.create_table("air", "another", key=parts("carrier"), subject="air.flights")
    catalog = store.catalog()
    assert catalog.find_table_with(wanted.table_id, "air", "t7") == wanted
    assert catalog.find_table_with(wanted.table_id, "air", "another") == wanted, "as it was renamed"
    assert catalog.find_table_with(wanted.table_id, "none", "t7") == wanted
    assert catalog.find_table_with(table_id_of(1, 99), "air", "t7") is None
    assert catalog.tables_of("none") == []
    assert len(decoded) < 10
