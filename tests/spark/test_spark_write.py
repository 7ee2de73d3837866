"""Writes: an append upserts, may be repeated, and refuses to choose between two rows with one key."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StructField, StructType

from cortado.errors import InvalidArgument, NotFound
from cortado.store.keys.keyspace import show_table_id
from pyspark_cortado.options import write_options
from pyspark_cortado.writer import prepare_write
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

PERSON = {"id": "long", "name": "string", "score": (["null", "double"], None)}


def _people(spark: SparkSession, count: int, parts: int = 2) -> DataFrame:
    """Spark says of these columns that they may be null."""
    rows = spark.range(0, count, 1, parts)
    return rows.select("id", sql.concat(sql.lit("p"), "id").alias("name"), (sql.col("id") / 2).alias("score"))


def test_an_append_stores_every_row(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    tables.append(_people(tables.spark, 10_000), table)
    assert sum(1 for _ in table.scan()) == 10_000
    found = table.get(4_321)
    assert found is not None
    assert found.value == {"id": 4_321, "name": "p4321", "score": 2160.5}
    assert tables.client.verify_indexes(table.full_name).problems == ()


def test_an_append_upserts_by_primary_key(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    tables.append(_people(tables.spark, 100), table)
    changed = _people(tables.spark, 200).where("id >= 50").withColumn("name", sql.lit("new"))
    tables.append(changed, table)
    names = [document.value["name"] for document in table.scan()]
    assert names == [f"p{n}" for n in range(50)] + ["new"] * 150


def test_an_append_that_is_repeated_has_one_effect(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    for _ in range(2):
        tables.append(_people(tables.spark, 500), table)
    assert [document.value["id"] for document in table.scan()] == list(range(500))


def test_a_task_that_fails_after_it_wrote_is_run_again_with_one_effect(tables: SparkTables, flag: Path) -> None:
    table = tables.make(PERSON)
    path = str(flag)

    def fail_once(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib

        yield from batches
        # All but the last few chunks of this task are stored by now.
        if not pathlib.Path(path).exists():
            pathlib.Path(path).touch()
            raise RuntimeError("the executor was lost")

    frame = _people(tables.spark, 20_000, parts=1)
    tables.append(frame.mapInArrow(fail_once, frame.schema), table, chunkRows=500, operation="insert")
    assert flag.exists()
    documents = list(table.scan())
    assert [document.value["id"] for document in documents] == list(range(20_000))
    # The first run's rows are older: the second left them alone.
    assert documents[0].ts < documents[-1].ts
    assert tables.client.verify_indexes(table.full_name).problems == ()


def test_fields_without_a_column_get_their_defaults(tables: SparkTables) -> None:
    table = tables.make({**PERSON, "level": ("int", 7), "tags": ({"type": "array", "items": "string"}, ["a", "b"])})
    tables.append(_people(tables.spark, 3).select("name", "id"), table)
    found = table.get(2)
    assert found is not None
    assert found.value == {"id": 2, "name": "p2", "score": None, "level": 7, "tags": ["a", "b"]}


def test_smaller_types_and_other_letters_are_stored_exactly(tables: SparkTables) -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    table = tables.make(
        {"id": "long", "n": "int", "ratio": "double", "price": money, "many": {"type": "array", "items": "long"}}
    )
    frame = tables.spark.sql(
        "SELECT 7 ID, CAST(-32768 AS SMALLINT) N, CAST(0.1 AS FLOAT) Ratio, CAST(-9999.9 AS DECIMAL(5,1)) price, "
        "array(CAST(1 AS TINYINT), CAST(-128 AS TINYINT)) MANY"
    )
    tables.append(frame, table)
    found = table.get(7)
    assert found is not None
    assert found.value == {
        "id": 7,
        "n": -32768,
        "ratio": 0.10000000149011612,
        "price": Decimal("-9999.90"),
        "many": [1, -128],
    }


def test_a_column_of_nulls_needs_no_type(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    tables.append(_people(tables.spark, 3).withColumn("score", sql.lit(None)), table)
    assert [document.value["score"] for document in table.scan()] == [None] * 3


def test_an_empty_frame_writes_nothing(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    tables.append(_people(tables.spark, 0), table)
    tables.append(_people(tables.spark, 10).where("id < 0"), table)
    tables.append(_people(tables.spark, 10, parts=4).where("id = 0"), table)
    assert [document.value["id"] for document in table.scan()] == [0]


def test_what_may_be_null_in_spark_is_written_where_it_is_not(tables: SparkTables, tmp_path: Path) -> None:
    item = {"type": "record", "name": "Item", "fields": [{"name": "x", "type": "int"}]}
    fields = {"id": "long", "items": {"type": "array", "items": item}, "sizes": {"type": "map", "values": "long"}}
    table = tables.make(fields)
    made = tables.spark.sql("SELECT id, array(named_struct('x', int(id))) items, map('a', id) sizes FROM range(10)")
    # Through a file everything may be null, at every level.
    made.write.parquet(str(tmp_path / "rows"))
    frame = tables.spark.read.parquet(str(tmp_path / "rows"))
    assert frame.schema["items"].dataType.containsNull
    tables.append(frame, table)
    found = table.get(3)
    assert found is not None
    assert found.value == {"id": 3, "items": [{"x": 3}], "sizes": {"a": 3}}


def test_a_table_is_copied_through_spark(tables: SparkTables) -> None:
    one, other = tables.make(PERSON), tables.make(PERSON, suffix="_copy")
    tables.append(_people(tables.spark, 1_000), one)
    tables.append(tables.read(one), other)
    assert [document.value for document in other.scan()] == [document.value for document in one.scan()]


# --- two rows with one key -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "chunk_rows"), [(1, 2000), (1, 10), (2, 2000)], ids=["chunk", "task", "job"])
def test_two_rows_with_one_key_fail_the_job(tables: SparkTables, parts: int, chunk_rows: int) -> None:
    table = tables.make(PERSON)
    frame = tables.spark.range(0, 200, 1, parts).select(
        (sql.col("id") % 150).alias("id"), sql.col("id").cast("string").alias("name")
    )
    with pytest.raises(Exception, match="WriteConflict") as failed:
        tables.append(frame, table, chunkRows=chunk_rows)
    assert "Two rows of this job have that key" in str(failed.value)
    assert "onConflict" in str(failed.value)


def test_two_rows_that_are_the_same_are_one(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    frame = tables.spark.range(0, 200, 1, 2).select((sql.col("id") % 150).alias("id"), sql.lit("same").alias("name"))
    tables.append(frame, table)
    assert sum(1 for _ in table.scan()) == 150


def test_the_last_of_two_rows_wins_where_that_is_asked_for(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    frame = tables.spark.range(0, 200, 1, 1).select(
        (sql.col("id") % 150).alias("id"), sql.col("id").cast("string").alias("name")
    )
    tables.append(frame, table, onConflict="overwrite")
    names = [document.value["name"] for document in table.scan()]
    assert names == [str(n + 150 if n < 50 else n) for n in range(150)]


def test_another_writers_row_fails_the_job(tables: SparkTables, flag: Path) -> None:
    table = tables.make(PERSON)
    table.put({"id": 5, "name": "before the job"})
    endpoint, name = tables.endpoint, table.full_name

    def meanwhile(batches: Iterator[Any]) -> Iterator[Any]:
        from cortado import Client

        with Client(endpoint) as client:
            client.table(name).put({"id": 5, "name": "another writer's"})
        yield from batches

    frame = _people(tables.spark, 10, parts=1)
    with pytest.raises(Exception, match="WriteConflict"):
        tables.append(frame.mapInArrow(meanwhile, frame.schema), table)
    found = table.get(5)
    assert found is not None
    assert found.value["name"] == "another writer's"


def test_a_table_that_is_another_one_than_the_job_was_planned_for_gets_no_row(tables: SparkTables) -> None:
    table = tables.make({"id": "long"})
    schema = StructType([StructField("id", LongType())])
    where = {"endpoint": tables.endpoint, "table": table.full_name, "onConflict": "overwrite"}
    writer = prepare_write(write_options(where), schema)
    before = show_table_id(tables.client.describe(table.full_name).table_id)
    tables.client.truncate_table(table.full_name)
    now = show_table_id(tables.client.describe(table.full_name).table_id)
    said = f"option table: is the table {now} now, and was {before} as the job was planned: that was dropped, truncated"
    with pytest.raises(InvalidArgument, match=said):
        writer.write(iter([pa.RecordBatch.from_pydict({"id": [1]})]))
    assert [*table.scan()] == []
    tables.client.drop_table(table.full_name)
    with pytest.raises(NotFound, match=f"no table {table.full_name}"):
        writer.write(iter([]))


def test_inserts_and_replacements_are_refused_by_key(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put({"id": 5, "name": "there"})
    with pytest.raises(Exception, match=r"ConditionFailed: .*5.*expected absent"):
        tables.append(_people(tables.spark, 10, parts=1), table, operation="insert")
    with pytest.raises(Exception, match=r"ConditionFailed: .*expected present, found absent"):
        tables.append(_people(tables.spark, 20, parts=1), table, operation="update")
    tables.append(_people(tables.spark, 10), table, operation="update")
    assert [document.value["name"] for document in table.scan()] == [f"p{n}" for n in range(10)]
