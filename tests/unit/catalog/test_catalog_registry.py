"""The registry: which versions may follow which, the versions that tables pin, and complete refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cortado.errors import IncompatibleSchema, Internal, InvalidArgument, InvalidSchema, NotFound, TooLarge
from cortado.schema.compatibility import CompatibilityMode, Incompatibility, check_against
from cortado.store.catalog import registry, stored
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database
from cortado.store.catalog.deletion import delete_versions
from cortado.store.catalog.descriptors import SubjectState, SubjectVersion
from cortado.store.catalog.registry import SchemaCheck, check_schema, set_compatibility, set_default_compatibility
from cortado.store.mvcc.mutations import Mutations
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


def kinds_of(check: SchemaCheck) -> set[tuple[str, str, int]]:
    return {(each.path, str(each.kind), each.version) for each in check.incompatibilities}


def versions_of(store: CatalogStore, subject: str) -> list[tuple[int, int]]:
    """Return versions with their schema ids."""
    return [(each.version, each.schema_id) for each in store.catalog().subject(subject).live]


def test_a_text_has_one_id_in_all_subjects_and_a_version_in_each(store: CatalogStore) -> None:
    registrations = (("a", V1), ("b", V2), ("a", V2), ("b", V1), ("c", record(field("x", "int"))))
    registered = [store.register(*each) for each in registrations]
    assert all(each.created for each in registered)
    assert [(each.version.schema.schema_id, each.version.subject, each.version.version) for each in registered] == [
        (1, "a", 1),
        (2, "b", 1),
        (2, "a", 2),
        (1, "b", 2),
        (3, "c", 1),
    ]
    assert versions_of(store, "a") == [(1, 1), (2, 2)]
    assert versions_of(store, "b") == [(1, 2), (2, 1)]
    assert store.catalog().newest_schema("b")[0] == 1
    assert store.catalog().schema(1).text == V1
    assert store.catalog().version_with_id("b", 1).version == 2
    with pytest.raises(NotFound, match="with id 3 in subject b"):
        store.catalog().version_with_id("b", 3)


def test_spaces_order_and_escapes_make_no_other_text_and_all_else_does(store: CatalogStore) -> None:
    plain = '{"type": "record", "name": "R", "doc": "\u00e9", "fields": []}'
    assert store.register("a", plain).version.schema.schema_id == 1
    for subject, same in (
        ("b", '{"fields":[],"doc":"é","name":"R","type":"record"}'),
        ("c", '\n{ "name": "R",\n "type": "record", "doc": "\\u00e9", "fields": [ ] }'),
    ):
        found = store.register(subject, same).version
        assert (found.schema.schema_id, found.schema.text) == (1, plain)
    # As long as others read them: the doc, and the properties that a connector leaves in a long of its own.
    others = [
        '{"type": "record", "name": "R", "doc": "e", "fields": []}',
        '"long"',
        '{"type": "long", "connect.name": "io.debezium.time.Timestamp"}',
    ]
    found_ids = [store.register(f"other{i}", text).version.schema.schema_id for i, text in enumerate(others)]
    assert found_ids == [2, 3, 4]
    assert [store.catalog().registered_schema(each).text for each in found_ids] == others


def test_within_a_subject_a_schema_that_reads_alike_is_the_same_version(store: CatalogStore) -> None:
    store.register("a", '"long"')
    again = store.register("a", '{"type": "long", "connect.name": "T"}')
    assert (again.created, again.version.version, again.version.schema.text) == (False, 1, '"long"')


@pytest.mark.parametrize(
    ("first", "next_"),
    [
        ('"int"', '"long"'),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', '{"type": "enum", "name": "E", "symbols": ["A", "B"]}'),
        ('{"type": "array", "items": "int"}', '{"type": "array", "items": "double"}'),
        ('["null", "string"]', '["null", "string", "long"]'),
    ],
)
def test_a_subject_without_a_table_may_have_any_root_and_is_held_to_it(
    store: CatalogStore, first: str, next_: str
) -> None:
    store.register("topic-key", first)
    assert store.register("topic-key", next_).version.version == 2
    with pytest.raises(IncompatibleSchema):
        store.register("topic-key", V1)


def test_a_subject_that_a_table_follows_takes_records_alone_in_every_mode(store: CatalogStore) -> None:
    store.write(create_database, "air")
    store.register("air.flights", V1)
    store.create_table("air", "flights", key=[PartDeclaration("id")])
    store.write(set_compatibility, "air.flights", CompatibilityMode.NONE)
    with pytest.raises(InvalidSchema, match=r"must be a record: the documents of table air\.flights follow") as refused:
        store.register("air.flights", '"string"')
    assert refused.value.value == "string"
    assert versions_of(store, "air.flights") == [(1, 1)]


def test_a_subject_has_the_mode_of_all_until_it_has_its_own(store: CatalogStore) -> None:
    def checked() -> CompatibilityMode:
        return check_schema(store.catalog(), "a", V2).mode

    store.register("a", V1)
    assert checked() is CompatibilityMode.BACKWARD_TRANSITIVE
    assert store.write(set_default_compatibility, CompatibilityMode.FULL).mode is CompatibilityMode.FULL
    assert checked() is CompatibilityMode.FULL
    store.write(set_compatibility, "a", CompatibilityMode.NONE)
    store.write(set_default_compatibility, CompatibilityMode.FORWARD)
    assert checked() is CompatibilityMode.NONE
    assert store.write(set_compatibility, "a", None).mode is CompatibilityMode.FORWARD
    assert checked() is CompatibilityMode.FORWARD
    assert store.write(set_default_compatibility, None).mode is CompatibilityMode.BACKWARD_TRANSITIVE
    assert checked() is CompatibilityMode.BACKWARD_TRANSITIVE


def test_a_mode_may_come_before_the_first_version_and_go_without_a_trace(store: CatalogStore) -> None:
    store.write(set_compatibility, "a", CompatibilityMode.NONE)
    with pytest.raises(NotFound):
        store.catalog().subject("a")
    store.register("a", '"int"')
    assert store.register("a", '"string"').version.version == 2
    store.write(set_compatibility, "b", CompatibilityMode.NONE)
    store.write(set_compatibility, "b", None)
    assert store.catalog().find_subject("b") is None
    with pytest.raises(NotFound) as missing:
        store.write(set_compatibility, "b", None)
    assert (missing.value.kind, missing.value.name) == ("subject", "b")


def test_a_softly_deleted_version_is_out_of_everything_and_its_number_stays_taken(store: CatalogStore) -> None:
    for text in ('"int"', '"long"'):
        store.register("a", text)
    state = store.catalog().subject("a")
    newest = replace(state.versions[1], deleted=True)
    put_subject(store, replace(state, versions=(state.versions[0], newest)))
    catalog = store.catalog()
    assert versions_of(store, "a") == [(1, 1)]
    assert catalog.newest_schema("a")[0] == 1
    for missing in (lambda: catalog.version_of_subject("a", 2), lambda: catalog.version_with_id("a", 2)):
        with pytest.raises(NotFound):
            missing()
    assert catalog.registered_schema(2).text == '"long"', "what was written with it can still be read"
    assert check_schema(catalog, "a", '"int"').registered is not None
    again = store.register("a", '"long"')
    assert (again.created, again.version.version, again.version.schema.schema_id) == (True, 3, 2)

    put_subject(store, replace(store.catalog().subject("a"), versions=()))
    with pytest.raises(NotFound):
        store.catalog().subject("a")
    assert store.register("a", V1).version.version == 4, "nothing is left to be compatible with, but the numbers"


def test_versions_are_deleted_softly_and_then_forgotten(store: CatalogStore) -> None:
    for text in (V1, V2):
        store.register("a", text)
    with pytest.raises(InvalidArgument, match="removes only deleted versions, and version 2 of subject a is not"):
        store.write(delete_versions, "a", 2, permanent=True)
    assert store.write(delete_versions, "a", 2, permanent=False).versions == (2,)
    with pytest.raises(NotFound, match="version 2 of subject a"):
        store.write(delete_versions, "a", 2, permanent=False)
    with pytest.raises(InvalidArgument, match="version 1 of subject a is not"):
        store.write(delete_versions, "a", 0, permanent=True)
    assert store.write(delete_versions, "a", 0, permanent=False).versions == (1,)
    with pytest.raises(NotFound, match="no subject a"):
        store.write(delete_versions, "a", 0, permanent=False)
    assert store.write(delete_versions, "a", 0, permanent=True).versions == (1, 2)
    assert store.catalog().find_subject("a") is None
    with pytest.raises(NotFound, match="no subject a"):
        store.write(delete_versions, "a", 0, permanent=True)
    assert store.register("a", V2).version.version == 3
    assert store.catalog().find_subject("a") == SubjectState("a", None, (SubjectVersion(3, 2),), 4)


def test_a_forgotten_subject_loses_its_mode_and_a_forgotten_version_does_not_take_it(store: CatalogStore) -> None:
    store.write(set_compatibility, "a", CompatibilityMode.NONE)
    store.register("a", V1)
    for permanent in (False, True):
        store.write(delete_versions, "a", 1, permanent=permanent)
    assert store.catalog().find_subject("a") == SubjectState("a", CompatibilityMode.NONE, (), 2)
    store.register("a", V1)
    for permanent in (False, True):
        store.write(delete_versions, "a", 0, permanent=permanent)
    assert store.catalog().find_subject("a") is None


def test_no_version_of_a_subject_that_a_table_follows_can_be_deleted(store: CatalogStore) -> None:
    store.write(create_database, "air")
    for text in (V1, V2):
        store.register("air.flights", text)
    store.write(delete_versions, "air.flights", 1, permanent=False)
    store.create_table("air", "flights", key=[PartDeclaration("id")])
    for version, permanent in ((2, False), (0, False), (1, True)):
        with pytest.raises(InvalidArgument, match=r"table air\.flights follows it") as refused:
            store.write(delete_versions, "air.flights", version, permanent=permanent)
        assert refused.value.field == "subject"
    assert versions_of(store, "air.flights") == [(2, 2)]


def test_a_version_that_was_given_before_is_a_defect(store: CatalogStore) -> None:
    store.register("a", V1)
    state = store.catalog().subject("a")
    for broken in (replace(state, next_version=1), replace(state, versions=(*state.versions, *state.versions))):
        with pytest.raises(Internal, match="a subject's version is never used again"):
            stored.encode_subject(broken)


def put_subject(store: CatalogStore, state: SubjectState) -> None:
    """Put a subject as deleting versions will leave it."""
    mutations = Mutations()
    mutations.put(stored.subject_key(state.subject), stored.encode_subject(state))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(store.catalog().counters))
    store.store.apply(mutations, store.store.tick())


def test_the_same_schema_again_is_the_same_version(store: CatalogStore) -> None:
    store.register("a", V1)
    store.register("a", V2)
    again = store.register("a", json.dumps(json.loads(V1), indent=4))
    assert not again.created
    assert (again.version.version, again.version.schema.text) == (1, V1)
    assert versions_of(store, "a") == [(1, 1), (2, 2)]


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


def test_a_check_of_one_version_looks_at_no_other(store: CatalogStore) -> None:
    store.register("a", record(field("x", "int")))
    store.register("a", record())
    again = record(field("x", "string", default=""))
    assert kinds_of(check_schema(store.catalog(), "a", again, version=1)) == {("Flight.x", "TYPE_MISMATCH", 1)}
    assert check_schema(store.catalog(), "a", again, version=2).compatible
    assert not check_schema(store.catalog(), "a", again).compatible
    known = check_schema(store.catalog(), "a", record(), version=1)
    assert known.compatible and known.registered is not None and known.registered.version == 2
    for subject, version, missing in (("a", 3, "schema"), ("b", 1, "subject")):
        with pytest.raises(NotFound) as refused:
            check_schema(store.catalog(), subject, again, version=version)
        assert refused.value.kind == missing


def test_a_check_of_the_newest_version_alone_says_what_stored_keys_need_too(store: CatalogStore) -> None:
    store.write(create_database, "air")
    store.register("air.flights", V1)
    store.create_table("air", "flights", key=[PartDeclaration("id")])
    store.write(set_compatibility, "air.flights", CompatibilityMode.NONE)
    found = kinds_of(check_schema(store.catalog(), "air.flights", record(field("id", "double")), version=1))
    assert found == {("Flight.id", "PINNED_FIELD_RETYPED", 1)}


@pytest.mark.parametrize("mode", list(CompatibilityMode))
def test_fields_of_keys_and_indexes_are_pinned_in_every_mode(store: CatalogStore, mode: CompatibilityMode) -> None:
    store.write(create_database, "air")
    store.register("air.flights", V1)
    index = IndexDeclaration("by_city", (PartDeclaration("city"),))
    store.create_table("air", "flights", key=[PartDeclaration("id")], indexes=[index])
    store.create_table("air", "other", key=[PartDeclaration("city")], subject="air.flights")
    store.write(set_compatibility, "air.flights", mode)
    with pytest.raises(IncompatibleSchema) as refused:
        store.register("air.flights", record(field("id", "double")))
    pinned = {kind: path for path, kind, _ in kinds(refused.value) if kind.startswith("PINNED")}
    assert pinned == {"PINNED_FIELD_RETYPED": "Flight.id", "PINNED_FIELD_REMOVED": "Flight.city"}
    message = str(refused.value)
    assert "id is part of the key of table air.flights" in message
    assert "city is part of index by_city of table air.flights, the key of table air.other" in message
    assert versions_of(store, "air.flights") == [(1, 1)]


def test_a_record_around_a_key_field_may_not_come_to_hold_itself(store: CatalogStore) -> None:
    def place(*more: dict[str, Any]) -> str:
        inner = {"type": "record", "name": "Place", "fields": [field("city", "string"), *more]}
        return record(field("at", ["null", inner]))

    store.write(create_database, "air")
    store.register("air.flights", place())
    store.create_table("air", "flights", key=[PartDeclaration("at.city")])
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
    for text in ("", "{", '"strong"', '{"type": "enum", "name": "E", "symbols": []}', "[" * 100_000):
        with pytest.raises(InvalidSchema):
            store.register("a", text)
    with pytest.raises(InvalidArgument) as refused:
        store.write(set_compatibility, "no good", CompatibilityMode.FULL)
    assert refused.value.field == "subject"


def test_unknown_ids_and_versions_are_not_found(store: CatalogStore) -> None:
    store.register("a", V1)
    catalog = store.catalog()
    assert catalog.version_of_subject("a") == catalog.version_of_subject("a", 1) == catalog.version_with_id("a", 1)
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
