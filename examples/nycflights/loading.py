"""Chapter two's work: one Spark append per table, with a progress bar that follows Spark's tasks."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from examples.nycflights.dataset import NULL_TEXT, TableSource

ROWS_PER_TASK = 20_000


def read_csv(spark: SparkSession, folder: Path, table: TableSource) -> DataFrame:
    """The CSV file as Spark reads it, in tasks of about ROWS_PER_TASK rows."""
    frame = spark.read.csv(
        str(folder / table.csv),
        schema=table.ddl,
        header=True,
        nullValue=NULL_TEXT,
        mode="FAILFAST",
        enforceSchema=False,
    )
    return frame.repartition(max(1, round(table.rows / ROWS_PER_TASK)))


def append(frame: DataFrame, endpoint: str, table: str) -> None:
    frame.write.format("cortado").option("endpoint", endpoint).option("table", table).mode("append").save()


def load_all(
    spark: SparkSession, folder: Path, endpoint: str, database: str, tables: tuple[TableSource, ...], console: Console
) -> dict[str, float]:
    """Append every table. Returns the seconds that each took."""
    seconds: dict[str, float] = {}
    columns = (
        TextColumn("  {task.description:<10}"),
        BarColumn(bar_width=40),
        TextColumn("{task.completed:>9,.0f} of {task.total:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(max_workers=1) as worker:
        for table in tables:
            shown = progress.add_task(table.name, total=table.rows)
            frame = read_csv(spark, folder, table).cache()
            frame.count()
            started = time.monotonic()
            group = f"load-{table.name}"
            job = worker.submit(_append_in_group, spark, group, frame, endpoint, f"{database}.{table.name}")
            pause = threading.Event()
            while not job.done():
                progress.update(shown, completed=_rows_done(spark, group, table.rows))
                pause.wait(0.1)
            job.result()
            seconds[table.name] = time.monotonic() - started
            progress.update(shown, completed=table.rows)
            frame.unpersist()
    return seconds


def _append_in_group(spark: SparkSession, group: str, frame: DataFrame, endpoint: str, table: str) -> None:
    spark.sparkContext.setJobGroup(group, group)
    append(frame, endpoint, table)


def _rows_done(spark: SparkSession, group: str, rows: int) -> float:
    """Rows of the tasks that are finished: Spark tells tasks, not rows."""
    tracker = spark.sparkContext.statusTracker()
    tasks = done = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else []:
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                tasks += stage.numTasks
                done += stage.numCompletedTasks
    return rows * done / tasks if tasks else 0.0
