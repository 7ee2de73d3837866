"""Tables of Spark's own catalogue: tables made there can be read, and a table that could not be read stores no row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cortado.store.client import Table
from support.spark_tables import SparkTables

pytestmark = [pytest.mark.long, pytest.mark.spark]

ROW = {"id": "long", "name": (["null", "string"], None)}
NAME = "of_catalogue"


@pytest.fixture
def table(tables: SparkTables) -> Iterator[Table]:
    """Three rows; all that a test makes in Spark's catalogue is dropped."""
    made = tables.make(ROW)
    made.put_many({"id": n, "name": f"n{n}"} for n in range(3))
    yield made
    tables.spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def create(tables: SparkTables, table: Table, name: str = NAME, **more: Any) -> None:
    options = {"endpoint": tables.endpoint, "table": table.full_name, **more}
    tables.spark.sql(f"CREATE TABLE {name} USING cortado OPTIONS ({words(options)})")


def words(options: dict[str, Any]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def refusal(act: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as failed:
        act()
    return re.sub(r"\s+", " ", str(failed.value))


def exists(tables: SparkTables) -> bool:
    return bool(tables.spark.catalog.tableExists(NAME))


def test_a_table_that_is_created_reads_anew_in_each_query(tables: SparkTables, table: Table) -> None:
    create(tables, table, PARTITIONS="2", filter="id > 0")
    spark = tables.spark
    assert spark.table(NAME).dtypes == [("id", "bigint"), ("name", "string")]
    frame = spark.sql(f"SELECT * FROM {NAME}")
    assert rows(frame) == [(1, "n1"), (2, "n2")]
    then = tables.client.now()
    table.put({"id": 7, "name": "n7"})
    assert rows(spark.sql(f"SELECT id FROM {NAME}")) == [(1,), (2,), (7,)]
    assert rows(frame) == [(1, "n1"), (2, "n2")]
    assert rows(spark.sql(f"SELECT id FROM {NAME} WITH (at = '{then}', filter = 'id < 2')")) == [(0,), (1,)]
    joined = spark.sql(f"SELECT a.id, b.id FROM {NAME} a JOIN {NAME} b ON a.id < b.id WHERE a.id = 1")
    assert rows(joined) == [(1, 2), (1, 7)]


def test_a_table_that_is_created_has_the_columns_that_it_had_then(tables: SparkTables, table: Table) -> None:
    create(tables, table)
    tables.evolve(table, {**ROW, "more": ("int", 5)})
    table.put({"id": 9, "name": None, "more": 6})
    assert rows(tables.spark.table(NAME).where("id > 1")) == [(2, "n2"), (9, None)]
    tables.spark.sql(f"ALTER TABLE {NAME} ADD COLUMN more INT")
    assert rows(tables.spark.table(NAME).where("id > 1")) == [(2, "n2", 5), (9, None, 6)]


def test_what_cannot_be_created_is_refused(tables: SparkTables, table: Table) -> None:
    spark = tables.spark
    for said, expected in (
        ("OPTIONS (endpoint '{e}', table 'd.absent')", "cortado.errors.NotFound: no table d.absent"),
        ("OPTIONS (endpoint '{e}', table '{t}', colums 'id')", "option colums: is not an option of a read"),
        ("OPTIONS (endpoint '{e}', table '{t}', startingAt 'latest')", "option startingat: is not an option of a read"),
        ("OPTIONS (endpoint '{e}', table '{t}') LOCATION '/tmp/x'", "InvalidArgument: LOCATION: must not be given"),
        ("TBLPROPERTIES (endpoint '{e}', table '{t}')", 'option table: is required, as "database.table"'),
    ):
        text = said.format(e=tables.endpoint, t=table.full_name)
        assert expected in refusal(lambda text=text: spark.sql(f"CREATE TABLE {NAME} USING cortado {text}"))
        assert not exists(tables)


def test_one_that_is_made_with_columns_has_no_options(tables: SparkTables, table: Table) -> None:
    options = words({"endpoint": tables.endpoint, "table": table.full_name})
    tables.spark.sql(f"CREATE TABLE {NAME} (id BIGINT, name STRING) USING cortado OPTIONS ({options})")
    assert "option table: is required" in refusal(tables.spark.table(NAME).collect)
    assert rows(tables.spark.sql(f"SELECT id FROM {NAME} WITH ({options})")) == [(0,), (1,), (2,)]


def test_inserts_go_where_their_own_options_say_or_nowhere(tables: SparkTables, table: Table) -> None:
    """In ``INSERT INTO copies SELECT * FROM flights`` the source sees the columns of ``flights``, options and all."""
    other = tables.make(ROW, suffix="_other")
    create(tables, table)
    try:
        create(tables, other, f"{NAME}_other")
        spark = tables.spark
        for said in (f"INTO {NAME}_other SELECT * FROM {NAME}", f"INTO {NAME}_other VALUES (9L, 'x')"):
            assert "A write needs WITH (table = ...)" in refusal(lambda said=said: spark.sql(f"INSERT {said}"))
        frame = spark.table(NAME)
        for act in (
            lambda: frame.write.insertInto(f"{NAME}_other"),
            lambda: frame.writeTo(f"{NAME}_other").append(),
            lambda: frame.write.format("cortado").mode("append").save(),
        ):
            assert "A write needs WITH (table = ...)" in refusal(act)
        assert (list(other.scan()), len(list(table.scan()))) == ([], 3)
        options = words({"endpoint": tables.endpoint, "table": other.full_name})
        spark.sql(f"INSERT INTO {NAME}_other WITH ({options}) SELECT * FROM {NAME}")
        assert rows(spark.table(f"{NAME}_other")) == rows(frame)
        spark.sql(f"INSERT INTO {NAME}_other WITH ({options}) (id) VALUES (9L)")
        assert rows(spark.table(f"{NAME}_other").where("id = 9")) == [(9, None)]
        said = f"INSERT OVERWRITE {NAME}_other WITH ({options}"
        assert "option confirmTruncate" in refusal(lambda: spark.sql(f"{said}) SELECT * FROM {NAME}"))
        spark.sql(f"{said}, 'confirmTruncate' = 'true') SELECT * FROM {NAME}")
        assert rows(spark.table(f"{NAME}_other")) == rows(frame)
    finally:
        tables.spark.sql(f"DROP TABLE IF EXISTS {NAME}_other")


@pytest.mark.parametrize("options", [{}, {"transactional": "true"}, {"confirmTruncate": "true"}], ids=lambda o: str(*o))
def test_save_as_table_of_a_new_one_stores_no_row(tables: SparkTables, table: Table, options: dict[str, str]) -> None:
    spark = tables.spark
    frame = spark.range(10, 20, 1, 2).select("id", sql.lit("x").alias("name"))
    options = {"endpoint": tables.endpoint, "table": table.full_name, **options}
    mode = "overwrite" if "confirmTruncate" in options else "append"
    writer = frame.write.format("cortado").options(**options).mode(mode)
    for act in (
        lambda: writer.saveAsTable(NAME),
        lambda: frame.writeTo(NAME).using("cortado").options(**options).create(),
    ):
        assert "cortado.errors.Unsupported: saveAsTable() of a new table" in refusal(act)
        assert not exists(tables)
        assert len(list(table.scan())) == 3
    assert [each.full_name for each in tables.client.tables("d") if "__overwrite_" in each.full_name] == []


def test_create_table_as_select_stores_no_row(tables: SparkTables, table: Table) -> None:
    """Spark leaves the OPTIONS out of the write."""
    options = words({"endpoint": tables.endpoint, "table": table.full_name})
    made = f"CREATE TABLE {NAME} USING cortado OPTIONS ({options}) AS SELECT 9L AS id, 'x' AS name"
    assert "option table: is required" in refusal(lambda: tables.spark.sql(made))
    assert not exists(tables)
    assert len(list(table.scan())) == 3


def test_save_as_table_of_one_that_is_there_appends_where_its_options_say(tables: SparkTables, table: Table) -> None:
    create(tables, table)
    frame = tables.spark.range(10, 12).select("id", sql.lit("x").alias("name"))
    writer = frame.write.format("cortado").mode("append")
    assert "option table: is required" in refusal(lambda: writer.saveAsTable(NAME))
    writer.option("endpoint", tables.endpoint).option("table", table.full_name).saveAsTable(NAME)
    assert [row[0] for row in rows(tables.spark.table(NAME))] == [0, 1, 2, 10, 11]


def test_a_batch_of_a_stream_is_no_new_table(tables: SparkTables, table: Table) -> None:
    """It runs within another execution, too."""

    def append(frame: DataFrame, _: int) -> None:
        tables.append(frame.selectExpr("value AS id", "'streamed' AS name").where("false").unionByName(one), table)

    one = tables.spark.range(50, 51).select("id", sql.lit("streamed").alias("name"))
    stream = tables.spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    query = stream.writeStream.foreachBatch(append).trigger(once=True).start()
    query.awaitTermination()
    assert query.exception() is None
