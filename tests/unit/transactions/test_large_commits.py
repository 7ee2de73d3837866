"""T14: a large commit is evaluated before its turn, and has the effect that it would have then."""

from __future__ import annotations

import pytest

from cortado.errors import ConditionFailed, ResourceExhausted, UniqueViolation, WriteConflict
from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.operations import KvPut
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import VALIDATION
from cortado.store.mvcc.seen import Seen
from cortado.store.tables.operations import Delete, Put, PutMode, Update
from cortado.store.transactions.ahead import Ahead
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.operations import Committed, OnPairs, Operation
from support.orders import create_orders, order
from support.table_world import DATABASE, EngineStore, TableWorld, index


@pytest.fixture
def world() -> TableWorld:
    world = TableWorld(EngineStore())
    create_orders(world)
    return world


def put(world: TableWorld, document: dict[str, object], mode: PutMode = PutMode.UPSERT) -> Put:
    return Put(DATABASE, "orders", world.avro("orders", document), mode)


def ahead_of(
    world: TableWorld,
    operations: list[Operation],
    start: Timestamp | None = None,
    footprint: Footprint | None = None,
) -> Ahead:
    """Evaluate in two pieces at the state as it is."""
    seen = Seen()
    assert isinstance(world.store, EngineStore)
    reader = world.store.store.snapshot(world.store.now, seen)
    ahead = Ahead(reader, seen, world.catalog(reader), start, footprint or Footprint())
    half = len(operations) // 2
    _ = ahead.take(operations[:half]) and ahead.take(operations[half:])
    ahead.finish()
    return ahead


def commit(world: TableWorld, ahead: Ahead) -> Timestamp:
    def evaluate(reader: object, ts: Timestamp) -> Evaluation:
        evaluation = ahead.evaluate(reader, ts, None)  # type: ignore[arg-type]
        assert evaluation.reply == Committed(ts)
        return evaluation

    return world.store.write(evaluate)[0]


def stale(world: TableWorld, ahead: Ahead) -> bool:
    try:
        commit(world, ahead)
    except ResourceExhausted as refusal:
        return refusal.resource == VALIDATION
    return False


def test_it_writes_what_it_would_write_in_its_turn(world: TableWorld) -> None:
    world.put("orders", order("bob", 1, code="b"))
    ahead = ahead_of(
        world,
        [
            put(world, order("ann", 1, code="x")),
            Update(DATABASE, "orders", ("ann", 1), {"amount": 2.0}),
            Delete(DATABASE, "orders", ("bob", 1)),
            OnPairs("ns", KvPut(b"k", b"v")),
        ],
    )
    world.put("orders", order("cid", 1, code="c"))
    ts = commit(world, ahead)
    assert world.get("orders", "ann", 1, at=ts) == order("ann", 1, code="x", amount=2.0)
    assert world.get("orders", "bob", 1) is None
    assert world.check("orders") == []


def test_a_row_that_it_read_and_that_changed_since_makes_it_stale(world: TableWorld) -> None:
    world.put("orders", order("ann", 1))
    ahead = ahead_of(world, [Update(DATABASE, "orders", ("ann", 1), {"amount": 2.0}), put(world, order("bob", 1))])
    world.put("orders", order("ann", 1, amount=9.0))
    assert stale(world, ahead)
    assert world.get("orders", "bob", 1) is None


def test_a_row_that_was_not_there_and_is_now_makes_it_stale(world: TableWorld) -> None:
    ahead = ahead_of(world, [put(world, order("ann", 1), PutMode.INSERT), put(world, order("bob", 1))])
    world.put("orders", order("ann", 1))
    assert stale(world, ahead)


def test_a_unique_value_that_was_taken_since_makes_it_stale(world: TableWorld) -> None:
    ahead = ahead_of(world, [put(world, order("ann", 1, code="x")), put(world, order("bob", 1))])
    world.put("orders", order("cid", 1, code="x"))
    assert stale(world, ahead)


def test_a_table_that_got_another_schema_since_makes_it_stale(world: TableWorld) -> None:
    ahead = ahead_of(world, [put(world, order("ann", 1)), put(world, order("bob", 1))])
    world.create("other", {"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}, ["id"])
    assert stale(world, ahead)


def test_a_refusal_stands_if_nothing_changed_since(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    inserted = ahead_of(world, [put(world, order("bob", 1)), put(world, order("ann", 1), PutMode.INSERT)])
    taken = ahead_of(world, [put(world, order("bob", 1)), put(world, order("cid", 1, code="x"))])
    for ahead, refusal in ((inserted, ConditionFailed), (taken, UniqueViolation)):
        with pytest.raises(refusal) as refused:
            commit(world, ahead)
        assert refused.value.row == 1
    world.run(Delete(DATABASE, "orders", ("ann", 1)))
    assert stale(world, inserted)
    assert stale(world, taken)


def test_what_was_written_since_its_start_is_a_conflict_before_and_in_its_turn(world: TableWorld) -> None:
    start = world.put("orders", order("ann", 1))
    blind = [put(world, order("ann", 1, amount=2.0)), put(world, order("bob", 1))]
    ahead = ahead_of(world, blind, start)
    world.put("orders", order("ann", 1, amount=9.0))
    assert stale(world, ahead)
    with pytest.raises(WriteConflict) as refused:
        commit(world, ahead_of(world, blind, start))
    assert refused.value.kind == "write"


def test_a_key_of_its_footprint_that_changed_is_a_conflict(world: TableWorld) -> None:
    start = world.put("orders", order("ann", 1))
    view = world.view("orders")
    key = view.row_key(view.encode_key(("ann", 1)))
    writes = [put(world, order("bob", 1)), put(world, order("cid", 1))]
    ahead = ahead_of(world, writes, start, Footprint([key]))
    commit(world, ahead)
    again = ahead_of(world, writes, world.store.now, Footprint([key]))
    world.put("orders", order("ann", 1, amount=9.0))
    assert stale(world, again)
    with pytest.raises(WriteConflict) as refused:
        commit(world, ahead_of(world, writes, start, Footprint([key])))
    assert refused.value.kind == "read"


def test_an_index_is_kept_by_it(world: TableWorld) -> None:
    world.create(
        "things",
        {"type": "record", "name": "T", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}]},
        ["id"],
        [index("by_n", "n")],
    )
    many: list[Operation] = [
        Put(DATABASE, "things", world.avro("things", {"id": number % 70, "n": number})) for number in range(200)
    ]
    commit(world, ahead_of(world, many))
    assert world.check("things") == []


def test_an_index_that_began_since_is_seen(world: TableWorld) -> None:
    """X1: rows that were prepared before the index was there have no entries of it, and rows before its cursor need
    them."""
    ahead = ahead_of(world, [put(world, order("ann", 1, code="x")), Delete(DATABASE, "orders", ("bob", 1))])
    job_id = world.begin_index("orders", index("by_number", "number"))
    assert stale(world, ahead)
    again = ahead_of(world, [put(world, order("ann", 1, code="x"))])
    world.build(job_id)
    # The index is ready since: the catalogue has changed once more.
    assert stale(world, again)
    commit(world, ahead_of(world, [put(world, order("ann", 1, code="x"))]))
    assert world.check("orders") == []


def test_a_large_commit_fails_an_index_that_it_does_not_fit(world: TableWorld) -> None:
    world.put("orders", order("bob", 1, code="b"))
    world.put("orders", order("cid", 2, code="c"))
    job_id = world.begin_index("orders", index("numbers", "number", unique=True))
    world.build(job_id, 1)
    world.build(job_id, 1)
    commit(world, ahead_of(world, [put(world, order("ann", 1, code="x"))]))
    found = world.catalog().table(DATABASE, "orders").index("numbers")
    assert found is not None
    assert found.failure
    assert world.get("orders", "ann", 1) is not None
