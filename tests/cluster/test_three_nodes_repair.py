"""Bytes that turn on the disks of a cluster: an item that one replica has whole is restored on every replica.

Each node is stopped, bits of its data file are flipped, and it is started again: as after a disk that rots in silence.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from cortado.errors import DataLoss
from cortado.store.client import Client
from cortado.store.client.values import timestamp_to_proto
from cortado.store.keys.keyspace import kv_key
from support.cluster import Cluster, cortado, running_cluster
from support.damage import flip
from support.flips import flip_bit, leaf_places_of
from support.grpc_errors import from_rpc_error
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

RETAIN = ("--raft.retain-entries", "0", "--raft.retain-bytes", "0")
"""Applied entries leave the log soon, so that the damage is in the data alone."""
HELD = {b"k%d" % number: b"the value of key %d, which will be damaged" % number for number in range(6)}


def fill(cluster: Cluster, client: Client) -> None:
    for key, value in HELD.items():
        client.kv("n").put(key, value)
    for number in range(50):
        client.kv("n").put(b"other-%d" % number, b"v")
    cluster.wait_converged()


def damage(cluster: Cluster, keys: dict[str, bytes]) -> None:
    """Flip a bit of the value of a key on each of the nodes named, all of which are stopped for it at once."""
    for name in keys:
        assert cluster.nodes[name].stop() == 0
    for name, key in keys.items():
        flip(cluster.nodes[name].data_dir / "engine" / "data.mdb", HELD[key])
    cluster.start(*keys)
    cluster.wait_converged()


def wait_whole(cluster: Cluster, client: Client) -> None:
    """Every replica, asked alone, answers with everything."""
    at = timestamp_to_proto(client.now())
    for name in cluster.nodes:

        def is_whole(name: str = name) -> bool:
            try:
                held = cluster.contents(name, "n", at)
            except grpc.RpcError as refused:
                assert from_rpc_error(refused).reason == "DATA_LOSS", refused
                return False
            assert {key: held[key] for key in HELD} == HELD
            assert len(held) == len(HELD) + 50
            return True

        wait_until(is_whole, f"{name} has everything again")


def test_a_flipped_byte_in_each_replica_at_different_keys_is_repaired_from_the_others(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        fill(cluster, client)
        damage(cluster, {"n1": b"k1", "n2": b"k2", "n3": b"k3"})
        wait_whole(cluster, client)
        client.kv("n").put(b"later", b"v")
        cluster.assert_same_contents("n")


def test_the_same_key_on_two_of_three_is_repaired_from_the_third(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        fill(cluster, client)
        leader = cluster.leader()
        damage(cluster, dict.fromkeys([leader, cluster.follower()], b"k1"))
        wait_whole(cluster, client)
        client.kv("n").put(b"k1", b"later")
        cluster.assert_same_contents("n")


def test_a_bit_of_a_key_out_of_its_order_in_each_replica_is_repaired_from_the_others(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        fill(cluster, client)
        for node in cluster.nodes.values():
            assert node.stop() == 0
        for name, key in {"n1": b"k1", "n2": b"k2", "n3": b"k3"}.items():
            data_file = cluster.nodes[name].data_dir / "engine" / "data.mdb"
            # The highest bit of the first byte: above all other keys.
            flip_bit(data_file, leaf_places_of(data_file, kv_key("n", key)), 7)
        cluster.start()
        cluster.wait_converged()
        wait_whole(cluster, client)
        client.kv("n").put(b"later", b"v")
        cluster.assert_same_contents("n")


def test_two_of_two_members_with_different_damage_repair_each_other(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN, count=2) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        fill(cluster, client)
        damage(cluster, {"n1": b"k1", "n2": b"k2"})
        wait_whole(cluster, client)
        client.kv("n").put(b"later", b"v")
        cluster.assert_same_contents("n")


def test_what_no_replica_has_whole_is_data_loss_until_an_operator_accepts_it_and_all_else_works(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        fill(cluster, client)
        damage(cluster, dict.fromkeys(("n1", "n2", "n3"), b"k1"))

        def listed() -> list[dict[str, object]]:
            command = [sys.executable, "-m", "cortado.store.cli", "damage", "list", "-o", "json"]
            ended = subprocess.run(
                [*command, "-e", cluster.endpoints], capture_output=True, text=True, timeout=60, check=False
            )
            assert ended.returncode in (0, 8), ended.stderr
            (found,) = map(json.loads, ended.stdout.splitlines())
            return [item for node in found["nodes"] for item in node["damage"]]

        wait_until(lambda: len(listed()) == 3 and all(item["is_lost"] for item in listed()), "all know it is lost")
        with pytest.raises(DataLoss, match="k1"):
            client.kv("n").get(b"k1")
        with pytest.raises(DataLoss, match="k1"):
            list(client.kv("n").scan())
        for key in (b"k0", b"k2", b"k11"):
            client.kv("n").put(key, HELD.get(key, b"v"))
        found = client.kv("n").get(b"k2")
        assert found is not None
        assert found.value == HELD[b"k2"]
        cluster.add("n4")
        cluster.wait_converged()

        (stored,) = {str(item["key"]) for item in listed()}
        assert "accepted the loss" in cortado("damage", "accept", stored, "--yes", "-e", cluster.endpoints)
        wait_until(lambda: not listed(), "nobody knows of any damage")
        assert client.kv("n").get(b"k1") is None
        client.kv("n").put(b"k1", HELD[b"k1"])
        cluster.assert_same_contents("n")
