"""The registry: what may follow what, what tables pin, and that a refusal tells all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.errors import IncompatibleSchema, InvalidArgument, InvalidSchema, NotFound, TooLarge
from cortado.schema.compatibility import CompatibilityMode, Incompatibility, check_against
from cortado.store.catalog import registry
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database, create_table
from cortado.store.catalog.registry import check_schema, set_compatibility
from support.catalog_store import FLIGHT, CatalogStore


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Flight", "fields": list(fields)})


def field(name: str, type_: object, **more: object) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


V1 = record(field("id", "int"), field("city", "string"))
V2 = record(field("id", "int"), field("city", "string"), field("note", ["null", "string"], default=None))


@pytest.fixture
def store() -> CatalogStore:
    return CatalogStore()


def kinds(refused: IncompatibleSchema) -> set[tuple[str, str, int]]:
    return {(each["path"], str(each["kind"]), each["version"]) for each in refused.incompatibilities}


def test_versions_count_in_their_subject_and_ids_in_the_cluster(store: CatalogStore) -> None:
    registered = [store.register(*each).version for each in (("a", V1), ("b", V1), ("a", V2))]
    assert [(each.schema_id, each.subject, each.version) for each in registered] == [
        (1, "a", 1),
        (2, "b", 1),
        (3, "a", 2),
    ]
    assert store.catalog().subject("a").versions == ((1, 1), (2, 3))
    assert store.catalog().newest_schema("a")[0] == 3
    assert store.catalog().schema(1).text == V1


def test_the_same_schema_again_is_the_same_version(store: CatalogStore) -> None:
    store.register("a", V1)
    store.register("a", V2)
    again = store.register("a", json.dumps(json.loads(V1), indent=4))
    assert not again.created
    assert (again.version.version, again.version.text) == (1, V1)
    assert store.catalog().subject("a").schema_ids == (1, 2)


def test_the_default_mode_holds_a_schema_to_every_earlier_version(store: CatalogStore) -> None:
    store.register("a", record(field("x", "int")))
    store.register("a", record())
    with pytest.raises(IncompatibleSchema) as refused:
        store.register("a", record(field("x", "string", default="")))
    assert refused.value.mode == "BACKWARD_TRANSITIVE"
    assert kinds(refused.value) == {("Flight.x", "TYPE_MISMATCH", 1)}
    store.write(set_compatibility, "a", CompatibilityMode.BACKWARD)
    assert store.register("a", record(field("x", "string", default=""))).version.version == 3


def test_a_refusal_lists_everything_once_with_the_newest_version_and_changes_nothing(store: CatalogStore) -> None:
    store.register("a", V1)
    store.register("a", V2)
    before = dict(store.store.versions)
    with pytest.raises(IncompatibleSchema) as refused:
        store.register("a", record(field("id", "string"), field("city", "string"), field("new", "int")))
    assert kinds(refused.value) == {
        ("Flight.id", "TYPE_MISMATCH", 2),
        ("Flight.new", "READER_FIELD_MISSING_DEFAULT_VALUE", 2),
    }
    assert len(refused.value.incompatibilities) == 2
    assert store.store.versions == before


def test_a_check_says_what_registering_would_and_changes_nothing(store: CatalogStore) -> None:
    assert check_schema(store.catalog(), "new", V1).compatible
    store.register("a", V1)
    bad = record(field("id", "string"), field("city", "string"))
    check = check_schema(store.catalog(), "a", bad)
    assert not check.compatible
    assert check.mode is CompatibilityMode.BACKWARD_TRANSITIVE
    assert check_schema(store.catalog(), "a", bad, CompatibilityMode.NONE).compatible
    assert check_schema(store.catalog(), "a", V2, CompatibilityMode.FORWARD).mode is CompatibilityMode.FORWARD
    known = check_schema(store.catalog(), "a", V1)
    assert known.registered is not None
    assert store.catalog().subjects() == [store.catalog().subject("a")]


@pytest.mark.parametrize("mode", list(CompatibilityMode))
def test_fields_of_keys_and_indexes_are_pinned_in_every_mode(store: CatalogStore, mode: CompatibilityMode) -> None:
    store.write(create_database, "air")
    store.register("air.flights", V1)
    index = IndexDeclaration("by_city", (PartDeclaration("city"),))
    store.write(create_table, "air", "flights", key=[PartDeclaration("id")], indexes=[index])
    store.write(create_table, "air", "other", key=[PartDeclaration("city")], subject="air.flights")
    store.write(set_compatibility, "air.flights", mode)
    with pytest.raises(IncompatibleSchema) as refused:
        store.register("air.flights", record(field("id", "double")))
    pinned = {kind: path for path, kind, _ in kinds(refused.value) if kind.startswith("PINNED")}
    assert pinned == {"PINNED_FIELD_RETYPED": "Flight.id", "PINNED_FIELD_REMOVED": "Flight.city"}
    message = str(refused.value)
    assert "id is part of the key of table air.flights" in message
    assert "city is part of index by_city of table air.flights, the key of table air.other" in message
    assert store.catalog().subject("air.flights").schema_ids == (1,)


def test_a_record_around_a_key_field_may_not_come_to_hold_itself(store: CatalogStore) -> None:
    def place(*more: dict[str, Any]) -> str:
        inner = {"type": "record", "name": "Place", "fields": [field("city", "string"), *more]}
        return record(field("at", ["null", inner]))

    store.write(create_database, "air")
    store.register("air.flights", place())
    store.write(create_table, "air", "flights", key=[PartDeclaration("at.city")])
    with pytest.raises(IncompatibleSchema, match="leads through at, of type Place") as refused:
        store.register("air.flights", place(field("within", ["null", "Place"], default=None)))
    assert kinds(refused.value) == {("Flight.at.city", "PINNED_FIELD_RETYPED", 1)}


def test_without_tables_the_mode_none_takes_anything(store: CatalogStore) -> None:
    store.register("a", V1)
    store.write(set_compatibility, "a", CompatibilityMode.NONE)
    assert store.catalog().subject("a").mode is CompatibilityMode.NONE
    assert store.register("a", record(field("other", "bytes"))).version.version == 2


def test_bad_input_is_refused_by_what_it_is(store: CatalogStore) -> None:
    with pytest.raises(InvalidArgument) as refused:
        store.register("no good", V1)
    assert refused.value.field == "subject"
    for text in ("", "{", '"string"', '{"type": "enum", "name": "E", "symbols": ["A"]}'):
        with pytest.raises(InvalidSchema):
            store.register("a", text)
    with pytest.raises(NotFound) as missing:
        store.write(set_compatibility, "a", CompatibilityMode.FULL)
    assert (missing.value.kind, missing.value.name) == ("subject", "a")


def test_unknown_ids_and_versions_are_not_found(store: CatalogStore) -> None:
    store.register("a", V1)
    catalog = store.catalog()
    assert catalog.version_of_subject("a") == catalog.version_of_subject("a", 1) == catalog.schema_version(1)
    for missing in (
        lambda: catalog.schema(2),
        lambda: catalog.schema(0),
        lambda: catalog.version_of_subject("a", 2),
        lambda: catalog.version_of_subject("b"),
        lambda: catalog.newest_schema("b"),
    ):
        with pytest.raises(NotFound):
            missing()


def test_there_is_an_end_to_versions_and_subjects(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.register("a", V1)
    monkeypatch.setattr(registry, "VERSIONS_MAX", 1)
    monkeypatch.setattr(registry, "SUBJECTS_MAX", 1)
    for subject, text in (("a", V2), ("b", V1)):
        with pytest.raises(TooLarge) as refused:
            store.register(subject, text)
        assert refused.value.field == "subject"
    assert not store.register("a", V1).created


def test_the_flights_of_the_tests_evolve_by_a_field_with_a_default(store: CatalogStore) -> None:
    store.register("flights", FLIGHT)
    evolved = json.loads(FLIGHT)
    evolved["fields"].append({"name": "gate", "type": "string", "default": "?"})
    assert store.register("flights", json.dumps(evolved)).version.version == 2


def test_what_was_compared_beside_the_write_is_not_compared_again(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.register("a", V1)
    compared: list[int] = []

    def count(new: Any, versions: Any, mode: Any) -> list[Incompatibility]:
        compared.append(len(versions))
        return check_against(new, versions, mode)

    monkeypatch.setattr("cortado.store.catalog.registry.check_against", count)
    assert check_schema(store.catalog(), "a", V2).compatible
    store.register("a", V2)
    assert compared == [1]
    assert check_schema(store.catalog(), "a", V1).registered is not None, "another state is judged anew"
