"""One node's disk is full: the follower's is no hindrance, a leader refuses writes until another leads; nothing is
lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.client import Client
from support.callers import calling
from support.cluster import Cluster
from support.server_process import wait_until
from support.small_disk import mounted_disk

pytestmark = pytest.mark.process

DISK_MIB = 200


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


@pytest.fixture
def cluster(tmp_path: Path, small_disk: Path) -> Iterator[Cluster]:
    """Three nodes, with ``n1`` on the small disk."""
    (small_disk / "n1").mkdir()
    (tmp_path / "n1").symlink_to(small_disk / "n1", target_is_directory=True)
    formed = Cluster(tmp_path)
    try:
        yield formed.form()
    finally:
        formed.end()


def take_all(disk: Path) -> Path:
    """Fill the disk to the last byte; removing the file gives it all back."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(b"b" * size)
            except OSError:
                continue
    return ballast


def is_full(cluster: Cluster) -> bool:
    status = cluster.status("n1")
    return status is not None and "disk" in status.state


def refuse_or_step_down(cluster: Cluster, client: Client) -> None:
    """n1 leads without room: it refuses writes, and reads go on; it steps down if it could not store writes that it had
    admitted before."""
    try:
        client.with_timeout(3).kv("full-refused").put(b"key", b"value")
        assert cluster.leader() != "n1"
    except ResourceExhausted as refused:
        assert "full" in refused.message()
        assert client.kv("full-refused").get(b"key") is None


@pytest.mark.parametrize("role", ["follower", "leader"])
def test_one_full_disk_stops_nobody_and_loses_nothing(cluster: Cluster, small_disk: Path, role: str) -> None:
    with Client(cluster.endpoints, timeout_s=30) as client, calling(client, "full") as crowd:
        if (cluster.leader() == "n1") != (role == "leader"):
            client.admin.members.transfer_leader("n1" if role == "leader" else "n2")
        ballast = take_all(small_disk)
        wait_until(lambda: is_full(cluster), "n1 says that its disk is full")
        if cluster.leader() == "n1":
            refuse_or_step_down(cluster, client)
            # The step of the runbook.
            client.admin.members.transfer_leader("n2")
        crowd.wait_for_progress(100)
        assert cluster.leader() != "n1"
        # A crash on the full disk, too.
        cluster.kill("n1")
        crowd.wait_for_progress()
        cluster.start("n1")
        crowd.wait_for_progress()
        ballast.unlink()
        cluster.wait_converged()
    cluster.assert_same_contents("full", "full-tokens")
