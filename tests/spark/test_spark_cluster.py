"""Spark over TLS, and over three nodes whose leader dies while a task reads or writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cortado import Client
from cortado.store.client import Tls
from cortado.store.client.connection import Connection
from pyspark_cortado.options import read_options
from pyspark_cortado.reader import prepare_read, table_schema
from support.certificates import Certifier
from support.cluster import Cluster, running_cluster
from support.server_process import running_server, wait_until
from support.spark_tables import SparkTables

pytestmark = [pytest.mark.long, pytest.mark.spark]

PERSON = {"id": "long", "name": "string"}
ROWS = 40_000
TASK_S = 180.0


def _people(spark: SparkSession, count: int = ROWS) -> DataFrame:
    return spark.range(0, count, numPartitions=1).selectExpr("id", "concat('p', id) AS name")


def test_a_job_reads_and_writes_over_tls(spark: SparkSession, tmp_path: Path) -> None:
    certifier = Certifier(tmp_path / "certs")
    node, own = certifier.node("n1"), certifier.client("spark")
    served = ("--tls-cert", str(node.cert), "--tls-key", str(node.key), "--tls-ca", str(node.ca))
    options = {"tlsCa": str(own.ca), "tlsCert": str(own.cert), "tlsKey": str(own.key)}
    with (
        running_server(tmp_path / "data", "--node-id", "n1", *served) as server,
        Client(server.endpoint, tls=Tls(own.ca, own.cert, own.key)) as client,
    ):
        client.create_database("d")
        tables = SparkTables(spark, client, server.endpoint, "over_tls")
        table = tables.make(PERSON)
        tables.append(_people(spark, 100), table, **options)
        assert tables.read(table, **options, partitions=1).count() == 100
        with pytest.raises(Exception, match="Unavailable: cannot reach"):
            tables.read(table, timeoutSeconds=1)


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def on_cluster(spark: SparkSession, cluster: Cluster) -> Iterator[SparkTables]:
    with Client(cluster.endpoints, timeout_s=30) as client:
        client.create_database("d")
        yield SparkTables(spark, client, cluster.endpoints, "on_three_nodes")


def pausing(folder: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A step of a task which, after its first batch, says so by the file ``paused`` and waits for ``resumed``."""
    paused, resumed, timeout_s = str(folder / "paused"), str(folder / "resumed"), TASK_S

    def pause_once(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib
        import time

        for batch in batches:
            yield batch
            pathlib.Path(paused).touch()
            deadline_s = time.monotonic() + timeout_s
            while not pathlib.Path(resumed).exists():
                assert time.monotonic() < deadline_s, "nobody resumed the task"
                time.sleep(0.01)

    return pause_once


def while_the_leader_dies(
    cluster: Cluster, folder: Path, job: Callable[[], None], victim: Callable[[Cluster], str] = Cluster.leader
) -> None:
    """Kill the leader, or another ``victim``, when the task of ``job`` has begun. Let the job end, and start the node
    again."""
    killed: list[str] = []

    def kill() -> None:
        wait_until((folder / "paused").exists, "the task has begun", TASK_S)
        killed.append(victim(cluster))
        cluster.kill(killed[0])
        (folder / "resumed").touch()

    # The job stays in this thread, whose Spark session knows the data source.
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        job()
    finally:
        thread.join(TASK_S)
    assert killed
    cluster.start(*killed)


def test_a_task_that_writes_goes_on_at_the_next_leader(
    cluster: Cluster, on_cluster: SparkTables, tmp_path: Path
) -> None:
    table = on_cluster.make(PERSON, suffix="_written")
    people = _people(on_cluster.spark)
    frame = people.mapInArrow(pausing(tmp_path), people.schema)
    while_the_leader_dies(cluster, tmp_path, lambda: on_cluster.append(frame, table, chunkRows=500, operation="insert"))
    # A task that ran twice would be refused for its own rows, had it written any of them twice.
    assert sum(1 for _ in table.scan()) == ROWS
    assert on_cluster.client.verify_indexes(table.full_name).problems == ()


def test_a_transactional_job_is_there_at_one_timestamp_though_its_leader_died(
    cluster: Cluster, on_cluster: SparkTables, tmp_path: Path
) -> None:
    table = on_cluster.make(PERSON, suffix="_at_once")
    people = _people(on_cluster.spark)
    frame = people.mapInArrow(pausing(tmp_path), people.schema)
    options = {"chunkRows": 500, "transactional": "true"}
    while_the_leader_dies(cluster, tmp_path, lambda: on_cluster.append(frame, table, **options))
    documents = list(table.scan())
    assert [document.value["id"] for document in documents] == list(range(ROWS))
    assert len({document.ts for document in documents}) == 1
    assert on_cluster.client.verify_indexes(table.full_name).problems == ()


def test_a_stream_into_a_table_goes_on_at_the_next_leader(
    cluster: Cluster, on_cluster: SparkTables, tmp_path: Path
) -> None:
    source, target = (on_cluster.make(PERSON, suffix=suffix) for suffix in ("_stream_from", "_stream_into"))
    began = on_cluster.client.now()
    source.put_many([{"id": n, "name": f"p{n}"} for n in range(ROWS)], chunk_rows=10_000)
    reader = on_cluster.spark.readStream.format("cortado").option("endpoint", on_cluster.endpoint)
    changes = reader.options(table=source.full_name, startingAt=str(began), partitions=1).load()
    rows = changes.select("id", "name")
    writer = rows.mapInArrow(pausing(tmp_path), rows.schema).writeStream.format("cortado")
    writer = writer.options(endpoint=on_cluster.endpoint, table=target.full_name, operation="insert", chunkRows=500)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)

    def job() -> None:
        assert writer.start().awaitTermination(2 * TASK_S)

    while_the_leader_dies(cluster, tmp_path, job)
    documents = list(target.scan())
    assert [document.value["id"] for document in documents] == list(range(ROWS))
    assert len({document.ts for document in documents}) == 1
    assert on_cluster.client.verify_indexes(target.full_name).problems == ()


def test_a_task_that_reads_goes_on_at_the_next_leader(
    cluster: Cluster, on_cluster: SparkTables, tmp_path: Path
) -> None:
    table = on_cluster.make(PERSON, suffix="_read")
    # More than lies in buffers between the node and the step that pauses.
    table.put_many({"id": n, "name": f"{n:1000}"} for n in range(ROWS // 2))
    frame = on_cluster.read(table, partitions=1)
    found: list[Any] = []
    while_the_leader_dies(
        cluster,
        tmp_path,
        lambda: found.extend(frame.mapInArrow(pausing(tmp_path), frame.schema).collect()),
    )
    assert sorted(row["id"] for row in found) == list(range(ROWS // 2))


def test_a_full_read_at_the_nearest_replicas_uses_all_of_them(
    cluster: Cluster, on_cluster: SparkTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = on_cluster.make(PERSON, suffix="_spread")
    table.put_many({"id": n, "name": "x"} for n in range(300))
    then = str(on_cluster.client.now())
    cluster.wait_converged()
    given = {"endpoint": cluster.endpoints, "table": table.full_name, "at": then}
    options = read_options({**given, "partitions": "3", "replicaRead": "nearest"})
    schema, chosen = table_schema(options)
    reader = prepare_read(options, schema, chosen)
    scanned: list[str] = []
    replies = Connection._replies

    async def noted(self: Any, method: Any, *arguments: Any) -> Any:
        async for reply in replies(self, method, *arguments):
            scanned.append(reply.header.node_id)
            yield reply

    monkeypatch.setattr(Connection, "_replies", noted)
    found = [row["id"] for each in reader.partitions() for batch in reader.read(each) for row in batch.to_pylist()]
    assert found == list(range(300))
    assert sorted(set(scanned)) == sorted(cluster.nodes)
    counted = {**given, "aggregate": "count(*) as n", "partitions": "3", "replicaRead": "nearest"}
    assert on_cluster.spark.read.format("cortado").options(**counted).load().collect()[0].n == 300


@pytest.mark.parametrize("victim", ["leader", "follower"])
def test_a_read_at_the_nearest_replicas_has_the_same_rows_though_one_dies(
    cluster: Cluster, on_cluster: SparkTables, tmp_path: Path, victim: str
) -> None:
    table = on_cluster.make(PERSON, suffix=f"_nearest_{victim}")
    table.put_many({"id": n, "name": f"{n:1000}"} for n in range(ROWS // 2))
    frame = on_cluster.read(table, partitions=3, replicaRead="nearest")
    table.delete_many(range(0, ROWS // 2, 5))
    found: list[Any] = []
    while_the_leader_dies(
        cluster,
        tmp_path,
        lambda: found.extend(frame.mapInArrow(pausing(tmp_path), frame.schema).select("id").collect()),
        Cluster.leader if victim == "leader" else Cluster.follower,
    )
    assert sorted(row["id"] for row in found) == list(range(ROWS // 2))


def test_a_stream_goes_on_at_the_next_leader(cluster: Cluster, on_cluster: SparkTables, tmp_path: Path) -> None:
    table = on_cluster.make(PERSON, suffix="_streamed")
    reader = on_cluster.spark.readStream.format("cortado").option("endpoint", on_cluster.endpoint)
    frame = reader.options(table=table.full_name, startingAt=str(on_cluster.client.now())).load()
    seen: list[int] = []

    def take(batch: DataFrame, _number: int) -> None:
        seen.extend(row["id"] for row in batch.select("id").collect())

    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for n in range(100):
            table.put({"id": n, "name": "before"})
        query.processAllAvailable()
        assert sorted(seen) == list(range(100))
        killed = cluster.leader()
        cluster.kill(killed)
        for n in range(100, 200):
            table.put({"id": n, "name": "after"})
        query.processAllAvailable()
        cluster.start(killed)
    finally:
        query.stop()
    assert sorted(seen) == list(range(200))
