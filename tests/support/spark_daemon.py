"""The process that forks Spark's Python workers, with their imports done once.

A job that fails ends its worker, and the next one imports pandas, pyarrow, gRPC and the data source anew: more than
half a second of processor, a hundred times in the tests. Spark's own daemon imports nothing before it forks, since
pandas and pyarrow start threads. As ``spark_session`` sets them up they start none, and that is checked here.

The story that README.md runs has Spark's own daemon.
"""

from __future__ import annotations

from pathlib import Path

import grpc  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import pyspark_cortado.reader
import pyspark_cortado.source
import pyspark_cortado.stream_writer  # noqa: F401

_THREADS = Path("/proc/self/task")

if __name__ == "__main__":
    threads = len(list(_THREADS.iterdir())) if _THREADS.exists() else 1
    assert threads == 1, f"{threads - 1} threads run that a fork would not have"
    manager()
