"""Two of three nodes are gone for ever: the survivor becomes a cluster of its own by an operator's word alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.cluster import Cluster, cortado
from support.ports import free_port
from support.server_process import ServerProcess, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]


def recover(data_dir: Path, *options: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cortado.store.cli", "recover", "--force-new-cluster", "--data-dir", str(data_dir)]
    return subprocess.run([*command, *options], input=answer, capture_output=True, text=True, timeout=60, check=False)


def identity(data_dir: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((data_dir / "identity.json").read_text())
    return found


def contents(data_dir: Path) -> dict[str, bytes]:
    """All that counts in a directory; LMDB's table of readers is made anew by each opening."""
    files = (each for each in data_dir.rglob("*") if each.is_file() and each.name not in ("lock.mdb", "LOCK"))
    return {str(each.relative_to(data_dir)): each.read_bytes() for each in files}


def test_a_survivor_of_two_lost_nodes_goes_on_alone_and_grows_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=4)
    try:
        cluster.nodes["n1"].start()
        for name in ("n2", "n3"):
            cluster.add(name)
        with Client(cluster.endpoints, timeout_s=30) as client:
            for number in range(200):
                client.kv("n").put(b"%d" % number, b"v")
        survivor = cluster.follower()
        data_dir = cluster.nodes[survivor].data_dir
        lost = [name for name in ("n1", "n2", "n3") if name != survivor]
        in_use = recover(data_dir, "--yes")
        assert in_use.returncode == 8
        assert "in use by process" in in_use.stderr
        cluster.kill("n1", "n2", "n3")

        before = contents(data_dir)
        shown = recover(data_dir, "--dry-run")
        assert shown.returncode == 0
        assert all(f"{name} ({cluster.nodes[name].peer_address})" in shown.stdout for name in lost)
        assert "Lost: writes that the other members acknowledged and this node does not hold" in shown.stdout
        assert "nothing was changed" in shown.stdout
        assert recover(data_dir, answer="n\n").returncode == 130
        assert contents(data_dir) == before

        old_id = identity(data_dir)["cluster_id"]
        done = recover(data_dir, "--yes", "-o", "json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["removed"] == lost
        assert report["new_cluster_id"] == identity(data_dir)["cluster_id"] != old_id

        cluster.start(survivor)
        with Client(cluster.addresses[survivor], timeout_s=30) as client:
            assert len(list(client.kv("n").scan())) == 200
            client.kv("n").put(b"after", b"v")
        # The lost ones come back, and are strangers to it: they hold the old cluster's majority among themselves.
        cluster.start(*lost)
        assert cluster.leader(besides=[survivor]) in lost
        assert cluster.leader(besides=lost) == survivor
        cluster.kill(*lost)
        cortado("member", "add", "n4", cluster.nodes["n4"].peer_address, "--endpoint", cluster.addresses[survivor])
        joining = ServerProcess(
            tmp_path / "new",
            *("--node-id", "n4", "--join", cluster.nodes[survivor].peer_address),
            listen=cluster.addresses["n4"],
        )
        try:
            joining.start()
            cortado("member", "promote", "n4", "--wait", "--endpoint", cluster.addresses[survivor])
            with Client(cluster.addresses["n4"], timeout_s=30) as client:
                assert client.kv("n").get(b"after") is not None
        finally:
            joining.kill()
    finally:
        cluster.end()


def test_what_cannot_be_a_cluster_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=2)
    try:
        cluster.nodes["n1"].start()
        cortado("member", "add", "n2", cluster.nodes["n2"].peer_address, "--endpoint", cluster.addresses["n1"])
        cluster.nodes["n2"].start()
        wait_until(lambda: _applied(cluster, "n2") > 1, "the learner has something")
        cluster.kill("n1", "n2")
        learner = cluster.nodes["n2"].data_dir
        before = contents(learner)
        refused = recover(learner, "--yes")
        assert refused.returncode == 2
        assert "that of a learner, n2" in refused.stderr
        assert contents(learner) == before
    finally:
        cluster.end()

    never = tmp_path / "never"
    command = [sys.executable, "-m", "cortado.store.cli", "server", "--data-dir", str(never), "--node-id", "n9"]
    command += ["--listen", "127.0.0.1:0", "--join", f"127.0.0.1:{free_port()}", "--join-timeout-ms", "1"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 69
    assert "never joined a cluster" in recover(never, "--yes").stderr

    assert "holds no node's data" in recover(tmp_path / "nothing", "--yes").stderr
    assert not (tmp_path / "nothing").exists()
    alone = tmp_path / "alone"
    with_one = ServerProcess(alone)
    with_one.start()
    with_one.stop()
    for how in ("--yes", "--dry-run"):
        again = recover(alone, how)
        assert again.returncode == 2
        assert "is a cluster of one already" in again.stderr
    shutil.rmtree(alone)


def _applied(cluster: Cluster, name: str) -> int:
    status = cluster.status(name)
    return 0 if status is None else int(status.applied_index)
