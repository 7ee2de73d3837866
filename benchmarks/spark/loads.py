"""The loads of all systems: the rows, and the measured loads, each with its aims.

Each read gives its expected result as a query of Spark's over the rows themselves (``expects``). The first turn of a
load is not counted: it compares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

PARTITIONS: Final = 4
CHANGES: Final = 1_000
"""Rows of a micro-batch."""
FLIGHTS_BELOW: Final = 80
"""A bound on 8,000 flight numbers: 1% of the rows, by value."""
GATE: Final = 7
"""One of 90 gates, which two rows of three have: about 1% of the rows, by the index."""

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
SQL_COLUMNS: Final = (
    "id bigint PRIMARY KEY, carrier text NOT NULL, tailnum text, delay double precision, flight integer NOT NULL, "
    "cancelled boolean NOT NULL, time_hour timestamptz NOT NULL, gate bigint, note text NOT NULL, "
    "distance double precision NOT NULL"
)
"""The same for PostgreSQL."""
VALUES: Final = (
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


@dataclass(frozen=True, slots=True)
class Load:
    """``aim`` is the least rate beside JDBC's that the project wants of one node, ``aim_three`` of three; 0 without an
    aim."""

    name: str
    title: str
    aim: float = 0.0
    aim_three: float = 0.0
    expects: Callable[[DataFrame, int], DataFrame] | None = None
    """A read's expected result, from the rows and their number."""
    is_collected: bool = False
    """Whether its rows are few and are looked at; those of other reads end in Spark's ``noop`` sink."""

    @property
    def is_read(self) -> bool:
        return self.expects is not None


def key_range(rows: int) -> tuple[int, int]:
    """Return a hundredth of the keys, in their middle."""
    return rows // 2, rows // 2 + rows // 100


def _sums(frame: DataFrame, _rows: int) -> DataFrame:
    return frame.selectExpr("sum(flight)", "sum(distance)")


def _grouped(frame: DataFrame, _rows: int) -> DataFrame:
    return frame.groupBy("carrier").agg(expr("count(*)"), expr("sum(distance)"))


def _by_key(frame: DataFrame, rows: int) -> DataFrame:
    lower, upper = key_range(rows)
    return frame.where(f"id >= {lower} AND id < {upper}")


LOADS: Final = (
    Load("read", "full read, ten columns", 1.5, 1.5, lambda frame, _: frame),
    Load("sum", "sums of two columns", 2.0, 2.0, _sums, is_collected=True),
    Load("sum_by_spark", "the same, left to Spark", 0.0, 0.0, _sums, is_collected=True),
    Load("grouped", "count and sum by one of 17", 2.0, 2.0, _grouped, is_collected=True),
    Load("by_value", "1% by value", 2.0, 2.0, lambda frame, _: frame.where(f"flight < {FLIGHTS_BELOW}")),
    Load("by_key", "1% by key", 1.0, 1.0, _by_key),
    Load("by_index", "1% by an index", 1.0, 1.0, lambda frame, _: frame.where(f"gate = {GATE}")),
    Load("append", "append", 1.5, 1.0),
    Load("append_at_once", "append, all rows or none"),
    Load("upsert", "upsert of rows that are there"),
)
MICRO_BATCH: Final = Load("micro_batch", f"micro-batch of {CHANGES:,} changes, end to end")
MICRO_BATCH_AIM_S: Final = 1.0


def made(spark: SparkSession, rows: int, note: str = "note") -> DataFrame:
    """Return the rows in memory, each partition a range of keys, as a table that was sorted before would be. ``note``
    is the beginning of one of their columns."""
    values = [each.replace("'note ", f"'{note} ") for each in VALUES]
    frame = spark.range(0, rows, 1, PARTITIONS).selectExpr(*values).cache()
    assert frame.count() == rows
    return frame
