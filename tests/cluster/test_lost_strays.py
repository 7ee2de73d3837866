"""A bit of a key turns on every replica: no member has the version whole, and some of its keys are out of order.

Searches do not find such a key, and miss others beside it. An operator accepts its loss all the same, by the name under
which the leader shows it; then every read is answered again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import grpc
import pytest

from cortado.errors import DataLoss
from cortado.proto.v1 import cluster_pb2, cluster_pb2_grpc
from cortado.store.client import Client
from cortado.store.keys.keyspace import kv_key
from support.cluster import cortado, running_cluster
from support.flips import flip_bit, leaf_places_of
from support.server_process import ServerProcess, wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

RETAIN = ("--raft.retain-entries", "0", "--raft.retain-bytes", "0")
HELD = {b"k%02d" % number: b"v%d" % number for number in range(60)}
LOST = b"k17"
_KEY_BITS = 8 * len(kv_key("n", LOST))
ABOVE_ALL, BELOW_ALL, WITHIN, OF_ANOTHER = 7, 6, _KEY_BITS - 16, _KEY_BITS - 24
"""Bits of a stored key: two that move it out of its place; one behind its letters, so that it stays there; and one of
its letters: a version of another row that is whole."""


def turn_key(data_dir: Path, bit: int) -> None:
    data_file = data_dir / "engine" / "data.mdb"
    flip_bit(data_file, leaf_places_of(data_file, kv_key("n", LOST)), bit)


def damage_of(endpoint: str) -> list[cluster_pb2.DamagedItem]:
    """Return the damage that the node at ``endpoint`` knows; no other node is asked."""
    with grpc.insecure_channel(endpoint, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        return list(cluster_pb2_grpc.ClusterStub(channel).Status(cluster_pb2.StatusRequest(), timeout=10).damage)


def wait_lost(endpoint: str) -> str:
    """The key that a leader names as lost, once it does. Others may wait for a snapshot, which is not made before."""

    def lost() -> list[str]:
        return [item.key.hex() for item in damage_of(endpoint) if item.is_lost and item.key]

    wait_until(lambda: len(lost()) == 1, "the leader knows the one that is lost")
    return lost()[0]


def is_whole(endpoint: str) -> bool:
    return not damage_of(endpoint)


def assert_only_lost(client: Client) -> None:
    assert client.kv("n").get(LOST) is None
    assert {pair.key: pair.value for pair in client.kv("n").scan()} == {k: v for k, v in HELD.items() if k != LOST}
    for key, value in HELD.items():
        found = client.kv("n").get(key)
        assert key == LOST or (found is not None and found.value == value)
    client.kv("n").put(LOST, HELD[LOST])
    assert {pair.key: pair.value for pair in client.kv("n").scan()} == HELD


@pytest.mark.parametrize("bit", [ABOVE_ALL, BELOW_ALL], ids=["above all", "below all"])
def test_a_node_alone_gives_up_a_stray(tmp_path: Path, bit: int) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        with Client(server.start().endpoint) as client:
            for key, value in HELD.items():
                client.kv("n").put(key, value)
        assert server.stop() == 0
        turn_key(tmp_path / "data", bit)
        endpoint = server.start().endpoint
        with Client(endpoint) as client:
            stored = wait_lost(endpoint)
            with pytest.raises(DataLoss):
                list(client.kv("n").scan())
            assert "accepted the loss" in cortado("damage", "accept", stored, "--yes", "-e", endpoint)
            wait_until(partial(is_whole, endpoint), "nothing is damaged")
            assert_only_lost(client)
        assert server.stop() == 0
        endpoint = server.start().endpoint
        with Client(endpoint) as client:
            assert {pair.key: pair.value for pair in client.kv("n").scan()} == HELD
            assert not damage_of(endpoint)
    finally:
        server.kill()


@pytest.mark.parametrize(
    "bits",
    [
        (ABOVE_ALL, ABOVE_ALL, ABOVE_ALL),
        (ABOVE_ALL, BELOW_ALL, WITHIN),
        (WITHIN, ABOVE_ALL, WITHIN + 1),
        (OF_ANOTHER, OF_ANOTHER, OF_ANOTHER),
    ],
    ids=["the same bit", "another bit each", "one stray", "the key of another row"],
)
def test_replicas_give_up_a_version_that_each_has_under_a_wrong_key(tmp_path: Path, bits: tuple[int, ...]) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        for key, value in HELD.items():
            client.kv("n").put(key, value)
        cluster.wait_converged()
        for node in cluster.nodes.values():
            assert node.stop() == 0
        for node, bit in zip(cluster.nodes.values(), bits, strict=True):
            turn_key(node.data_dir, bit)
        cluster.start()
        leader = cluster.leader()
        stored = wait_lost(cluster.addresses[leader])
        with pytest.raises(DataLoss):
            client.kv("n").get(LOST)
        others = {item.key.hex() for name in cluster.nodes for item in damage_of(cluster.addresses[name])} - {
            stored,
            "",
        }
        for other in others:
            with pytest.raises(AssertionError, match="the leader has nothing damaged under this key"):
                cortado("damage", "accept", other, "--yes", "-e", cluster.endpoints)
        assert "accepted the loss" in cortado("damage", "accept", stored, "--yes", "-e", cluster.endpoints)
        for name in cluster.nodes:
            wait_until(partial(is_whole, cluster.addresses[name]), f"{name} is whole")
        assert_only_lost(client)
        cluster.assert_same_contents("n")
        for name in cluster.nodes:
            cortado("member", "transfer-leader", name, "-e", cluster.endpoints)
            assert {pair.key: pair.value for pair in client.kv("n").scan()} == HELD
