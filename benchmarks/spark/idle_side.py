"""A Python source without work: it yields one prebuilt record batch again and again, and drops written rows. The other
Python sources' extra time is their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

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

from benchmarks.spark.loads import PARTITIONS
from benchmarks.spark.turns import Act

NAME: Final = "idle"


class IdleSide:
    """No storage at all."""

    name = NAME
    pids: Sequence[int] = ()
    brings_rows = False

    def __init__(self, spark: SparkSession, rows: int) -> None:
        spark.dataSource.register(IdleSource)
        self._spark = spark
        self._rows = rows

    def settings(self) -> str:
        return f"{self.name}: a Python source that stores nothing"

    def read(self, load: str) -> DataFrame | None:
        return self._spark.read.format(NAME).option("rows", self._rows).load() if load == "read" else None

    def write(self, load: str, rows: DataFrame) -> Act | None:
        return rows.write.format(NAME).mode("append").save if load == "append" else None

    def stored(self) -> DataFrame:
        raise NotImplementedError("nothing is stored")


class IdleSource(DataSource):
    """Prebuilt rows to read, and writes that drop their rows."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return (
            "id bigint, carrier string, tailnum string, delay double, flight int, cancelled boolean, "
            "time_hour timestamp, gate bigint, note string, distance double"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return IdleReader(schema, int(self.options["rows"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return IdleWriter()


class IdleReader(DataSourceReader):
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


class IdleWriter(DataSourceArrowWriter):
    """Takes every batch."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()
