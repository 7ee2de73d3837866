"""One node, and tables made for each test."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cortado import Client
from support.server_process import running_server
from support.spark_tables import SparkTables


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
