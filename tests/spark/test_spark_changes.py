"""Changes in Spark: as a batch, and as a stream that ends, begins again, and meets writers, deletes and a full stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

from cortado.store.client import Table
from cortado.store.keys.keyspace import show_table_id
from support.spark_tables import SparkTables

pytestmark = [pytest.mark.long, pytest.mark.spark]

PERSON = {"id": "long", "name": "string", "score": (["null", "double"], None)}


def stream(tables: SparkTables, table: Table, **options: Any) -> DataFrame:
    reader = tables.spark.readStream.format("cortado").option("endpoint", tables.endpoint)
    return reader.option("table", table.full_name).options(**options).load()


class Sink:
    """Collects the batches of a query that reads all there is, and ends."""

    def __init__(self, tmp_path: Path) -> None:
        self.checkpoint = str(tmp_path / "checkpoint")
        self.batches: list[list[tuple[Any, ...]]] = []

    def drain(self, frame: DataFrame, *columns: str) -> list[list[tuple[Any, ...]]]:
        """The batches of one run, in the order of the commits within each."""
        found: list[list[tuple[Any, ...]]] = []

        def take(batch: DataFrame, _number: int) -> None:
            rows = batch.orderBy("_ts", "id").select(*columns or ("id", "_op", "name")).collect()
            found.append([tuple(row) for row in rows])

        query = frame.writeStream.foreachBatch(take).option("checkpointLocation", self.checkpoint)
        ended: StreamingQuery = query.trigger(availableNow=True).start()
        assert ended.awaitTermination(120)
        self.batches += found
        return found


def test_a_batch_of_changes_has_puts_and_deletes_and_what_they_replaced(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    table.put_many({"id": n, "name": f"p{n}"} for n in range(20))
    began = tables.client.now()
    table.put({"id": 3, "name": "new", "score": 1.5})
    table.delete(4)
    table.put({"id": 3, "name": "newer"})
    ended = tables.client.now()
    table.put({"id": 5, "name": "later"})
    frame = tables.read(table, startingAt=str(began), endingAt=str(ended), withPrevious="true", partitions=3)
    assert frame.columns == ["id", "name", "score", "_op", "_ts", "_commit_time", "_previous"]
    rows = frame.orderBy("_ts").select("id", "_op", "name", "score", "_previous.name", "_ts").collect()
    assert [tuple(row)[:5] for row in rows] == [
        (3, "put", "new", 1.5, "p3"),
        (4, "delete", None, None, "p4"),
        (3, "put", "newer", None, "new"),
    ]
    assert rows[0]["_ts"]["wall_ms"] > 0
    assert tables.read(table, startingAt=str(ended), endingAt=str(ended)).count() == 0
    named = tables.read(table, startingAt=str(began), columns="NAME", keyStart="[3]", keyEnd="[4]")
    assert named.columns == ["name", "_op", "_ts", "_commit_time"]
    assert named.count() == 2
    earliest = tables.read(table, startingAt="earliest")
    assert earliest.where("_op = 'delete'").count() == 1
    assert earliest.count() == 24


def test_a_stream_goes_on_from_its_checkpoint_without_a_gap_or_a_repetition(
    tables: SparkTables, tmp_path: Path
) -> None:
    table, sink = tables.make(PERSON), Sink(tmp_path)
    table.put({"id": 0, "name": "before"})
    began = str(tables.client.now())
    table.put_many({"id": n, "name": f"p{n}"} for n in range(100))
    first = sink.drain(stream(tables, table, startingAt=began))
    assert first == [[(n, "put", f"p{n}") for n in range(100)]]
    assert sink.drain(stream(tables, table, startingAt=began)) == []
    table.delete(7)
    table.put({"id": 8, "name": "again"})
    assert sink.drain(stream(tables, table, startingAt="latest")) == [[(7, "delete", None), (8, "put", "again")]]


def test_a_limit_cuts_batches_at_commits(tables: SparkTables, tmp_path: Path) -> None:
    table, sink = tables.make(PERSON), Sink(tmp_path)
    began = str(tables.client.now())
    for n in range(0, 12, 3):
        table.put_many({"id": n + k, "name": "x"} for k in range(3))
    found = sink.drain(stream(tables, table, startingAt=began, maxRowsPerTrigger=4), "id")
    assert [len(batch) for batch in found] == [3, 3, 3, 3]
    assert sorted(row[0] for batch in found for row in batch) == list(range(12))


def test_a_stream_runs_beside_writers_and_ends_with_their_sum(tables: SparkTables, tmp_path: Path) -> None:
    table = tables.make(PERSON)
    began = str(tables.client.now())
    seen: list[int] = []

    def take(batch: DataFrame, _number: int) -> None:
        seen.extend(row[0] for row in batch.select("id").collect())

    query = stream(tables, table, startingAt=began).writeStream.foreachBatch(take)
    running = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for n in range(300):
            table.put({"id": n, "name": "x"})
        running.processAllAvailable()
    finally:
        running.stop()
    assert sorted(seen) == list(range(300))


def test_checkpoints_of_other_tables_and_streams_without_a_start_are_refused(
    tables: SparkTables, tmp_path: Path
) -> None:
    table, sink = tables.make(PERSON), Sink(tmp_path)
    began = str(tables.client.now())
    table.put({"id": 1, "name": "x"})
    sink.drain(stream(tables, table, startingAt=began))
    before = show_table_id(tables.client.describe(table.full_name).table_id)
    tables.client.drop_table(table.full_name)
    tables.client.create_table(table.full_name, ["id"])
    now = show_table_id(tables.client.describe(table.full_name).table_id)
    table.put({"id": 2, "name": "y"})
    with pytest.raises(
        Exception, match=f"checkpoint: is of the table {before}, and {table.full_name} is {now}: dropped"
    ):
        sink.drain(stream(tables, table, startingAt=began))
    (offsets,) = (Path(sink.checkpoint) / "offsets").glob("0")
    lines = offsets.read_text().splitlines()
    offset = json.loads(lines[-1])
    offsets.write_text("\n".join([*lines[:-1], json.dumps({**offset, "cluster": "another"})]))
    (Path(sink.checkpoint) / "offsets" / ".0.crc").unlink(missing_ok=True)
    (Path(sink.checkpoint) / "commits" / "0").unlink()
    with pytest.raises(Exception, match="checkpoint: is of the cluster another"):
        sink.drain(stream(tables, table, startingAt=began))
    with pytest.raises(Exception, match="option startingAt: is required by readStream"):
        sink.drain(
            tables.spark.readStream.format("cortado").options(endpoint=tables.endpoint, table=table.full_name).load(),
            "id",
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingAt": "soon"}, "option startingAt"),
        ({"startingAt": "latest", "endingAt": "0.5.0"}, "option endingAt: must not be before startingAt, 0"),
        (
            {"startingAt": "earliest", "endingAt": "1970-01-01T00:00:00Z"},
            "option endingAt: must not be before startingAt",
        ),
        (
            {"startingAt": "latest", "endingAt": "0.0.1", "maxRowsPerTrigger": "5"},
            "option maxRowsPerTrigger: is of a stream",
        ),
        ({"startingAt": "latest", "filter": "id = 1"}, "option filter: is not an option of a read of changes"),
        ({"startingAt": "latest", "withPrevious": "yes"}, "option withPrevious: must be one of false, true"),
        (
            {"startingAt": "latest", "endingAt": "0.0.1", "failOnDataLoss": "false"},
            "option failOnDataLoss: is of a stream",
        ),
        ({"startingAt": "latest", "failOnDataLoss": "no"}, "option failOnDataLoss: must be one of true, false"),
        ({"startingAt": "latest", "consumerTtl": "1d"}, "option consumerTtl: needs the option consumerId"),
        (
            {"startingAt": "latest", "consumerId": "a", "consumerTtl": "60d"},
            "option consumerTtl: must be a time such as 12h",
        ),
        ({"startingAt": "latest", "consumerId": "a", "hold": "false"}, "option consumerId: needs the option hold"),
        ({"startingAt": "latest", "consumerId": "x" * 101}, "option consumerId: must have 1 to 100 characters"),
        ({"startingAt": "latest", "consumerId": "a", "endingAt": "0.0.1"}, "option consumerId: is of a stream"),
        (
            {"startingAt": "latest", "replicaRead": "nearest"},
            "option replicaread: is not an option of a read of changes",
        ),
        ({"endingAt": "0.0.1"}, "option endingAt: needs the option startingAt"),
        ({"startingAt": "latest", "columns": "nmae"}, "no field nmae"),
        ({"startingAt": "latest", "keyStart": "[1, 2]"}, "option keyStart: must have at most 1 parts"),
    ],
)
def test_what_is_wrong_with_a_read_of_changes_is_told_by_load(
    tables: SparkTables, options: dict[str, str], said: str
) -> None:
    table = tables.make(PERSON)
    with pytest.raises(Exception, match=said.replace("[", r"\[")):
        tables.read(table, **options)


@pytest.mark.parametrize(
    "options", [{"startingAt": "2100-01-01T00:00:00Z"}, {"startingAt": "0.9.0", "endingAt": "0.8.0"}]
)
def test_times_that_cannot_be_read_between_are_refused(tables: SparkTables, options: dict[str, str]) -> None:
    table = tables.make(PERSON)
    with pytest.raises(Exception, match=r"TimestampInFuture|option endingAt: must not be before startingAt"):
        tables.read(table, **options).collect()


def test_the_changes_of_one_table_are_the_rows_of_another(tables: SparkTables, tmp_path: Path) -> None:
    table, copy = tables.make(PERSON), tables.make(PERSON, suffix="_copy")
    began = str(tables.client.now())

    def apply(batch: DataFrame, _number: int) -> None:
        newest = batch.groupBy("id").agg(sql.max_by(sql.struct("_op", "name", "score"), "_ts").alias("last"))
        rows = newest.select("id", "last.*")
        tables.append(rows.where("_op = 'put'").drop("_op"), copy)
        tables.append(rows.where("_op = 'delete'").select("id"), copy, operation="delete")

    for round_number in range(3):
        table.put_many({"id": n, "name": f"{round_number}-{n}"} for n in range(round_number * 10, 40))
        table.delete_many(range(round_number, 40, 7))
        query = stream(tables, table, startingAt=began).writeStream.foreachBatch(apply)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert query.trigger(availableNow=True).start().awaitTermination(120)
        assert [each.value for each in copy.scan()] == [each.value for each in table.scan()]
