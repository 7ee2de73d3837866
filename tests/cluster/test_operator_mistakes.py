"""Mistakes and bad luck of an operator on a real cluster: each command ends in time, names the problem, and leaves the
cluster unchanged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.cluster import Cluster, cortado, running_cluster
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

TIMEOUT_S = 2.0
# The time that a busy machine may take to start and end a command, beside the command's timeout.
START_S = 15.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes; every test finds them well."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(autouse=True)
def mended(cluster: Cluster) -> Iterator[None]:
    cluster.mend()
    cluster.wait_converged()
    yield


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ended within its timeout, with one line at most on standard error."""
    command = [sys.executable, "-m", "cortado.store.cli", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S + START_S, check=False)
    assert found.stderr.count("\n") <= 1, found.stderr
    return found


def refused(cluster: Cluster, *arguments: str, code: int = 6) -> str:
    found = ended(*arguments, "--endpoint", cluster.endpoints, "--timeout", str(TIMEOUT_S))
    assert found.returncode == code, found
    return found.stderr


def test_a_leader_is_not_moved_for_a_removal_that_is_refused(cluster: Cluster) -> None:
    leader, term, silent = cluster.leader(), cluster.term(), cluster.follower()
    cluster.pause(silent)
    wait_until(lambda: f"node '{silent}' of the peers lost" in cluster.nodes[leader].log, "its silence was noticed")
    said = refused(cluster, "member", "transfer-leader", silent)
    assert "has not answered for 700 ms" in said
    said = refused(cluster, "member", "remove", leader, "--yes")
    assert f"without {leader}, 1 of the 2 voters left can be reached, and 2 are needed" in said
    assert (cluster.leader(), cluster.term()) == (leader, term)


def test_who_answers_under_a_members_address_and_is_not_it_is_named(cluster: Cluster, tmp_path: Path) -> None:
    gone = cluster.follower()
    cluster.kill(gone)
    options = ("--node-id", gone, "--cluster-id", "other")
    stranger = ServerProcess(tmp_path / "stranger", *options, listen=cluster.addresses[gone])
    try:
        stranger.start()
        shown = cortado("status", "--endpoint", cluster.addresses[cluster.leader((gone,))], "-o", "json")
    finally:
        stranger.kill()
    assert f"node {gone} of cluster other answers there" in shown


def test_a_node_that_began_a_cluster_is_not_made_a_member_by_join(cluster: Cluster, tmp_path: Path) -> None:
    with running_server(tmp_path / "data", "--node-id", "n7"):
        pass
    address = cluster.nodes[cluster.leader()].peer_address
    found = ended("server", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--join", address)
    assert found.returncode == 78
    assert "began a cluster of its own" in found.stderr


def test_ctrl_c_while_a_command_is_loaded_is_quiet() -> None:
    """Half the time that a short command takes goes into this."""
    interrupts = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cortado.store.cli.commands':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.argv = ['cortado', 'status']\n"
        "from cortado.store.cli import main\n"
        "main()\n"
    )
    found = subprocess.run([sys.executable, "-c", interrupts], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr) == (130, "")


def test_without_a_majority_every_command_ends_in_time_and_says_why(cluster: Cluster) -> None:
    """The last of those that use the cluster: a removal with an unknown outcome may be completed later."""
    left = cluster.leader()
    for name in cluster.nodes:
        if name != left:
            cluster.kill(name)
    changes = (
        ["member", "add", "n9", "127.0.0.1:9"],
        ["member", "remove", "n2", "--yes"],
        ["member", "transfer-leader"],
        ["kv", "get", "n", "k"],
        ["kv", "put", "n", "k", "v"],
    )
    with ThreadPoolExecutor(len(changes)) as pool:
        ends = list(pool.map(lambda each: ended(*each, "--endpoint", cluster.endpoints, "--timeout", "2"), changes))
    for found in ends:
        # If a change was on its way when the time was over, its outcome is unknown, and the error tells where to look.
        # A leader that has not given up yet names the members that it lacks.
        assert found.returncode in (6, 7), found
        reasons = ("no leader", "nothing listens there", "no other voter can be reached", "look at the members to see")
        assert any(reason in found.stderr for reason in reasons), found
    for command in (["status"], ["member", "list"]):
        found = ended(*command, "--endpoint", cluster.addresses[left], "--timeout", "2")
        assert found.returncode == 0
        assert "no leader is known" in found.stdout + found.stderr
