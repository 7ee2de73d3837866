"""Streams into tables: each batch at one timestamp, exactly once, however often it is run and whatever fails."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import LongType, StringType, StructField, StructType

from cortado.errors import CortadoError
from cortado.store.client import LargeTransactionRecord, Table
from cortado.store.keys.keyspace import show_table_id
from pyspark_cortado.options import stream_options
from pyspark_cortado.stream_writer import prepare_stream
from support.spark_tables import SparkTables

pytestmark = [pytest.mark.long, pytest.mark.spark]

PERSON = {"id": "long", "name": "string"}


class Pipe:
    """A table whose changes are streamed into another one."""

    def __init__(self, tables: SparkTables, tmp_path: Path, fields: dict[str, Any] = PERSON) -> None:
        self.tables = tables
        self.source = tables.make(fields, suffix="_source")
        self.target = tables.make(fields, suffix="_target")
        self.began = str(tables.client.now())
        self.checkpoint = tmp_path / "checkpoint"

    def changes(self, **options: Any) -> DataFrame:
        """Return the changes of the source since this pipe was made."""
        reader = self.tables.spark.readStream.format("cortado").option("endpoint", self.tables.endpoint)
        return reader.options(table=self.source.full_name, startingAt=self.began, **options).load()

    def start(self, frame: DataFrame, **options: Any) -> StreamingQuery:
        writer = frame.writeStream.format("cortado").option("endpoint", self.tables.endpoint)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        return writer.options(**{"table": self.target.full_name, **options}).start()

    def run(self, frame: DataFrame, **options: Any) -> StreamingQuery:
        """All there is, in as many batches as the source makes of it."""
        query = self.start(frame, **options)
        assert query.awaitTermination(120)
        return query

    def transactions(self) -> list[LargeTransactionRecord]:
        """Return the transactions of this target, in the order in which they began."""
        names = (self.target.full_name,)
        return [each for each in self.tables.client.large_transactions.list() if each.tables == names]


@pytest.fixture
def pipe(tables: SparkTables, tmp_path: Path) -> Pipe:
    return Pipe(tables, tmp_path)


def contents(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(document.value.values()) for document in table.scan()]


def test_changes_of_one_table_become_another_one_as_they_come(pipe: Pipe) -> None:
    pipe.source.put_many({"id": n, "name": f"p{n}"} for n in range(100))
    pipe.run(pipe.changes(), operation="changes")
    assert contents(pipe.target) == contents(pipe.source)
    for name in ("a", "b"):
        pipe.source.put({"id": 1, "name": name})
    pipe.source.delete(2)
    pipe.source.delete(3)
    pipe.source.put({"id": 3, "name": "again"})
    pipe.source.put({"id": 200, "name": "short"})
    pipe.source.delete(200)
    pipe.run(pipe.changes(partitions=3), operation="changes")
    assert contents(pipe.target) == contents(pipe.source)
    assert contents(pipe.target)[1:3] == [(1, "b"), (3, "again")]
    assert [each.state for each in pipe.transactions()] == ["committed", "committed"]
    assert pipe.tables.client.verify_indexes(pipe.target.full_name).problems == ()


def puts(pipe: Pipe, **options: Any) -> DataFrame:
    """The rows that were put into the source, and nothing else of them."""
    return pipe.changes(**options).where("_op = 'put'").select("id", "name")


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_rows_of_a_batch_are_appended_at_one_timestamp(pipe: Pipe, operation: str) -> None:
    pipe.source.put_many([{"id": n, "name": "first"} for n in range(3000)], chunk_rows=1000)
    pipe.source.put({"id": 5000, "name": "second"})
    pipe.run(puts(pipe, maxRowsPerTrigger=1000), operation=operation, chunkRows=100)
    assert contents(pipe.target) == contents(pipe.source)
    found = {document.value["id"]: document.ts for document in pipe.target.scan()}
    batches = [sorted(each for each, ts in found.items() if ts == one.committed) for one in pipe.transactions()]
    assert batches == [[*range(1000)], [*range(1000, 2000)], [*range(2000, 3000)], [5000]]


def test_updates_and_deletes_are_by_key(pipe: Pipe) -> None:
    pipe.target.put_many({"id": n, "name": "old"} for n in range(20))
    pipe.source.put_many({"id": n, "name": "new"} for n in range(10))
    pipe.run(puts(pipe), operation="update")
    assert contents(pipe.target) == [(n, "new" if n < 10 else "old") for n in range(20)]
    pipe.source.put_many({"id": n, "name": "gone"} for n in range(5, 15))
    pipe.run(puts(pipe), operation="delete")
    assert contents(pipe.target) == [(n, "new" if n < 10 else "old") for n in range(20) if not 5 <= n < 15]


def test_a_batch_that_is_run_again_after_its_commit_changes_nothing(pipe: Pipe) -> None:
    pipe.source.put_many({"id": n, "name": "x"} for n in range(50))
    pipe.run(puts(pipe), operation="insert")
    # As where the commit's answer was lost: Spark does not know that the batch was done.
    for each in (pipe.checkpoint / "commits").glob("*0*"):
        each.unlink()
    pipe.target.put({"id": 7, "name": "since"})
    pipe.source.put({"id": 60, "name": "next"})
    pipe.run(puts(pipe), operation="insert")
    assert contents(pipe.target)[7] == (7, "since")
    assert [each[0] for each in contents(pipe.target)] == [*range(50), 60]
    assert [each.cause for each in pipe.transactions()] == ["", "repeated", ""]


def test_of_a_task_that_ran_twice_the_second_run_counts(pipe: Pipe, flag: Path) -> None:
    path = str(flag)

    def fail_once(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib

        yield from batches
        if not pathlib.Path(path).exists():
            pathlib.Path(path).touch()
            raise RuntimeError("the executor was lost")

    pipe.source.put_many([{"id": n, "name": "x"} for n in range(20_000)], chunk_rows=10_000)
    frame = puts(pipe, partitions=1)
    pipe.run(frame.mapInArrow(fail_once, frame.schema), operation="insert", chunkRows=500)
    assert flag.exists()
    assert len(contents(pipe.target)) == 20_000
    assert len(pipe.transactions()) == 1


def test_a_batch_without_rows_commits_nothing(pipe: Pipe) -> None:
    pipe.source.put({"id": 1, "name": "x"})
    pipe.run(puts(pipe).where("id < 0"))
    assert contents(pipe.target) == []
    assert pipe.transactions() == []


def test_what_does_not_fit_is_refused_before_a_row_is_stored(pipe: Pipe) -> None:
    where = {"endpoint": pipe.tables.endpoint, "table": pipe.target.full_name}
    rows, changes = puts(pipe).schema, pipe.changes().schema
    as_changes = {"operation": "changes"}
    for frame, options, said in (
        (rows, {"badRowsPath": "/tmp/bad"}, "option badRowsPath: does not go with writeStream"),
        (rows, {"txnVersion": "3"}, "option txnVersion: does not go with writeStream"),
        (rows, {"confirmTruncate": "true"}, "option confirmTruncate: does not go with writeStream"),
        (rows, {"transactional": "false"}, "option transactional: must be true with writeStream"),
        (rows, {"txnAppId": ""}, "option txnAppId: must have 1 to 200 characters"),
        (rows, {"startingAt": "latest"}, "option startingAt: is not an option of writeStream"),
        (rows, {"operation": "merge"}, "must be one of upsert, insert, update, delete, changes"),
        (rows, {"table": "d.none"}, "no table d.none"),
        (StructType([*rows, StructField("more", LongType())]), {}, "no field more in"),
        (StructType([*rows][:1]), {}, "column name: is required"),
        (StructType([StructField("id", StringType()), rows["name"]]), {}, "column id: must be bigint"),
        (rows, as_changes, "column _op: is required"),
        (StructType([*rows, changes["_op"]]), as_changes, "column _ts: is required"),
        (StructType([*rows, changes["_op"], StructField("_ts", LongType())]), as_changes, "must be a struct of"),
        (changes, {}, "no field _op in"),
    ):
        with pytest.raises(CortadoError, match=said):
            prepare_stream(stream_options(where | options), frame, is_complete=False)
    with pytest.raises(CortadoError, match=r'outputMode\("complete"\) is not supported'):
        prepare_stream(stream_options(where), rows, is_complete=True)


def test_a_key_that_comes_twice_and_a_change_that_is_none_fail_the_batch(pipe: Pipe) -> None:
    pipe.source.put({"id": 1, "name": "x"})
    rows, changes = puts(pipe), pipe.changes()
    twice = rows.union(rows.selectExpr("id", "'y' AS name"))
    reset = changes.selectExpr("id", "name", "'reset' AS _op", "_ts")
    for frame, operation, said in ((twice, "upsert", "Two rows of this"), (reset, "changes", "got reset")):
        pipe.checkpoint = pipe.checkpoint.with_name(operation)
        with pytest.raises(Exception, match=said):
            pipe.run(frame, operation=operation)
    assert contents(pipe.target) == []


def test_a_second_query_under_one_name_is_refused(pipe: Pipe, tmp_path: Path) -> None:
    pipe.source.put({"id": 1, "name": "x"})
    own = {"txnAppId": pipe.target.full_name, "operation": "changes"}
    first = pipe.run(pipe.changes(), **own)
    pipe.source.put({"id": 2, "name": "y"})
    pipe.checkpoint = tmp_path / "another"
    said = f"option txnAppId: numbers the commits of query {first.id} into table .*, and this is one of query"
    with pytest.raises(Exception, match=said):
        pipe.run(pipe.changes(), **own)
    assert contents(pipe.target) == [(1, "x")]
    pipe.checkpoint = tmp_path / "checkpoint"
    pipe.run(pipe.changes(), **own)
    assert contents(pipe.target) == [(1, "x"), (2, "y")]


def test_a_table_that_is_another_one_since_the_last_batch_is_told_with_both_ids(pipe: Pipe) -> None:
    pipe.source.put({"id": 1, "name": "x"})
    pipe.run(puts(pipe), onConflict="overwrite")
    before = pipe.tables.client.describe(pipe.target.full_name).table_id
    pipe.tables.client.truncate_table(pipe.target.full_name)
    now = pipe.tables.client.describe(pipe.target.full_name).table_id
    pipe.source.put({"id": 2, "name": "y"})
    was = f"and was {show_table_id(before)} at this query's last batch: that was dropped, truncated or replaced"
    said = rf"option table: is the table {show_table_id(now)} now, {was} \(got {pipe.target.full_name}\)"
    with pytest.raises(Exception, match=said):
        pipe.run(puts(pipe), onConflict="overwrite")
    assert contents(pipe.target) == []


def test_a_batch_that_fails_leaves_no_row_and_no_lock_and_one_of_a_table_that_was_dropped_is_told_so(
    pipe: Pipe,
) -> None:
    pipe.source.put_many({"id": n, "name": "x"} for n in range(1_000))
    pipe.target.put({"id": 999, "name": "there"})
    frame = puts(pipe, partitions=1)
    with pytest.raises(Exception, match="expected absent"):
        pipe.run(frame, operation="insert", chunkRows=100)
    assert [(each.state, each.cause) for each in pipe.transactions()] == [("aborted", "operator")]
    pipe.target.put({"id": 1, "name": "free"})
    assert contents(pipe.target) == [(1, "free"), (999, "there")]
    pipe.tables.client.drop_table(pipe.target.full_name)
    with pytest.raises(Exception, match=f"NotFound: no table {pipe.target.full_name}"):
        pipe.run(frame)


def test_what_a_dead_driver_has_left_is_in_nobodys_way(tables: SparkTables, tmp_path: Path) -> None:
    pipe = Pipe(tables, tmp_path, {"id": "long", "v": "long", "name": "string"})
    pipe.source.put({"id": 0, "v": 0, "name": "x"})
    first = pipe.run(pipe.changes(), operation="changes")
    # Its next batch is begun; the process that stages for it is killed, so no process commits or aborts it.
    table_id = show_table_id(tables.client.describe(pipe.target.full_name).table_id)
    own = {"application": str(first.id), "version": 1, "owner": f"query {first.id} into table {table_id}"}
    begun = tables.client.large_transactions.begin([pipe.target.full_name], ttl_s=600, **own)
    words = [tables.endpoint, pipe.target.full_name, begun.transaction_id, *map(str, (0, 0, 0, 100_000))]
    command = [sys.executable, "-m", "support.staging_process", *words]
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": tests}, stdout=subprocess.PIPE) as staging:
        try:
            assert staging.stdout is not None
            assert staging.stdout.readline(), "it has staged rows"
        finally:
            staging.kill()
    pipe.source.put({"id": 0, "v": 1, "name": "y"})
    pipe.run(pipe.changes(), operation="changes")
    assert contents(pipe.target) == contents(pipe.source) == [(0, 1, "y")]
    assert [each.cause for each in pipe.transactions()] == ["", "superseded", ""]


def test_a_bank_has_the_same_sum_at_every_timestamp_of_its_copy(tables: SparkTables, tmp_path: Path) -> None:
    pipe = Pipe(tables, tmp_path)
    pipe.source.put_many({"id": n, "name": "100"} for n in range(10))
    dice = random.Random(7)
    for _ in range(25):
        payer, payee = dice.sample(range(10), 2)
        with tables.client.transaction() as txn:
            accounts = txn.table(pipe.source.full_name)
            for account, amount in ((payer, -1), (payee, 1)):
                found = accounts.get(account)
                assert found is not None
                accounts.put({"id": account, "name": str(int(found.value["name"]) + amount)})
    pipe.run(pipe.changes(maxRowsPerTrigger=9, partitions=3), operation="changes")
    assert contents(pipe.target) == contents(pipe.source)
    times = [each.committed for each in pipe.transactions() if each.committed is not None]
    assert len(times) > 5
    for time in times[1:]:
        for at in (time.previous(), time):
            assert sum(int(each.value["name"]) for each in pipe.target.scan(at=at)) == 1000
