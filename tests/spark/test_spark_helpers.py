"""Functions beside load and save: a join by keys, a delete by a filter, a table for a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cortado.store.client import Client, Table
from pyspark_cortado import create_table_like, delete_where, lookup_join, spark_schema_of
from support.spark_tables import SparkTables, record

pytestmark = pytest.mark.spark

ROW = {"id": "long", "name": (["null", "string"], None), "r": record({"n": "int"}, "Inner")}


def refusal(act: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as failed:
        act()
    return re.sub(r"\s+", " ", f"{type(failed.value).__name__}: {failed.value}")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.fixture
def table(tables: SparkTables) -> Table:
    """Even numbers below 2,000."""
    made = tables.make(ROW)
    made.put_many({"id": n, "name": None if n == 4 else f"n{n}", "r": {"n": n}} for n in range(0, 2_000, 2))
    return made


def join(tables: SparkTables, frame: DataFrame, table: Table, keys: Any = "id", **options: Any) -> DataFrame:
    return lookup_join(frame, table.full_name, keys, endpoint=tables.endpoint, **options)


# --- lookup_join ---------------------------------------------------------------------------------------------------


def test_a_lookup_join_is_sparks_own_join(tables: SparkTables, table: Table) -> None:
    """Several thousand rows, with keys that occur often, that are absent, and that are null."""
    frame = tables.spark.range(0, 2_600, 1, 2).select(
        sql.expr("if(id % 7 = 0, null, id % 2300)").alias("id"), (sql.col("id") * 2).alias("double")
    )
    whole = tables.read(table)
    for how in ("inner", "left"):
        found = join(tables, frame, table, how=how)
        assert found.dtypes == [*frame.dtypes, ("name", "string"), ("r", "struct<n:int>")]
        assert rows(found) == rows(frame.join(whole, "id", how))


def test_a_lookup_join_reads_one_time_and_the_fields_that_are_wanted(tables: SparkTables, table: Table) -> None:
    frame = tables.spark.range(3, 7).toDF("key")
    before = tables.client.now()
    found = join(tables, frame, table, "KEY", columns=["name", "ID"])
    table.put({"id": 6, "name": "new", "r": {"n": 0}})
    table.delete(4)
    assert rows(found) == [(4, None, 4), (6, "n6", 6)]
    assert rows(join(tables, frame, table, ["key"], columns="name")) == [(6, "new")]
    assert rows(join(tables, frame, table, ["key"], columns="name", at=before)) == [(4, None), (6, "n6")]


def test_keys_of_every_type_and_of_several_parts_are_looked_up(tables: SparkTables) -> None:
    timestamp = {"type": "long", "logicalType": "timestamp-millis"}
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    inner = record({"city": "string"}, "Place")
    fields = {"t": timestamp, "d": {"type": "int", "logicalType": "date"}, "p": decimal, "f": "double", "b": "bytes"}
    fields |= {"u": {"type": "string", "logicalType": "uuid"}, "ok": "boolean", "place": inner, "value": "int"}
    table = tables.make(fields, key=["t", "d", "p", "f", "b", "u", "ok", "place.city"])
    frame = tables.spark.sql(
        "SELECT TIMESTAMP '2020-01-01 10:00:00' t, DATE '2020-02-03' d, 1.50BD p, CAST(0.5 AS FLOAT) f, X'00ff' b, "
        "'12345678-1234-5678-1234-567812345678' u, true ok, 'Rome' city"
    )
    tables.append(frame.select("*", sql.expr("struct(city) AS place"), sql.lit(7).alias("value")).drop("city"), table)
    other = frame.withColumn("u", sql.lit("no UUID")).union(
        frame.withColumn("p", sql.expr("CAST(1.51 AS DECIMAL(3, 2))"))
    )
    found = join(tables, frame.union(other), table, frame.columns, columns=["value"], how="left")
    assert sorted(str(row.value) for row in found.collect()) == ["7", "None", "None"]


def test_what_cannot_be_joined_is_refused_before_the_job(tables: SparkTables, table: Table) -> None:
    frame = tables.spark.range(3)
    for act, expected in (
        (lambda: join(tables, frame, table, how="outer"), "how: must be inner or left (got outer)"),
        (lambda: join(tables, frame, table, ["id", "x"]), "keys: must name a column for each part of the key of"),
        (lambda: join(tables, frame, table, "ida"), "keys, ida: must be a column of the DataFrame; there are id"),
        (lambda: join(tables, frame.selectExpr("id AS a", "id AS A"), table, "a"), "keys, a: is the name of several"),
        (
            lambda: join(tables, frame.selectExpr("string(id) id"), table),
            "keys, id: must be bigint as id in the key of",
        ),
        (
            lambda: join(tables, frame.selectExpr("id", "1 NAME"), table),
            "column name: is a column of the DataFrame and",
        ),
        (lambda: join(tables, frame, table, columns=["nmae"]), "NotFound: no field nmae"),
        (lambda: join(tables, frame, table, filter="id = 1"), "option filter: is not an option of lookup_join()"),
        (lambda: join(tables, frame, table, at="soon"), "InvalidArgument: at: "),
    ):
        assert expected in refusal(act)
    stream = tables.spark.readStream.format("rate").load().selectExpr("value AS id")
    assert "Unsupported: lookup_join() of a stream" in refusal(lambda: join(tables, stream, table))


# --- delete_where --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transactional", [False, True])
def test_the_rows_that_a_filter_keeps_are_deleted_and_counted(
    tables: SparkTables, table: Table, transactional: bool
) -> None:
    def delete(condition: str | None, **more: Any) -> int:
        name = table.full_name
        return delete_where(
            tables.spark, name, condition, endpoint=tables.endpoint, transactional=transactional, **more
        )

    assert delete("id < 100 or r.n = 1000") == 51
    assert delete("id < 100") == 0
    assert [each.value["id"] for each in table.scan(limit=2)] == [100, 102]
    assert len(list(table.scan())) == 1_000 - 51
    assert "confirm: must be True: without a filter all rows of" in refusal(lambda: delete(" "))
    assert "InvalidFilter" in refusal(lambda: delete("idd = 3"))
    assert "NotFound" in refusal(lambda: delete_where(tables.spark, "d.none", "id = 1", endpoint=tables.endpoint))
    assert delete(None, confirm=True, partitions=2) == 949
    assert list(table.scan()) == []


def test_a_row_that_was_written_after_it_was_read_is_not_deleted(tables: SparkTables, table: Table) -> None:
    """The time of the read counts, and not that at which the job begins."""
    read = tables.client.now()
    frame = tables.read(table, at=str(read), columns="id").where("id < 10")
    table.put({"id": 6, "name": "another writer's", "r": {"n": 0}})
    message = refusal(lambda: tables.append(frame, table, operation="delete", unchangedSince=str(read)))
    assert "cortado.errors.WriteConflict" in message
    assert table.get(6) is not None
    tables.append(frame, table, operation="delete", unchangedSince=str(tables.client.now()))
    assert table.get(6) is None


def test_a_time_since_which_rows_must_be_unchanged_is_one_that_was(tables: SparkTables, table: Table) -> None:
    frame = tables.read(table)
    for since, more, expected in (
        ("yesterday", {}, "option unchangedSince: must look like epoch.wall_ms.logical"),
        ("9.1.0", {}, "option unchangedSince: must not be after now"),
        ("0.1.0", {"onConflict": "overwrite"}, 'option unchangedSince: needs the option onConflict "refuse"'),
    ):
        assert expected in refusal(
            lambda since=since, more=more: tables.append(frame, table, unchangedSince=since, **more)
        )
    writer = frame.write.format("cortado").options(endpoint=tables.endpoint, table=table.full_name)
    writer = writer.options(confirmTruncate="true", unchangedSince="0.1.0").mode("overwrite")
    assert 'option unchangedSince: does not go with mode("overwrite")' in refusal(writer.save)


# --- create_table_like ---------------------------------------------------------------------------------------------


def test_a_table_is_made_for_a_frame_and_takes_it(tables: SparkTables, client: Client) -> None:
    frame = tables.spark.range(3).selectExpr("id", "CAST(id AS SMALLINT) n", "struct(id AS x) AS s", "array(1.5D) a")
    frame = frame.selectExpr("nullif(id, -1) AS id", "n", "s", "a")
    findings = create_table_like(frame, "d.like_a_frame", ["id"], endpoint=tables.endpoint)
    assert [each.path for each in findings] == ["n"]
    tables.append(frame, "d.like_a_frame")
    assert rows(tables.read("d.like_a_frame")) == rows(frame)
    columns, _ = spark_schema_of("d.like_a_frame", endpoint=tables.endpoint)
    assert columns == tables.read("d.like_a_frame").schema
    other = frame.selectExpr("id", "make_dt_interval(1) AS gap")
    assert "Unsupported: column gap of type interval" in refusal(
        lambda: create_table_like(other, "d.like_another", ["id"], endpoint=tables.endpoint)
    )
    assert "NotFound: no field key in the DataFrame" in refusal(
        lambda: create_table_like(frame, "d.like_another", ["key"], endpoint=tables.endpoint)
    )
    assert "d.like_another" not in [each.full_name for each in client.tables("d")]
