"""With exactly the lower bounds that are promised, each extra works: clusters of Spark pin old versions.

The bounds are those of the oldest Python: newer ones have no wheels of some of them, and take the first that has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.environments import SUPPORTED, Environment, lower_bounds, python_of
from support.needs import need, need_java
from support.packages import Packages
from support.server_process import ServerProcess, running_server

TOOLS = ("pytest", "pytest-timeout", "hypothesis")
CLIENT_TESTS = [
    f"tests/unit/client/test_client_{name}.py"
    for name in ("asyncio", "bulk", "call_stream", "connection", "leaders", "retry", "route", "values", "write_ends")
]
SERVER_TESTS = [
    "tests/unit/engine",
    "tests/unit/peers",
    *(f"tests/unit/server/test_{name}.py" for name in ("bulk_stream", "calls_service", "rpc_errors", "watch_service")),
]

# A client's calls, by threads and asyncio; it prints the results.
CLIENT = """
import asyncio, sys
from cortado import AsyncClient, Client
from cortado.errors import InvalidArgument
from cortado.store.client import Changed

endpoint = sys.argv[1]
with Client(endpoint) as client:
    kv = client.kv("bounds")
    kv.put(b"a", b"1")
    print(kv.get(b"a").value, [pair.key for pair in kv.scan()])
    with kv.watch(after="0.0.0", until=client.now()) as watch:
        print([event.key for event in watch if isinstance(event, Changed)])
    try:
        client.kv("no such name!").get(b"a")
    except InvalidArgument as refused:
        print(refused.field)

async def main():
    async with AsyncClient(endpoint) as client:
        kv = client.kv("bounds")
        await asyncio.gather(*(kv.put(b"%d" % i, b"2") for i in range(50)))
        print((await kv.get(b"7")).value, len([pair async for pair in kv.scan()]))
        async with kv.watch(after="0.0.0", until=await client.now()) as watch:
            print(len([event async for event in watch if isinstance(event, Changed)]))

asyncio.run(main())
"""
FOUND = "b'1' [b'a']\n[b'a']\nnamespace\nb'2' 51\n51\n"

SPARK = """
import os, sys
os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
from pyspark.sql import SparkSession
from cortado import Client

endpoint = sys.argv[1]
fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
with Client(endpoint) as client:
    client.create_database("bounds")
    client.schemas.register("bounds.t", {"type": "record", "name": "T", "fields": fields})
    client.create_table("bounds.t", key=["id"])
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
options = {"endpoint": endpoint, "table": "bounds.t"}
rows = spark.createDataFrame([(i, f"n{i}") for i in range(100)], "id long, name string")
rows.write.format("cortado").options(**options).mode("append").save()
found = spark.read.format("cortado").options(**options).load()
print(found.count(), found.filter("id = 7").collect()[0].name)
spark.stop()
"""


@pytest.fixture
def at_bounds(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Environment]:
    """Makes an environment of the oldest Python, with these extras at their lower bounds and ``tools`` beside."""
    python = python_of(SUPPORTED[0])
    need(python is not None, f"Python {'.'.join(map(str, SUPPORTED[0]))}")

    def make(*extras: str, tools: tuple[str, ...] = ()) -> Environment:
        assert python is not None
        environment = Environment(tmp_path_factory.mktemp("bounds") / "venv", python)
        wanted = f"{packages.wheel}[{','.join(extras)}]" if extras else str(packages.wheel)
        environment.install(wanted, *lower_bounds(*extras), *tools)
        environment.check()
        return environment

    return make


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the newest versions of all packages."""
    with running_server(tmp_path_factory.mktemp("newest") / "data") as process:
        yield process


def passes(environment: Environment, source: Path, tests: Sequence[str]) -> None:
    """Run these tests of the source there, against the installed packages."""
    where = ("-c", str(source / "pyproject.toml"), "--rootdir", str(source))
    environment.run("pytest", "-q", "-p", "no:cacheprovider", *where, *(str(source / each) for each in tests))


def test_the_client_runs_at_its_lower_bounds(
    at_bounds: Callable[..., Environment], server: ServerProcess, source: Path
) -> None:
    environment = at_bounds(tools=TOOLS)
    assert environment.execute(CLIENT, server.endpoint) == FOUND
    assert environment.run("cortado", "kv", "get", "bounds", "a", "-e", server.endpoint, NO_COLOR="1") == "1\n"
    environment.install("grpcio")  # The tests' servers need it, the client does not.
    passes(environment, source, CLIENT_TESTS)


def test_a_server_runs_at_its_lower_bounds(
    at_bounds: Callable[..., Environment], source: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    environment = at_bounds("server", tools=TOOLS)
    process = ServerProcess(tmp_path_factory.mktemp("oldest") / "data", cortado=(environment.cortado,))
    try:
        assert environment.execute(CLIENT, process.start().endpoint) == FOUND
        with Client(process.endpoint) as client:
            assert len(list(client.kv("bounds").scan())) == 51
    finally:
        process.kill()
    passes(environment, source, SERVER_TESTS)


def test_backups_at_urls_run_at_their_lower_bounds(at_bounds: Callable[..., Environment], source: Path) -> None:
    passes(at_bounds("server", "remote", tools=TOOLS), source, ["tests/unit/backup/test_backup_directories.py"])


def test_data_frames_are_made_at_their_lower_bounds(at_bounds: Callable[..., Environment], source: Path) -> None:
    environment = at_bounds("server", "pandas", "polars", tools=TOOLS)
    passes(environment, source, ["tests/unit/client/test_client_frames.py"])


@pytest.mark.spark
def test_spark_reads_and_writes_at_its_lower_bounds(
    at_bounds: Callable[..., Environment], server: ServerProcess
) -> None:
    need_java()
    # Spark's own warnings are not ours to judge.
    assert at_bounds("spark").run("python", "-c", SPARK, server.endpoint) == "100 n7\n"
