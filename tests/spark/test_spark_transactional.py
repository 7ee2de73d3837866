"""Transactional writes: all rows of a job at one timestamp, or none; however its tasks run, and however often it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from cortado.errors import KeyLocked, TransactionAborted
from cortado.store.client import LargeTransactionRecord, Table
from pyspark_cortado.options import write_options
from pyspark_cortado.transactional import StagedResult, TransactionWriter
from pyspark_cortado.writer import Job
from support.server_process import wait_until
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

PERSON = {"id": "long", "name": "string"}
ROWS = 50_000
"""More than lies in buffers between two steps of a task."""


def _people(spark: SparkSession, count: int = ROWS, parts: int = 2, name: str = "p") -> DataFrame:
    rows = spark.range(0, count, 1, parts)
    return rows.select("id", sql.lit(name).alias("name"))


def _append(tables: SparkTables, frame: DataFrame, table: Table, **options: Any) -> None:
    tables.append(frame, table, transactional="true", chunkRows=1_000, **options)


def _transactions(tables: SparkTables, table: Table) -> list[LargeTransactionRecord]:
    return [each for each in tables.client.large_transactions.list() if each.tables == (table.full_name,)]


def _names(table: Table) -> list[str]:
    return [document.value["name"] for document in table.scan()]


def _pausing(folder: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A step of tasks which, behind their batches, say so by a file, and wait for the file ``resumed``."""
    place, resumed = str(folder), str(folder / "resumed")

    def pause(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib
        import uuid

        yield from batches
        (pathlib.Path(place) / f"paused-{uuid.uuid4()}").touch()
        deadline_s = time.monotonic() + 60
        while not pathlib.Path(resumed).exists():
            assert time.monotonic() < deadline_s, "nobody resumed the task"
            time.sleep(0.01)

    return pause


def test_all_rows_of_a_job_are_visible_at_one_timestamp_and_none_before(tables: SparkTables, tmp_path: Path) -> None:
    table = tables.make(PERSON)
    table.put({"id": 7, "name": "there"})
    meanwhile: list[list[str]] = []

    def look() -> None:
        try:
            wait_until(lambda: len(list(tmp_path.glob("paused-*"))) == 2, "both tasks have had their rows")
            wait_until(lambda: _transactions(tables, table), "one of them stages rows")
            [found] = _transactions(tables, table)
            meanwhile.append([*_names(table), found.state])
        finally:
            (tmp_path / "resumed").touch()

    frame = _people(tables.spark)
    looking = threading.Thread(target=look)
    looking.start()
    _append(tables, frame.mapInArrow(_pausing(tmp_path), frame.schema), table)
    looking.join(60)
    assert meanwhile == [["there", "open"]]
    documents = list(table.scan())
    assert [document.value["id"] for document in documents] == list(range(ROWS))
    [found] = _transactions(tables, table)
    assert {document.ts for document in documents} == {found.committed}
    assert found.label == f"Spark, {table.full_name}"
    assert tables.client.verify_indexes(table.full_name).problems == ()


def test_of_a_task_that_ran_twice_the_second_run_counts_whatever_the_first_has_staged(
    tables: SparkTables, flag: Path
) -> None:
    table = tables.make(PERSON)
    path = str(flag)

    def first_other_rows_then_fail(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib

        import pyarrow as pa

        again = pathlib.Path(path).exists()
        for batch in batches:
            ids = batch.column(0).to_pylist()
            mine = [each for each in ids if each % 2] if again else ids
            yield pa.record_batch([mine, ["second" if again else "first"] * len(mine)], schema=batch.schema)
        if not again:
            pathlib.Path(path).touch()
            raise RuntimeError("the executor was lost")

    frame = _people(tables.spark, parts=1)
    _append(tables, frame.mapInArrow(first_other_rows_then_fail, frame.schema), table, operation="insert")
    assert flag.exists()
    assert [document.value["id"] for document in table.scan()] == list(range(1, ROWS, 2))
    assert set(_names(table)) == {"second"}


def test_a_job_that_fails_for_good_leaves_no_row_and_no_lock(tables: SparkTables) -> None:
    table = tables.make(PERSON)

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        raise RuntimeError("no success")

    frame = _people(tables.spark)
    with pytest.raises(Exception, match="no success"):
        _append(tables, frame.mapInArrow(fail, frame.schema), table)
    assert _names(table) == []
    assert [(each.state, each.cause) for each in _transactions(tables, table)] == [("aborted", "operator")]
    table.put({"id": 1, "name": "free"})
    wait_until(lambda: all(each.is_resolved for each in _transactions(tables, table)), "all of it is away")


def test_a_job_of_an_application_that_is_repeated_changes_nothing(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    own = {"txnAppId": table.full_name, "operation": "update"}
    table.put_many([{"id": number, "name": ""} for number in range(100)])
    for version, name, expected in ((3, "a", "a"), (3, "b", "a"), (2, "c", "a"), (4, "d", "d")):
        _append(tables, _people(tables.spark, 100, name=name), table, txnVersion=version, **own)
        assert set(_names(table)) == {expected}
    assert [each.cause for each in _transactions(tables, table)] == ["", "repeated", "repeated", ""]
    # Rows that are there refuse an insert, but those of a repeated job are not checked.
    _append(tables, _people(tables.spark, 100), table, txnVersion=4, **{**own, "operation": "insert"})
    assert set(_names(table)) == {"d"}


def test_a_row_that_comes_twice_or_that_another_writer_changed_fails_the_job(
    tables: SparkTables, tmp_path: Path
) -> None:
    table = tables.make(PERSON)
    table.put({"id": 50, "name": "old"})
    people = _people(tables.spark, 100)
    with pytest.raises(Exception, match="Two rows of this job have that key"):
        _append(tables, people.union(_people(tables.spark, 3, name="q")), table)

    def change() -> None:
        wait_until(lambda: any(tmp_path.glob("paused-*")), "the job has begun")
        table.delete(50)
        (tmp_path / "resumed").touch()

    frame = people.repartition(1)
    # The rows wait in front of the writer.
    held = frame.mapInArrow(_pausing(tmp_path), frame.schema).repartition(1)
    changing = threading.Thread(target=change)
    changing.start()
    with pytest.raises(Exception, match="WriteConflict"):
        _append(tables, held, table)
    changing.join(60)
    assert _names(table) == []
    _append(tables, people, table, onConflict="overwrite")
    assert len(_names(table)) == 100


def test_a_job_without_rows_commits_nothing(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    _append(tables, _people(tables.spark).where("id < 0"), table)
    assert _transactions(tables, table) == []


def test_commit_and_abort_may_come_again_and_an_abort_after_a_commit_changes_nothing(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    options = write_options({"table": table.full_name, "endpoint": tables.endpoint, "transactional": "true"})
    writer = TransactionWriter(options, Job({0: "id", 1: "name"}, ["id"], 1, tables.client.now(), 0))
    parts = tables.client.large_transactions
    parts.begin([table.full_name], label=writer._label, transaction_id=writer._rows.transaction_id)
    with parts.staging(writer._rows.transaction_id, task=5, attempt=9) as staging:
        staging.table(table.full_name).put_many([{"id": 1, "name": "x"}])
    messages: list[Any] = [StagedResult(1, task=5, attempt=9), StagedResult(0, task=6, attempt=8), None]
    for _ in range(2):
        writer.commit(messages)
        writer.abort(messages)
    assert _names(table) == ["x"]
    late = TransactionWriter(options, Job({0: "id", 1: "name"}, ["id"], 1, tables.client.now(), 0))
    late.abort([None])
    parts.begin([table.full_name], transaction_id=late._rows.transaction_id)
    late.abort([None])
    with pytest.raises(TransactionAborted):
        late.commit(messages)


def test_what_a_dead_driver_leaves_is_locked_until_its_lease_ends_and_then_is_gone(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    parts = tables.client.large_transactions
    begun = parts.begin([table.full_name], ttl_s=2)
    with parts.staging(begun.transaction_id, ttl_s=2) as staging:
        staging.table(table.full_name).put_many([{"id": 1, "name": "x"}])
    # As after a kill of the driver: its lease is not renewed.
    try:
        tables.client.with_timeout(0.5).table(table.full_name).put({"id": 1, "name": "y"})
    except KeyLocked as locked:
        assert locked.transaction == begun.transaction_id
    table.put({"id": 1, "name": "z"})
    assert parts.get(begun.transaction_id).cause == "expired"
    assert _names(table) == ["z"]
