"""Updates, deletes and overwrites by Spark: their columns, and the rows after tasks that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cortado.errors import InvalidArgument
from cortado.store.client import Client, Index, Table
from pyspark_cortado.options import write_options
from pyspark_cortado.writer import prepare_write
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

PERSON = {"id": "long", "name": "string", "score": (["null", "double"], None)}


@pytest.fixture
def people(tables: SparkTables) -> Table:
    """A hundred, with an index of their names."""
    table = tables.make(PERSON)
    table.put_many({"id": n, "name": f"p{n}", "score": n / 2} for n in range(100))
    tables.client.create_index(table.full_name, Index("by_name", ["name"]))
    return table


def rows(table: Table) -> list[tuple[int, str, float | None]]:
    return [(each.value["id"], each.value["name"], each.value["score"]) for each in table.scan()]


def fail_once(path: Path) -> Any:
    """After all rows of the task were taken."""
    flag = str(path)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib

        yield from batches
        if not pathlib.Path(flag).exists():
            pathlib.Path(flag).touch()
            raise RuntimeError("the executor was lost")

    return run


def overwrite(tables: SparkTables, frame: DataFrame, table: Table, **options: Any) -> None:
    writer = frame.write.format("cortado").option("endpoint", tables.endpoint).option("table", table.full_name)
    writer.options(confirmTruncate="true", **options).mode("overwrite").save()


@pytest.mark.parametrize("transactional", ["false", "true"])
def test_an_update_changes_the_columns_of_the_frame_and_no_others(
    tables: SparkTables, people: Table, flag: Path, transactional: str
) -> None:
    frame = tables.spark.range(0, 100, 2, 1).select(sql.lit("new").alias("NAME"), "id")
    frame = frame.mapInArrow(fail_once(flag), frame.schema)
    tables.append(frame, people, operation="update", transactional=transactional)
    assert flag.exists()
    assert rows(people) == [(n, f"p{n}" if n % 2 else "new", n / 2) for n in range(100)]
    assert tables.client.verify_indexes(people.full_name).problems == ()


@pytest.mark.parametrize("transactional", ["false", "true"])
def test_a_delete_takes_the_keys_columns_whatever_else_there_is(
    tables: SparkTables, people: Table, flag: Path, transactional: str
) -> None:
    frame = tables.spark.range(50, 150, 1, 1).select(sql.lit(1).alias("whatever"), "id", sql.lit("x").alias("name"))
    frame = frame.mapInArrow(fail_once(flag), frame.schema)
    tables.append(frame, people, operation="delete", transactional=transactional)
    assert flag.exists()
    assert [each[0] for each in rows(people)] == list(range(50))
    assert tables.client.verify_indexes(people.full_name).problems == ()


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_another_writers_row_fails_the_job(tables: SparkTables, people: Table, operation: str) -> None:
    endpoint, name = tables.endpoint, people.full_name

    def meanwhile(batches: Iterator[Any]) -> Iterator[Any]:
        with Client(endpoint) as client:
            client.table(name).put({"id": 5, "name": "another writer's"})
        yield from batches

    frame = tables.spark.range(0, 10, 1, 1).select("id", sql.lit("mine").alias("name"))
    with pytest.raises(Exception, match="WriteConflict"):
        tables.append(frame.mapInArrow(meanwhile, frame.schema), people, operation=operation)
    found = people.get(5)
    assert found is not None
    assert found.value["name"] == "another writer's"


def test_what_an_operation_needs_is_told_before_the_job(tables: SparkTables, people: Table) -> None:
    for operation, frame, said in (
        ("update", tables.spark.range(3), "has nothing to update"),
        ("update", tables.spark.range(3).select(sql.lit("x").alias("name")), "column id: is required"),
        ("delete", tables.spark.range(3).select(sql.lit("x").alias("name")), "column id: is required"),
        ("delete", tables.spark.range(3).select(sql.lit("x").alias("id")), "column id: must be bigint"),
        ("insert", tables.spark.range(3), "column name: is required"),
        ("erase", tables.spark.range(3), "option operation: must be one of upsert, insert, update, delete"),
    ):
        with pytest.raises(Exception, match=said):
            tables.append(frame, people, operation=operation)
    assert len(rows(people)) == 100


def test_an_overwrite_replaces_all_rows_at_once_and_what_was_there_can_come_back(
    tables: SparkTables, people: Table, flag: Path
) -> None:
    before, was = tables.client.now(), tables.client.describe(people.full_name)
    frame = tables.spark.range(0, 30, 1, 2).select("id", sql.lit("fresh").alias("name"))
    overwrite(tables, frame.mapInArrow(fail_once(flag), frame.schema), people)
    assert flag.exists()
    assert rows(people) == [(n, "fresh", None) for n in range(30)]
    assert len(list(people.scan(at=before))) == 100
    now = tables.client.describe(people.full_name)
    assert now.table_id != was.table_id
    assert [(each.name, each.parts) for each in now.indexes] == [(each.name, each.parts) for each in was.indexes]
    assert tables.client.verify_indexes(people.full_name).problems == ()
    assert [each.full_name for each in tables.client.tables("d") if "__overwrite_" in each.full_name] == []
    back = tables.client.undrop_table(people.full_name, as_name=f"{was.name}_before")
    assert len(list(tables.client.table(back.full_name).scan())) == 100


def test_an_overwrite_that_fails_changes_nothing_and_leaves_nothing(tables: SparkTables, people: Table) -> None:
    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        raise RuntimeError("no success")

    frame = tables.spark.range(0, 10, 1, 1).select("id", sql.lit("x").alias("name"))
    with pytest.raises(Exception, match="no success"):
        overwrite(tables, frame.mapInArrow(fail, frame.schema), people)
    twice = frame.union(frame.withColumn("name", sql.lit("y")))
    with pytest.raises(Exception, match="WriteConflict"):
        overwrite(tables, twice.coalesce(1), people)
    assert len(rows(people)) == 100
    assert [each.full_name for each in tables.client.tables("d") if "__overwrite_" in each.full_name] == []


def test_an_overwrite_of_no_rows_empties_the_table(tables: SparkTables, people: Table) -> None:
    overwrite(tables, tables.spark.range(0).select("id", sql.lit("x").alias("name")), people)
    assert rows(people) == []


def test_an_overwrite_of_a_table_that_was_replaced_meanwhile_fails(tables: SparkTables, people: Table) -> None:
    endpoint, name = tables.endpoint, people.full_name

    def meanwhile(batches: Iterator[Any]) -> Iterator[Any]:
        with Client(endpoint) as client:
            client.truncate_table(name)
            client.table(name).put({"id": 1, "name": "theirs"})
        yield from batches

    frame = tables.spark.range(0, 10, 1, 1).select("id", sql.lit("x").alias("name"))
    with pytest.raises(Exception, match="WriteConflict"):
        overwrite(tables, frame.mapInArrow(meanwhile, frame.schema), people)
    assert rows(people) == [(1, "theirs", None)]
    assert [each.full_name for each in tables.client.tables("d") if "__overwrite_" in each.full_name] == []


def kept_aside(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The summary of the one job, and its bad rows in their order."""
    (summary,) = path.glob("*.json")
    told = json.loads(summary.read_text())
    files = sorted(path.glob("*.jsonl"))
    assert told["files"] == [each.name for each in files]
    lines = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    assert told["refused"] == len(lines)
    return told, sorted(lines, key=lambda each: each["key"]["id"])


def test_bad_rows_are_kept_aside_with_their_keys_and_the_others_are_stored(
    tables: SparkTables, people: Table, tmp_path: Path, flag: Path
) -> None:
    bad = tmp_path / "bad"
    frame = tables.spark.range(90, 2_600, 1, 2).select(
        "id", sql.expr("if(id % 500 = 0, null, concat('n', id))").alias("name")
    )
    frame = frame.mapInArrow(fail_once(flag), frame.schema)
    tables.append(frame, people, operation="insert", badRowsPath=str(bad))
    assert flag.exists()
    told, lines = kept_aside(bad)
    assert (told["table"], told["written"]) == (people.full_name, 2_510 - 10 - 5)
    assert [each["key"] for each in lines] == [{"id": n} for n in (*range(90, 100), 500, 1_000, 1_500, 2_000, 2_500)]
    assert [each["error"] for each in lines] == ["ConditionFailed"] * 10 + ["InvalidDocument"] * 5
    assert lines[0]["row"] == {"id": 90, "name": "n90"}
    assert "expected absent" in lines[0]["message"]
    assert "name: is null" in lines[-1]["message"]
    assert len(rows(people)) == 100 + told["written"]


def test_a_job_without_bad_rows_leaves_no_file_and_one_that_fails_leaves_none(
    tables: SparkTables, people: Table, tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    path = str(bad)

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib
        import time

        for batch in batches:
            yield batch
            # The other task ends well, and has a file by now.
            while batch.column("id")[0].as_py() >= 10:
                if list(pathlib.Path(path).glob("*.jsonl")):
                    raise RuntimeError("no success")
                time.sleep(0.05)

    frame = tables.spark.range(0, 20, 1, 2).select("id", sql.lit("x").alias("name"))
    tables.append(frame, people, badRowsPath=path)
    assert [*bad.iterdir()] == []
    with pytest.raises(Exception, match="no success"):
        tables.append(frame.mapInArrow(fail, frame.schema), people, operation="insert", badRowsPath=path)
    assert [each.name for each in bad.iterdir()] == []


def test_a_path_for_bad_rows_that_is_none_is_told_before_the_job(tables: SparkTables, tmp_path: Path) -> None:
    people = tables.make(PERSON)
    file = tmp_path / "file"
    file.touch()
    for path, said in (
        (file, "cannot be read: Not a directory"),
        (file / "below", "cannot be written: Not a directory"),
        (tmp_path / "none" / "below", "cannot be written: No such file or directory"),
        (f"{file}\0", "must hold no null character"),
        ("none://bucket/rows", "is no URL of a file system that is known"),
    ):
        options = {"endpoint": tables.endpoint, "table": people.full_name, "badRowsPath": str(path)}
        with pytest.raises(InvalidArgument, match=f"option badRowsPath: {said}"):
            prepare_write(write_options(options), tables.read(people).schema)


def test_an_overwrite_keeps_bad_rows_aside_too(tables: SparkTables, people: Table, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    frame = tables.spark.range(0, 10, 1, 1).select("id", sql.expr("if(id = 3, null, 'x')").alias("name"))
    overwrite(tables, frame, people, badRowsPath=str(bad))
    assert [each[0] for each in rows(people)] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    _, (line,) = kept_aside(bad)
    assert (line["key"], line["error"]) == ({"id": 3}, "InvalidDocument")
