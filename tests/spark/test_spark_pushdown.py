"""Spark's own pushdown for Python sources answers wrongly: ours does not use it (docs/adr/0044-sql-is-spliced.md).

If this fails, a version of Spark has corrected it (SPARK-58551): from then on `pushFilters` may be implemented.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition

from pyspark_cortado.aggregates import AggregateReader
from pyspark_cortado.reader import TableReader

pytestmark = pytest.mark.spark


class Pushing(DataSource):
    """Ten rows, and a reader that takes the filters that Spark pushes."""

    @classmethod
    def name(cls) -> str:
        return "pushing"

    def schema(self) -> str:
        return "id int"

    def reader(self, schema: Any) -> DataSourceReader:
        return PushingReader()


class PushingReader(DataSourceReader):
    def __init__(self) -> None:
        self.only: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        for each in filters:
            if isinstance(each, EqualTo):
                self.only = each.value
            else:
                yield each

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((n,) for n in range(10) if self.only in (None, n))


def test_what_one_scan_pushes_filters_the_others_of_its_frame(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(Pushing)
        frame = spark.read.format("pushing").load()
        # It should be 1, 10.
        assert (frame.filter("id = 3").count(), frame.count()) == (1, 1)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize("reader", [TableReader, AggregateReader])
def test_our_readers_take_no_filters(reader: type[DataSourceReader]) -> None:
    assert reader.pushFilters is DataSourceReader.pushFilters
