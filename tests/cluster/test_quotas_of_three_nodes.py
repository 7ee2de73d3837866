"""Quotas on three nodes: set through one, they hold on each, and a killed leader's successor knows them. Some ten
seconds: a cluster of its own, whose leader is killed."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from cortado.errors import DeadlineExceeded, OutcomeUnknown, QuotaExceeded, TryAgain
from cortado.proto.v1 import common_pb2, kv_pb2, kv_pb2_grpc
from cortado.store.client import Client
from support.cluster import Cluster, running_cluster
from support.grpc_errors import from_rpc_error
from support.server_process import wait_until

pytestmark = pytest.mark.process

WAIT_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("quotas")) as running:
        yield running


def _refuses(address: str) -> bool:
    """Whether the node refuses stale reads of the namespace, asked by itself and more often than it may be."""
    request = kv_pb2.KvGetRequest(namespace="carts", key=b"k", at=common_pb2.ReadAt(stale_ms=60_000))
    with grpc.insecure_channel(address) as channel:
        for _ in range(5):
            try:
                kv_pb2_grpc.KeyValueStub(channel).Get(request, timeout=5)
            except grpc.RpcError as error:
                if isinstance(from_rpc_error(error), QuotaExceeded):
                    return True
    return False


def _is_full(endpoints: str) -> bool | None:
    """Whether the leader adds nothing; None where it says neither."""
    with Client(endpoints, timeout_s=1) as client:
        try:
            client.kv("carts").put(b"late", b"")
        except QuotaExceeded as full:
            return full.resource == "stored_bytes"
        except (TryAgain, OutcomeUnknown, DeadlineExceeded):
            return None
    return False


def test_what_is_set_through_one_node_holds_on_all_and_outlives_its_leader(cluster: Cluster) -> None:
    with Client(cluster.endpoints, timeout_s=20) as client:
        pairs = client.kv("carts")
        for number in range(20):
            pairs.put(b"k%d" % number, bytes(10_000))
        client.admin.quotas.set("namespace:carts", calls_per_second=2)
        for name, address in cluster.addresses.items():
            wait_until(lambda address=address: _refuses(address), f"{name} refuses", WAIT_S)
        # Callers that wait are served.
        assert pairs.get(b"k1") is not None
        client.admin.quotas.set("namespace:carts", stored_bytes=100_000)
        wait_until(lambda: _is_full(cluster.endpoints) is True, "the leader refuses to add", WAIT_S)
        killed = cluster.leader()
        cluster.kill(killed)
        cluster.leader(besides=[killed])
        wait_until(lambda: _is_full(cluster.endpoints) is True, "the next leader refuses to add", WAIT_S)
        [told] = client.admin.quotas.all()
        assert told.used_bytes is not None
        assert told.used_bytes > 200_000
        assert pairs.get(b"k1") is not None
        pairs.delete(b"k1")
        client.admin.quotas.set("namespace:carts", stored_bytes=1_000_000)
        wait_until(lambda: _is_full(cluster.endpoints) is False, "it is raised", WAIT_S)
        cluster.start(killed)
        cluster.wait_converged()
        client.admin.quotas.remove("namespace:carts")
        assert client.admin.quotas.all() == []
