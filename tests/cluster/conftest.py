"""One server for all tests that only need a server, one cluster for those that need three; names used once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from cortado.store.client import Client
from support.cluster import Cluster, running_cluster
from support.server_process import ServerProcess, running_server

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that every test may use and none may break."""
    with running_server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def _shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def three_nodes(_shared_cluster: Cluster) -> Cluster:
    """Three nodes that tests may kill, pause and cut; each test finds them mended."""
    _shared_cluster.mend()
    return _shared_cluster


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.endpoint, timeout_s=10) as opened:
        yield opened


@pytest.fixture
def database(client: Client) -> str:
    """A new database; its name serves for namespaces too."""
    name = f"d{next(_NUMBERS)}"
    client.create_database(name)
    return name
