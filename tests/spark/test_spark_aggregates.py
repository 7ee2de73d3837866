"""Aggregates: the work of the node, and rows that are final."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as sql

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


def test_aggregates_are_final_whatever_is_stacked_on_them(tables: SparkTables) -> None:
    name = _filled(tables)
    asked = "count(*) as rows, sum(n) as s, avg(x) as a, sum(p) as p, max(id) as m"
    frame = tables.read(name, partitions=5, groupBy="g", aggregate=asked)
    plain = (
        tables.read(name)
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
    assert tables.read(name, groupBy="g", aggregate="count(*) as rows", limit=2).count() == 2


def test_aggregates_without_groups_are_one_row_of_an_empty_table_too(tables: SparkTables) -> None:
    name = _filled(tables, 0)
    whole = tables.read(name, aggregate="count(*) as c, sum(n) as s, min(x) as m")
    assert whole.collect()[0][:] == (0, None, None)
    assert tables.read(name, groupBy="g", aggregate="count(*) as c").collect() == []
    assert tables.read(name, filter="n > 5", aggregate="count(x)").collect()[0].asDict() == {"count(x)": 0}


def test_groups_of_nulls_and_nan_are_as_sparks(tables: SparkTables) -> None:
    made = tables.make(ROW)
    values = [math.nan, -math.nan, None, None, math.inf, 1.0]
    made.put_many({"id": n, "g": "", "x": x, "n": 1, "p": Decimal(0)} for n, x in enumerate(values))
    found = tables.read(made, groupBy="x", aggregate="count(*) as c, max(x) as m").collect()
    plain = tables.read(made).groupBy("x").agg(sql.count("*").alias("c"), sql.max("x").alias("m")).collect()
    assert sorted(map(repr, found)) == sorted(map(repr, plain))


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
