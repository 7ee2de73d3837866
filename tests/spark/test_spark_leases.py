"""The versions that a DataFrame reads are kept while tasks read them, by a lease that all loads within a minute
share."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cortado import Client
from cortado.errors import SnapshotTooOld
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.leases import held, protect
from pyspark_cortado.options import read_options
from pyspark_cortado.reader import choose
from support.server_process import running_server, wait_until
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark


def labelled(client: Client, label: str) -> list[Timestamp]:
    return [each.timestamp for each in client.admin.gc.holds() if each.label == label]


def test_a_load_registers_a_lease_at_or_below_what_it_reads(tables: SparkTables) -> None:
    table = tables.make({"id": "long"})
    label = f"Spark, {table.full_name}"
    table.put({"id": 1})
    then = tables.client.now()
    table.put({"id": 2})
    frame = tables.read(table, at=str(then))
    [kept] = labelled(tables.client, label)
    assert then.wall_ms - 60_000 < kept.wall_ms <= then.wall_ms
    for each in tables.client.admin.gc.holds():
        assert each.label != label or tables.client.admin.gc.end_hold(each.hold_id)
    assert frame.count() == 1
    assert labelled(tables.client, label) == [kept], "the tasks found none, and acquired it again"
    assert tables.read(table, hold="false").count() == 2
    assert tables.read(table, aggregate="count(*) as n").collect()[0].n == 2
    assert set(labelled(tables.client, label)) <= {kept, Timestamp(kept.epoch, kept.wall_ms + 60_000, 0)}


def test_however_many_small_loads_there_are_each_minute_has_one_lease(tables: SparkTables) -> None:
    table = tables.make({"id": "long"})
    table.put({"id": 1})
    then = tables.client.now()
    for n in range(300):
        protect(tables.client, table.full_name, f"{then.epoch}.{then.wall_ms - n}.0")
    assert len(labelled(tables.client, f"Spark, {table.full_name}")) <= 2


def test_what_was_collected_is_told_by_load_and_what_is_kept_longer_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    with (
        running_server(tmp_path / "data", "--retention", "1s") as server,
        Client(server.endpoint, timeout_s=30) as client,
    ):
        client.create_database("d")
        tables = SparkTables(spark, client, server.endpoint, "kept")
        short, long = tables.make({"id": "long"}, suffix="_short"), tables.make({"id": "long"}, suffix="_long")
        client.alter_table(long.full_name, retention_ms=-1)
        for table in (short, long):
            table.put({"id": 1})
        with client.hold() as pin:
            options = read_options({"endpoint": server.endpoint, "table": short.full_name, "at": str(pin.timestamp)})
            chosen = choose(options)

        def passes(ts: Timestamp) -> bool:
            short.put({"id": 2})
            client.admin.gc.run()
            return client.admin.gc.status().safepoint > ts

        before = client.now()
        assert not passes(Timestamp.parse(chosen.at))
        with held(client, short.full_name, chosen.lease):
            assert tables.read(short, at=chosen.at).count() == 1
        for each in client.admin.gc.holds():
            client.admin.gc.end_hold(each.hold_id)
        wait_until(lambda: passes(before), "the past was collected")
        long.put({"id": 2})
        with pytest.raises(SnapshotTooOld):
            choose(options)
        assert tables.read(long, at=chosen.at).count() == 1
