"""Nothing that a server stores is for others than the user who runs it, whatever his umask is."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.client import Client
from cortado.store.local_cluster.files import ClusterFiles
from support.private_files import no_umask, shared
from support.server_process import ServerProcess

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def without_a_umask() -> Iterator[None]:
    with no_umask():
        yield


def test_a_servers_directory_is_private_under_a_umask_of_zero(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data").start()
    try:
        with Client(server.endpoint) as client:
            client.kv("default").put(b"k", b"v")
        assert {each.name for each in (tmp_path / "data").rglob("*")} >= {"data.mdb", "lock.mdb", "LOCK"}
        assert shared(tmp_path / "data") == []
    finally:
        server.stop()


def test_a_directory_that_was_shared_is_private_once_the_server_has_started(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data").start()
    server.stop()
    for each in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)
    server.start()
    try:
        assert shared(tmp_path / "data") == []
        assert "are private now" in server.log
    finally:
        server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_another_user_can_neither_lock_nor_read_what_a_server_left(tmp_path: Path) -> None:
    ServerProcess(tmp_path / "data").start().stop()
    for each in (tmp_path, *tmp_path.parents):
        if not each.stat().st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o011)
    nobody = pwd.getpwnam("nobody").pw_uid
    for name in ("LOCK", "identity.json", "engine/data.mdb"):
        tried = subprocess.run(
            ["head", "-c", "1", str(tmp_path / "data" / name)],
            user=nobody,
            group=nobody,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Permission denied" in tried.stderr, name


def test_a_local_clusters_directory_is_private(tmp_path: Path) -> None:
    with ClusterFiles(tmp_path / "cluster").locked():
        assert shared(tmp_path / "cluster") == []
