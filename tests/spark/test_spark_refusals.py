"""Requests that Spark or the source cannot serve: each is refused with one precise message, which Spark shows."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StructField, StructType

from cortado import errors
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

ROW = {"id": "long", "name": "string", "score": (["null", "double"], None)}


def _refusal(act: Any) -> str:
    """Return Spark's message for a job that must fail."""
    with pytest.raises(Exception) as failed:
        act()
    return str(failed.value)


def _in(message: str, expected: str) -> None:
    assert expected in re.sub(r"\s+", " ", message)


# --- save modes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["default", "errorifexists", "ignore"])
def test_sparks_other_save_modes_are_refused_by_spark(tables: SparkTables, mode: str) -> None:
    table = tables.make(ROW)
    writer = tables.spark.range(3).write.format("cortado").option("endpoint", tables.endpoint)
    writer = writer.option("table", table.full_name)
    message = _refusal((writer if mode == "default" else writer.mode(mode)).save)
    _in(message, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE")


def test_overwrite_has_to_be_confirmed(tables: SparkTables) -> None:
    table = tables.make({"id": "long"})
    table.put({"id": 7})
    frame = tables.spark.range(3)
    writer = frame.write.format("cortado").option("endpoint", tables.endpoint).option("table", table.full_name)
    message = _refusal(writer.mode("overwrite").save)
    _in(message, f'option confirmTruncate: must be "true": mode("overwrite") replaces all rows of {table.full_name}')
    for name, value in {"operation": "delete", "txnAppId": "a"}.items():
        more = {"transactional": "true", "txnVersion": "1"} if name == "txnAppId" else {}
        options = {"confirmTruncate": "true", name: value, **more}
        _in(_refusal(writer.options(**options).mode("overwrite").save), f"option {name}: ")
        writer = frame.write.format("cortado").option("endpoint", tables.endpoint).option("table", table.full_name)
    assert [each.value["id"] for each in table.scan()] == [7]


def test_an_option_that_is_none_is_refused(tables: SparkTables) -> None:
    table = tables.make(ROW)
    _in(
        _refusal(lambda: tables.read(table, colums="id")),
        "option colums: is not an option of a read; there are endpoint",
    )
    frame = tables.spark.range(1)
    expected = "option chunkrow: is not an option of a write; there are endpoint"
    _in(_refusal(lambda: tables.append(frame, table, chunkRow=3)), expected)


def test_an_unknown_table_is_named(tables: SparkTables) -> None:
    _in(_refusal(lambda: tables.read("d.absent")), "cortado.errors.NotFound: no table d.absent")
    _in(_refusal(lambda: tables.append(tables.spark.range(1), "absent.t")), "cortado.errors.NotFound: no ")


def test_a_node_that_does_not_answer_is_named(tables: SparkTables) -> None:
    reader = tables.spark.read.format("cortado").options(endpoint="127.0.0.1:1", table="a.b", timeoutSeconds="1")
    _in(_refusal(reader.load), "cortado.errors.Unavailable: cannot reach 127.0.0.1:1")


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("yesterday", "cortado.errors.InvalidArgument: option at: "),
        ("2013-01-01T00:00:00", "cortado.errors.InvalidArgument: option at: "),
        (
            "2100-01-01T00:00:00Z",
            "cortado.errors.TimestampInFuture: at: is more than 250 ms ahead of the server's clock",
        ),
    ],
)
def test_a_bad_timestamp_is_refused(tables: SparkTables, at: str, expected: str) -> None:
    table = tables.make(ROW)
    _in(_refusal(lambda: tables.read(table, at=at).collect()), expected)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ('["x"]', "option keyStart, part id: must be of type int64, as JSON carries it (got 'x')"),
        ("[1, 2]", "option keyStart: must have at most 1 parts (id) (got 2)"),
        ("[9223372036854775808]", "option keyStart, part id: must be of type int64, as JSON carries it (got 9"),
    ],
)
def test_a_bad_key_bound_is_refused(tables: SparkTables, bound: str, expected: str) -> None:
    table = tables.make(ROW)
    _in(_refusal(lambda: tables.read(table, keyStart=bound)), expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"hold": "maybe"}, "option hold: must be one of true, false (got maybe)"),
        ({"replicaRead": "any"}, "option replicaRead: must be one of leader, nearest (got any)"),
        ({"limit": "-1"}, "option limit: must be between 0 and"),
        ({"limit": "5", "partitions": "2"}, "option partitions: must be 1 with the option limit"),
        ({"groupBy": "name"}, "option groupBy: needs the option aggregate"),
        ({"columns": "id", "aggregate": "count(*)"}, "option columns: has no meaning beside aggregate"),
        ({"query": "SELECT id FROM d.t"}, "option query: is not an option of a read; there are "),
        ({"maxRowsPerTrigger": "5"}, "option maxRowsPerTrigger: needs the option startingAt"),
        ({"aggregate": "sum(name)"}, "option aggregate: field name is string: sum takes an int"),
        ({"filter": "nmae = 1"}, "filter: no field nmae (there is name), at character 0"),
        ({"timeoutSeconds": "0"}, "option timeoutSeconds: must be above 0"),
        ({"keyStart": "[7]", "keyEnd": "[3]"}, "option keyEnd: must not come before keyStart, in the order id asc"),
        ({"at": "0.1.0.0"}, "cortado.errors.InvalidArgument: option at: "),
    ],
)
def test_what_is_wrong_with_a_read_is_told_by_load(tables: SparkTables, options: dict[str, str], expected: str) -> None:
    table = tables.make(ROW)
    _in(_refusal(lambda: tables.read(table, **options)), expected)


def test_an_unknown_schema_version_is_refused(tables: SparkTables) -> None:
    table = tables.make(ROW)
    _in(_refusal(lambda: tables.read(table, schemaVersion=9)), "cortado.errors.NotFound: no ")


def test_a_view_is_read_and_inserted_into(tables: SparkTables) -> None:
    table = tables.make(ROW)
    options = f"OPTIONS (endpoint '{tables.endpoint}', table '{table.full_name}', partitions '2', chunkRows '5')"
    tables.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING cortado {options}")
    tables.spark.sql("INSERT INTO seen VALUES (9L, 'z', NULL)")
    assert table.get(9) is not None


# --- columns of a read ---------------------------------------------------------------------------------------------


def test_columns_that_the_table_lacks_are_named(tables: SparkTables) -> None:
    table = tables.make(ROW)
    expected = f"cortado.errors.NotFound: no field nmae in {table.full_name}; there are id, name, score"
    _in(_refusal(lambda: tables.read(table, columns="id,nmae")), expected)
    _in(_refusal(lambda: tables.read(table, "nmae string").collect()), expected)


def test_a_schema_that_does_not_fit_is_refused(tables: SparkTables) -> None:
    table = tables.make(ROW)
    name = table.full_name
    _in(_refusal(tables.read(table, "id int").collect), f"column id: must be bigint as in {name} (got int)")
    strict = StructType([StructField("score", LongType(), False)])
    _in(_refusal(tables.read(table, strict).collect), f"column score: must be double as in {name} (got bigint)")
    never_null = tables.read(table, "id bigint, score double NOT NULL")
    _in(_refusal(never_null.collect), f"column score: may be null in {name} (got NOT NULL)")
    _in(_refusal(tables.read(table, StructType([])).count), "schema: must name at least one column")


# --- columns of a write --------------------------------------------------------------------------------------------


def test_a_frame_that_does_not_fit_is_refused_before_it_is_computed(tables: SparkTables) -> None:
    table = tables.make(ROW)
    name = table.full_name
    frame = tables.spark.range(3).withColumn("name", sql.lit("a"))

    def refusal(changed: Any) -> str:
        return _refusal(lambda: tables.append(changed, table))

    extra = frame.withColumn("extra", sql.lit(1))
    _in(refusal(extra), f"cortado.errors.NotFound: no field extra in {name}; there are id, name, score")
    _in(refusal(frame.drop("name")), f"column name: is required: it has no default in {name} (got no column)")
    twice = frame.toDF("id", "ID")
    _in(refusal(twice), "column ID: is another column for the field id")
    _in(refusal(frame.drop("id")), f"column id: is required: it is part of the primary key of {name} (got no column)")
    wrong = frame.withColumn("name", sql.lit(5))
    _in(refusal(wrong), f"cortado.errors.InvalidArgument: column name: must be string as in {name} (got int)")
    wide = frame.withColumn("id", sql.col("id").cast("decimal(18,0)"))
    _in(refusal(wide), f"column id: must be bigint as in {name} (got decimal(18,0))")
    void = frame.withColumn("name", sql.lit(None))
    _in(refusal(void), f"column name: must be string as in {name} (got void)")
    assert list(table.scan()) == []


def test_a_missing_key_column_is_refused_even_where_the_field_has_a_default(tables: SparkTables) -> None:
    table = tables.make({"id": ("long", 0), "name": "string"})
    frame = tables.spark.range(3).select(sql.lit("a").alias("name"))
    _in(_refusal(lambda: tables.append(frame, table)), "column id: is required: it is part of the primary key")


def test_a_null_is_refused_with_its_field(tables: SparkTables) -> None:
    items = {"type": "array", "items": "long"}
    table = tables.make({"id": "long", "name": "string", "items": items})
    frame = tables.spark.range(0, 3, 1, 1).select("id", sql.lit("a").alias("name"), sql.array("id").alias("items"))
    missing = sql.when(sql.col("id") != 1, sql.col("id"))
    in_key = frame.withColumn("id", missing)
    _in(_refusal(lambda: tables.append(in_key, table)), "cortado.errors.InvalidDocument: id: is null")
    in_field = frame.withColumn("name", sql.when(sql.col("id") != 1, "a"))
    _in(_refusal(lambda: tables.append(in_field, table)), "cortado.errors.InvalidDocument: name: is null")
    inside = frame.withColumn("items", sql.array(missing))
    _in(_refusal(lambda: tables.append(inside, table)), "cortado.errors.InvalidDocument: items[0]: is null")


def test_a_key_that_is_too_long_is_refused(tables: SparkTables) -> None:
    table = tables.make({"id": "string"})
    frame = tables.spark.sql("SELECT repeat('x', 600) id")
    _in(_refusal(lambda: tables.append(frame, table)), "cortado.errors.KeyTooLong")


def test_a_value_that_is_taken_in_a_unique_index_is_refused(tables: SparkTables) -> None:
    table = tables.make({"id": "long"})
    name = f"{table.full_name}_unique"
    from cortado.store.client import Index

    tables.client.schemas.register(name, {"type": "record", "name": "U", "fields": [
        {"name": "id", "type": "long"}, {"name": "mail", "type": "string"},
    ]})  # fmt: skip
    tables.client.create_table(name, ["id"], indexes=[Index("by_mail", ["mail"], unique=True)])
    frame = tables.spark.range(0, 2, 1, 1).withColumn("mail", sql.lit("a@b.c"))
    message = _refusal(lambda: tables.append(frame, name))
    _in(message, "cortado.errors.UniqueViolation: unique index by_mail")
    assert tables.client.verify_indexes(name).problems == ()


# --- errors themselves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        errors.WriteConflict("(1)", "0.1.0", "0.2.0", row=3),
        errors.InvalidDocument("a.b", "is null", row=5),
        errors.NotFound("table", "d.t"),
        errors.Unsupported("it", "why"),
    ],
)
def test_errors_travel_between_processes(error: errors.CortadoError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.fields()) == (str(error), error.fields())
