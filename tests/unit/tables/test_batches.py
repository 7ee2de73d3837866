"""Atomic batches: all or nothing, judged on the final state."""

from __future__ import annotations

import pytest

from cortado.errors import ConditionFailed, InvalidArgument, NotFound, TooLarge, UniqueViolation
from cortado.store.mvcc.evaluation import EtagIs
from cortado.store.tables.operations import Delete, Operation, Put, PutMode, Update
from support.orders import create_orders, order
from support.table_world import DATABASE, TableWorld, index


@pytest.fixture
def world() -> TableWorld:
    world = TableWorld()
    create_orders(world)
    fields = [{"name": "id", "type": "string"}, {"name": "total", "type": "long"}]
    schema = {"type": "record", "name": "Customer", "fields": fields}
    world.create("customers", schema, ["id"], [index("by_total", "total", unique=True)])
    return world


def put(world: TableWorld, document: dict[str, object], mode: PutMode = PutMode.UPSERT, table: str = "orders") -> Put:
    return Put(DATABASE, table, world.avro(table, document), mode)


def test_a_batch_spans_tables_and_has_one_timestamp(world: TableWorld) -> None:
    world.put("orders", order("bob", 1, code="b"))
    ts = world.batch(
        [
            put(world, order("ann", 1, code="x")),
            put(world, {"id": "ann", "total": 1}, table="customers"),
            Update(DATABASE, "orders", ("bob", 1), {"amount": 3.0}),
            Delete(DATABASE, "orders", ("nobody", 1)),
        ]
    )
    assert world.get("orders", "ann", 1, at=ts) == order("ann", 1, code="x")
    assert world.get("customers", "ann") == {"id": "ann", "total": 1}
    assert world.get("orders", "bob", 1) == order("bob", 1, code="b", amount=3.0)
    assert world.check("orders") == world.check("customers") == []


def test_one_refusal_refuses_all(world: TableWorld) -> None:
    ts = world.put("orders", order("ann", 1))
    refusals: list[tuple[Operation, type[Exception]]] = [
        (put(world, order("ann", 1), PutMode.INSERT), ConditionFailed),
        (Update(DATABASE, "orders", ("bob", 9), {"amount": 1.0}), NotFound),
        (Delete(DATABASE, "orders", ("ann", 1), EtagIs(ts.next())), ConditionFailed),
    ]
    for operation, error in refusals:
        with pytest.raises(error):
            world.batch([put(world, order("cid", 1)), operation])
        assert world.get("orders", "cid", 1) is None


def test_a_refusal_names_the_operation(world: TableWorld) -> None:
    world.put("orders", order("ann", 1))
    with pytest.raises(ConditionFailed) as refused:
        world.batch([put(world, order("bob", 1)), put(world, order("ann", 1), PutMode.INSERT)])
    assert refused.value.row == 1
    with pytest.raises(InvalidArgument, match=r"^operations\[1\]\.key: table shop\.orders has a key of 2 parts"):
        world.batch([put(world, order("bob", 1)), Delete(DATABASE, "orders", ("ann",))])


def test_operations_on_one_key_count_in_their_order(world: TableWorld) -> None:
    ts = world.batch(
        [
            put(world, order("ann", 1, code="x")),
            Update(DATABASE, "orders", ("ann", 1), {"amount": 3.0}),
            put(world, order("bob", 1, code="y")),
            Delete(DATABASE, "orders", ("bob", 1)),
            Delete(DATABASE, "orders", ("bob", 1)),
            put(world, order("cid", 1, code="y"), PutMode.INSERT),
        ]
    )
    assert world.get("orders", "ann", 1, at=ts) == order("ann", 1, code="x", amount=3.0)
    assert world.get("orders", "bob", 1) is None
    assert world.get("orders", "cid", 1) == order("cid", 1, code="y")
    with pytest.raises(ConditionFailed) as refused:
        world.batch([put(world, order("dan", 1)), put(world, order("dan", 1), PutMode.INSERT)])
    assert (refused.value.row, refused.value.actual) == (1, "0.0.0")
    assert world.check("orders") == []


@pytest.mark.parametrize("freed_first", [True, False])
def test_a_unique_value_may_move_within_a_batch(world: TableWorld, freed_first: bool) -> None:
    world.put("orders", order("ann", 1, code="x"))
    world.put("orders", order("bob", 1, code="y"))
    swap = [put(world, order("ann", 1, code="y")), put(world, order("bob", 1, code="x"))]
    world.batch(swap if freed_first else swap[::-1])
    assert [each["customer"] for each in world.scan("orders", index="by_code")] == ["bob", "ann"]
    take = [Delete(DATABASE, "orders", ("ann", 1)), put(world, order("cid", 1, code="y"))]
    world.batch(take if freed_first else take[::-1])
    assert [each["customer"] for each in world.scan("orders", index="by_code")] == ["bob", "cid"]
    assert world.check("orders") == []


def test_two_rows_of_a_batch_cannot_share_a_unique_value(world: TableWorld) -> None:
    with pytest.raises(UniqueViolation) as refused:
        world.batch([put(world, order("ann", 1, code="x")), put(world, order("bob", 1, code="x"))])
    assert (refused.value.key, refused.value.existing_key) == ("shop.orders('bob', 1)", "shop.orders('ann', 1)")
    assert refused.value.row == 1


def test_a_row_that_keeps_its_value_still_holds_it(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    with pytest.raises(UniqueViolation):
        world.batch([put(world, order("ann", 1, code="x", amount=1.0)), put(world, order("bob", 1, code="x"))])


def test_batches_are_bounded(world: TableWorld) -> None:
    with pytest.raises(TooLarge, match="10000 operations") as too_many:
        world.batch([Delete(DATABASE, "orders", ("ann", number)) for number in range(10_001)])
    assert too_many.value.length == 10_001
    half = [put(world, order("ann", number, tags=["t" * 1_000_000])) for number in range(5)]
    with pytest.raises(TooLarge, match="4194304 bytes of documents"):
        world.batch(half)
    world.batch(half[:4])


def test_an_empty_batch_is_refused(world: TableWorld) -> None:
    with pytest.raises(InvalidArgument, match="operations: must not be empty"):
        world.batch([])
