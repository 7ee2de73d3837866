"""Few operations may come to much: documents of a mebibyte take a second to decode, and are not decoded on the loop."""

from __future__ import annotations

import tracemalloc

import pytest

from cortado.errors import ResourceExhausted, TooLarge
from cortado.store.catalog.declare import IndexDeclaration
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.kv.batches import KvBatch
from cortado.store.kv.operations import KvCheck, KvDelete, KvPut
from cortado.store.mvcc.evaluation import Evaluation, Present
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.transacting import DECODING
from cortado.store.tables.operations import Add, Delete, Put, Update
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.operations import Commit, OnPairs, Operation
from support.table_world import DATABASE, EngineStore, TableWorld, index

FIELDS = [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}, {"name": "text", "type": "string"}]


def world_of(*indexes: IndexDeclaration, text_chars: int) -> TableWorld:
    """Return a world of five documents with a text of that length."""
    world = TableWorld(EngineStore())
    world.create("heavy", {"type": "record", "name": "H", "fields": FIELDS}, ["id"], indexes)
    for number in range(5):
        world.put("heavy", {"id": number, "n": 1, "text": "x" * text_chars})
    return world


def commit(world: TableWorld, operations: list[Operation], decoded_bytes_max: int | None = None) -> None:
    def evaluate(reader: Reader, ts: Timestamp) -> Evaluation:
        catalog = world.catalog(reader)
        return evaluate_commit(reader, ts, catalog, Commit(operations), decoded_bytes_max=decoded_bytes_max)

    world.store.write(evaluate)


@pytest.mark.parametrize("kind", ["update", "add", "delete", "put"])
def test_documents_that_are_passed_by_count_before_they_are_decoded(kind: str) -> None:
    world = world_of(index("by_n", "n"), text_chars=10_000)
    operations: list[Operation] = {
        "update": [Update(DATABASE, "heavy", (number,), {"n": 2}) for number in range(3)],
        "add": [Add(DATABASE, "heavy", (number,), "n", 1) for number in range(3)],
        "delete": [Delete(DATABASE, "heavy", (number,)) for number in range(3)],
        "put": [Put(DATABASE, "heavy", world.avro("heavy", {"id": i, "n": 2, "text": ""})) for i in range(3)],
    }[kind]
    with pytest.raises(ResourceExhausted) as refused:
        commit(world, operations, 25_000)
    assert (refused.value.resource, refused.value.limit) == (DECODING, 25_000)
    assert [world.get("heavy", number)["n"] for number in range(3)] == [1, 1, 1]
    commit(world, operations, 35_000)
    assert [each and each["n"] for each in (world.get("heavy", i) for i in range(3))] == [
        None if kind == "delete" else 2
    ] * 3


def test_what_need_not_be_decoded_does_not_count() -> None:
    world = world_of(text_chars=10_000)
    deletes: list[Operation] = [Delete(DATABASE, "heavy", (number,)) for number in range(5)]
    commit(world, [Put(DATABASE, "heavy", world.avro("heavy", {"id": 0, "n": 2, "text": ""})), *deletes], 1_000)
    assert world.get("heavy", 0) is None


def test_what_adds_write_counts_among_the_bytes_of_a_commit() -> None:
    world = world_of(text_chars=1_000_000)
    with pytest.raises(TooLarge) as refused:
        commit(world, [Add(DATABASE, "heavy", (number,), "n", 1) for number in range(5)])
    assert refused.value.field == "operations"
    assert "more at operation 4" in refused.value.message()
    with pytest.raises(TooLarge):
        commit(world, [Add(DATABASE, "heavy", (0,), "n", 1) for _ in range(5)])
    commit(world, [Add(DATABASE, "heavy", (number,), "n", 1) for number in range(4)])
    assert [world.get("heavy", number)["n"] for number in range(5)] == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("kind", ["check", "delete", "packed deletes", "put if"])
def test_values_that_are_only_read_count_a_256th_of_their_bytes(kind: str) -> None:
    """Values of pairs of a mebibyte: each takes a millisecond or two."""
    world = TableWorld(EngineStore())
    names = [b"%d" % number for number in range(20)]
    puts = [OnPairs("n", KvPut(name, bytes(100_000))) for name in names]
    commit(world, list(puts))
    operations: list[Operation] = {
        "check": [OnPairs("n", KvCheck(name, Present())) for name in names],
        "delete": [OnPairs("n", KvDelete(name)) for name in names],
        "packed deletes": [OnPairs("n", KvBatch(names, [b""] * 20, set(range(20))))],
        "put if": [OnPairs("n", KvPut(name, b"", Present())) for name in names],
    }[kind]
    with pytest.raises(ResourceExhausted) as refused:
        commit(world, operations, 19 * 100_000 // 256)
    assert refused.value.resource == DECODING
    commit(world, operations, 20 * 100_000 // 256)
    left = [world.store.snapshot().get(kv_key("n", name)) for name in names]
    assert [each is None for each in left] == ["delete" in kind] * 20


def test_packed_deletes_of_much_do_not_hold_all_of_it() -> None:
    world = TableWorld(EngineStore())
    names = [b"%d" % number for number in range(40)]
    for name in names:
        commit(world, [OnPairs("n", KvPut(name, bytes(1_000_000)))])
    tracemalloc.start()
    try:
        commit(world, [OnPairs("n", KvBatch(names, [b""] * 40, set(range(40))))])
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
