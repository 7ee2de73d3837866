"""Real nodes tell each stranger, and each member whose identity has changed, why they refuse it."""

from __future__ import annotations

import shutil
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from cortado.store.engine.data_directory import Identity
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.hello import make_hello
from cortado.store.ports.addresses import split_address
from support.cluster import cortado, running_cluster
from support.peer_calls import how_it_ended
from support.ports import free_ports
from support.server_process import ServerProcess, peer_address_of, running_server

pytestmark = pytest.mark.process

FLOOD_STREAMS = 300
FLOOD_BYTES = 1 << 20
MEMORY_MAX = 150 << 20


def resident_bytes(server: ServerProcess) -> int:
    fields = Path(f"/proc/{server.pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def refused_start(server: ServerProcess) -> str:
    """Return the output of a server that does not start."""
    with pytest.raises(AssertionError, match="the server ended with"):
        server.start()
    assert "Traceback" not in server.log
    return server.log


def joining(folder: Path, node_id: str, address: str, *endpoints: str) -> ServerProcess:
    options = ("--node-id", node_id, "--join", ",".join(endpoints))
    return ServerProcess(folder / f"{node_id}-{address.rpartition(':')[2]}", *options, listen=address)


def test_who_may_not_join_is_told_why(tmp_path: Path) -> None:
    with running_server(tmp_path / "n1", "--node-id", "n1") as n1:
        first, _, second, _ = (f"127.0.0.1:{port}" for port in free_ports(4))
        said = refused_start(joining(tmp_path, "n2", first, n1.peer_address))
        assert "n2" in said
        assert "cortado member add" in said
        cortado("member", "add", "n2", peer_address_of(first), "--endpoint", n1.endpoint)
        said = refused_start(joining(tmp_path, "n2", second, n1.peer_address))
        assert (
            f"node n2 was announced at {peer_address_of(first)}, and says to be reached at {peer_address_of(second)}"
            in said
        )
        n2 = joining(tmp_path, "n2", first, n1.peer_address)
        try:
            n2.start()
            # Once more, with an empty directory, as after a lost disk.
            n2.stop()
            shutil.rmtree(n2.data_dir)
            said = refused_start(n2)
            assert "another data directory" in said
        finally:
            n2.kill()


def test_a_node_of_another_cluster_is_refused_by_a_real_one_and_a_flood_costs_no_memory(tmp_path: Path) -> None:
    with running_server(tmp_path / "n1", "--node-id", "n1", "--cluster-id", "cluster-a") as n1:
        hello = make_hello(Identity("cluster-b", "n2", "disk-2"), "h:1", (9, 9), "n1")
        introduced = Frame(Kind.HELLO, hello.SerializeToString())
        said, _ = how_it_ended(n1.peer_address, "n1", introduced)
        assert "node n2 belongs to cluster cluster-b, this node n1 to cluster cluster-a" in said
        garbage = bytes(FLOOD_BYTES)

        def flood() -> int:
            for _ in range(FLOOD_STREAMS):
                with suppress(OSError), socket.create_connection(split_address("n1", n1.peer_address)) as flooding:
                    flooding.sendall(garbage)
            return resident_bytes(n1)

        # The allocator keeps the memory of the first ones; many more take no more.
        first = flood()
        flood()
        assert flood() - first < MEMORY_MAX
        cortado("kv", "put", "n", "k", "v", "--endpoint", n1.endpoint)


def test_a_member_with_another_data_directory_is_refused_by_all_that_know_it(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        victim = cluster.follower()
        name = cluster.leader()
        leader = cluster.nodes[name].peer_address
        cluster.kill(victim)
        impostor = Identity(cluster.status(cluster.leader()).header.cluster_id, victim, "disk-new")  # type: ignore[union-attr]
        hello = make_hello(impostor, cluster.nodes[victim].peer_address, (0, 0), cluster.leader())

        def answer() -> str:
            said, _ = how_it_ended(leader, name, Frame(Kind.HELLO, hello.SerializeToString()))
            return said

        assert f"node {victim} has another data directory (disk-new)" in answer()
        # With its own it is a member as before.
        cluster.start(victim)
        cluster.wait_converged()
