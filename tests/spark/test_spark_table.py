"""``table()`` and aggregates: the work of the node, one fresh load for each ``df()``, rows that are final."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as sql

from pyspark_cortado import table
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

ROW = {
    "id": "long",
    "g": "string",
    "x": (["null", "double"], None),
    "n": "int",
    "p": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
}


def _filled(tables: SparkTables, rows: int = 200) -> str:
    made = tables.make(ROW)
    documents = (
        {"id": n, "g": "abc"[n % 3], "x": None if n % 4 == 0 else n / 2, "n": n % 10, "p": Decimal(n) / 100}
        for n in range(rows)
    )
    assert made.put_many(documents).written == rows
    return made.full_name


def _refusal(act: Any) -> str:
    with pytest.raises(Exception) as failed:
        act()
    return re.sub(r"\s+", " ", f"{type(failed.value).__name__}: {failed.value}")


def test_words_become_one_load_and_leave_what_they_began_with(tables: SparkTables) -> None:
    name = _filled(tables)
    whole = table(tables.spark, name, endpoint=tables.endpoint)
    some = whole.where("n = 1").where("g = 'a' or g = 'b'").select("g", "id")
    frame = some.df()
    assert frame.columns == ["g", "id"]
    assert sorted(row["id"] for row in frame.collect()) == [n for n in range(200) if n % 10 == 1 and n % 3 < 2]
    assert [row["id"] for row in some.limit(2).df().collect()] == [1, 21]
    assert whole.df().count() == 200


def test_each_df_reads_anew_unless_a_time_is_said(tables: SparkTables) -> None:
    name = _filled(tables, 10)
    query = table(tables.spark, name, endpoint=tables.endpoint)
    before, frame = tables.client.now(), query.df()
    tables.client.table(name).delete(3)
    assert (frame.count(), query.df().count(), query.at(before).df().count()) == (10, 9, 10)


def test_aggregates_are_final_whatever_is_stacked_on_them(tables: SparkTables) -> None:
    name = _filled(tables)
    query = table(tables.spark, name, endpoint=tables.endpoint, partitions=5)
    frame = (
        query.group_by("g").agg("count(*) as rows", "sum(n) as s", "avg(x) as a", "sum(p) as p", "max(id) as m").df()
    )
    plain = (
        query.df()
        .groupBy("g")
        .agg(
            sql.count("*").alias("rows"),
            sql.sum("n").alias("s"),
            sql.avg("x").alias("a"),
            sql.sum("p").alias("p"),
            sql.max("id").alias("m"),
        )
    )
    assert sorted(frame.collect()) == sorted(plain.collect())
    assert frame.dtypes == plain.dtypes
    assert frame.rdd.getNumPartitions() == 1
    assert frame.where("g = 'b'").count() == 1
    assert frame.count() == 3
    assert frame.join(frame.withColumnRenamed("rows", "r"), "g").count() == 3
    assert frame.agg(sql.sum("rows")).first()[0] == 200
    assert query.group_by("g").agg("count(*) as rows").limit(2).df().count() == 2


def test_aggregates_without_groups_are_one_row_of_an_empty_table_too(tables: SparkTables) -> None:
    name = _filled(tables, 0)
    query = table(tables.spark, name, endpoint=tables.endpoint)
    assert query.agg("count(*) as c", "sum(n) as s", "min(x) as m").df().collect()[0][:] == (0, None, None)
    assert query.group_by("g").agg("count(*) as c").df().collect() == []
    assert query.where("n > 5").agg("count(x)").df().collect()[0].asDict() == {"count(x)": 0}


def test_groups_of_nulls_and_nan_are_as_sparks(tables: SparkTables) -> None:
    made = tables.make(ROW)
    values = [math.nan, -math.nan, None, None, math.inf, 1.0]
    made.put_many({"id": n, "g": "", "x": x, "n": 1, "p": Decimal(0)} for n, x in enumerate(values))
    query = table(tables.spark, made.full_name, endpoint=tables.endpoint)
    found = query.group_by("x").agg("count(*) as c", "max(x) as m").df().collect()
    assert sorted(map(repr, found)) == sorted(
        map(repr, query.df().groupBy("x").agg(sql.count("*").alias("c"), sql.max("x").alias("m")).collect())
    )


def test_explain_says_what_runs_where(tables: SparkTables) -> None:
    query = table(tables.spark, "d.t", endpoint="h:1").where("n = 1").select("g").limit(10)
    assert query.explain().splitlines() == [
        "d.t at the time of df(), from h:1",
        "node:  filter n = 1; limit 10",
        "tasks: g of each row decoded",
        "Spark: 1 partition, and all further steps of the DataFrame",
    ]
    grouped = table(tables.spark, "d.t", endpoint="h:1", partitions=3).group_by("g").agg("count(*) as n").at("0.5.0")
    assert grouped.explain().splitlines() == [
        "d.t at 0.5.0, from h:1",
        "node:  aggregate count(*) as n; group by g",
        "tasks: groups of 3 ranges merged",
        "Spark: 1 partition, and all further steps of the DataFrame",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"aggregate": "sum(g)"},
            "option aggregate: field g is string: sum takes an int, long, float, double or decimal",
        ),
        ({"aggregate": "sum(y)"}, "option aggregate: no field y"),
        (
            {"aggregate": "median(x)"},
            "option aggregate: expected count, sum, min, max, avg, found median, at character 0",
        ),
        ({"aggregate": "count(*) as c, sum(n) as c"}, "two columns of the result have one name"),
        ({"groupBy": "g"}, "option groupBy: needs the option aggregate, such as count(*) as n (got g)"),
        ({"aggregate": "count(*)", "groupBy": "h"}, "option groupBy: no field h"),
        ({"aggregate": "count(*)", "columns": "g"}, "option columns: has no meaning beside aggregate"),
    ],
)
def test_aggregates_that_do_not_fit_are_refused_by_load(
    tables: SparkTables, options: dict[str, str], expected: str
) -> None:
    name = tables.make(ROW).full_name
    assert expected in _refusal(lambda: tables.read(name, **options))


def test_a_condition_that_does_not_parse_is_refused_at_once(tables: SparkTables) -> None:
    query = table(tables.spark, "d.t", endpoint="h:1")
    expected = "InvalidFilter: filter: expected a field or a value, found the end, at character 3"
    assert expected in _refusal(lambda: query.where("n ="))
