"""Reads: one timestamp, ranges of about equal size, columns, key bounds, old and new rows together."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_cortado import keys
from pyspark_cortado.options import read_options
from pyspark_cortado.reader import prepare_read, table_schema
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

PERSON = {"id": "long", "name": "string", "score": (["null", "double"], None)}
ACCOUNT = {"id": "long", "total": "long"}


def _people(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"id": n, "name": f"p{n}", "score": n / 2} for n in range(first, first + count)]


def test_a_read_returns_every_row_once(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(10_000))
    frame = tables.read(table)
    assert frame.count() == 10_000
    assert frame.columns == ["id", "name", "score"]
    assert [field.nullable for field in frame.schema.fields] == [False, False, True]
    assert sorted(frame.collect())[4_321].asDict() == {"id": 4_321, "name": "p4321", "score": 2160.5}
    assert frame.agg(sql.sum("id"), sql.countDistinct("name")).first()[:] == (49_995_000, 10_000)


def test_partitions_hold_about_equally_many_rows(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(4_000))
    frame = tables.read(table, partitions=3)
    counts = [row["count"] for row in frame.groupBy(sql.spark_partition_id()).count().collect()]
    assert sum(counts) == 4_000
    assert len(counts) == 3
    assert max(counts) - min(counts) <= 40


def test_a_small_table_is_one_partition(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(4_000))
    assert tables.read(table).rdd.getNumPartitions() == 1


def test_partitions_have_about_equally_many_bytes_at_one_timestamp(
    tables: SparkTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tables.make(PERSON)
    table.put_many({"id": n, "name": "x" * (20 if n < 3_000 else 2_000)} for n in range(3_300))
    monkeypatch.setattr(keys, "PARTITION_BYTES", 100_000)
    options = read_options({"endpoint": tables.endpoint, "table": table.full_name})
    reader = prepare_read(options, *table_schema(options))
    table.put_many({"id": n, "name": "new"} for n in range(50))
    table.delete(2_000)
    rows = [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in reader.partitions()]
    assert [row["id"] for part in rows for row in part] == list(range(3_300))
    assert {len(row["name"]) for part in rows for row in part} == {20, 2_000}
    written = [sum(len(row["name"]) for row in part) for part in rows]
    assert 7 <= len(rows) <= 12
    assert max(written) < 1.2 * 100_000


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_table_of_few_rows_reads_with_many_partitions(tables: SparkTables, rows: int) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(rows))
    frame = tables.read(table, partitions=8)
    assert frame.count() == rows
    assert [row["id"] for row in frame.orderBy("id").collect()] == list(range(rows))


def test_one_load_reads_at_one_timestamp_whatever_is_written_meanwhile(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(1_000))
    frame = tables.read(table)
    assert frame.count() == 1_000
    table.put_many(_people(1_000, first=500))
    table.delete(3)
    table.put({"id": 4, "name": "changed"})
    assert frame.count() == 1_000
    assert frame.where("id = 4").first()["name"] == "p4"
    assert frame.where("id = 3").count() == 1
    again = tables.read(table)
    assert again.count() == 1_499
    assert again.where("id = 4").first()["name"] == "changed"


def test_a_load_chooses_its_timestamp_and_not_its_first_action(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(10))
    frame, with_schema = tables.read(table), tables.read(table, "id bigint")
    table.put_many(_people(5, first=10))
    assert frame.count() == 10
    # Spark asks the source for nothing before the first action.
    assert with_schema.count() == 15
    table.delete(0)
    assert (frame.count(), with_schema.count()) == (10, 15)
    assert tables.read(table).count() == 14


def test_a_transfer_between_two_loads_and_their_join_is_not_seen_by_halves(tables: SparkTables) -> None:
    one, two = tables.make(ACCOUNT, suffix="a"), tables.make(ACCOUNT, suffix="b")
    one.put({"id": 1, "total": 50})
    two.put({"id": 1, "total": 50})
    left, right = tables.read(one), tables.read(two)
    assert left.first()["total"] == 50
    one.put({"id": 1, "total": 0})
    two.put({"id": 1, "total": 100})
    joined = left.join(right.withColumnRenamed("total", "other"), "id").first()
    assert joined["total"] + joined["other"] == 100


def test_rows_of_a_version_that_came_after_the_load_are_not_read_with_it(tables: SparkTables) -> None:
    table = tables.make({"id": "long", "name": "string"})
    table.put_many({"id": n, "name": "a"} for n in range(10))
    frame = tables.read(table)
    # By the rules: readers of the new version can read old rows. Readers of the old one cannot read the rows that come
    # now.
    tables.evolve(table, {"id": "long"})
    tables.client.table(table.full_name).put_many({"id": n} for n in range(10, 20))
    assert frame.count() == 10
    assert {row["name"] for row in frame.collect()} == {"a"}
    assert tables.read(table).columns == ["id"]
    assert tables.read(table).count() == 20


def test_a_table_may_be_what_load_and_save_are_given(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    frame = tables.spark.range(3).withColumn("name", sql.lit("x"))
    frame.write.format("cortado").option("endpoint", tables.endpoint).mode("append").save(table.full_name)
    assert tables.spark.read.format("cortado").option("endpoint", tables.endpoint).load(table.full_name).count() == 3


def test_columns_are_chosen_whatever_the_case_of_their_letters(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(3))
    assert tables.read(table, columns="NAME,Id").columns == ["name", "id"]
    frame = tables.read(table, "NAME string, ID bigint")
    assert frame.columns == ["NAME", "ID"]
    assert sorted(tuple(row) for row in frame.collect()) == [("p0", 0), ("p1", 1), ("p2", 2)]


def test_a_load_can_read_the_past(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    before = table.put_many(_people(10)).ts
    after = table.put_many(_people(10, first=10)).ts
    assert tables.read(table, at=str(before)).count() == 10
    assert tables.read(table, at=str(after)).count() == 20
    assert tables.read(table, timestampAsOf=str(before), numPartitions=2).count() == 10
    # RFC 3339 stands for the whole of its millisecond, and a minute before the first row there was no such table.
    long_ago = before.as_datetime() - timedelta(minutes=1)
    with pytest.raises(Exception, match=r"no (table|database) "):
        tables.read(table, at=long_ago.isoformat()).count()


def test_filters_self_joins_and_unions_of_one_frame_are_right(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(10))
    frame = tables.read(table)
    assert frame.filter("id = 3").count() == 1
    assert frame.count() == 10
    assert frame.filter("id < 5").union(frame.filter("id >= 3")).count() == 12
    left, right = frame.filter("id < 5").alias("l"), frame.filter("id > 2").alias("r")
    assert left.join(right, sql.col("l.id") == sql.col("r.id")).count() == 2
    assert frame.alias("a").crossJoin(frame.alias("b")).count() == 100


def test_columns_are_chosen_in_their_order(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(100))
    frame = tables.read(table, columns="score, id")
    assert frame.columns == ["score", "id"]
    assert frame.where("id = 7").first()[:] == (3.5, 7)
    assert frame.count() == 100


def test_a_schema_chooses_columns_and_may_say_more_often_that_they_may_be_null(tables: SparkTables) -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}
    table = tables.make({"id": "long", "name": "string", "places": {"type": "array", "items": place}})
    table.put({"id": 1, "name": "a", "places": [{"x": 5}]})
    assert tables.read(table, "name string").collect()[0][:] == ("a",)
    strict = StructType([StructField("name", StringType(), False), StructField("id", LongType(), False)])
    assert tables.read(table, strict).collect()[0][:] == ("a", 1)
    loose = tables.read(table, "places array<struct<x: int>>, id bigint")
    assert loose.collect()[0].asDict(recursive=True) == {"places": [{"x": 5}], "id": 1}


def test_key_bounds_prune(tables: SparkTables) -> None:
    table = tables.make({"at": {"type": "long", "logicalType": "timestamp-micros"}, "n": "int"}, key=["at", "n"])
    day = datetime(2013, 1, 1, tzinfo=UTC)
    table.put_many({"at": day + timedelta(hours=hour), "n": n} for hour in range(48) for n in range(10))
    lower, upper = '["2013-01-01T12:00:00Z"]', '["2013-01-02T07:00:00-05:00", 3]'
    frame = tables.read(table, keyStart=lower, keyEnd=upper)
    assert frame.count() == 24 * 10 + 3
    edges = frame.agg(sql.min("at"), sql.max("at")).first()
    assert [edge.astimezone(UTC) for edge in edges] == [day + timedelta(hours=12), day + timedelta(hours=36)]
    assert tables.read(table, keyStart=upper).count() == 480 - 12 * 10 - 24 * 10 - 3
    assert tables.read(table, keyEnd=lower).count() == 120
    assert tables.read(table, keyStart=lower, keyEnd=lower).count() == 0


def test_old_and_new_rows_come_alike(tables: SparkTables) -> None:
    table = tables.make({"id": "long", "old": "string", "number": "int"})
    table.put_many({"id": n, "old": f"o{n}", "number": n} for n in range(0, 3_000, 3))
    evolved = {"id": "long", "number": "long", "note": (["null", "string"], None), "level": ("int", 7)}
    tables.evolve(table, evolved)
    newer = tables.client.with_timeout(30).table(table.full_name)
    newer.codec.refresh()
    newer.put_many({"id": n, "number": 2**40 + n, "note": f"n{n}", "level": 1} for n in range(3_000) if n % 3)
    frame = tables.read(table)
    assert dict(frame.dtypes) == {"id": "bigint", "number": "bigint", "note": "string", "level": "int"}
    rows = sorted(frame.collect())
    assert len(rows) == 3_000
    assert rows[3][:] == (3, 3, None, 7)
    assert rows[4][:] == (4, 2**40 + 4, "n4", 1)
    assert frame.agg(sql.sum("number")).first()[0] == sum(n if n % 3 == 0 else 2**40 + n for n in range(3_000))
    old = tables.read(table, schemaVersion=1, keyEnd="[1]")
    assert old.collect()[0].asDict() == {"id": 0, "old": "o0", "number": 0}


def test_a_version_that_is_registered_after_the_load_does_not_change_its_columns(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(10))
    frame = tables.read(table)
    tables.evolve(table, {"id": "long", "name": "string", "note": ("string", "none")})
    assert frame.agg(sql.sum("score")).first()[0] == 22.5
    assert tables.read(table).where("note = 'none'").count() == 10


def test_nan_is_no_null(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many({"id": n, "name": "", "score": score} for n, score in enumerate([math.nan, None, 0.0, math.inf]))
    frame = tables.read(table)
    shown = frame.select("id", sql.isnull("score"), sql.isnan("score")).orderBy("id").collect()
    assert [row[:] for row in shown] == [(0, False, True), (1, True, False), (2, False, False), (3, False, False)]
    assert frame.agg(sql.count("score")).first()[0] == 3


def test_a_frame_is_read_in_sql_too(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many(_people(10))
    tables.read(table).createOrReplaceTempView("people")
    assert tables.spark.sql("SELECT sum(id) FROM people WHERE name LIKE 'p%'").first()[0] == 45
