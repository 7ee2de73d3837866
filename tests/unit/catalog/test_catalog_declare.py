"""Databases and tables: what may be declared, what it becomes, and what each refusal names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, TooLarge
from cortado.store.catalog import declare
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database, create_table
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.keys.types import KeyPart, KeyType
from support.catalog_store import FLIGHT, CatalogStore


def parts(*paths: str) -> tuple[PartDeclaration, ...]:
    """``"a"``, or ``"a desc"``."""
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
    store.write(create_table, "air", "flights", key=parts("time_hour", "carrier", "flight desc"), indexes=indexes)
    assert store.catalog().table("air", "flights") == TableDescriptor(
        table_id=1,
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
    )


def test_two_tables_may_follow_one_subject_and_each_has_its_own_id(store: CatalogStore) -> None:
    for name in ("a", "b"):
        store.write(create_table, "air", name, key=parts("carrier"), subject="air.flights")
    tables = store.catalog().tables_of("air.flights")
    assert [(table.full_name, table.table_id) for table in tables] == [("air.a", 1), ("air.b", 2)]


def test_a_name_is_taken_once_and_by_case(store: CatalogStore) -> None:
    with pytest.raises(AlreadyExists) as refused:
        store.write(create_database, "air")
    assert (refused.value.kind, refused.value.name) == ("database", "air")
    store.write(create_database, "Air")
    store.write(create_table, "air", "flights", key=parts("carrier"))
    with pytest.raises(AlreadyExists) as refused:
        store.write(create_table, "air", "flights", key=parts("flight"))
    assert (refused.value.kind, refused.value.name) == ("table", "air.flights")
    assert store.catalog().databases() == ["Air", "air"]


def test_what_a_table_needs_must_exist(store: CatalogStore) -> None:
    with pytest.raises(NotFound) as missing:
        store.write(create_table, "sea", "ships", key=parts("carrier"))
    assert (missing.value.kind, missing.value.name) == ("database", "sea")
    with pytest.raises(NotFound) as missing:
        store.write(create_table, "air", "ships", key=parts("carrier"))
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
            store.write(create_table, "air", "flights", key=keys, indexes=indexes)
        assert refused.value.field == where
        assert problem in refused.value.problem
        assert len(str(refused.value)) < 400
    assert store.catalog().tables() == []


def test_index_names_are_names_and_unique_in_their_table(store: CatalogStore) -> None:
    twice = [IndexDeclaration("i", parts("tailnum")), IndexDeclaration("i", parts("flight"))]
    many = [IndexDeclaration(f"i{i}", parts("tailnum")) for i in range(65)]
    for indexes, field in ((twice, "indexes[1].name"), ([IndexDeclaration("a b", parts("flight"))], "indexes[0].name")):
        with pytest.raises(InvalidArgument) as refused:
            store.write(create_table, "air", "flights", key=parts("carrier"), indexes=indexes)
        assert refused.value.field == field
    with pytest.raises(TooLarge) as too_many:
        store.write(create_table, "air", "flights", key=parts("carrier"), indexes=many)
    assert (too_many.value.length, too_many.value.limit) == (65, 64)
    store.write(create_table, "air", "flights", key=parts("carrier"), indexes=many[:64])


@pytest.mark.parametrize("bad", ["", "a.b", "a b", "x" * 65, "é"])
def test_bad_names_are_refused_wherever_they_are_used(store: CatalogStore, bad: str) -> None:
    for refuse in (
        lambda: store.write(create_database, bad),
        lambda: store.write(create_table, bad, "t", key=parts("carrier")),
        lambda: store.write(create_table, "air", bad, key=parts("carrier")),
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
        store.write(create_table, "air", "flights", key=parts("carrier"))
