"""A replica that meets damage in its own data takes another member's state, by itself, and serves again."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from cortado.store.client import Client
from cortado.store.client.values import timestamp_to_proto
from cortado.store.rpc_errors import from_rpc_error
from support.cluster import running_cluster
from support.server_process import wait_until

pytestmark = pytest.mark.process

RETAIN = ("--raft.retain-entries", "0", "--raft.retain-bytes", "0")
"""What is applied leaves the log soon, so that the damage is in the data alone."""
VALUE = b"the value of the key that will be damaged"


def test_a_damaged_replica_is_made_whole_by_the_others(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *RETAIN) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        client.kv("n").put(b"k", VALUE)
        for number in range(50):
            client.kv("n").put(b"other-%d" % number, b"v")
        cluster.wait_converged()
        at = timestamp_to_proto(client.now())
        victim = cluster.follower()
        assert cluster.nodes[victim].stop() == 0
        data_file = cluster.nodes[victim].data_dir / "engine" / "data.mdb"
        content = data_file.read_bytes()
        assert VALUE in content
        data_file.write_bytes(content.replace(VALUE, VALUE[:-1] + b"D"))
        cluster.start(victim)
        cluster.wait_converged()
        seen: list[str] = []

        def is_whole() -> bool:
            try:
                held = cluster.contents(victim, "n", at)
            except grpc.RpcError as refused:
                seen.append(from_rpc_error(refused).reason)
                return False
            assert (held[b"k"], len(held)) == (VALUE, 51)
            return True

        wait_until(is_whole, f"{victim} has another member's state", 60)
        assert seen[0] == "DATA_LOSS"
        assert set(seen) <= {"DATA_LOSS", "UNAVAILABLE"}
        client.kv("n").put(b"k", b"a later value")
        cluster.assert_same_contents("n")
