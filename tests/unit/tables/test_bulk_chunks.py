"""Bulk chunks: a result per row, one commit, and the meaning of rows written one after another."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from cortado.errors import (
    ConditionFailed,
    InvalidArgument,
    InvalidDocument,
    KeyTooLong,
    NotFound,
    TooLarge,
    UniqueViolation,
    WriteConflict,
)
from cortado.store.tables import bulk
from cortado.store.tables import chunk as chunks
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.chunk import prepare_chunk
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode, BulkWritten, JsonDocument, JsonRows
from support.orders import ORDER_V2, address, create_orders, order
from support.table_world import DATABASE, WORLDS, TableWorld, avro_rows


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> TableWorld:
    world = TableWorld(request.param())
    create_orders(world)
    return world


def reasons(done: BulkWritten) -> dict[int, str]:
    return {row: error.reason for row, error in done.errors}


def test_all_rows_of_a_chunk_are_written_with_their_entries(world: TableWorld) -> None:
    documents = [order("ann", n, code=f"c{n}", address=address("Rome") if n % 2 else None) for n in range(50)]
    done = world.bulk("orders", documents)
    assert (done.written, done.errors, done.ts) == (50, (), world.store.now)
    assert world.scan("orders", reverse=True) == documents
    assert world.check("orders") == []


def test_rows_that_exist_are_replaced_and_their_entries_move(world: TableWorld) -> None:
    world.bulk("orders", [order("ann", n, code=f"c{n}", address=address("Rome")) for n in range(20)])
    changed = [
        order("ann", n, code=f"c{n}" if n % 3 else f"d{n}", address=address("Oslo") if n % 2 else None)
        for n in range(10, 30)
    ]
    assert world.bulk("orders", changed).written == 20
    assert world.scan("orders", lower=("ann", 29), upper=("ann", 9), reverse=True) == changed
    assert world.check("orders") == []


def test_bad_rows_are_refused_by_themselves(world: TableWorld) -> None:
    schema_id = world.view("orders").newest_id
    good = [world.avro("orders", order("ann", n)).body for n in range(3)]
    bodies = [
        good[0],
        b"\xff" * 30,
        good[1],
        b"",
        world.avro("orders", order("k" * 490, 1)).body,
        world.avro("orders", order("ann", 7, code="c" * 490)).body,
        bytes((1 << 20) + 1),
        good[2][:-1],
        good[2],
    ]
    done = world.bulk_rows(BulkChunk(DATABASE, "orders", avro_rows(schema_id, bodies)))
    assert done.written == 3
    kinds = {row: type(error) for row, error in done.errors}
    assert kinds == {
        1: InvalidDocument,
        3: InvalidDocument,
        4: KeyTooLong,
        5: KeyTooLong,
        6: TooLarge,
        7: InvalidDocument,
    }
    for row, error in done.errors:
        if isinstance(error, InvalidDocument):
            assert error.row == row
    assert dict(done.errors)[5].message().startswith("index by_code of table shop.orders")  # type: ignore[attr-defined]
    assert [each["number"] for each in world.scan("orders")] == [2, 1, 0]
    assert world.check("orders") == []


def test_a_null_in_the_primary_key_is_refused_by_name(world: TableWorld) -> None:
    fields = [{"name": "id", "type": ["null", "long"]}]
    world.create("loose", {"type": "record", "name": "Loose", "fields": fields}, ["id"])
    done = world.bulk("loose", [{"id": 1}, {"id": None}, {"id": 2}])
    (row, error) = done.errors[0]
    assert (row, done.written, len(done.errors)) == (1, 2, 1)
    assert isinstance(error, InvalidDocument)
    assert (error.field, error.row) == ("id", 1)


def test_of_two_rows_with_one_key_the_later_wins_and_both_count(world: TableWorld) -> None:
    rows = [order("ann", 1, code="x"), order("bob", 1), order("ann", 1, code="y", address=address("Rome"))]
    done = world.bulk("orders", rows)
    assert (done.written, done.errors) == (3, ())
    assert world.scan("orders") == [rows[2], rows[1]]
    assert world.check("orders") == []


def test_modes_hold_row_by_row(world: TableWorld) -> None:
    ts = world.put("orders", order("ann", 1))
    done = world.bulk("orders", [order("ann", 1), order("bob", 1), order("bob", 1)], BulkMode.INSERT)
    assert done.written == 1
    assert reasons(done) == {0: "CONDITION_FAILED", 2: "CONDITION_FAILED"}
    error = done.errors[0][1]
    assert isinstance(error, ConditionFailed)
    assert (error.key, error.actual, error.row) == ("shop.orders('ann', 1)", str(ts), 0)
    done = world.bulk("orders", [order("cid", 1), order("ann", 1, amount=1.0)], BulkMode.REPLACE)
    assert (done.written, reasons(done)) == (1, {0: "CONDITION_FAILED"})
    assert world.check("orders") == []


def test_a_row_that_would_share_a_unique_value_is_refused(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    done = world.bulk("orders", [order("bob", 1, code="x"), order("bob", 2, code="y"), order("bob", 3, code="y")])
    assert (done.written, reasons(done)) == (1, {0: "UNIQUE_VIOLATION", 2: "UNIQUE_VIOLATION"})
    first, second = (error for _, error in done.errors)
    assert isinstance(first, UniqueViolation)
    assert isinstance(second, UniqueViolation)
    assert (first.values, first.existing_key, first.row) == ("('x')", "shop.orders('ann', 1)", 0)
    assert (second.values, second.existing_key, second.row) == ("('y')", "shop.orders('bob', 2)", 2)
    assert world.check("orders") == []


def test_a_stored_row_keeps_its_unique_value_against_a_chunk(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    done = world.bulk("orders", [order("bob", 1, code="x"), order("bob", 2, code="z")])
    assert (done.written, reasons(done)) == (1, {0: "UNIQUE_VIOLATION"})
    assert world.check("orders") == []


def test_a_unique_value_is_free_for_the_rows_after_the_one_that_gave_it_up(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    done = world.bulk("orders", [order("bob", 1, code="x"), order("ann", 1, code="y"), order("cid", 1, code="x")])
    assert reasons(done) == {0: "UNIQUE_VIOLATION"}
    assert [each["customer"] for each in world.scan("orders", index="by_code")] == ["cid", "ann"]
    assert world.check("orders") == []


def test_a_unique_value_may_come_and_go_and_come_back(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    done = world.bulk(
        "orders",
        [order("ann", 1, code="y"), order("bob", 1, code="z"), order("bob", 1), order("ann", 1, code="x", amount=1.0)],
    )
    assert done.errors == ()
    assert world.get("orders", "ann", 1) == order("ann", 1, code="x", amount=1.0)
    assert world.check("orders") == []


def test_a_second_run_of_a_task_changes_nothing(world: TableWorld) -> None:
    start = world.store.now
    rows = [order("ann", n, code=f"c{n}") for n in range(5)]
    first = world.bulk("orders", rows, unchanged_since=start)
    again = world.bulk("orders", rows, unchanged_since=start)
    assert (first.written, again.written, again.errors) == (5, 5, ())
    plan = world.plan("orders", with_versions=True)
    assert world.pages(plan)[0].etags() == [str(first.ts)] * 5
    insert_again = world.bulk("orders", rows, BulkMode.INSERT, unchanged_since=start)
    assert insert_again.written == 5


def test_a_job_is_told_of_a_duplicate_key(world: TableWorld) -> None:
    start = world.put("orders", order("ann", 1))
    first = world.bulk("orders", [order("ann", 1), order("ann", 2)], unchanged_since=start)
    assert first.written == 2
    done = world.bulk("orders", [order("ann", 1, amount=1.0), order("ann", 2)], unchanged_since=start)
    (row, error) = done.errors[0]
    assert isinstance(error, WriteConflict)
    assert (row, error.row, error.key, error.start_ts) == (0, 0, "shop.orders('ann', 1)", str(start))
    assert done.written == 1
    within = world.bulk(
        "orders", [order("cid", 1), order("cid", 1), order("cid", 1, amount=1.0)], unchanged_since=start
    )
    assert (within.written, reasons(within)) == (2, {2: "WRITE_CONFLICT"})
    assert world.check("orders") == []


def test_a_version_that_is_not_newer_than_the_start_may_change(world: TableWorld) -> None:
    start = world.put("orders", order("ann", 1))
    done = world.bulk("orders", [order("ann", 1, amount=1.0)], unchanged_since=start)
    assert (done.written, done.errors) == (1, ())
    assert world.get("orders", "ann", 1) == order("ann", 1, amount=1.0)


def test_another_writer_since_the_start_is_a_conflict(world: TableWorld) -> None:
    world.put("orders", order("ann", 1))
    start = world.store.now
    other = world.put("orders", order("ann", 1, amount=1.0))
    done = world.bulk("orders", [order("ann", 1, amount=2.0)], unchanged_since=start)
    error = done.errors[0][1]
    assert isinstance(error, WriteConflict)
    assert error.conflict_ts == str(other)


def test_old_rows_of_other_schemas_are_understood(world: TableWorld) -> None:
    old_id = world.view("orders").newest_id
    world.bulk("orders", [order("ann", n, code=f"c{n}", address=address("Rome")) for n in range(4)])
    world.register("orders", ORDER_V2)
    world.bulk("orders", [{**order("ann", n, code=f"d{n}"), "note": "n"} for n in range(2, 6)])
    assert world.check("orders") == []
    world.bulk(
        "orders", [order("ann", n, code=f"e{n}", address=address("Oslo")) for n in range(1, 6)], schema_id=old_id
    )
    assert world.check("orders") == []
    assert [each["number"] for each in world.scan("orders", index="by_city", prefix=("Oslo",))] == [5, 4, 3, 2, 1]


def test_json_rows_are_written_too(world: TableWorld) -> None:
    texts = ['{"customer": "ann", "number": 1}', "{", '{"customer": "ann"}', '{"customer": "ann", "number": 2}']
    done = world.bulk_rows(BulkChunk(DATABASE, "orders", JsonRows(texts)))
    assert (done.written, reasons(done)) == (2, {1: "INVALID_DOCUMENT", 2: "INVALID_DOCUMENT"})
    assert [error.row for _, error in done.errors if isinstance(error, InvalidDocument)] == [1, 2]
    assert world.scan("orders") == [order("ann", 2), order("ann", 1)]


def test_a_malformed_chunk_is_refused_as_a_whole(world: TableWorld) -> None:
    rows = world.rows("orders", [order("ann", 1)])
    chunks = [
        (AvroRows(rows.schema_id, rows.bodies, rows.lengths[:-1]), InvalidArgument, "rows.lengths: must have 4 bytes"),
        (AvroRows(rows.schema_id, rows.bodies + b"x", rows.lengths), InvalidArgument, "rows.lengths: rows.bodies has"),
        (AvroRows(99, rows.bodies, rows.lengths), NotFound, "no schema with id 99"),
        (AvroRows(rows.schema_id, b"", b"\0\0\0\0" * 10_001), TooLarge, "10000 rows"),
        (avro_rows(rows.schema_id, [bytes(1 << 20)] * 5), TooLarge, "4194304 bytes"),
        (JsonRows(["{}"] * 10_001), TooLarge, "10000 rows"),
    ]
    for chunk, error, message in chunks:
        with pytest.raises(error, match=message):
            world.bulk_rows(BulkChunk(DATABASE, "orders", chunk))
    assert world.bulk_rows(BulkChunk(DATABASE, "orders", AvroRows(rows.schema_id, b"", b""))).written == 0


def test_a_chunk_prepared_for_an_older_table_is_prepared_again(world: TableWorld) -> None:
    chunk = BulkChunk(DATABASE, "orders", world.rows("orders", [order("ann", 1, code="x")]))
    prepared = prepare_chunk(world.catalog(), chunk)
    with patch.object(bulk, "prepare_chunk", wraps=prepare_chunk) as again:
        world.store.write(lambda reader, ts: evaluate_bulk(reader, ts, world.catalog(reader), chunk, prepared))
        assert again.call_count == 0
        world.register("orders", ORDER_V2)
        world.store.write(lambda reader, ts: evaluate_bulk(reader, ts, world.catalog(reader), chunk, prepared))
        assert again.call_count == 1
    assert world.check("orders") == []


def test_a_chunk_whose_documents_grow_over_the_limit_is_refused_before_all_are_made(world: TableWorld) -> None:
    made: list[str] = []

    def encode(schema: object, document: JsonDocument) -> bytes:
        made.append(document.text)
        return bytes(1 << 20)

    with patch.object(chunks, "encode_body", encode), pytest.raises(TooLarge, match="4194304 bytes of documents"):
        world.bulk_rows(BulkChunk(DATABASE, "orders", JsonRows(["{}"] * 9_000)))
    assert len(made) == 5
