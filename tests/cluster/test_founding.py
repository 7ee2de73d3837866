"""A node that may found a cluster founds none where another node is in one, or does not say that it is in none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.certificates import Certifier
from support.cluster import cortado
from support.ports import free_ports
from support.server_process import ServerProcess, peer_address_of, wait_until
from support.tls_nodes import node_process

pytestmark = [pytest.mark.long, pytest.mark.process]

NAMES = ("n1", "n2", "n3")
QUICK = ("--join-timeout-ms", "700")


class Pods:
    """Three nodes as the chart starts them: each has the others to join, and the first one may found."""

    def __init__(self, folder: Path) -> None:
        listens = {name: f"127.0.0.1:{port}" for name, port in zip(NAMES, free_ports(6)[::2], strict=True)}
        self.folder = folder
        self.peers = {name: peer_address_of(listen) for name, listen in listens.items()}
        self.nodes: dict[str, ServerProcess] = {}
        self._listens = listens

    def node(self, name: str, *options: str) -> ServerProcess:
        """Made anew: with these options."""
        others = ",".join(peer for other, peer in self.peers.items() if other != name)
        given = ("--node-id", name, "--join", others, *options)
        made = ServerProcess(self.folder / name, *given, listen=self._listens[name])
        self.nodes[name] = made
        return made

    def end(self) -> None:
        for each in self.nodes.values():
            each.kill()


@pytest.fixture
def certifier(tmp_path: Path) -> Certifier:
    return Certifier(tmp_path)


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    made = Pods(tmp_path)
    try:
        yield made
    finally:
        made.end()


def ended(node: ServerProcess, code: int) -> str:
    """Return the log of a start that must end by itself."""
    node.launch()
    wait_until(lambda: not node.is_running, f"the node gives up\n{node.log}")
    assert node.stop() == code, node.log
    return node.log


def founded(log: str) -> bool:
    return "founds cluster" in log


def test_a_cluster_is_founded_once_and_a_lost_first_directory_founds_no_other(pods: Pods) -> None:
    # No other node is there to report that there is no cluster.
    assert not founded(said := ended(pods.node("n1", "--found-cluster", *QUICK), 69))
    assert "nothing listens there" in said
    pods.node("n2").launch()
    assert "not all others said within 0.7 s that they are in no cluster" in (
        said := ended(pods.node("n1", "--found-cluster", *QUICK), 69)
    )
    assert f"{pods.peers['n2']}: it belongs to no cluster; {pods.peers['n3']}: nothing listens there" in said
    # All are, and wait.
    pods.node("n3").launch()
    first = pods.node("n1", "--found-cluster").start()
    assert founded(first.log)
    # Again, with the same settings, before and after it has members.
    assert first.stop() == 0
    first.start()
    for name in ("n2", "n3"):
        # Once there is a cluster, those that it was not told of end, as ever.
        wait_until(lambda node=pods.nodes[name]: not node.is_running, "it is refused")  # type: ignore[misc]
        cortado("member", "add", name, pods.peers[name], "--endpoint", first.endpoint)
        pods.nodes[name].start()
        cortado("member", "promote", name, "--wait", "--endpoint", first.endpoint)
    with Client(first.endpoint) as client:
        client.kv("n").put(b"k", b"v")
    first.kill()
    shutil.rmtree(first.data_dir)
    assert first.log.count("founds cluster") == 1
    pods.nodes["n3"].kill()
    # The one that is left has no leader, and is in a cluster.
    assert "it does not lead" in ended(pods.node("n1", "--found-cluster", *QUICK), 69)
    pods.nodes["n3"].start()
    assert "n1 is known by another data directory" in ended(pods.node("n1", "--found-cluster"), 78)
    assert first.log.count("founds cluster") == 1
    # Under another id it comes back, into the same cluster.
    endpoints = ",".join(pods.nodes[name].endpoint for name in ("n2", "n3"))
    cortado("member", "remove", "n1", "--yes", "--endpoint", endpoints)
    shutil.rmtree(first.data_dir)
    cortado("member", "add", "n1b", pods.peers["n1"], "--endpoint", endpoints)
    back = pods.node("n1", "--found-cluster", "--node-id", "n1b").start()
    with Client(endpoints) as client:
        found = client.kv("n").get(b"k")
        assert found is not None
        assert found.value == b"v"
    assert back.log.count("founds cluster") == 1


def test_two_that_may_found_found_nothing(pods: Pods) -> None:
    others = [pods.node("n2", "--found-cluster"), pods.node("n3")]
    for each in others:
        each.launch()
    wait_until(lambda: "asks" in others[0].log and "asks" in others[1].log, "both wait")
    said = ended(pods.node("n1", "--found-cluster", *QUICK), 69)
    assert "node n2 is to found a cluster, too: one node alone may" in said
    assert not any(founded(each.log) for each in pods.nodes.values())


def test_with_certificates_nodes_tell_each_other_the_same(tmp_path: Path, certifier: Certifier) -> None:
    port = free_ports(4)
    listens = [f"127.0.0.1:{port[0]}", f"127.0.0.1:{port[2]}"]
    peers = [peer_address_of(each) for each in listens]
    files = [certifier.node(name) for name in ("n1", "n2")]
    first = node_process(tmp_path, files[0], "n1", "--join", peers[1], "--found-cluster", "--listen", listens[0])
    second = node_process(tmp_path, files[1], "n2", "--join", peers[0], "--listen", listens[1])
    try:
        second.launch()
        first.start()
        assert founded(first.log)
    finally:
        first.kill()
        second.kill()


def test_to_found_without_others_to_ask_is_refused(tmp_path: Path) -> None:
    alone = ServerProcess(tmp_path / "data", "--found-cluster")
    assert "--found-cluster: must be given with join" in ended(alone, 2)
