"""A wrong change of members is refused by the command itself, with the reason, and nothing has changed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cortado.store.client import Client
from support.cluster import Cluster, cortado
from support.ports import free_port, free_ports
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes and one that was announced and never came; no test may change them."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), count=4)
    try:
        cluster.nodes["n1"].start()
        for name in ("n2", "n3"):
            cluster.add(name)
        cortado("member", "add", "n4", cluster.nodes["n4"].peer_address, "--endpoint", cluster.addresses["n1"])
        yield cluster
    finally:
        cluster.end()


def refused(*arguments: str, code: int = 2) -> str:
    """Return the one line on standard error of a command that must end with ``code``."""
    command = [sys.executable, "-m", "cortado.store.cli", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == code, f"{arguments}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
    assert "Traceback" not in ended.stderr
    return ended.stderr


def members(cluster: Cluster) -> list[tuple[str, str, bool, bool]]:
    with Client(cluster.endpoints) as client:
        found = client.admin.members.list(at_leader=True).members
    return [(each.node_id, each.peer_address, each.voter, each.joined) for each in found]


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["add", "n2", "127.0.0.1:9"], 2, "NODE_ID: is a member already (got n2)"),
        (["add", "n5", "{n2}"], 2, "PEER_ADDRESS: belongs to member n2"),
        (["add", "n5", "nowhere"], 2, "PEER_ADDRESS: must be host:port with a port from 1 to 65535 (got nowhere)"),
        (["add", "n5", "0.0.0.0:7621"], 2, "PEER_ADDRESS: must be an address that other hosts can reach"),
        (["add", "-n5", "127.0.0.1:9"], 2, "-n"),
        (["add", "n_5!", "127.0.0.1:9"], 2, "NODE_ID: must consist of letters"),
        (["promote", "n2"], 2, "NODE_ID: is a voter already (got n2)"),
        (["promote", "n5"], 3, "no member n5"),
        (["promote", "n4"], 6, "n4 cannot become a voter now: it has not joined yet: start it with --join"),
        (["remove", "n5", "--yes"], 3, "no member n5"),
        (["transfer-leader", "n4"], 2, "NODE_ID: must name a voter of the group (got n4)"),
        (["transfer-leader", "n5"], 3, "no member n5"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    cluster: Cluster, command: list[str], code: int, said: str
) -> None:
    before = members(cluster)
    filled = [each.format(**cluster.addresses) for each in command]
    assert said in refused("member", *filled, "--endpoint", cluster.endpoints, code=code)
    assert members(cluster) == before


def test_the_question_before_a_removal_is_answered_with_no(cluster: Cluster) -> None:
    before = members(cluster)
    command = [sys.executable, "-m", "cortado.store.cli", "member", "remove", "n2", "--endpoint", cluster.endpoints]
    ended = subprocess.run(command, input="n\n", capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 130
    assert "Permanently remove voter n2" in ended.stderr
    assert "2 of 3 voters are left, and 0 of them may fail" in ended.stderr
    assert members(cluster) == before


def test_an_empty_directory_does_not_come_back_under_a_known_id(cluster: Cluster, tmp_path: Path) -> None:
    said = _refused_start(tmp_path, "n2", cluster.nodes["n1"].peer_address)
    assert "n2 is known by another data directory" in said or "another address" in said


def test_a_node_that_was_not_announced_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    said = _refused_start(tmp_path, "n9", cluster.nodes["n1"].peer_address)
    assert "no member n9 is known; announce it first: cortado member add n9" in said
    # The same directory may ask again, and is told the same.
    assert "no member n9 is known" in _refused_start(tmp_path, "n9", cluster.nodes["n2"].peer_address)
    assert "join: must be given" in refused("server", "--data-dir", str(tmp_path / "data"), *_free(), code=78)


def test_a_cluster_that_is_not_there_is_no_refusal_for_ever(cluster: Cluster, tmp_path: Path) -> None:
    port = free_port()
    said = _refused_start(tmp_path, "n8", f"127.0.0.1:{port}", "--join-timeout-ms", "500", code=69)
    assert "no leader of the cluster was reached within 0.5 s" in said
    assert "nothing listens there" in said


def test_a_node_of_another_cluster_is_not_let_in(cluster: Cluster, tmp_path: Path) -> None:
    with running_server(tmp_path / "other", "--node-id", "n4"):
        pass
    before = members(cluster)
    other = ("--data-dir", str(tmp_path / "other"), "--node-id", "n4", *_free())
    said = refused("server", *other, "--join", cluster.nodes["n1"].peer_address, code=78)
    assert "began a cluster of its own" in said
    assert "joins no other" in said
    assert members(cluster) == before
    said = refused("server", "--data-dir", str(tmp_path / "other"), "--cluster-id", "another", *_free())
    assert "--cluster-id: the data directory belongs to cluster" in said


def test_a_directory_of_another_node_is_refused(cluster: Cluster) -> None:
    folder = str(cluster.nodes["n2"].data_dir)
    assert "in use by process" in refused("server", "--data-dir", folder, *_free(), code=8)


def test_a_copy_of_a_directory_under_another_name_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(cluster.nodes["n2"].data_dir, tmp_path / "copy")
    said = refused("server", "--data-dir", str(tmp_path / "copy"), "--node-id", "n7", *_free())
    assert "the data directory is that of node n2" in said


def test_the_list_is_for_people_and_for_scripts(cluster: Cluster) -> None:
    shown = cortado("member", "list", "--endpoint", cluster.endpoints)
    assert re.search(r"n4 +- +127\.0\.0\.1:\d+ +learner +not joined yet", shown)
    assert len(re.findall(r" leader ", shown)) == 1
    lines = cortado("member", "list", "--endpoint", cluster.endpoints, "-o", "json").splitlines()
    found = {each["node_id"]: each for each in map(json.loads, lines)}
    assert [found[name]["voter"] for name in ("n1", "n2", "n3", "n4")] == [True, True, True, False]
    assert sum(each["leader"] for each in found.values()) == 1


def test_status_shows_every_member_and_says_which_does_not_answer(cluster: Cluster) -> None:
    shown = json.loads(cortado("status", "--endpoint", cluster.endpoints, "-o", "json"))
    by_id = {each["node_id"]: each for each in shown["members"]}
    assert [by_id[name]["reached"] for name in ("n1", "n2", "n3", "n4")] == [True, True, True, False]
    assert by_id["n4"]["problem"] == "it has not joined yet"
    assert "not joined yet" in cortado("status", "--endpoint", cluster.addresses["n2"])


# --- starts that must end ---------------------------------------------------------------------------------------


def _free() -> list[str]:
    return ["--listen", f"127.0.0.1:{free_ports(2)[0]}"]


def _refused_start(folder: Path, node_id: str, endpoint: str, *options: str, code: int = 78) -> str:
    """Return the log of a server that was to join, and must end by itself."""
    given = ["--data-dir", str(folder / "data"), "--node-id", node_id, "--join", endpoint, *options]
    return refused("server", *given, *_free(), code=code)


# --- changes that cannot be decided -----------------------------------------------------------------------------


def test_a_removal_that_would_leave_no_majority_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=3)
    try:
        cluster.form()
        leader = cluster.leader()
        gone, alive = (name for name in cluster.nodes if name != leader)
        cluster.kill(gone)
        wait_until(lambda: _silent_ms(cluster, gone) > 1_500, "its silence is noticed")
        said = refused("member", "remove", alive, "--yes", "--endpoint", cluster.endpoints, "--timeout", "3", code=6)
        assert f"without {alive}, 1 of the 2 voters left can be reached, and 2 are needed" in said
        # Without a majority a change may have been begun, or no node leads: the error names both, and nothing hangs.
        cluster.kill(alive)
        command = ["member", "add", "n9", "127.0.0.1:9", "--endpoint", cluster.endpoints, "--timeout", "3"]
        ended = subprocess.run([sys.executable, "-m", "cortado.store.cli", *command], capture_output=True, timeout=60)
        assert ended.returncode in (6, 7), ended.stderr
        # Readiness is that it can serve, and no more than that.
        wait_until(lambda: _health(cluster, leader) == health_pb2.HealthCheckResponse.NOT_SERVING, "it is not ready")
        assert "no leader" in _state(cluster, leader)
        cluster.start()
        cluster.wait_converged()
        wait_until(lambda: _health(cluster, leader) == health_pb2.HealthCheckResponse.SERVING, "it is ready")
    finally:
        cluster.end()


def _health(cluster: Cluster, node_id: str) -> int:
    with grpc.insecure_channel(cluster.addresses[node_id]) as channel:
        status: int = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5).status
        return status


def _silent_ms(cluster: Cluster, node_id: str) -> int:
    with Client(cluster.endpoints) as client:
        found = client.admin.members.list(at_leader=True).member(node_id)
    assert found is not None
    return found.last_heard_ms


def test_a_removed_node_says_so_and_stays_calm(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=3)
    try:
        cluster.form()
        removed = cluster.follower()
        node: ServerProcess = cluster.nodes[removed]
        cortado("member", "remove", removed, "--yes", "--endpoint", cluster.endpoints)
        wait_until(lambda: "was removed" in node.log, "its log says so")
        wait_until(lambda: "was removed" in _state(cluster, removed), "its state says so")
        lines = len(node.log.splitlines())
        term = cluster.term()
        node.stop()
        node.start()
        wait_until(lambda: "was removed" in _state(cluster, removed), "its state says so again")
        assert cluster.leader(besides=[removed])
        assert cluster.term() == term, "it disturbs nobody"
        assert len(node.log.splitlines()) < lines + 40
    finally:
        cluster.end()


def _state(cluster: Cluster, node_id: str) -> str:
    status = cluster.status(node_id)
    return "" if status is None else status.state
