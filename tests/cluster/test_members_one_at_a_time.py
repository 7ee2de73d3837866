"""Changes of members are made one at a time, and a node that moved tells where it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cortado.errors import Unavailable
from cortado.proto.v1 import cluster_pb2
from cortado.store.client import Client
from support.cluster import Cluster
from support.ports import free_ports
from support.server_process import ServerProcess, wait_until
from support.wire import Wire, refused

pytestmark = [pytest.mark.long, pytest.mark.process]


def change(endpoints: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cortado.store.cli", "member", *arguments, "--endpoint", endpoints]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def test_a_second_change_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    # Patient elections: the leader is not to step down while no member answers it.
    cluster = Cluster(tmp_path, "--election-ms", "30000")
    try:
        cluster.form()
        leader = cluster.leader()
        others = [name for name in cluster.nodes if name != leader]
        for name in others:
            cluster.pause(name)
        first = change(cluster.addresses[leader], "add", "n8", "127.0.0.1:8", "--timeout", "3")
        assert first.returncode == 7, first.stderr
        assert "look at the members" in first.stderr
        # Called once: a caller that repeats it until a deadline may be cut off within the last attempt.
        second = cluster_pb2.AddMemberRequest(node_id="n9", peer_address="127.0.0.1:9")
        refusal = refused(lambda: Wire(cluster.addresses[leader]).cluster.AddMember(second, timeout=60))
        assert isinstance(refusal, Unavailable)
        assert "the last change of members is not committed yet" in str(refusal)
        for name in others:
            cluster.resume(name)
        with Client(cluster.endpoints, timeout_s=30) as client:
            # The change that was begun is completed, and then the next one can be.
            wait_until(lambda: client.admin.members.list().member("n8") is not None, "the first change is made")
            client.admin.members.add("n9", "127.0.0.1:9")
            found = {each.node_id for each in client.admin.members.list(at_leader=True).members}
            assert found == {"n1", "n2", "n3", "n8", "n9"}
    finally:
        cluster.end()


def test_a_node_that_comes_back_at_another_address_tells_the_cluster(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    moved: ServerProcess | None = None
    try:
        cluster.form()
        name = cluster.follower()
        cluster.nodes[name].stop()
        port = free_ports(2)[0]
        moved = ServerProcess(cluster.nodes[name].data_dir, listen=f"127.0.0.1:{port}")
        moved.start()
        with Client(cluster.endpoints, timeout_s=30) as client:

            def is_known() -> bool:
                member = client.admin.members.list(at_leader=True).member(name)
                return (
                    member is not None
                    and member.address == f"127.0.0.1:{port}"
                    and member.peer_address == moved.peer_address
                )

            wait_until(is_known, "the new address is known")
            client.kv("n").put(b"k", b"v")
        with Client(moved.endpoint, timeout_s=30) as client:
            assert client.kv("n").get(b"k") is not None
    finally:
        if moved is not None:
            moved.kill()
        cluster.end()


def test_a_cluster_shrinks_to_one_and_no_further(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.form()
        first = cluster.leader()
        for name in (each for each in cluster.nodes if each != first):
            assert change(cluster.endpoints, "remove", name, "--yes").returncode == 0
            cluster.nodes[name].stop()
        last = change(cluster.endpoints, "remove", first, "--yes")
        assert last.returncode == 2
        assert "is the only voter: there would be no cluster left" in last.stderr
        cluster.nodes[first].stop()
        cluster.start(first)
        with Client(cluster.addresses[first], timeout_s=30) as client:
            client.kv("n").put(b"k", b"v")
            assert [each.node_id for each in client.admin.members.list().members] == [first]
    finally:
        cluster.end()
