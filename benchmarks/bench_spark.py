"""Through Spark, on this machine: append of a DataFrame of ten columns, and full reads of them, in four partitions.

The limits below are Spark's own, in the same session: reading as many rows from a source in Python that yields one
prebuilt record batch again and again, and writing the same DataFrame to one that throws the batches away. Reads end in
Spark's ``noop`` sink, so every column of every row arrives: once of a DataFrame that was read before, once beginning
with ``load()``, for which the node counts the table's keys to cut them into ranges. The DataFrame that is written lies
in memory, and an append is durable when it ends. Node, Spark's JVM and its Python workers share the cores.

    python -m benchmarks.bench_spark [rows]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType
from rich.console import Console

from benchmarks.report import Measurement, show
from cortado import Client
from examples.nycflights.node import running_node
from examples.nycflights.session import spark_session

TITLE: Final = "Spark"
ROWS: Final = 2_000_000
PARTITIONS: Final = 4
TABLE: Final = "bench.flights"

SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "carrier", "type": "string"},
        {"name": "tailnum", "type": ["null", "string"], "default": None},
        {"name": "delay", "type": ["null", "double"], "default": None},
        {"name": "flight", "type": "int"},
        {"name": "cancelled", "type": "boolean"},
        {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "gate", "type": ["null", "long"], "default": None},
        {"name": "note", "type": "string"},
        {"name": "distance", "type": "double"},
    ],
}
COLUMNS: Final = (
    "id",
    "concat('c', id % 17) carrier",
    "CASE WHEN id % 5 > 0 THEN concat('N', id % 4000) END tailnum",
    "CASE WHEN id % 7 > 0 THEN (id % 600) / 4 - 20 END delay",
    "int(id % 8000) flight",
    "id % 50 = 0 cancelled",
    "timestamp_millis(1357034400000 + id * 1000) time_hour",
    "CASE WHEN id % 3 > 0 THEN id % 90 END gate",
    "concat('note ', id % 1000) note",
    "double(id % 5000) distance",
)


def run(rows: int = ROWS) -> list[Measurement]:
    """All measurements; takes about a minute on two cores."""
    with (
        tempfile.TemporaryDirectory(prefix="cortado-bench-") as name,
        running_node(Path(name) / "data") as endpoint,
        spark_session(Path(name) / "spark") as spark,
        Client(endpoint) as client,
    ):
        client.create_database("bench")
        spark.dataSource.register(RawSource)
        frame = _frame(spark, rows)
        raw_append = _best(lambda: frame.write.format("raw").mode("append").save(), rows)
        append = max(_append(client, frame, endpoint, f"{TABLE}_{turn}", rows) for turn in range(2))
        raw_read = _best(lambda: _read_all(spark.read.format("raw").option("rows", rows).load()), rows)
        whole = spark.read.format("cortado").options(endpoint=endpoint, table=f"{TABLE}_0", partitions=PARTITIONS)
        loaded = whole.load()
        _read_all(loaded)
        planned = _best(lambda: _read_all(loaded), rows)
        read = _best(lambda: _read_all(whole.load()), rows)
        two = _best(lambda: _read_all(whole.option("columns", "id,delay").load()), rows)
    return [
        Measurement("append, synced", append, "rows", "a source that discards", raw_append, 150_000),
        Measurement("full read, 10 columns", planned, "rows", "a source of one batch", raw_read, 1_300_000),
        Measurement("the same, load and split included", read, "rows", "a source of one batch", raw_read, 1_300_000),
        Measurement("2 of 10 columns, load and split included", two, "rows"),
    ]


def settings(rows: int = ROWS) -> str:
    """One line for people."""
    return (
        f"{rows:,} documents of 10 fields, {PARTITIONS} partitions, Spark local[2], node on loopback, appends synced, "
        "best of two"
    )


def _frame(spark: SparkSession, rows: int) -> DataFrame:
    """The rows in memory, each partition a range of keys, as a table that was sorted before would be."""
    frame = spark.range(0, rows, 1, PARTITIONS).selectExpr(*COLUMNS).cache()
    assert frame.count() == rows
    return frame


def _append(client: Client, frame: DataFrame, endpoint: str, table: str, rows: int) -> float:
    client.schemas.register(table, SCHEMA)
    client.create_table(table, ["id"])
    writer = frame.write.format("cortado").options(endpoint=endpoint, table=table)
    return _rate(writer.mode("append").save, rows)


def _read_all(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _best(act: Callable[[], None], rows: int) -> float:
    return max(_rate(act, rows) for _ in range(2))


def _rate(act: Callable[[], None], rows: int) -> float:
    began = time.perf_counter()
    act()
    return rows / (time.perf_counter() - began)


# --- the limits below ----------------------------------------------------------------------------------------------


class RawSource(DataSource):
    """Rows that are there already, and a place for rows that nobody wants."""

    @classmethod
    def name(cls) -> str:
        return "raw"

    def schema(self) -> str:
        return (
            "id bigint, carrier string, tailnum string, delay double, flight int, cancelled boolean, "
            "time_hour timestamp, gate bigint, note string, distance double"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return RawReader(schema, int(self.options["rows"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return RawWriter()


class RawReader(DataSourceReader):
    """Yields one batch again and again."""

    def __init__(self, schema: StructType, rows: int) -> None:
        self._schema = schema
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        from pyspark.sql.pandas.types import to_arrow_schema

        target = to_arrow_schema(self._schema, timezone="UTC")
        size = 20_000
        text = pa.array([f"note {row % 1000}" for row in range(size)])
        numbers = pa.array(range(size), pa.int64())
        arrays = [text if each.type == pa.string() else _cast(numbers, each.type) for each in target]
        batch = pa.RecordBatch.from_arrays(arrays, schema=target)
        left = self._rows // PARTITIONS
        while left:
            yield batch.slice(0, left)
            left -= min(left, size)


def _cast(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    return numbers.cast(pa.int32()).cast(kind) if kind in (pa.int32(), pa.bool_()) else numbers.cast(kind)


class RawWriter(DataSourceArrowWriter):
    """Takes every batch."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


if __name__ == "__main__":
    _rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    show(TITLE, settings(_rows), run(_rows), Console())
