"""The work that a load() leaves to the node: filters, limits, indexes; and their refusals, before the job."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import functions as sql

from cortado.store.client import Index
from support.spark_tables import SparkTables, record

pytestmark = pytest.mark.spark

ROW = {"id": "long", "name": "string", "score": (["null", "double"], None)}


def _rows(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "name": f"p{n}", "score": None if n % 7 == 0 else n / 2} for n in range(count)]


def _refusal(act: Any) -> str:
    with pytest.raises(Exception) as failed:
        act()
    return re.sub(r"\s+", " ", str(failed.value))


def test_a_filter_is_evaluated_by_the_node_beside_what_spark_filters(tables: SparkTables) -> None:
    table = tables.make(ROW)
    table.put_many(_rows(1_000))
    frame = tables.read(table, filter="score > 100 and name starts with 'p3'", columns="name,id")
    wanted = [n for n in range(1_000) if n % 7 and n / 2 > 100 and str(n).startswith("3")]
    assert sorted(row["id"] for row in frame.collect()) == wanted
    assert frame.columns == ["name", "id"]
    # The column that is filtered by is not among those that are read.
    assert frame.where("id < 310").count() == len([n for n in wanted if n < 310])
    assert frame.count() == len(wanted)
    left = frame.alias("l").join(frame.where("id < 310").alias("r"), sql.col("l.id") == sql.col("r.id"))
    assert (left.count(), frame.union(frame).count()) == (len([n for n in wanted if n < 310]), 2 * len(wanted))


def test_a_filter_that_no_row_passes_leaves_an_empty_frame(tables: SparkTables) -> None:
    table = tables.make(ROW)
    assert tables.read(table, filter="id = 5").collect() == []
    table.put_many(_rows(10))
    assert tables.read(table, filter="id = 50").collect() == []
    assert tables.read(table, filter="false").count() == 0


def test_a_limit_reads_the_first_rows_in_one_partition(tables: SparkTables) -> None:
    table = tables.make(ROW)
    table.put_many(_rows(100))
    frame = tables.read(table, limit=5, filter="score is null")
    assert [row["id"] for row in frame.collect()] == [0, 7, 14, 21, 28]
    assert frame.rdd.getNumPartitions() == 1
    assert frame.where("id > 7").count() == 3
    assert tables.read(table, limit=0).count() == 0
    assert tables.read(table, limit=5, keyStart="[90]", keyEnd="[93]").count() == 3


def test_an_index_gives_the_order_and_takes_the_bounds(tables: SparkTables) -> None:
    name = f"{tables.make(ROW).full_name}_by"
    tables.client.schemas.register(name, record(ROW))
    tables.client.create_table(name, ["id"], indexes=[Index("by_score", ["score"])])
    table = tables.client.table(name)
    table.put_many({"id": n, "name": "", "score": (50 - n) / 2} for n in range(50))
    frame = tables.read(name, index="by_score", keyStart="[3.0]", keyEnd="[5]")
    assert [row["score"] for row in frame.collect()] == [3.0, 3.5, 4.0, 4.5]
    assert frame.rdd.getNumPartitions() == 1
    assert [row["id"] for row in tables.read(name, index="by_score", limit=2).collect()] == [49, 48]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"filter": "nmae = 'x'"}, "InvalidFilter: filter: no field nmae (there is name), at character 0"),
        ({"filter": "name = 'x' and"}, "expected a field or a value, found the end, at character 14"),
        ({"filter": "id > '5'"}, "field id is integer: expected a number, found a string, at character 5"),
        ({"filter": "name like 'p%'"}, "there is: field starts with 'text', at character 5"),
        ({"filter": " "}, "option filter: must not be empty (got ' ')"),
        ({"limit": "-1"}, "option limit: must be between 0 and 9223372036854775807 (got -1)"),
        ({"limit": "many"}, "option limit: must be a whole number (got many)"),
        ({"limit": "5", "partitions": "2"}, "option partitions: must be 1 with the option limit"),
        ({"index": "by_nmae"}, "NotFound: no index by_nmae of table"),
        ({"index": "by_name", "partitions": "3"}, "option partitions: must be 1 with the option index"),
        ({"keyStart": '["x"]'}, "option keyStart, part id: must be of type int64, as JSON carries it (got 'x')"),
    ],
)
def test_what_a_node_would_refuse_is_refused_by_load(
    tables: SparkTables, options: dict[str, str], expected: str
) -> None:
    table = tables.make(ROW)
    assert expected in _refusal(lambda: tables.read(table, **options))


def test_a_filter_is_checked_where_spark_is_given_a_schema_too(tables: SparkTables) -> None:
    table = tables.make(ROW)
    frame = tables.read(table, "name string", filter="nmae is null")
    assert "no field nmae (there is name), at character 0" in _refusal(frame.collect)


def test_a_token_is_in_no_plan_no_schema_and_no_error(tables: SparkTables) -> None:
    table = tables.make(ROW)
    table.put_many(_rows(10))
    token = "ctd_0123456789abcdef_" + "A" * 43
    # Roles are off, so a token of no principal changes nothing.
    frame = tables.read(table, token=token)
    assert frame.count() == 10
    frame.createOrReplaceTempView("with_a_token")
    told = [
        frame._jdf.queryExecution().toString(),
        frame.where("id > 3")._jdf.queryExecution().toString(),
        frame.schema.json(),
        _refusal(lambda: tables.read(table, token=token, filter="nothing = 1").collect()),
        _refusal(lambda: tables.read(table, token=token[:-1]).collect()),
    ]
    assert not [text for text in told if token[:-1] in text]
