"""The five chapters. Each does one thing that a user of Cortado does, and shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from rich.console import Console
from rich.table import Table

from cortado import Client, Timestamp
from cortado.errors import IncompatibleSchema
from examples.nycflights import checking
from examples.nycflights.checking import Difference
from examples.nycflights.dataset import DATABASE, TABLES, DemoTable, schema_file
from examples.nycflights.failover import Failovers
from examples.nycflights.loading import following, load_all

FLIGHTS = f"{DATABASE}.flights"
NEW_FLIGHTS = 500
READ_PARTITIONS = 4
READ_PARTITIONS_FAILOVER = 16
"""Tasks to be in the middle of."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The objects that every chapter works with. ``failovers`` is there if a leader can be killed."""

    console: Console
    client: Client
    spark: SparkSession
    endpoint: str
    folder: Path
    failovers: Failovers | None = None

    def title(self, number: int, text: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{number}. {text}", align="left")

    def watch(self, share: float) -> None:
        """Note that ``share`` of the long work under way is done."""
        if self.failovers is not None:
            self.failovers.watch(share)

    def read(self, table: str, at: Timestamp | None = None, partitions: int = READ_PARTITIONS) -> DataFrame:
        reader = self.spark.read.format("cortado").option("endpoint", self.endpoint).option("table", table)
        if at is not None:
            reader = reader.option("at", str(at))
        return reader.option("partitions", str(partitions)).load()


def create_tables(stage: Stage) -> None:
    stage.title(1, "Schemas and tables")
    stage.client.create_database(DATABASE)
    shown = Table("table", "schema", "primary key", "indexes", "fields")
    for table in TABLES:
        full_name = f"{DATABASE}.{table.name}"
        version = stage.client.schemas.register(full_name, table.schema)
        stage.client.create_table(full_name, key=list(table.key), indexes=table.indexes)
        kinds = [f"{each.name} ({', '.join(each.parts)}){' unique' if each.unique else ''}" for each in table.indexes]
        fields = str(len(stage.client.schemas.get_by_id(version.schema_id).record.fields))
        shown.add_row(full_name, f"version {version.version}", ", ".join(table.key), ", ".join(kinds) or "-", fields)
    stage.console.print(shown)


def load_tables(stage: Stage) -> None:
    stage.title(2, "Loading from Spark")
    seconds = load_all(stage.spark, stage.folder, stage.endpoint, DATABASE, TABLES, stage.console, stage.watch)
    shown = Table("table", "rows", "seconds", "rows a second")
    for table in TABLES:
        shown.add_row(
            table.name, f"{table.rows:,}", f"{seconds[table.name]:.2f}", f"{table.rows / seconds[table.name]:,.0f}"
        )
    stage.console.print(shown)
    if stage.failovers is not None:
        stage.failovers.show("the load")


def evolve_schema(stage: Stage) -> Timestamp:
    """Returns the timestamp from before the new version's rows, at which the later chapters read the original data."""
    stage.title(3, "A schema that evolves")
    before = stage.client.now()
    version = stage.client.schemas.register(FLIGHTS, schema_file("flights-v2").read_text())
    stage.console.print(f"  version {version.version} of {FLIGHTS} adds remark and rebooked, each with a default")
    try:
        stage.client.schemas.register(FLIGHTS, schema_file("flights-incompatible").read_text())
    except IncompatibleSchema as refusal:
        shown = Table(
            "against", "where", "why it is refused", title=f"refused: not {refusal.mode}", title_justify="left"
        )
        for each in refusal.incompatibilities:
            shown.add_row(f"version {each['version']}", each["path"], each["message"])
        stage.console.print(shown)
    else:
        raise Difference("a schema that cannot read the stored rows was accepted")

    flights = stage.client.table(FLIGHTS)
    result = flights.put_many(_new_flights(), mode="insert")
    if result.written != NEW_FLIGHTS or result.errors:
        raise Difference(f"{result.written} of {NEW_FLIGHTS} new flights were written: {result.errors[:1]}")
    frame = stage.read(FLIGHTS)
    together = {row["version"]: row["count"] for row in _count_by_version(frame)}
    shown = Table("rows", "written with", "remark", "rebooked")
    shown.add_row(f"{together['old']:,}", "version 1", "null (the default)", "0 (the default)")
    shown.add_row(f"{together['new']:,}", "version 2", "as written", "as written")
    stage.console.print(shown)
    expected = {"old": _source("flights").rows, "new": NEW_FLIGHTS}
    if together != expected:
        raise Difference(f"old and new rows together: {together}, expected {expected}")
    return before


def _new_flights() -> list[dict[str, object]]:
    first = datetime(2014, 1, 1, 10, tzinfo=UTC)
    return [
        {
            "year": 2014, "month": 1, "day": 1, "dep_time": None, "sched_dep_time": 500, "dep_delay": None,
            "arr_time": None, "sched_arr_time": 700, "arr_delay": None, "carrier": "UA", "flight": number,
            "tailnum": None, "origin": "EWR", "dest": "SFO", "air_time": None, "distance": 2565, "hour": 5, "minute": 0,
            "time_hour": first, "remark": "snow", "rebooked": number % 7 + 1,
        }
        for number in range(1, NEW_FLIGHTS + 1)
    ]  # fmt: skip


def _count_by_version(frame: DataFrame) -> list[dict[str, object]]:
    old = sql.col("remark").isNull() & (sql.col("rebooked") == 0)
    new = (sql.col("remark") == "snow") & (sql.col("rebooked") > 0)
    labelled = frame.withColumn("version", sql.when(old, "old").when(new, "new").otherwise("wrong"))
    return [row.asDict() for row in labelled.groupBy("version").count().collect()]


def answer_with_spark(stage: Stage, at: Timestamp) -> None:
    stage.title(4, f"Reading through Spark, everything at {at.as_datetime():%H:%M:%S.%f} UTC")
    flights = stage.read(FLIGHTS, at, READ_PARTITIONS if stage.failovers is None else READ_PARTITIONS_FAILOVER)
    airlines = stage.read(f"{DATABASE}.airlines", at)
    delays = (
        flights.join(airlines, "carrier")
        .groupBy("name")
        .agg(sql.avg("arr_delay").alias("mean"), sql.count("arr_delay").alias("arrived"))
        .orderBy(sql.desc("mean"), "name")
    )
    with following(stage.spark, "read-delays", stage.watch):
        rows = delays.collect()
    checking.check_delays([(row["name"], row["mean"], row["arrived"]) for row in rows], checking.expected_delays())
    shown = Table("airline", "flights that arrived", "mean arrival delay (min)")
    for row in rows:
        shown.add_row(row["name"], f"{row['arrived']:,}", f"{row['mean']:.2f}")
    stage.console.print(shown)
    if stage.failovers is not None:
        stage.failovers.show("the read")
    for table in TABLES:
        _check_table(stage, table, at)
    stage.console.print("  pandas agrees: the answer, every table's rows, every column's nulls, and every cell")


def _check_table(stage: Stage, table: DemoTable, at: Timestamp) -> None:
    frame = stage.read(f"{DATABASE}.{table.name}", at)
    doubles = [name for name, kind in frame.dtypes if kind in ("double", "float")]
    counts = frame.agg(
        sql.count(sql.lit(1)).alias("rows"),
        *[sql.count(sql.when(sql.col(name).isNull(), 1)).alias(f"null {name}") for name in frame.columns],
        *[sql.count(sql.when(sql.isnan(name), 1)).alias(f"nan {name}") for name in doubles],
    ).collect()[0]
    checking.check_shape(
        table,
        counts["rows"],
        {name: counts[f"null {name}"] for name in frame.columns},
        {name: counts[f"nan {name}"] for name in doubles},
    )
    content: pd.DataFrame = frame.toPandas()
    checking.check_content(table, content)


def travel_in_time(stage: Stage) -> None:
    stage.title(5, "One flight, before and after")
    flights = stage.client.table(FLIGHTS)
    low = datetime(2013, 1, 1, tzinfo=UTC)
    high = datetime(2013, 1, 2, tzinfo=UTC)
    found = list(flights.scan(("N14228", low), ("N14228", high), index="by_tailnum"))
    if len(found) != 1 or found[0].value["flight"] != 1545:
        raise Difference(
            f"the index by_tailnum finds {[each.value['flight'] for each in found]} for N14228 on 2013-01-01"
        )
    flight = found[0].value
    key = (flight["time_hour"], flight["carrier"], flight["flight"])
    before = flights.get(key)
    flights.update(key, {"arr_delay": 42, "remark": "corrected by hand"}, if_etag=found[0].etag)
    after = flights.get(key)
    past = flights.get(key, at=found[0].ts)
    if before is None or after is None or past is None or past.value != before.value or after.value["arr_delay"] != 42:
        raise Difference(f"the flight {key} was {before}, is {after}, and is read in its past as {past}")
    shown = Table("read at", "tailnum", "flight", "arr_delay", "remark")
    for label, document in (("before, by timestamp", past), ("now", after)):
        value = document.value
        cells = (value["tailnum"], str(value["flight"]), str(value["arr_delay"]), str(value["remark"]))
        shown.add_row(f"{document.ts} ({label})", *cells)
    stage.console.print(shown)
    report = stage.client.verify_indexes(FLIGHTS)
    if report.problems:
        raise Difference(f"table check of {FLIGHTS}: {report.problems[0]}")
    stage.console.print(
        f"  table check: {report.rows_checked:,} rows and {report.entries_checked:,} index entries agree"
    )


def _source(name: str) -> DemoTable:
    return next(table for table in TABLES if table.name == name)
