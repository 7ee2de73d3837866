"""Questions of a registry's tools beyond one version: the uses of a schema, its existing version, its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import current_thread
from typing import Any

import pytest

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog import stored
from cortado.store.client.blocking.schemas import Schemas
from cortado.store.client.caches import SchemaTexts
from cortado.store.client.client import Client
from cortado.store.client.schemas import VersionSummary
from support.memory_engine import MemoryEngine
from support.served_node import served_node

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def schemas() -> Iterator[Schemas]:
    with served_node(MemoryEngine()) as served, Client(served.endpoint) as client:
        yield client.schemas


def test_a_schema_is_found_in_all_subjects_that_have_it(schemas: Schemas) -> None:
    for subject, text in (("b", '"int"'), ("a", '"long"'), ("a-b", '"int"'), ("a", '"double"'), ("b", '"long"')):
        schemas.register(subject, text)
    schemas.delete("b", 1)
    assert schemas.uses(1) == [VersionSummary("a-b", 1, 1)]
    assert schemas.uses(1, include_deleted=True) == [VersionSummary("a-b", 1, 1), VersionSummary("b", 1, 1, True)]
    assert schemas.uses(2) == [VersionSummary("a", 1, 2), VersionSummary("b", 2, 2)]
    with pytest.raises(NotFound, match="no schema with id 4"):
        schemas.uses(4)
    with pytest.raises(InvalidArgument, match="schema_id"):
        schemas.uses(0)


def test_versions_are_listed_without_their_declarations(schemas: Schemas) -> None:
    for text in ('"int"', '"long"'):
        schemas.register("a", text)
    schemas.delete("a", 1)
    assert schemas.numbers("a") == [VersionSummary("a", 2, 2)]
    assert schemas.numbers("a", include_deleted=True) == [VersionSummary("a", 1, 1, True), VersionSummary("a", 2, 2)]
    with pytest.raises(NotFound, match="no subject b"):
        schemas.numbers("b")


def test_a_check_tells_which_version_a_schema_is_already(schemas: Schemas) -> None:
    registered = schemas.register("a", '"int"')
    found = schemas.test_compatibility("a", ' "int"').registered
    assert found is not None
    assert (found.version, found.schema_id, found.schema) == (1, registered.schema_id, '"int"')
    assert schemas.test_compatibility("a", '"long"').registered is None
    assert not schemas.test_compatibility("a", '"string"', version=1).compatible
    with pytest.raises(NotFound, match="version 2 of subject a"):
        schemas.test_compatibility("a", '"long"', version=2)


def test_a_subjects_own_mode_is_told_from_the_default(schemas: Schemas) -> None:
    schemas.register("a", '"int"')
    assert schemas.own_compatibility("a") is None
    schemas.set_compatibility("a", "FULL")
    assert schemas.own_compatibility("a") is CompatibilityMode.FULL
    with pytest.raises(NotFound):
        schemas.own_compatibility("b")


def test_the_text_of_an_id_is_remembered(schemas: Schemas) -> None:
    schemas.register("a", '"int"')
    assert schemas.declaration(1) == '"int"'
    schemas.delete("a")
    schemas.delete("a", permanent=True)
    assert schemas.declaration(1) == '"int"'
    with pytest.raises(NotFound):
        schemas.declaration(2)


def test_remembered_texts_are_bounded_and_those_asked_for_last_stay() -> None:
    texts = SchemaTexts(characters_max=10)
    for schema_id in (1, 2, 3):
        texts.put(schema_id, "abc")
    assert texts.get(1) == "abc"
    texts.put(4, "defg")
    assert [texts.get(schema_id) for schema_id in (1, 2, 3, 4)] == ["abc", None, "abc", "defg"]
    texts.put(4, "d")
    texts.put(5, "x" * 11)
    assert [texts.get(schema_id) for schema_id in (1, 3, 4, 5)] == [None] * 4, "one that is too large alone is not kept"
    texts.put(6, "y" * 10)
    texts.clear()
    assert texts.get(6) is None
    texts.put(7, "z" * 10)
    assert texts.get(7) == "z" * 10


def test_names_are_listed_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """To decode ten thousand tables, and as many subjects, holds it for long."""
    threads = []

    def watched(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        def decoded(payload: bytes) -> Any:
            threads.append(current_thread().name)
            return decode(payload)

        return decoded

    with served_node(MemoryEngine()) as served, Client(served.endpoint) as client:
        version = client.schemas.register("d.t", ROW)
        client.create_database("d")
        client.create_table("d.t", key=["id"])
        for name in ("decode_table", "decode_subject"):
            monkeypatch.setattr(stored, name, watched(getattr(stored, name)))
        [subject] = client.schemas.subjects()
        [table] = client.tables("d")
        [use] = client.schemas.uses(version.schema_id)
        monkeypatch.undo()
    assert (subject.subject, subject.tables) == ("d.t", ("d.t",))
    assert (table.full_name, use.subject) == ("d.t", "d.t")
    assert len(threads) == 4
    assert all("scan" in each for each in threads), threads
