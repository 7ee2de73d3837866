"""A member floods the leader with whatever frames it likes: clients go on to be served."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cortado.proto.internal.peers_pb2 import GroupMessage, PeerBatch
from cortado.store.client import Client
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.frames import PREAMBLE, Kind, encode_frame
from cortado.store.peers.hello import make_hello
from cortado.store.ports.addresses import split_address
from support.cluster import Cluster, running_cluster
from support.server_process import wait_until

pytestmark = [pytest.mark.long, pytest.mark.process]

PUTS = 30
MEMORY_MAX = 64 << 20
FLOODS = {
    "frames without content": encode_frame(Kind.BATCH, b"") * 20_000,
    "messages without content": encode_frame(
        Kind.BATCH, PeerBatch(messages=[GroupMessage(group_id=1)] * 16_384).SerializeToString()
    ),
    "messages that are none": encode_frame(
        Kind.BATCH, PeerBatch(messages=[GroupMessage(group_id=1, body=bytes(range(50)))] * 100).SerializeToString()
    )
    * 50,
}


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def hello_of(cluster: Cluster, name: str, to: str) -> bytes:
    stored = json.loads((cluster.nodes[name].data_dir / "identity.json").read_text())
    identity = Identity(stored["cluster_id"], stored["node_id"], stored["storage_id"])
    hello = make_hello(identity, cluster.nodes[name].peer_address, (1, 5), to)
    return PREAMBLE + encode_frame(Kind.HELLO, hello.SerializeToString())


def flood(address: str, hello: bytes, data: bytes, taken: list[int], is_over: Callable[[], bool]) -> None:
    """``taken`` are how many bytes the leader took at a time."""
    sent = 0
    with suppress(OSError), socket.create_connection(split_address("flood", address)) as flooding:
        flooding.sendall(hello)
        flooding.settimeout(0.1)
        while not is_over():
            with suppress(TimeoutError):
                taken.append(flooding.send(data[sent % len(data) :]))
                sent += taken[-1]


@pytest.mark.parametrize("data", FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_of_a_member_keeps_nobody_from_being_served_and_costs_no_memory(tmp_path: Path, data: bytes) -> None:
    with running_cluster(tmp_path) as cluster, Client(cluster.endpoints, timeout_s=30) as client:
        client.kv("n").put(b"k", b"v")
        leader, victim = cluster.leader(), cluster.follower()
        cluster.kill(victim)
        hello = hello_of(cluster, victim, leader)
        over = threading.Event()
        taken = list[int]()
        address = cluster.nodes[leader].peer_address
        flooding = threading.Thread(target=flood, args=(address, hello, data, taken, over.is_set))
        before = resident_bytes(cluster.nodes[leader].pid)
        flooding.start()
        try:
            for number in range(PUTS):
                client.kv("n").put(b"%d" % number, b"served")
            wait_until(lambda: sum(taken) > len(data), "more of it is taken than it is long")
        finally:
            over.set()
            flooding.join()
        assert resident_bytes(cluster.nodes[leader].pid) - before < MEMORY_MAX
        assert "Traceback" not in cluster.logs
