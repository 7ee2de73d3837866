"""Documents that expire, against a dictionary that knows when each does: at every timestamp, also long after.

The twin keeps the whole state of each commit. A read at a time must see the state of the last commit before it, without
the documents that have expired by then: in the table, in each index, by key. Writes see the same. Nothing is different
after the collection of versions that no read can see any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import ConditionFailed, CortadoError, NotFound, UniqueViolation
from cortado.store.catalog.declare import alter_table
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Space
from cortado.store.mvcc.expiry import NEVER, Expiry
from cortado.store.mvcc.garbage import find_garbage
from cortado.store.tables.operations import (
    Add,
    BulkChunk,
    BulkMode,
    BulkWritten,
    Delete,
    Operation,
    Put,
    PutMode,
    Update,
)
from support.examples import examples
from support.table_world import DATABASE, WORLDS, EngineStore, TableWorld, index

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "record",
    "name": "Thing",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "code", "type": ["null", "string"], "default": None},
        {"name": "left", "type": "int"},
    ],
}
INDEXES = [index("code", "code", unique=True), index("left", "left desc")]
BEGAN_MS = 1_000

Row: TypeAlias = tuple[dict[str, Any], int]
"""A document, and when it expires, 0 for never."""
State: TypeAlias = dict[int, Row]

expiries = st.sampled_from([None, None, NEVER]) | st.one_of(
    st.integers(1, 6).map(Expiry), st.integers(BEGAN_MS - 1, BEGAN_MS + 12).map(lambda at_ms: Expiry(at_ms=at_ms))
)
ids = st.integers(0, 2)
codes = st.sampled_from([None, "x", "y"])
documents = st.fixed_dictionaries({"id": ids, "code": codes, "left": st.integers(0, 2)})
modes = st.sampled_from([PutMode.UPSERT, PutMode.UPSERT, PutMode.UPSERT, PutMode.INSERT, PutMode.REPLACE])
operations = st.one_of(
    st.tuples(st.just("put"), documents, modes, expiries),
    st.tuples(st.just("put"), documents, st.just(PutMode.UPSERT), expiries),
    st.tuples(st.just("update"), ids, st.sampled_from(["x", "y", None]), expiries),
    st.tuples(st.just("touch"), ids, st.none(), expiries.filter(lambda each: each is not None)),
    st.tuples(st.just("add"), ids, st.none(), st.none()),
    st.tuples(st.just("delete"), ids, st.none(), st.none()),
)
steps = st.one_of(
    st.tuples(st.just("commit"), st.lists(operations, min_size=1, max_size=3), st.none(), st.none()),
    st.tuples(st.just("one"), operations, st.none(), st.none()),
    st.tuples(st.just("bulk"), st.lists(documents, min_size=1, max_size=4), modes, expiries),
    st.tuples(
        st.just("bulk"),
        st.lists(documents, min_size=1, max_size=3, unique_by=lambda each: each["id"]),
        st.just(PutMode.UPSERT),
        expiries,
    ),
    st.tuples(
        st.just("parts"),
        st.lists(st.tuples(ids, st.sampled_from([None, "x", "y"])), min_size=1, max_size=3),
        st.none(),
        expiries,
    ),
    st.tuples(st.just("gone"), st.lists(ids, min_size=1, max_size=3), st.none(), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 4), st.none(), st.none()),
    st.tuples(st.just("ttl"), st.sampled_from([0, 3]), st.none(), st.none()),
)


class Twin:
    def __init__(self, world: TableWorld) -> None:
        self.world = world
        self.ttl_ms = 0
        self.states: list[tuple[Timestamp, State]] = [(world.store.now, {})]

    @property
    def wall_ms(self) -> int:
        return self.world.store.now.wall_ms

    def seen(self, ts: Timestamp) -> State:
        _, state = max((each for each in self.states if each[0] <= ts), key=lambda each: each[0])
        return {key: row for key, row in state.items() if not 0 < row[1] <= ts.wall_ms}

    def expires(self, expiry: Expiry | None) -> int:
        if expiry is None:
            expiry = Expiry(self.ttl_ms)
        return expiry.at_ms or (self.wall_ms + expiry.ttl_ms if expiry.ttl_ms else 0)

    def apply(self, state: State, operation: tuple[str, Any, Any, Any]) -> State | type[CortadoError]:
        kind, what, how, expiry = operation
        if kind == "put":
            exists = what["id"] in state
            if (how is PutMode.INSERT and exists) or (how is PutMode.REPLACE and not exists):
                return ConditionFailed
            return {**state, what["id"]: (what, self.expires(expiry))}
        if kind == "delete":
            return {key: row for key, row in state.items() if key != what}
        if what not in state:
            return NotFound
        document, expires_ms = state[what]
        if kind == "add":
            return {**state, what: ({**document, "left": document["left"] + 1}, expires_ms)}
        if kind == "touch":
            return {**state, what: (document, self.expires(expiry))}
        return {**state, what: ({**document, "code": how}, expires_ms if expiry is None else self.expires(expiry))}

    def commit(self, asked: list[tuple[str, Any, Any, Any]]) -> State | type[CortadoError]:
        state = self.seen(self.world.store.now)
        for operation in asked:
            after = self.apply(state, operation)
            if not isinstance(after, dict):
                return after
            state = after
        return UniqueViolation if collides(state) else state


def collides(state: State) -> bool:
    codes = [document["code"] for document, _ in state.values() if document["code"] is not None]
    return len(set(codes)) != len(codes)


def to_operation(world: TableWorld, operation: tuple[str, Any, Any, Any]) -> Operation:
    kind, what, how, expiry = operation
    match kind:
        case "put":
            return Put(DATABASE, "things", world.avro("things", what), how, expiry=expiry)
        case "update":
            return Update(DATABASE, "things", [what], {"code": how}, expiry=expiry)
        case "touch":
            return Update(DATABASE, "things", [what], {}, expiry=expiry)
        case "add":
            return Add(DATABASE, "things", [what], "left", 1)
        case _:
            return Delete(DATABASE, "things", [what])


def step(world: TableWorld, twin: Twin, kind: str, what: Any, mode: Any, expiry: Any) -> None:
    match kind:
        case "wait":
            world.store.now = Timestamp(0, twin.wall_ms + what, 0)
        case "ttl":
            twin.ttl_ms = what
            world.store.write(lambda reader, _ts: alter_table(world.catalog(reader), DATABASE, "things", ttl_ms=what))
        case "bulk":
            rows = world.rows("things", what)
            done = world.bulk_rows(BulkChunk(DATABASE, "things", rows, BulkMode(mode), expiry=expiry))
            check_bulk(world, twin, done, [("put", row, mode, expiry) for row in what])
        case "parts":
            parts = [{"code": code, "id": key} for key, code in what]
            done = world.bulk_parts("things", parts, ("code", "id"), BulkMode.UPDATE, expiry=expiry)
            check_bulk(world, twin, done, [("update", key, code, expiry) for key, code in what])
        case "gone":
            done = world.bulk_parts("things", [{"id": key} for key in what], ("id",), BulkMode.DELETE)
            check_bulk(world, twin, done, [("delete", key, None, None) for key in what])
        case _:
            commit(world, twin, [what] if kind == "one" else what, is_alone=kind == "one" and what[0] != "add")


def check_bulk(world: TableWorld, twin: Twin, done: BulkWritten, asked: list[tuple[str, Any, Any, Any]]) -> None:
    state, refused = twin.seen(world.store.now), {}
    for place, operation in enumerate(asked):
        after = twin.apply(state, operation)
        if isinstance(after, dict) and collides(after):
            after = UniqueViolation
        if isinstance(after, dict):
            state = after
        else:
            refused[place] = ConditionFailed if after is NotFound else after
    assert {place: type(error) for place, error in done.errors} == refused
    twin.states.append((world.store.now, state))


def commit(world: TableWorld, twin: Twin, asked: list[tuple[str, Any, Any, Any]], *, is_alone: bool) -> None:
    commands = [to_operation(world, each) for each in asked]
    expected = twin.commit(asked)
    try:
        if is_alone:
            world.run(commands[0])
        else:
            world.batch(commands)
    except CortadoError as error:
        assert type(error) is expected, error
    else:
        assert isinstance(expected, dict), expected
        twin.states.append((world.store.now, expected))


def moments(twin: Twin, oldest: Timestamp) -> Iterator[Timestamp]:
    """Yield the times of all commits, and those around each expiry."""
    found = {ts for ts, _ in twin.states} | {twin.world.store.now}
    for _, state in twin.states:
        for _, expires_ms in state.values():
            found |= {Timestamp(0, expires_ms - 1, LOGICAL_MAX), Timestamp(0, expires_ms, 0)} if expires_ms else set()
    return (ts for ts in sorted(found) if oldest <= ts)


def assert_same(world: TableWorld, twin: Twin, ts: Timestamp) -> None:
    state = twin.seen(ts)
    rows = [state[key][0] for key in sorted(state)]
    assert world.scan("things", at=ts) == rows
    assert world.scan("things", at=ts, reverse=True, page_rows=1) == rows[::-1]
    for each in INDEXES:
        assert sorted(world.scan("things", at=ts, index=each.name), key=lambda row: row["id"]) == rows
    for key in range(4):
        assert world.get("things", key, at=ts) == (state[key][0] if key in state else None)


@given(st.sampled_from(WORLDS), st.lists(steps, min_size=5, max_size=14), st.data())
@settings(max_examples=examples(1_000))
def test_a_table_and_its_indexes_are_the_dictionary_at_every_time(
    store: type, script: list[tuple[str, Any, Any, Any]], data: st.DataObject
) -> None:
    world = TableWorld(store())
    world.create("things", SCHEMA, ["id"], INDEXES)
    twin = Twin(world)
    for each in script:
        step(world, twin, *each)
        assert_same(world, twin, world.store.now)
        assert world.check("things", 2) == []
    for ts in moments(twin, twin.states[0][0]):
        assert_same(world, twin, ts)
    if isinstance(world.store, EngineStore):
        safepoint = data.draw(st.sampled_from(list(moments(twin, twin.states[0][0]))))
        world.store.now = max(world.store.now, safepoint)
        collect(world.store, safepoint)
        for ts in moments(twin, safepoint):
            assert_same(world, twin, ts)
    job = world.begin_index("things", index("later", "left"))
    while not world.build(job, 1).state.has_ended:
        assert world.check("things") == []
        world.store.now = Timestamp(0, twin.wall_ms + 1, 0)
    assert world.check("things") == []
    expected = sorted(twin.seen(world.store.now))
    assert sorted(row["id"] for row in world.scan("things", index="later")) == expected


def collect(store: EngineStore, safepoint: Timestamp) -> None:
    """Collect all versions that may go."""
    with store.engine.read() as look:
        keys, values, _ = look.page(Space.DATA, b"t", ABOVE_KEYS, max_items=10_000, max_bytes=1 << 30)
    if keys:
        garbage = find_garbage(list(keys), list(values), safepoint, behind=b"", is_cut=False)
        with store.engine.write() as txn:
            for key in garbage.keys:
                txn.delete(Space.DATA, key)
            for each in garbage.deleted:
                txn.delete_range(Space.DATA, each.start, each.end, max_items=each.items_max)
