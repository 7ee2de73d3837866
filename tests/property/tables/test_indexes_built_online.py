"""Indexes that are built while rows change, against a dictionary of documents.

No write is refused, rows before a build's cursor have their entries, and every entry is a row's. An index that is ready
agrees with the rows, and a unique one fails only if two rows shared a value while it was built.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import IndexNotReady, NotFound
from cortado.store.catalog.descriptors import IndexDescriptor, IndexState
from cortado.store.jobs.job import JobState, job_of
from cortado.store.keys.keyspace import index_range, primary_key_of_entry
from cortado.store.tables.operations import Delete, Operation, Put, Update
from support.table_world import DATABASE, WORLDS, TableWorld, index

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "record",
    "name": "Thing",
    "fields": [
        {"name": "number", "type": "int"},
        {"name": "code", "type": ["null", "string"], "default": None},
        {"name": "level", "type": "int", "default": 0},
    ],
}
INDEXES = {
    "code": index("code", "code", unique=True),
    "pair": index("pair", "level", "code", unique=True),
    "level": index("level", "level desc"),
}

Document: TypeAlias = dict[str, Any]
Twin: TypeAlias = dict[int, Document]

NUMBERS = st.integers(0, 5)
CODES = st.sampled_from([None, "x", "y", "z"])
LEVELS = st.integers(0, 1)
changes = st.fixed_dictionaries({"code": CODES}) | st.fixed_dictionaries({"level": LEVELS})
documents = st.fixed_dictionaries({"number": NUMBERS, "code": CODES, "level": LEVELS})
operations = st.one_of(
    st.tuples(st.just("put"), documents),
    st.tuples(st.just("update"), st.tuples(NUMBERS, changes)),
    st.tuples(st.just("delete"), NUMBERS),
)
names = st.sampled_from(sorted(INDEXES))
steps = st.one_of(
    st.tuples(st.just("one"), operations),
    st.tuples(st.just("one"), operations),
    st.tuples(st.just("batch"), st.lists(operations, min_size=1, max_size=5)),
    st.tuples(st.just("bulk"), st.lists(documents, min_size=1, max_size=6)),
    st.tuples(st.just("begin"), names),
    st.tuples(st.just("build"), st.tuples(names, st.integers(1, 3))),
    st.tuples(st.just("build"), st.tuples(names, st.integers(1, 3))),
    st.tuples(st.just("drop"), names),
)


def collides(state: Twin, name: str) -> bool:
    """Return whether two documents share a value of that index, nulls left out."""
    if not INDEXES[name].unique:
        return False
    with_level = name == "pair"
    values = [(each["level"] * with_level, each["code"]) for each in state.values() if each["code"] is not None]
    return len(set(values)) != len(values)


class Story:
    """The table, and the twin. ``collided`` holds the indexes being built in which two rows shared a value."""

    def __init__(self, world: TableWorld) -> None:
        self.world = world
        self.state: Twin = {}
        self.jobs: dict[str, int] = {}
        self.collided: set[str] = set()
        world.create("things", SCHEMA, ["number"])

    @property
    def found(self) -> tuple[IndexDescriptor, ...]:
        return self.world.catalog().table(DATABASE, "things").indexes

    def take(self, step: tuple[str, Any]) -> None:
        match step:
            case ("one", asked):
                self.write([asked])
            case ("batch", several):
                self.write(several)
            case ("bulk", rows):
                self.bulk(rows)
            case ("begin", name):
                if name not in self.jobs:
                    self.jobs[name] = self.world.begin_index("things", INDEXES[name])
                    self.collided.discard(name)
            case ("build", (name, rows)):
                if name in self.jobs:
                    self.world.build(self.jobs[name], rows)
            case (_, name):
                if self.jobs.pop(name, None) is not None:
                    self.world.drop_index("things", name)
        self.collided |= {name for name in self.jobs if collides(self.state, name)}

    def write(self, asked: list[tuple[str, Any]]) -> None:
        """Write in one commit, unless an index that is ready would refuse it."""
        after, wanted = dict(self.state), []
        for each in asked:
            operation = self.operation(after, each)
            wanted += [] if operation is None else [operation]
        if wanted and not any(collides(after, name) for name in self.ready):
            self.state = after
            if len(asked) == 1:
                self.world.run(wanted[0])
            else:
                self.world.batch(wanted)

    @property
    def ready(self) -> list[str]:
        return [each.name for each in self.found if each.state is IndexState.READY]

    def operation(self, state: Twin, asked: tuple[str, Any]) -> Operation | None:
        """Return the operation to ask for, and change ``state`` to the one after it; None if an update finds no
        document."""
        match asked:
            case ("put", document):
                state[document["number"]] = document
                return Put(DATABASE, "things", self.world.avro("things", document))
            case ("update", (number, changed)):
                if number not in state:
                    return None
                state[number] = {**state[number], **changed}
                return Update(DATABASE, "things", [number], changed)
            case (_, number):
                state.pop(number, None)
                return Delete(DATABASE, "things", [number])

    def bulk(self, rows: list[Document]) -> None:
        """Write row by row, each seeing those before it."""
        written, ready = 0, self.ready
        for row in rows:
            after = {**self.state, row["number"]: row}
            if not any(collides(after, name) for name in ready):
                self.state = after
                written += 1
                # A later row of the chunk may replace it: it was there, in the order of the rows.
                self.collided |= {name for name in self.jobs if collides(after, name)}
        assert self.world.bulk("things", rows).written == written

    def check(self) -> None:
        world = self.world
        assert {each["number"]: each for each in world.scan("things")} == self.state
        assert world.check("things") == []
        for each in self.found:
            match each.state:
                case IndexState.READY:
                    assert not collides(self.state, each.name)
                    assert len(world.scan("things", index=each.name)) == len(self.state)
                case IndexState.FAILED:
                    assert each.name in self.collided
                    assert each.failed_keys
                case IndexState.BUILDING:
                    self.check_building(each)
            if each.state is not IndexState.READY:
                with pytest.raises(IndexNotReady):
                    world.scan("things", index=each.name)

    def check_building(self, index: IndexDescriptor) -> None:
        """Check that each entry is a row's, and the rows before the cursor have theirs."""
        world, view = self.world, self.world.view("things")
        job = job_of(world.store.snapshot(), self.jobs[index.name])
        start, end = index_range(view.table.table_id, index.index_id, index.parts)
        held: dict[Any, Any] = {}
        for key, version in world.store.snapshot().scan(start, end):
            primary_key = primary_key_of_entry(key, version.payload, len(index.parts), unique=index.unique)
            [number] = view.decode_key(primary_key)
            assert number not in held
            held[number] = key
        assert held.keys() <= self.state.keys()
        behind = {number for number in self.state if view.row_key(view.encode_key([number])) < job.cursor}
        assert behind <= held.keys()


@pytest.mark.parametrize("store", WORLDS)
@given(taken=st.lists(steps, max_size=40))
@settings(deadline=None)
def test_an_index_built_while_rows_change_is_what_the_rows_say(store: Any, taken: list[tuple[str, Any]]) -> None:
    story = Story(TableWorld(store()))
    for step in taken:
        story.take(step)
        story.check()
    for name, job_id in story.jobs.items():
        while not (job := story.world.build(job_id, 1)).state.has_ended:
            story.check()
        assert job.state is JobState.DONE or name in story.collided
        story.check()
        [built] = [each for each in story.found if each.name == name]
        assert built.state is (IndexState.READY if job.state is JobState.DONE else IndexState.FAILED)


def test_a_job_whose_index_is_gone_has_ended() -> None:
    world = TableWorld()
    world.create("things", SCHEMA, ["number"])
    job_id = world.begin_index("things", INDEXES["code"])
    world.drop_index("things", "code")
    assert world.build(job_id).state is JobState.CANCELLED
    with pytest.raises(NotFound):
        world.drop_index("things", "code")
