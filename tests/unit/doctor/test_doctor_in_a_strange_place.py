"""A directory of unknown origin leads a diagnosis nowhere: no token leaves this machine, and no file is shown."""

from __future__ import annotations

import io
import json
import os
import tarfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cortado.store.cli.app import run
from cortado.store.cli.diagnosing import local_cluster, sources_of
from cortado.store.cli.session import Session

SECRET = "a line of a file that nobody named"
TOKEN = "ctd_0123456789abcdef_" + "t" * 43


def planned(directory: Path, address: str, node_id: str = "n1") -> None:
    directory.mkdir()
    node = {"node_id": node_id, "address": address, "peer_address": address}
    flags = dict.fromkeys(("is_announced", "is_voter"), True) | {"is_removed": False}
    plan = {"format": 2, "nodes": [node | flags], "has_tls": False}
    (directory / "cluster.json").write_text(json.dumps(plan))


@pytest.mark.parametrize(("address", "is_asked"), [("192.0.2.7:7621", False), ("127.0.0.1:7699", True)])
def test_a_token_goes_to_addresses_of_this_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, is_asked: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    planned(tmp_path / "cortado-cluster", address)
    session = Session(token=TOKEN)
    sources = sources_of(session, local_cluster(session, None), None, (), (), 10)
    assert (address in sources.endpoints) == is_asked


def test_links_and_pipes_in_a_clusters_directory_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cluster, secret = tmp_path / "cortado-cluster", tmp_path / "secret"
    secret.write_text(SECRET)
    planned(cluster, "127.0.0.1:1")
    for name in ("n1", "n1/data"):
        (cluster / name).mkdir()
    (cluster / "supervisor.log").symlink_to(secret)
    os.mkfifo(cluster / "n1" / "server.log")
    (cluster / "n1" / "data" / "FORMAT").symlink_to(secret)
    os.mkfifo(cluster / "n1" / "data" / "identity.json")
    with redirect_stdout(io.StringIO()) as shown, redirect_stderr(io.StringIO()):
        run(["doctor", "--bundle", str(tmp_path / "bundle.tar.gz"), "-o", "json"])
    assert json.loads(shown.getvalue())["facts"]["data_directories"]
    assert SECRET not in shown.getvalue()
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        for each in archive:
            assert SECRET.encode() not in archive.extractfile(each).read()  # type: ignore[union-attr]
