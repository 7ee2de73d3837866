"""A stream from one table into another, exactly once: how long a batch of changes takes until its rows are read at the
other end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks.cluster.members import wait_for
from benchmarks.spark.cortado_side import CortadoSide
from benchmarks.spark.loads import CHANGES
from benchmarks.spark.processes import Spent, Stopwatch
from benchmarks.spark.turns import Turns

SOURCE: Final = "bench.changed"
TARGET: Final = "bench.arrived"
REST_S: Final = 0.5
"""The rest before a batch: the query is idle when its changes come."""
ARRIVE_S: Final = 300.0
"""The most that a batch may take, before the query counts as stuck."""
_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def micro_batches(side: CortadoSide, spark: SparkSession, scratch: Path, turns: Turns, jvm: int) -> list[Spent]:
    """Measure each batch, from before its changes are written until all of them are read from the other table. The
    first one, for which Spark starts its processes, is not counted."""
    for name in (SOURCE, TARGET):
        side.create(name)
    spent = []
    with _streaming(side, spark, scratch) as query:
        for turn in turns.taken():
            time.sleep(REST_S)
            first = turn * CHANGES
            watch = Stopwatch(side.pids, jvm)
            side.client.table(SOURCE).put_many(_row(number) for number in range(first, first + CHANGES))
            wait_for(partial(_has_arrived, side, query, first), "all changes arrive", ARRIVE_S)
            if turn:
                spent.append(watch.read())
    return spent


def _has_arrived(side: CortadoSide, query: StreamingQuery, first: int) -> bool:
    """Return whether a batch has arrived. Raises the error that ended the query."""
    if (error := query.exception()) is not None:
        raise error
    return side.client.table(TARGET).count((first,)) == CHANGES


@contextmanager
def _streaming(side: CortadoSide, spark: SparkSession, scratch: Path) -> Iterator[StreamingQuery]:
    changes = side.at_table(SOURCE, spark.readStream).option("startingAt", "earliest").load()
    sink = side.at_table(TARGET, changes.writeStream).option("operation", "changes")
    query: StreamingQuery = sink.option("checkpointLocation", str(scratch / side.name)).start()
    try:
        yield query
    finally:
        query.stop()


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "carrier": f"c{number % 17}",
        "tailnum": f"N{number % 4000}",
        "delay": number % 600 / 4,
        "flight": number % 8000,
        "cancelled": number % 50 == 0,
        "time_hour": _BEGAN + timedelta(seconds=number),
        "gate": number % 90,
        "note": f"note {number % 1000}",
        "distance": float(number % 5000),
    }
