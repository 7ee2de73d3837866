"""A node that runs twice, on a copy of its directory: the copy is refused, and the cluster goes on as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.cluster import Cluster, running_cluster
from support.ports import free_ports
from support.server_process import ServerProcess, wait_until


def refusal(name: str) -> str:
    """Return the refusal of a process that is refused for good. A process that has to wait gets another text."""
    return f"another process speaks for node {name}, with the same data directory"


def copied(cluster: Cluster, name: str, folder: Path) -> ServerProcess:
    """A copy of the node's directory, and a server for it elsewhere."""
    node = cluster.nodes[name]
    cluster.pause(name)
    try:
        shutil.copytree(node.data_dir, folder)
    finally:
        cluster.resume(name)
    return ServerProcess(folder, "--node-id", name, listen=f"127.0.0.1:{free_ports(2)[0]}")


@pytest.mark.parametrize("victim", ["leader", "follower"])
def test_a_copy_that_is_started_beside_its_node_is_refused_and_changes_nothing(tmp_path: Path, victim: str) -> None:
    cluster = Cluster(tmp_path).form()
    copy: ServerProcess | None = None
    try:
        with Client(cluster.endpoints) as client:
            pairs = client.kv("n")
            pairs.put(b"before", b"1")
            name = cluster.leader() if victim == "leader" else cluster.follower()
            copy = copied(cluster, name, tmp_path / "copy")
            cluster.wait_converged()
            copy.launch()
            wait_until(lambda: copy is not None and refusal(name) in copy.log, "the copy is told")
            for number in range(200):
                pairs.put(b"k%03d" % number, b"v")
            wait_until(lambda: _is_refused(cluster, name), "another node has refused it")
            before = cluster.term()
            # Without one of the others the original's vote and acknowledgements are needed.
            other = next(each for each in cluster.nodes if each != name and each != cluster.leader())
            cluster.kill(other)
            for number in range(200):
                pairs.put(b"k%03d" % number, b"w")
            cluster.start(other)
            cluster.wait_converged()
            assert all(node.is_running for node in cluster.nodes.values())
            assert cluster.term() >= before
            members = {each.node_id: each.address for each in client.admin.members.list().members}
            assert members[name] == cluster.addresses[name], "the copy's address was not taken"
            assert [each.value for each in pairs.scan(prefix=b"k")] == [b"w"] * 200
            assert copy.is_running, "it is there to be looked at"
            assert "DATA_LOSS" not in "".join(node.log for node in cluster.nodes.values())
    finally:
        if copy is not None:
            copy.kill()
        cluster.kill(*cluster.nodes)


def _is_refused(cluster: Cluster, name: str) -> bool:
    others = [node for other, node in cluster.nodes.items() if other != name]
    return any(f"node '{name}' of the peers refused: {refusal(name)}" in each.log for each in others)


@pytest.mark.parametrize("signal", ["kill", "stop"])
def test_a_node_that_is_restarted_on_another_host_with_its_directory_takes_its_place(
    tmp_path: Path, signal: str
) -> None:
    """A copy that is started once the original has ended is a node that has moved."""
    cluster = Cluster(tmp_path).form()
    moved: ServerProcess | None = None
    try:
        with Client(cluster.endpoints) as client:
            client.kv("n").put(b"before", b"1")
            name = cluster.follower()
            if signal == "kill":
                cluster.kill(name)
            else:
                cluster.nodes[name].stop()
            shutil.copytree(cluster.nodes[name].data_dir, tmp_path / "moved")
            moved = ServerProcess(tmp_path / "moved", "--node-id", name, listen=f"127.0.0.1:{free_ports(2)[0]}").start()
            cluster.nodes[name], cluster.addresses[name] = moved, moved.endpoint
            client.kv("n").put(b"after", b"1")
            cluster.wait_converged()
            assert refusal(name) not in moved.log
    finally:
        if moved is not None:
            moved.kill()
        cluster.kill(*cluster.nodes)


def test_a_copy_that_was_refused_is_not_heard_by_a_member_that_starts_later(tmp_path: Path) -> None:
    """That one knows nothing of the original, which is silent just then: the copy stands aside by itself."""
    cluster = Cluster(tmp_path).form()
    copy: ServerProcess | None = None
    try:
        with Client(cluster.endpoints) as client:
            pairs = client.kv("n")
            leader = cluster.leader()
            name, other = (each for each in cluster.nodes if each != leader)
            copy = copied(cluster, name, tmp_path / "copy")
            cluster.wait_converged()
            copy.launch()
            wait_until(lambda: _is_refused(cluster, name), "another node has refused it")
            for number in range(200):
                pairs.put(b"%03d" % number, b"v")
            cluster.kill(other)
            cluster.pause(name)
            cluster.start(other)
            began_ms = client.now().wall_ms

            def has_run() -> bool:
                pairs.put(b"k", b"v")
                return client.now().wall_ms > began_ms + 3_000

            wait_until(has_run, "the copy has dialled it often")
            assert "connected to node" not in copy.log.replace("not connected", "")
            cluster.resume(name)
            cluster.wait_converged()
            members = {each.node_id: each.address for each in client.admin.members.list().members}
            assert members[name] == cluster.addresses[name], "the copy's address was not taken"
            assert len(list(pairs.scan())) == 201
    finally:
        if copy is not None:
            copy.kill()
        cluster.kill(*cluster.nodes)


@pytest.mark.parametrize("victim", ["leader", "follower"])
def test_a_node_that_restarts_while_another_stands_still_is_no_copy(tmp_path: Path, victim: str) -> None:
    """The other reads what its buffers hold of the earlier process once both run again."""
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints) as client:
        leader = cluster.leader()
        frozen, other = (each for each in cluster.nodes if each != leader)
        restarted = leader if victim == "leader" else other
        cluster.pause(frozen)
        for number in range(200):
            client.kv("n").put(b"%03d" % number, bytes(1_000))
        cluster.kill(restarted)
        cluster.start(restarted)
        began_ms = client.now().wall_ms

        def has_run() -> bool:
            client.kv("n").put(b"k", b"v")
            return client.now().wall_ms > began_ms + 3_000

        wait_until(has_run, "it runs longer than messages are late")
        cluster.resume(frozen)
        cluster.wait_converged()
        # A greeting of the killed process may still lie in a buffer of the frozen one, which logs that it refuses it.
        assert not [name for name, node in cluster.nodes.items() if refusal(name) in node.log]
