"""One reader of the environment serves the command line, applications and Spark."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.proto.v1 import kv_pb2
from cortado.store.auth.tokens import make_token
from cortado.store.cli.app import run
from cortado.store.cli.session import Given, Session
from cortado.store.client import Client, Tls
from cortado.store.client.reach import reached
from support.faces import FACES, open_client
from support.fake_server import FakeServer, header

TOKEN = make_token(os.urandom).text
OTHER = make_token(os.urandom).text
VARIABLES = ("ENDPOINTS", "TOKEN", "TOKEN_FILE", "TLS_CA", "TLS_CERT", "TLS_KEY", "CONTEXT", "CONFIG")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"CORTADO_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def asked() -> list[dict[str, Any]]:
    """Return the metadata of each call."""
    return []


@pytest.fixture
def server(asked: list[dict[str, Any]]) -> Iterator[FakeServer]:
    def get(request: Any, context: Any) -> kv_pb2.KvGetResponse:
        asked.append(dict(context.invocation_metadata()))
        return kv_pb2.KvGetResponse(header=header())

    with FakeServer().running() as running:
        running.handlers["KeyValue.Get"] = get
        yield running


@pytest.mark.parametrize("face", FACES)
def test_a_client_without_arguments_goes_where_the_variables_say_and_as_whom(
    server: FakeServer, asked: list[dict[str, Any]], face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTADO_ENDPOINTS", f"127.0.0.1:1,{server.endpoint}")
    monkeypatch.setenv("CORTADO_TOKEN", TOKEN)
    with open_client(face, coalesce=False) as client:
        assert client.kv("n").get(b"k") is None
        assert client.endpoint == f"127.0.0.1:1,{server.endpoint}"
    assert asked[-1]["authorization"] == f"Bearer {TOKEN}"


def test_a_token_of_the_environment_goes_to_no_other_cluster_than_the_environments(
    server: FakeServer, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTADO_TOKEN", TOKEN)
    with Client(server.endpoint, coalesce=False) as client:
        client.kv("n").get(b"k")
    assert "authorization" not in asked[-1]


def test_what_an_application_gives_wins_over_the_environment(
    server: FakeServer, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTADO_ENDPOINTS", server.endpoint)
    monkeypatch.setenv("CORTADO_TOKEN", TOKEN)
    with Client(token=OTHER, coalesce=False) as client:
        client.kv("n").get(b"k")
    assert asked[-1]["authorization"] == f"Bearer {OTHER}"


def test_applications_spark_and_the_command_line_read_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = pytest.importorskip("pyspark_cortado.options")
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "cert", "key")}
    monkeypatch.setenv("CORTADO_ENDPOINTS", "db1:7621, db2:7621")
    for name, file in files.items():
        monkeypatch.setenv(f"CORTADO_TLS_{name.upper()}", str(file))
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setenv("CORTADO_TOKEN_FILE", str(tmp_path / "token"))
    endpoint, tls, token = reached(None, None, None)
    assert (endpoint, tls, token) == ("db1:7621,db2:7621", Tls(*files.values()), tmp_path / "token")
    spark = options.read_options({"table": "a.b"}).connection
    assert (spark.endpoint, spark.tls, spark.token) == (endpoint, tls, token)
    session = Session.resolve(Given(), os.environ)
    assert (session.endpoint, session.token) == (endpoint, token)
    assert [session.tls_ca, session.tls_cert, session.tls_key] == [str(file) for file in files.values()]


def test_without_variables_it_is_the_node_of_this_machine() -> None:
    assert reached(None, None, None) == ("127.0.0.1:7621", None, None)


@pytest.mark.parametrize(
    ("variables", "field", "problem"),
    [
        ({"ENDPOINTS": "nowhere"}, "CORTADO_ENDPOINTS", "must look like host:port"),
        ({"ENDPOINT": "127.0.0.1:1"}, "CORTADO_ENDPOINT", "did you mean CORTADO_ENDPOINTS"),
        ({"TLS_CERT": "own.crt"}, "CORTADO_TLS_CA", "must be given with CORTADO_TLS_CERT"),
        ({"TLS_CA": "ca.crt", "TLS_KEY": "own.key"}, "CORTADO_TLS_CERT", "must be given with CORTADO_TLS_KEY"),
        ({"TOKEN": "no token"}, "CORTADO_TOKEN", "must look like ctd_"),
        ({"TOKEN_FILE": "/no/such/file"}, "CORTADO_TOKEN_FILE", "cannot be read"),
        ({"TLS_CA": "/no/such/file"}, "CORTADO_TLS_CA", "cannot be read"),
    ],
)
def test_a_wrong_variable_is_refused(
    variables: dict[str, str], field: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"CORTADO_{name}", value)
    with pytest.raises(InvalidArgument, match=problem) as refused:
        Client()
    assert refused.value.field == field


def test_a_command_names_where_its_wrong_token_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "--token-file", "/no/such/file"]) == 2
    assert "error: --token-file: cannot be read" in capsys.readouterr().err
    monkeypatch.setenv("CORTADO_TOKEN_FILE", "/no/such/file")
    assert run(["status"]) == 2
    assert "error: CORTADO_TOKEN_FILE: cannot be read" in capsys.readouterr().err
    monkeypatch.setenv("CORTADO_TOKEN", "no token")
    assert run(["status"]) == 2
    assert "error: CORTADO_TOKEN: must look like ctd_" in capsys.readouterr().err


@pytest.mark.parametrize(("part", "field"), [("CERT", "CORTADO_TLS_CERT"), ("KEY", "CORTADO_TLS_KEY")])
def test_each_file_of_a_connection_is_named_by_its_variable(
    part: str, field: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = pytest.importorskip("pyspark_cortado.options")
    (tmp_path / "a.pem").write_text("-----BEGIN ")
    for name in ("CA", "CERT", "KEY"):
        path = "/no/such/file" if name == part else str(tmp_path / "a.pem")
        monkeypatch.setenv(f"CORTADO_TLS_{name}", path)
    with pytest.raises(InvalidArgument, match="No such file") as refused:
        Client()
    assert refused.value.field == field
    # Spark's executors get these by pickle, and read the files themselves.
    there = pickle.loads(pickle.dumps(options.read_options({"table": "a.b"}).connection.tls))
    with pytest.raises(InvalidArgument, match="No such file") as refused:
        there.context()
    assert refused.value.field == field


def test_a_command_that_needs_a_file_names_its_options() -> None:
    assert run(["status", "--tls-cert", "own.crt"]) == 2
