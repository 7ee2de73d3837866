"""The Spark driver, in a process of its own: ``python -m examples.orders.driver ENDPOINT CHECKPOINT SCRATCH``.

It runs until it is killed. Its state lies in the checkpoint, and in the table that it writes: the number of each batch
is stored in the same commit as its rows, so a batch that was committed is not written again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

from examples.nycflights.session import spark_session
from examples.orders.tables import ORDERS, ORDERS_AN_HOUR, REVENUE

CHANGES_A_BATCH = 10 * ORDERS_AN_HOUR


def orders(spark: SparkSession, endpoint: str) -> DataFrame:
    """Return the orders, from the first one on, as they come."""
    reader = spark.readStream.format("cortado").option("endpoint", endpoint).option("table", ORDERS)
    reader = reader.option("startingAt", "earliest").option("maxRowsPerTrigger", CHANGES_A_BATCH)
    return reader.option("partitions", 1).load().where("_op = 'put'")


def revenue(placed: DataFrame) -> DataFrame:
    """Return the revenue of each shop by hours: a row for each, once an order of a later hour has come."""
    hours = placed.withWatermark("placed_at", "0 seconds").groupBy(sql.window("placed_at", "1 hour"), "shop")
    sums = hours.agg(sql.count(sql.lit(1)).alias("orders"), sql.sum("cents").alias("cents"))
    return sums.select(sql.col("window.start").alias("hour"), "shop", "orders", "cents")


def start(spark: SparkSession, endpoint: str, checkpoint: Path) -> StreamingQuery:
    """Start the pipeline at the place at which the one before has stopped."""
    writer = (
        revenue(orders(spark, endpoint)).writeStream.format("cortado").option("checkpointLocation", str(checkpoint))
    )
    return writer.option("endpoint", endpoint).option("table", REVENUE).outputMode("append").start()


def main() -> None:
    endpoint, checkpoint, scratch = sys.argv[1:]
    with spark_session(Path(scratch)) as spark:
        spark.conf.set("spark.sql.shuffle.partitions", 1)
        start(spark, endpoint, Path(checkpoint)).awaitTermination()


if __name__ == "__main__":
    main()
