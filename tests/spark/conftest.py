"""One Spark session, one node, and tables made for each test."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cortado import Client
from examples.nycflights.session import python_for_spark
from support.needs import need_java
from support.server_process import running_server
from support.spark_tables import SparkTables


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two worker threads; a task that fails is run again, once. The time zone is not UTC."""
    need_java()
    scratch = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python_for_spark(scratch)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
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
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node that runs in a process of its own."""
    with running_server(tmp_path_factory.mktemp("node") / "data") as server:
        yield server.endpoint


@pytest.fixture(scope="session")
def client(node: str) -> Iterator[Client]:
    with Client(node, timeout_s=30) as connected:
        connected.create_database("d")
        yield connected


_numbers = itertools.count()


@pytest.fixture
def tables(spark: SparkSession, node: str, client: Client, request: pytest.FixtureRequest) -> SparkTables:
    """Makes tables whose names are this test's."""
    name = re.sub(r"\W+", "_", request.node.name)[:40].rstrip("_")
    return SparkTables(spark, client, node, f"{name}_{next(_numbers)}")


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    """A file that is not there yet, by which a task tells that it ran before."""
    return tmp_path / "ran-before"
