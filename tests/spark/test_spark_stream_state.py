"""A stream that begins with the state of a table, and one whose changes were collected.

Most of it drives the reader by hand, as Spark does: each step with a reader of its own, since a query may end, and
begin again from its checkpoint, between any two of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from cortado import Client
from cortado.errors import InvalidArgument, InvalidDocument, SnapshotTooOld
from cortado.store.client import Table
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado import stream_reader
from pyspark_cortado.changes import ChangesPartition, changes_schema, worth_a_task
from pyspark_cortado.options import changes_options
from pyspark_cortado.stream_reader import ChangesStreamReader
from support.server_process import running_server, wait_until
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark

PERSON = {"id": "long", "name": "string"}


class Query:
    """One query, which has forgotten all but its checkpoint before each step."""

    def __init__(self, endpoint: str, table: Table, **options: str) -> None:
        self._options = changes_options({"endpoint": endpoint, "table": table.full_name, **options})
        self._schema, self._chosen = changes_schema(self._options)
        self.place = self.step(lambda reader: reader.initialOffset())

    def step(self, of: Any) -> Any:
        reader = ChangesStreamReader(self._options, self._schema, self._chosen.version)
        try:
            return of(reader)
        finally:
            reader.stop()

    def end(self) -> dict[str, Any]:
        rows = self._options.max_rows
        limit = ReadAllAvailable() if rows is None else ReadMaxRows(rows)

        def latest(reader: ChangesStreamReader) -> dict[str, Any]:
            reader.prepareForTriggerAvailableNow()
            found: dict[str, Any] = json.loads(json.dumps(reader.latestOffset(self.place, limit)))
            return found

        found: dict[str, Any] = self.step(latest)
        return found

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a batch between two offsets."""

        def read(reader: ChangesStreamReader) -> list[tuple[Any, ...]]:
            batches = [batch for each in reader.partitions(start, end) for batch in reader.read(each)]
            return [(row["_op"], row["id"], row["name"]) for batch in batches for row in batch.to_pylist()]

        found: list[tuple[Any, ...]] = self.step(read)
        return found

    def batches(self) -> Iterator[list[tuple[Any, ...]]]:
        """All that there are now."""
        while (end := self.end()) != self.place:
            start, self.place = self.place, end
            yield self.rows(start, end)


@pytest.mark.parametrize("key", [["id"], ["name", "id desc"]])
def test_the_state_comes_in_batches_that_resume_and_then_what_changed_meanwhile(
    tables: SparkTables, key: list[str]
) -> None:
    table = tables.make(PERSON, key)
    table.put_many({"id": n, "name": f"p{n:03}"} for n in range(100))
    query = Query(tables.endpoint, table, startingAt="state", maxRowsPerTrigger="30")
    assert set(query.place) == {"v", "cluster", "table", "query", "first", "state_at", "from_key"}
    found = []
    for number, batch in enumerate(query.batches()):
        assert len(batch) <= 30
        found.append(batch)
        if number == 1:
            table.put({"id": 0, "name": "p000"})
            table.put({"id": 200, "name": "new"})
            table.delete(3 if key == ["id"] else ("p003", 3))
    state, changes = [row for batch in found[:-1] for row in batch], found[-1]
    assert sorted(state) == [("put", n, f"p{n:03}") for n in range(100)]
    deleted = ("delete", 3, None if key == ["id"] else "p003")
    assert changes == [("put", 0, "p000"), ("put", 200, "new"), deleted] or sorted(map(str, changes)) == sorted(
        map(str, [("put", 0, "p000"), ("put", 200, "new"), deleted])
    )
    assert set(query.place) == {"v", "cluster", "table", "query", "ts"}


def test_spark_streams_the_state_of_a_range_and_then_its_changes(tables: SparkTables, tmp_path: Path) -> None:
    table = tables.make(PERSON)
    table.put_many({"id": n, "name": f"p{n}"} for n in range(100))
    reader = tables.spark.readStream.format("cortado").option("endpoint", tables.endpoint)
    options = {"startingAt": "state", "keyStart": "[10]", "keyEnd": "[60]", "withPrevious": "true"}
    frame = reader.options(table=table.full_name, maxRowsPerTrigger=30, **options).load()

    def drained(name: str) -> list[tuple[Any, ...]]:
        query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True)
        assert query.option("checkpointLocation", str(tmp_path)).start().awaitTermination(120)
        rows = tables.spark.table(name).select("id", "_op", "name", "_previous.name").collect()
        return sorted(map(tuple, rows))

    assert drained("state") == [(n, "put", f"p{n}", None) for n in range(10, 60)]
    table.put({"id": 11, "name": "again"})
    table.put({"id": 5, "name": "outside"})
    query = frame.writeStream.foreachBatch(lambda batch, _: found.extend(batch.select("id", "_op").collect()))
    found: list[Any] = []
    query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    assert query.start().awaitTermination(120)
    assert [tuple(row) for row in found] == [(11, "put")]


def test_an_empty_state_is_no_rows(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    for rows in ({}, {"maxRowsPerTrigger": "5"}):
        query = Query(tables.endpoint, table, startingAt="state", **rows)
        assert [row for batch in query.batches() for row in batch] == []
        assert "ts" in query.place


def test_what_was_collected_ends_a_stream_or_lets_it_begin_anew(spark: SparkSession, tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", "--retention", "1s") as server,
        Client(server.endpoint, timeout_s=30) as client,
    ):
        client.create_database("d")
        table = SparkTables(spark, client, server.endpoint, "lost").make(PERSON)
        # A stream that begins is not collected too early.
        with client.hold():
            strict = Query(server.endpoint, table, startingAt="latest")
            lenient = Query(server.endpoint, table, startingAt="latest", failOnDataLoss="false", maxRowsPerTrigger="5")
            assert all(each.nullable for each in lenient._schema)
            table.put({"id": 1, "name": "a"})
            lost = strict.end()
            before = client.now()

        def passes(ts: Timestamp) -> bool:
            table.put({"id": 2, "name": "b"})
            client.admin.gc.run()
            return client.admin.gc.status().safepoint > ts

        wait_until(lambda: passes(before), "the past was collected")
        with pytest.raises(SnapshotTooOld):
            strict.end()
        with pytest.raises(SnapshotTooOld):
            strict.rows(strict.place, lost)
        # A batch that was planned before, and has no rows left: the next one begins anew.
        assert lenient.rows(lenient.place, lost) == []
        with client.hold() as pin:
            there = {**lost, "ts": str(pin.timestamp)}
            rows = [("put", 1, "a"), ("put", 2, "b")]
            assert lenient.rows(lenient.place, there) == [("reset", None, None), *rows]
        # Nothing more is collected while it catches up.
        with client.hold():
            batches = list(lenient.batches())
            assert batches[0] == [("reset", None, None)]
            assert [row for batch in batches[1:] for row in batch] == rows
            table.put({"id": 3, "name": "c"})
            assert list(lenient.batches()) == [[("put", 3, "c")]]
        # In the midst of a state, too.
        with client.hold():
            middle = Query(server.endpoint, table, startingAt="state", failOnDataLoss="false", maxRowsPerTrigger="2")
            begin, middle.place = middle.place, middle.end()
        before = client.now()
        wait_until(lambda: passes(before), "the state was collected")
        assert middle.rows(begin, middle.place) == []
        with client.hold():
            batches = list(middle.batches())
        assert batches[0] == [("reset", None, None)]
        assert [row for batch in batches[1:] for row in batch] == [*rows, ("put", 3, "c")]


def test_a_consumers_changes_are_kept_while_no_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", "--retention", "1s") as server,
        Client(server.endpoint, timeout_s=30) as client,
    ):
        client.create_database("d")
        table = SparkTables(spark, client, server.endpoint, "kept").make(PERSON)
        own = {"startingAt": "latest", "consumerId": "copies", "consumerTtl": "12h"}
        with client.hold() as other:
            query = Query(server.endpoint, table, **own)
            held_now = [each.hold_id for each in client.admin.gc.holds()]
            assert held_now == [other.hold_id], "Spark may begin it anew, as another one"
            assert query.rows(query.place, query.place) == [], "the first batch, of which a checkpoint has the end"
        [held] = client.admin.gc.holds()
        assert (held.consumer, held.ttl_s, str(held.timestamp)) == ("copies", 12 * 3_600, query.place["ts"])
        assert held.owner == f"stream {query.place['query']}"
        for n in range(5):
            table.put({"id": n, "name": "a"})
        before = client.now()

        def passes(ts: Timestamp) -> bool:
            table.put({"id": 9, "name": "b"})
            client.admin.gc.run()
            return client.admin.gc.status().safepoint > ts

        assert not passes(before)
        [batch] = query.batches()
        assert batch[:5] == [("put", n, "a") for n in range(5)]
        query.step(lambda reader: reader.commit(query.place))
        [moved] = client.admin.gc.holds()
        assert (moved.hold_id, str(moved.timestamp)) == (held.hold_id, query.place["ts"])
        second = Query(server.endpoint, table, **own)
        said = (
            f"option consumerId: is the place of {held.owner}, which moved it at .*, and not of stream .*: use a name"
        )
        with pytest.raises(InvalidArgument, match=f"{said} for each, or end the hold {held.hold_id}"):
            second.rows(second.place, second.place)
        [kept] = client.admin.gc.holds()
        assert (kept.timestamp, kept.owner) == (moved.timestamp, moved.owner), "it keeps what the first one needs"
        wait_until(lambda: passes(before), "what was taken is collected")
        assert client.admin.gc.end_hold(held.hold_id)
        after = client.now()
        wait_until(lambda: passes(after), "nobody keeps what comes next")
        with pytest.raises(SnapshotTooOld):
            query.end()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"v": 1}, "has offsets of version 1; this build reads version 2"),
        ({"cluster": "another"}, "is of the cluster another, and this is"),
        ({"from_key": "0g"}, "has an invalid offset"),
        ({"first": "soon"}, "has an invalid offset"),
        ({"state_at": "soon"}, "has an invalid offset"),
        ({"from_key": "ff"}, "has a key that does not belong to the table"),
    ],
)
def test_offsets_that_are_none_are_refused(tables: SparkTables, changed: dict[str, Any], said: str) -> None:
    table = tables.make(PERSON)
    table.put({"id": 1, "name": "a"})
    query = Query(tables.endpoint, table, startingAt="state", maxRowsPerTrigger="1")
    query.place = {**query.place, **changed}
    with pytest.raises(InvalidArgument, match=said):
        query.end()


@pytest.mark.parametrize("starting_at", ["latest", "state"])
def test_the_first_batch_is_the_same_however_often_spark_asks_where_it_begins(
    tables: SparkTables, starting_at: str
) -> None:
    table = tables.make(PERSON)
    table.put({"id": 1, "name": "a"})
    query = Query(tables.endpoint, table, startingAt=starting_at)
    table.put({"id": 2, "name": "b"})
    end = query.end()
    table.put({"id": 3, "name": "c"})
    wanted = [("put", 1, "a")] if starting_at == "state" else [("put", 2, "b")]
    # Spark asks as it plans the batch, as it runs it, and as it repeats it after a crash.
    for _ in range(2):
        assert query.rows(query.step(lambda reader: reader.initialOffset()), end) == wanted
    query.place = end
    assert [row[1] for batch in query.batches() for row in batch] == ([2, 3] if starting_at == "state" else [3])


def test_a_stream_at_which_nothing_happens_moves_on_and_its_lease_with_it(
    tables: SparkTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "_IDLE_MS", 200)
    monkeypatch.setattr(stream_reader, "_LEASE_MOVES_S", 0.0)
    table, beside = tables.make(PERSON), tables.make(PERSON, suffix="_beside")
    options = changes_options({"endpoint": tables.endpoint, "table": table.full_name, "startingAt": "latest"})
    schema, chosen = changes_schema(options)
    reader = ChangesStreamReader(options, schema, chosen.version)

    def held() -> list[Timestamp]:
        label = f"Spark stream of {table.full_name}"
        return [each.timestamp for each in tables.client.admin.gc.holds() if each.label == label]

    try:
        begin = reader.initialOffset()
        assert reader.latestOffset(begin, ReadAllAvailable()) == begin
        [first] = held()

        def moves() -> bool:
            beside.put({"id": 1, "name": "elsewhere"})
            return bool(reader.latestOffset(begin, ReadAllAvailable()) != begin)

        wait_until(moves, "the place moves without a change")
        end = reader.latestOffset(begin, ReadAllAvailable())
        assert reader.partitions(begin, end) == []
        reader.commit(end)
        [moved] = held()
        assert str(moved) == end["ts"]
        assert moved.wall_ms - first.wall_ms > 200
    finally:
        reader.stop()
    assert held() == []


def test_rows_of_a_version_that_the_stream_cannot_read_are_told(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    query = Query(tables.endpoint, table, startingAt="latest")
    tables.evolve(table, {**PERSON, "more": ("int", 0)})
    table.put({"id": 1, "name": "a", "more": 5})
    assert list(query.batches()) == [[("put", 1, "a")]], "a field that is new is not shown"
    tables.client.schemas.set_compatibility(table.full_name, "NONE")
    tables.evolve(table, {"id": "long"})
    table.put({"id": 2})
    with pytest.raises(InvalidDocument, match="name: the document has no such field, and the reader has no default"):
        list(query.batches())


def test_a_state_is_of_a_stream(tables: SparkTables) -> None:
    table = tables.make(PERSON)
    with pytest.raises(Exception, match="option startingAt: is of a stream: rows are read without it"):
        tables.read(table, startingAt="state").collect()


def test_few_rows_are_one_task() -> None:
    assert worth_a_task([]) == []
    assert worth_a_task([(None, (1,), 250), ((1,), (2,), 250), ((2,), None, 250)]) == [(None, None)]
    assert worth_a_task([(None, (1,), 4_000), ((1,), (2,), 4_000), ((2,), None, 10)]) == [(None, (1,)), ((1,), None)]
    assert not ChangesPartition(None, None, "0.1.0", "0.2.0").is_state
