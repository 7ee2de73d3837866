"""Spark's long work, followed task by task: chapter two's appends, one a table, and any other job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from examples.nycflights.dataset import DDL, NULL_TEXT, DemoTable

ROWS_PER_TASK = 20_000


def read_csv(spark: SparkSession, folder: Path, table: DemoTable) -> DataFrame:
    """Return the CSV file as Spark reads it, in tasks of about ROWS_PER_TASK rows."""
    frame = spark.read.csv(
        str(folder / table.csv),
        schema=DDL[table.name],
        header=True,
        nullValue=NULL_TEXT,
        mode="FAILFAST",
        enforceSchema=False,
    )
    return frame.repartition(max(1, round(table.rows / ROWS_PER_TASK)))


def append(frame: DataFrame, endpoint: str, table: str) -> None:
    frame.write.format("cortado").option("endpoint", endpoint).option("table", table).mode("append").save()


def load_all(
    spark: SparkSession,
    folder: Path,
    endpoint: str,
    database: str,
    tables: tuple[DemoTable, ...],
    console: Console,
    watch: Callable[[float], None],
) -> dict[str, float]:
    """Append every table, and call ``watch`` with the share of all rows that is loaded. Returns each one's seconds."""
    seconds: dict[str, float] = {}
    all_rows, loaded = sum(table.rows for table in tables), 0
    columns = (
        TextColumn("  {task.description:<10}"),
        BarColumn(bar_width=40),
        TextColumn("{task.completed:>9,.0f} of {task.total:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        for table in tables:
            shown = progress.add_task(table.name, total=table.rows)
            frame = read_csv(spark, folder, table).cache()
            frame.count()

            def follow(share: float, table: DemoTable = table, shown: TaskID = shown, before: int = loaded) -> None:
                progress.update(shown, completed=share * table.rows)
                watch((before + share * table.rows) / all_rows)

            started = time.monotonic()
            with following(spark, f"load-{table.name}", follow):
                append(frame, endpoint, f"{database}.{table.name}")
            seconds[table.name] = time.monotonic() - started
            loaded += table.rows
            progress.update(shown, completed=table.rows)
            frame.unpersist()
    return seconds


@contextmanager
def following(spark: SparkSession, group: str, show: Callable[[float], None]) -> Iterator[None]:
    """Call ``show`` with the share of tasks that are done, often, while a job of ``group`` runs in this thread.

    The write itself stays in the main thread: Spark looks for its data source in the session that is active in the
    thread, and a new thread has none (neither has a ``pyspark.InheritableThread``).
    """
    spark.sparkContext.setJobGroup(group, group)
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(0.05):
            show(_share_done(spark, group))

    watcher = threading.Thread(target=follow, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _share_done(spark: SparkSession, group: str) -> float:
    """Return the share of tasks that are done: Spark tells tasks, not rows."""
    tracker = spark.sparkContext.statusTracker()
    tasks = done = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else []:
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                tasks += stage.numTasks
                done += stage.numCompletedTasks
    return done / tasks if tasks else 0.0
