"""Bulk chunks with rows that hold some fields alone: updates and deletes."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from cortado.errors import ConditionFailed, InvalidArgument, NotFound, TooLarge, UniqueViolation, WriteConflict
from cortado.proto.v1 import documents_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.server.document_messages import bulk_chunk
from cortado.store.tables import parts
from cortado.store.tables.operations import BulkMode, BulkWritten
from support.orders import ORDER_V2, address, create_orders, order
from support.table_world import WORLDS, TableWorld, index

KEY = ("customer", "number")


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> TableWorld:
    world = TableWorld(request.param())
    create_orders(world)
    return world


def update(world: TableWorld, rows: list[dict[str, Any]], since: Timestamp | None = None) -> BulkWritten:
    columns = tuple(rows[0])
    return world.bulk_parts("orders", rows, columns, BulkMode.UPDATE, since)


def delete(world: TableWorld, keys: list[tuple[str, int]], since: Timestamp | None = None) -> BulkWritten:
    rows = [dict(zip(KEY, key, strict=True)) for key in keys]
    return world.bulk_parts("orders", rows, KEY, BulkMode.DELETE, since)


def test_an_update_changes_its_columns_and_leaves_the_others(world: TableWorld) -> None:
    before = [order("ann", n, code=f"c{n}", amount=1.0, address=address("Rome"), tags=["a"]) for n in range(20)]
    world.bulk("orders", before)
    done = update(world, [{"number": n, "code": f"d{n}", "customer": "ann"} for n in range(0, 20, 2)])
    assert (done.written, done.errors) == (10, ())
    wanted = [{**each, "code": f"d{each['number']}"} if each["number"] % 2 == 0 else each for each in before]
    assert world.scan("orders", reverse=True) == wanted
    assert world.check("orders") == []


def test_an_update_of_a_row_that_is_not_there_is_refused_by_itself(world: TableWorld) -> None:
    world.bulk("orders", [order("ann", 1), order("ann", 3)])
    rows = [{"customer": "ann", "number": n, "amount": 2.0} for n in (1, 2, 3)]
    done = update(world, rows)
    assert done.written == 2
    ((place, error),) = done.errors
    assert place == 1
    assert isinstance(error, ConditionFailed)
    assert error.row == 1
    assert "'ann', 2" in error.message()
    assert [each["amount"] for each in world.scan("orders")] == [2.0, 2.0]


def test_rows_of_an_older_version_are_updated_as_the_newest_reads_them(world: TableWorld) -> None:
    old = world.view("orders").newest_id
    world.bulk("orders", [order("ann", 1), order("ann", 2)])
    world.register("orders", ORDER_V2)
    world.bulk("orders", [{**order("ann", 3), "note": "new"}])
    rows = [{"customer": "ann", "number": n, "status": "paid"} for n in (3, 2)]
    assert (
        world.bulk_parts("orders", rows, ("customer", "number", "status"), BulkMode.UPDATE, schema_id=old).written == 2
    )
    found = [(each["number"], each["status"], each.get("note")) for each in world.scan("orders")]
    assert found == [(3, "paid", "new"), (2, "paid", "none"), (1, "open", None)]
    assert world.check("orders") == []


def test_an_update_that_takes_a_unique_value_is_refused_by_itself(world: TableWorld) -> None:
    world.bulk("orders", [order("ann", 1, code="x"), order("ann", 2, code="y")])
    done = update(world, [{"customer": "ann", "number": 2, "code": "x"}, {"customer": "ann", "number": 1, "code": "z"}])
    assert [(row, type(error)) for row, error in done.errors] == [(0, UniqueViolation)]
    assert [each["code"] for each in world.scan("orders")] == ["y", "z"]
    assert world.check("orders") == []


def test_a_task_that_runs_again_has_updated_its_rows_and_another_writers_are_conflicts(world: TableWorld) -> None:
    world.bulk("orders", [order("ann", 1), order("ann", 2)])
    began = world.store.now
    rows = [{"customer": "ann", "number": n, "amount": 5.0} for n in (1, 2)]
    assert update(world, rows, began).written == 2
    assert update(world, rows, began).errors == ()
    world.update("orders", ("ann", 2), {"amount": 6.0})
    done = update(world, rows, began)
    assert [(row, type(error)) for row, error in done.errors] == [(1, WriteConflict)]
    twice = world.store.now
    done = update(world, [{**rows[0], "amount": amount} for amount in (7.0, 8.0)], twice)
    assert [(row, type(error)) for row, error in done.errors] == [(1, WriteConflict)]


def test_a_delete_takes_rows_and_entries_and_what_is_not_there_counts(world: TableWorld) -> None:
    world.bulk("orders", [order("ann", n, code=f"c{n}", address=address("Oslo")) for n in range(6)])
    done = delete(world, [("ann", 4), ("ann", 1), ("ann", 4), ("bob", 1)])
    assert (done.written, done.errors) == (4, ())
    assert [each["number"] for each in world.scan("orders")] == [5, 3, 2, 0]
    assert world.check("orders") == []
    assert world.bulk("orders", [order("bob", 9, code="c1")]).written == 1


def test_a_delete_leaves_what_another_writer_has_written_since(world: TableWorld) -> None:
    world.bulk("orders", [order("ann", 1), order("ann", 2)])
    began = world.store.now
    world.put("orders", order("ann", 2, amount=1.0))
    done = delete(world, [("ann", 1), ("ann", 2)], began)
    assert [(row, type(error)) for row, error in done.errors] == [(1, WriteConflict)]
    assert delete(world, [("ann", 1)], began).written == 1
    assert [each["number"] for each in world.scan("orders")] == [2]


@pytest.mark.parametrize("mode", [BulkMode.UPDATE, BulkMode.DELETE])
@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        (("customer", "amount"), InvalidArgument, "customer, number"),
        (("customer", "number", "colour"), NotFound, "colour"),
        (("customer", "number", "number"), InvalidArgument, "twice"),
    ],
)
def test_columns_have_the_key_and_are_the_tables(
    world: TableWorld, mode: BulkMode, columns: tuple[str, ...], error: type[Exception], said: str
) -> None:
    row = {"customer": "ann", "number": 1, "amount": 1.0}
    with pytest.raises(error, match=said), patch("support.table_world.select_fields", lambda schema, *_: schema):
        world.bulk_parts("orders", [{**order("ann", 1), **row}], columns, mode)


def test_a_delete_has_the_keys_fields_and_no_others(world: TableWorld) -> None:
    row = {"customer": "ann", "number": 1, "amount": 1.0}
    with pytest.raises(InvalidArgument, match=r"must be the fields of the primary key .*: customer, number"):
        world.bulk_parts("orders", [row], tuple(row), BulkMode.DELETE)


def test_an_update_of_more_than_a_chunk_may_hold_is_refused_whole(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.bulk("orders", [order("ann", n, tags=["long" * 10]) for n in range(10)])
    monkeypatch.setattr(parts, "BATCH_BYTES_MAX", 300)
    with pytest.raises(TooLarge, match="send fewer rows a chunk"):
        update(world, [{"customer": "ann", "number": n, "amount": 1.0} for n in range(10)])
    assert update(world, [{"customer": "ann", "number": n, "amount": 1.0} for n in range(2)]).written == 2


def test_a_key_inside_of_a_record_is_updated_and_deleted_with_the_record(world: TableWorld) -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]}
    fields = [{"name": "at", "type": inner}, {"name": "n", "type": "int"}, {"name": "m", "type": "int", "default": 0}]
    world.create("deep", {"type": "record", "name": "Deep", "fields": fields}, ["at.a"], [index("n", "n")])
    world.bulk("deep", [{"at": {"a": n, "b": n}, "n": n, "m": 1} for n in range(3)])
    done = world.bulk_parts("deep", [{"at": {"a": 1, "b": 7}, "n": 9}], ("at", "n"), BulkMode.UPDATE)
    assert done.written == 1
    assert world.bulk_parts("deep", [{"at": {"a": 0, "b": 5}}], ("at",), BulkMode.DELETE).written == 1
    assert world.scan("deep") == [{"at": {"a": 1, "b": 7}, "n": 9, "m": 1}, {"at": {"a": 2, "b": 2}, "n": 2, "m": 1}]
    assert world.check("deep") == []


@pytest.mark.parametrize(
    ("start", "chunk", "said"),
    [
        ({"mode": documents_pb2.BULK_MODE_UPDATE}, {"rows": {}}, "start.columns: must name the fields"),
        ({"mode": documents_pb2.BULK_MODE_DELETE}, {"rows": {}}, "start.columns: must name the fields"),
        ({"columns": ["id"]}, {"rows": {}}, "start.columns: go with an update or a delete, not with mode upsert"),
        ({"mode": 9}, {"rows": {}}, "start.mode: is not a mode"),
        (
            {"mode": documents_pb2.BULK_MODE_DELETE, "columns": ["id"]},
            {"json_rows": ["{}"]},
            "chunk.json_rows: hold whole documents",
        ),
    ],
)
def test_messages_that_contradict_themselves_are_refused_by_field(
    start: dict[str, Any], chunk: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        bulk_chunk(documents_pb2.BulkStart(**start), documents_pb2.BulkChunk(**chunk))
