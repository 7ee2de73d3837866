"""A local Spark session that keeps to loopback and to this Python."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def spark_session(scratch: Path, class_path: str = "") -> Iterator[SparkSession]:
    """Yield a session with two worker threads and no UI. ``scratch`` takes Spark's temporary files; ``class_path``
    holds the classes of its JVM besides Spark's."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python_for_spark(scratch)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Errors are raised. Ctrl-C in the middle of a call would be logged as well, with its traceback.
    logging.getLogger().setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master("local[2]").appName("cortado-nycflights")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraClassPath": class_path,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        # Tasks that are cut off here have nothing to tell.
        with suppress(Exception):
            spark.sparkContext.setLogLevel("OFF")
        spark.stop()


def python_for_spark(scratch: Path) -> str:
    """Return the path of this Python, for ``PYSPARK_PYTHON``.

    Spark finds no Python data source (``DATA_SOURCE_NOT_FOUND``) if that path has a blank in it: then it is the path of
    a link to its folder, in ``scratch``.
    """
    python = Path(sys.executable)
    if " " not in str(python):
        return str(python)
    scratch.mkdir(parents=True, exist_ok=True)
    # A link to the environment, not to the program: Python looks for its environment beside the path it was called by.
    link = scratch / "python"
    link.symlink_to(python.parent.parent)
    return str(link / python.relative_to(python.parent.parent))
