"""Random operations on a table with every kind of index, against a dictionary of documents.

The twin keeps documents by key and knows uniqueness by looking at all of them. After each operation rows, every index
and ``table verify-indexes`` must agree with it, and refused operations must have changed nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import ConditionFailed, CortadoError, NotFound, UniqueViolation
from cortado.store.tables.operations import BulkMode, Delete, Operation, Put, PutMode, Update
from support.examples import examples
from support.table_world import DATABASE, WORLDS, TableWorld, index

pytestmark = pytest.mark.slow

PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "city", "type": ["null", "string"], "default": None}, {"name": "x", "type": "int"}],
}
SCHEMA = {
    "type": "record",
    "name": "Thing",
    "fields": [
        {"name": "owner", "type": "string"},
        {"name": "number", "type": "int"},
        {"name": "code", "type": ["null", "string"], "default": None},
        {"name": "level", "type": "double", "default": 0.0},
        {"name": "place", "type": ["null", PLACE], "default": None},
    ],
}
SCHEMA_V2 = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "extra", "type": "string", "default": "-"}]}  # type: ignore[misc]
INDEXES = [
    index("code", "code", unique=True),
    index("city_level", "place.city", "level desc"),
    index("unique_pair", "level", "place.city", unique=True),
    index("level", "level desc"),
]

Document: TypeAlias = dict[str, Any]
Twin: TypeAlias = dict[tuple[str, int], Document]

# Few values, so that keys, unique values and old entries meet often. "a\0" and "" try the codec's escapes.
places = st.sampled_from([None, *({"city": city, "x": 1} for city in (None, None, "Rome", "a\0", ""))])
documents = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(["a", "b"]),
        "number": st.integers(0, 2),
        "code": st.sampled_from([None, "x", "y", "z"]),
        "level": st.sampled_from([0.0, -0.0, 1.5, 2.0, float("inf")]),
        "place": places,
    }
)
keys = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2))
changes = st.dictionaries(st.sampled_from(["code", "level", "place"]), st.none(), min_size=1).flatmap(
    lambda chosen: st.fixed_dictionaries(
        {
            name: {"code": st.none() | st.sampled_from(["x", "y"]), "level": st.just(1.5), "place": places}[name]
            for name in chosen
        }
    )
)
VALUES = {"code": st.none() | st.sampled_from(["x", "y"]), "level": st.sampled_from([0.0, 1.5]), "place": places}


def rows_of_parts(columns: list[str]) -> st.SearchStrategy[list[tuple[tuple[str, int], Document]]]:
    """Draw keys, each with the new values of these columns."""
    values = st.fixed_dictionaries({name: VALUES[name] for name in columns})
    return st.lists(st.tuples(keys, values), min_size=1, max_size=5)


modes = st.sampled_from(list(PutMode))
operations = st.one_of(
    st.tuples(st.just("put"), documents, modes),
    st.tuples(st.just("update"), keys, changes),
    st.tuples(st.just("delete"), keys, st.none()),
)
steps = st.one_of(
    st.tuples(st.just("one"), operations),
    st.tuples(st.just("batch"), st.lists(operations, min_size=1, max_size=5)),
    st.tuples(st.just("bulk"), st.tuples(st.lists(documents, max_size=2), st.just(PutMode.UPSERT))),
    st.tuples(st.just("bulk"), st.tuples(st.lists(documents, max_size=6), modes)),
    st.tuples(
        st.just("parts"), st.lists(st.sampled_from(["code", "level", "place"]), unique=True).flatmap(rows_of_parts)
    ),
    st.tuples(st.just("gone"), st.lists(keys, max_size=5)),
    st.tuples(st.just("evolve"), st.none()),
)


def key_of(document: Document) -> tuple[str, int]:
    return document["owner"], document["number"]


def unique_values(document: Document) -> list[tuple[str, object]]:
    """Return the values that no other document may have, nulls left out."""
    city = document["place"] and document["place"]["city"]
    values: list[tuple[str, object]] = [("code", document["code"])] if document["code"] is not None else []
    return values + ([("pair", (document["level"] + 0.0, city))] if city is not None else [])


def collides(state: Twin) -> bool:
    values = [value for document in state.values() for value in unique_values(document)]
    return len(set(values)) != len(values)


class Model:
    """The dictionary. ``apply`` gives the next state, or the kind of error."""

    def __init__(self) -> None:
        self.state: Twin = {}
        self.extra: Document = {}

    def apply(self, state: Twin, operation: tuple[str, Any, Any]) -> Twin | type[CortadoError]:
        kind, what, how = operation
        if kind == "put":
            exists = key_of(what) in state
            if (how is PutMode.INSERT and exists) or (how is PutMode.REPLACE and not exists):
                return ConditionFailed
            return {**state, key_of(what): {**what, **self.extra}}
        if kind == "update":
            return {**state, what: {**state[what], **how}} if what in state else NotFound
        return {key: document for key, document in state.items() if key != what}

    def batch(self, operations: list[tuple[str, Any, Any]]) -> Twin | type[CortadoError]:
        """Return the state after a batch, or its error. Each operation sees those before it; uniqueness is judged
        last."""
        state: Twin = self.state
        for operation in operations:
            after = self.apply(state, operation)
            if not isinstance(after, dict):
                return after
            state = after
        return UniqueViolation if collides(state) else state


def to_operation(world: TableWorld, operation: tuple[str, Any, Any], extra: Document) -> Operation:
    kind, what, how = operation
    if kind == "put":
        return Put(DATABASE, "things", world.avro("things", {**what, **extra}), how)
    if kind == "update":
        return Update(DATABASE, "things", what, how)
    return Delete(DATABASE, "things", what)


def step(world: TableWorld, model: Model, kind: str, what: Any) -> None:
    if kind == "evolve":
        if not model.extra:
            world.register("things", SCHEMA_V2)
            model.extra = {"extra": "new"}
        return
    if kind in ("bulk", "parts", "gone"):
        bulk(world, model, kind, what)
        return
    asked = [what] if kind == "one" else what
    expected = model.batch(asked)
    commands = [to_operation(world, each, model.extra) for each in asked]
    try:
        if kind == "one":
            world.run(commands[0])
        else:
            world.batch(commands)
    except CortadoError as error:
        assert not isinstance(expected, dict), error
        assert type(error) is expected
    else:
        assert isinstance(expected, dict), expected
        model.state = expected


def bulk(world: TableWorld, model: Model, kind: str, what: Any) -> None:
    """Write row by row, each refused by itself."""
    if kind == "bulk":
        rows, mode = what
        done = world.bulk("things", [{**row, **model.extra} for row in rows], mode)
        asked = [("put", row, mode) for row in rows]
    elif kind == "parts":
        columns = ("owner", *what[0][1], "number")
        rows = [{"owner": owner, "number": number, **values} for (owner, number), values in what]
        done = world.bulk_parts("things", rows, columns, BulkMode.UPDATE)
        asked = [("update", key, values) for key, values in what]
    else:
        rows = [{"number": number, "owner": owner} for owner, number in what]
        done = world.bulk_parts("things", rows, ("number", "owner"), BulkMode.DELETE)
        asked = [("delete", key, None) for key in what]
    refused = {}
    for place, operation in enumerate(asked):
        after = model.apply(model.state, operation)
        if isinstance(after, dict) and collides(after):
            after = UniqueViolation
        if isinstance(after, dict):
            model.state = after
        else:
            refused[place] = ConditionFailed if after is NotFound else after
    assert {place: type(error) for place, error in done.errors} == refused
    assert done.written == len(asked) - len(refused)


def whole(document: Document) -> Document:
    """Return the document as the newest schema reads it."""
    return {"extra": "-", **document}


def assert_same(world: TableWorld, model: Model) -> None:
    rows = [whole(model.state[key]) for key in sorted(model.state, key=lambda key: (key[0], -key[1]))]
    assert list(map(whole, world.scan("things"))) == rows
    assert world.check("things", 3) == []
    for name in ("code", "city_level", "unique_pair", "level"):
        assert sorted(map(key_of, world.scan("things", index=name))) == sorted(model.state)
    levels = [each["level"] for each in world.scan("things", index="level")]
    assert levels == sorted(levels, reverse=True)
    for key, document in model.state.items():
        row = world.get("things", *key)
        assert row is not None
        assert whole(row) == whole(document)


@given(st.sampled_from(WORLDS), st.lists(steps, min_size=4, max_size=12))
@settings(max_examples=examples(200))
def test_a_table_and_its_indexes_are_the_dictionary(store: type, script: list[tuple[str, Any]]) -> None:
    world = TableWorld(store())
    world.create("things", SCHEMA, ["owner", "number desc"], INDEXES)
    model = Model()
    for kind, what in script:
        step(world, model, kind, what)
        assert_same(world, model)
