"""One replica's file is damaged, or gone: the others serve the right data, and it never answers from the damaged
data."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cortado.store.client import Client
from cortado.store.client.values import timestamp_to_proto
from support.cluster import Cluster, running_cluster
from support.damage import flip
from support.grpc_errors import from_rpc_error

pytestmark = pytest.mark.process

RETAIN = ("--raft.retain-entries", "0", "--raft.retain-bytes", "0")
"""Applied entries leave the log soon, so that the damage is in the data alone."""
VALUE = b"the value of the key that will be damaged"


def damage(cluster: Cluster, name: str) -> None:
    flip(cluster.nodes[name].data_dir / "engine" / "data.mdb", VALUE)


def damage_log(cluster: Cluster, name: str) -> None:
    """One of the value's two halves is whole if a sector ends in the other."""
    for file in (cluster.nodes[name].data_dir / "log").iterdir():
        content = file.read_bytes()
        flip(file, next(half for half in (VALUE[:20], VALUE[20:]) if half in content))


def rebuild(cluster: Cluster, lost: str, new: str) -> None:
    """As an operator does: the damaged node is removed, and another one takes its place."""
    cluster.remove(lost)
    cluster.add(new)
    cluster.wait_converged()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as formed:
        yield formed


def test_a_flipped_byte_in_a_log_entry_stops_the_replica_and_it_is_rebuilt(cluster: Cluster) -> None:
    with Client(cluster.endpoints, timeout_s=30) as client:
        client.kv("n").put(b"k", VALUE)
        cluster.wait_converged()
        victim = cluster.follower()
        assert cluster.nodes[victim].stop() == 0
        damage_log(cluster, victim)
        with pytest.raises(AssertionError, match=r"damaged data: the log file 0000000000000001 \(byte"):
            cluster.nodes[victim].start()
        assert "Traceback" not in cluster.nodes[victim].log
        found = client.kv("n").get(b"k")
        assert found is not None
        assert found.value == VALUE
        rebuild(cluster, victim, "n4")
    with Client(cluster.endpoints, timeout_s=30) as client:
        cluster.assert_same_contents("n")
        found = client.kv("n").get(b"k")
        assert found is not None
        assert found.value == VALUE


def test_a_lost_disk_comes_back_under_a_new_name_only(cluster: Cluster) -> None:
    with Client(cluster.endpoints, timeout_s=30) as client:
        client.kv("n").put(b"k", VALUE)
        victim = cluster.follower()
        cluster.kill(victim)
        shutil.rmtree(cluster.nodes[victim].data_dir)
        with pytest.raises(AssertionError, match=victim):
            cluster.nodes[victim].start()
        assert "Traceback" not in cluster.nodes[victim].log
        client.kv("n").put(b"l", VALUE)
        rebuild(cluster, victim, "n4")
    cluster.assert_same_contents("n")


def test_a_flipped_byte_in_a_value_is_never_answered_from(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        etag_before = client.kv("n").put(b"k", VALUE)
        for number in range(50):
            client.kv("n").put(b"other-%d" % number, b"v")
        cluster.wait_converged()
        at = timestamp_to_proto(client.now())
        victim = cluster.follower()
        assert cluster.nodes[victim].stop() == 0
        damage(cluster, victim)
        cluster.start(victim)
        cluster.wait_converged()
        try:
            assert cluster.contents(victim, "n", at)[b"k"] == VALUE, "it was repaired meanwhile"
        except grpc.RpcError as refused:
            assert from_rpc_error(refused).reason == "DATA_LOSS"
        found = client.kv("n").get(b"k")
        assert found is not None
        assert (found.value, found.etag) == (VALUE, etag_before)
