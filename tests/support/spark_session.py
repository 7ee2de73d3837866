"""Spark, as tests run it: on this machine, small, and without a time zone that hides mistakes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession

from examples.nycflights.session import python_for_spark
from support.needs import need_java


@contextmanager
def spark_session(scratch: Path) -> Iterator[SparkSession]:
    """Yield a local session, to be made once in a process.

    Two worker threads; a task that fails is run again, once. The time zone is not UTC.
    """
    need_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python_for_spark(scratch)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Workers are forked from a process that has done their imports, and started no thread; see spark_daemon.py.
    forking = {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        "OPENBLAS_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }
    settings = {
        "spark.python.daemon.module": "support.spark_daemon",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "2",
        # Many small jobs: with the second compiler the JVM takes twice the time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.adaptive.enabled": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2,2]").appName("cortado-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with patch.dict(os.environ, forking):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
