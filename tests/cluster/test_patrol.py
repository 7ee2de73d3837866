"""Damage that no read meets is found by the walk at a start and by the patrol, and no read is answered wrongly then.

A bit of a stored key's timestamp is turned, so that a search passes the row by or finds the version before it: each
bit in turn, on a server of its own, stopped and running.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.errors import CortadoError, DataLoss
from cortado.store.client import Client
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import suffix_of
from support.cluster import Cluster, running_cluster
from support.flips import flip_bit, leaf_places_of
from support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.process

KEY = b"the-key-to-be-missed"
FAST = ("--limit.patrol-ms", "200")
RETAIN = ("--raft.retain-entries", "0", "--raft.retain-bytes", "0")
"""Applied entries leave the log soon, so that the damage is in the data alone."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path / "data", *FAST).start()
    yield running
    running.kill()


def put_twice(client: Client) -> tuple[Timestamp, Timestamp]:
    """Two versions of the key, among others."""
    pairs = client.kv("n")
    for number in range(40):
        pairs.put(b"other-%02d" % number, b"x" * 100)
    old = pairs.put(KEY, b"old")
    new = pairs.put(KEY, b"new")
    for number in range(40):
        pairs.put(b"zother-%02d" % number, b"x" * 100)
    # Writes are applied a moment later, and move their pages then.
    wait_until(lambda: (status := client.status()).applied_index == status.last_index, "all is applied")
    return Timestamp.parse(str(old)), Timestamp.parse(str(new))


def damaged_places(endpoint: str) -> int:
    with Client(endpoint, timeout_s=10) as client:
        patrol = client.status().patrol
        assert patrol is not None
        return patrol.damaged


def seen(endpoint: str) -> bytes | str | None:
    """The key's value as a client gets it, or that it is not to be had."""
    try:
        with Client(endpoint, timeout_s=10) as client:
            found = client.kv("n").get(KEY)
    except DataLoss:
        return "lost"
    return None if found is None else found.value


def test_each_flipped_bit_of_a_timestamp_is_found_while_the_server_runs(server: ServerProcess) -> None:
    with Client(server.endpoint, timeout_s=10) as client:
        _, new = put_twice(client)
    data_file, key = server.data_dir / "engine" / "data.mdb", kv_key("n", KEY)
    stored = key + suffix_of(new)
    for bit in range(0, 96, 11):
        places = leaf_places_of(data_file, stored)
        flip_bit(data_file, places, 8 * len(key) + bit)
        try:
            before = damaged_places(server.endpoint)
            wait_until(lambda before=before: damaged_places(server.endpoint) > before, f"bit {bit} is found")
            assert seen(server.endpoint) in (b"new", "lost"), f"bit {bit}"
            with pytest.raises(DataLoss), Client(server.endpoint, timeout_s=10) as client:
                client.kv("n").put(KEY, b"over it", if_absent=True)
        finally:
            flip_bit(data_file, places, 8 * len(key) + bit)
    assert "stored data is damaged" in server.log


@pytest.mark.parametrize("bit", [7, 53, 90])
def test_a_start_finds_a_flipped_bit_of_a_timestamp_before_it_serves(tmp_path: Path, bit: int) -> None:
    server = ServerProcess(tmp_path / "data", "--limit.patrol-ms", "3600000").start()
    try:
        with Client(server.endpoint, timeout_s=10) as client:
            _, new = put_twice(client)
        assert server.stop() == 0
        key = kv_key("n", KEY)
        data_file = server.data_dir / "engine" / "data.mdb"
        flip_bit(data_file, leaf_places_of(data_file, key + suffix_of(new)), 8 * len(key) + bit)
        try:
            server.start()
        except AssertionError:
            assert "its data file" in server.log
            return
        assert damaged_places(server.endpoint) >= 1
        assert seen(server.endpoint) == "lost"
    finally:
        server.kill()


def test_a_replica_that_lost_a_row_to_a_flipped_bit_has_it_again(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *FAST, *RETAIN) as cluster:
        with Client(cluster.endpoints, timeout_s=30) as client:
            _, new = put_twice(client)
        cluster.wait_converged()
        victim = cluster.follower()
        key = kv_key("n", KEY)
        data_file = cluster.nodes[victim].data_dir / "engine" / "data.mdb"
        flip_bit(data_file, leaf_places_of(data_file, key + suffix_of(new)), 8 * len(key) + 90)
        wait_until(lambda: "is damaged" in cluster.nodes[victim].log, "the patrol finds it")
        wait_until(lambda: same(cluster), "all replicas have the same")


def same(cluster: Cluster) -> bool:
    try:
        cluster.wait_converged()
        cluster.assert_same_contents("n")
    except (AssertionError, CortadoError):
        return False
    return True


@pytest.mark.parametrize("bit", [12, 53, 90])
def test_an_insert_over_a_value_that_the_leaders_disk_hides_is_never_acknowledged(tmp_path: Path, bit: int) -> None:
    """With every entry examined, before any patrol comes by."""
    with running_cluster(tmp_path, "--limit.examined-percent", "100", *RETAIN) as cluster:
        with Client(cluster.endpoints, timeout_s=30) as client:
            _, new = put_twice(client)
        cluster.wait_converged()
        leader = cluster.nodes[cluster.leader()]
        key = kv_key("n", KEY)
        data_file = leader.data_dir / "engine" / "data.mdb"
        flip_bit(data_file, leaf_places_of(data_file, key + suffix_of(new)), 8 * len(key) + bit)
        with Client(cluster.endpoints, timeout_s=30) as client:
            with pytest.raises(CortadoError):
                client.kv("n").put(KEY, b"over it", if_absent=True)
            wait_until(lambda: seen(cluster.endpoints) in (b"new", b"old"), "somebody serves the key")
            assert seen(cluster.endpoints) != b"over it"
        for name in cluster.nodes:
            assert "Traceback" not in cluster.nodes[name].log
