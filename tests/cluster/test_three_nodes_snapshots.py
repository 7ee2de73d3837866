"""A node that fell far behind is brought up by a snapshot, while the others serve; kills in the middle cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.client import Client, Put
from support.callers import calling
from support.cluster import Cluster, running_cluster
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

RETAIN = ("--raft.retain-entries", "20", "--raft.retain-bytes", "1000000")
"""So few entries are kept that a node is behind at once."""
BATCHES = 60
PAIRS = 40
VALUE = b"v" * 10_000
"""Some 24 MB together, so that a snapshot has a middle."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path, *RETAIN) as formed:
        yield formed


def write_much(client: Client, round_: int) -> None:
    kv = client.kv("bulk")
    for batch in range(BATCHES):
        kv.batch([Put(b"%d-%03d-%03d" % (round_, batch, pair), VALUE) for pair in range(PAIRS)])


def is_installing(cluster: Cluster, name: str) -> bool:
    """Whether a snapshot's bytes lie at a node: files below its data directory that are not the engine's."""
    folder = cluster.nodes[name].data_dir / "snapshots"
    return folder.is_dir() and any(path.stat().st_size > 0 for path in folder.rglob("*") if path.is_file())


def test_a_node_that_lagged_far_behind_catches_up_by_a_snapshot_under_load(cluster: Cluster) -> None:
    follower = cluster.follower()
    with Client(cluster.endpoints, timeout_s=30) as client, calling(client, "lag") as crowd:
        cluster.kill(follower)
        write_much(client, 1)
        cluster.start(follower)
        wait_until(lambda: is_installing(cluster, follower), f"{follower} gets a snapshot")
        crowd.wait_for_progress()
        cluster.wait_converged()
    cluster.assert_same_contents("bulk", "lag", "lag-tokens")


@pytest.mark.parametrize("victim", ["receiver", "sender", "both"])
def test_a_kill_in_the_middle_of_a_snapshot_costs_nothing(cluster: Cluster, victim: str) -> None:
    leader, follower = cluster.leader(), cluster.follower()
    with Client(cluster.endpoints, timeout_s=30) as client:
        cluster.kill(follower)
        write_much(client, 1)
        cluster.start(follower)
        wait_until(lambda: is_installing(cluster, follower), f"{follower} gets a snapshot")
        victims = {"receiver": [follower], "sender": [leader], "both": [follower, leader]}[victim]
        cluster.kill(*victims)
        cluster.start(*victims)
        cluster.wait_converged()
        found = sum(1 for pair in client.kv("bulk").scan() if pair.value == VALUE)
        assert found == BATCHES * PAIRS
    cluster.assert_same_contents("bulk")
