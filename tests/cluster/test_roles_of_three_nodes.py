"""Roles on three nodes: a follower that lags accepts nothing, and a locked-out admin comes back in. Some ten seconds: a
cluster of its own, since other tests could not use one with roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cortado.errors import CortadoError, DataLoss, NotLeader, TryAgain, Unauthenticated
from cortado.proto.v1 import common_pb2, kv_pb2, kv_pb2_grpc
from cortado.store.auth.stored import AUTH_KEY
from cortado.store.client import Client
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from support.cluster import Cluster, cortado, running_cluster
from support.damage import flip
from support.grpc_errors import from_rpc_error
from support.server_process import wait_until

pytestmark = pytest.mark.process

WAIT_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("roles")) as running:
        yield running


class Node:
    """One node, asked by itself with a token."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._metadata = (("authorization", f"Bearer {token}"),)

    def put(self) -> CortadoError | None:
        return self._ask("Put", kv_pb2.KvPutRequest(namespace="carts", key=b"k", value=b"late"))

    def get(self, *, stale_ms: int = 0) -> CortadoError | None:
        at = common_pb2.ReadAt(stale_ms=stale_ms) if stale_ms else None
        return self._ask("Get", kv_pb2.KvGetRequest(namespace="carts", key=b"k", at=at))

    def _ask(self, method: str, request: object) -> CortadoError | None:
        """Return the error of a refused call."""
        with grpc.insecure_channel(self._address) as channel:
            try:
                getattr(kv_pb2_grpc.KeyValueStub(channel), method)(request, metadata=self._metadata, timeout=5)
            except grpc.RpcError as error:
                return from_rpc_error(error)
        return None


def hide_the_switch(data_dir: Path) -> None:
    """On a stopped node: the applied state alone decides whether roles are on."""
    engine = LmdbEngine.open_stopped(data_dir)
    try:
        with engine.read() as txn:
            found = txn.seek(Space.DATA, AUTH_KEY)
    finally:
        engine.close()
    assert found is not None
    assert found[0].startswith(AUTH_KEY)
    flip(data_dir / "engine" / "data.mdb", b"".join(found)[: len(found[0]) + 1])


def test_a_follower_that_lags_accepts_nothing_and_who_is_locked_out_comes_back(cluster: Cluster) -> None:
    leader = cluster.leader()
    lagging = cluster.follower()
    with Client(cluster.endpoints) as anybody:
        root = anybody.admin.auth.enable("root").token
    assert root is not None
    with Client(cluster.endpoints, token=root.text) as admin:
        app = admin.admin.auth.create("app").token
        assert app is not None
        admin.admin.auth.grant("app", "writer", "namespace:carts")
        with Client(cluster.endpoints, token=app.text) as client:
            client.kv("carts").put(b"k", b"v")
            # Until the follower has applied the grants, too.
            wait_until(lambda: Node(cluster.addresses[lagging], app.text).get(stale_ms=60_000) is None, "it", WAIT_S)
        cluster.cut(lagging)
        admin.admin.auth.revoke("app")
        late = admin.admin.auth.create("late").token
        assert late is not None
        admin.admin.auth.grant("late", "reader", "namespace:carts")
        # It does not know that the one was revoked, nor the other granted: it decides nothing that is the leader's.
        behind = Node(cluster.addresses[lagging], app.text)
        assert isinstance(behind.put(), TryAgain)
        assert isinstance(behind.get(), TryAgain)
        assert isinstance(Node(cluster.addresses[lagging], late.text).get(stale_ms=60_000), NotLeader)
        assert isinstance(Node(cluster.addresses[leader], app.text).put(), Unauthenticated)
        cluster.heal()

        def leads() -> bool:
            try:
                return admin.admin.members.transfer_leader(lagging) == lagging
            except CortadoError:
                return False

        wait_until(leads, f"{lagging} leads", WAIT_S)
        wait_until(lambda: isinstance(behind.put(), Unauthenticated), "it knows", WAIT_S)
        found = admin.kv("carts").get(b"k")
        assert found is not None
        assert found.value == b"v"

    # The admin's token is lost, and damage hides the switch on the disks of a majority.
    for node in cluster.nodes.values():
        node.stop()
    first, second, third = cluster.nodes
    for name in (first, second):
        hide_the_switch(cluster.nodes[name].data_dir)
        cortado("recover", "--disable-auth", "--data-dir", str(cluster.nodes[name].data_dir), "--yes")
    cluster.start(first, second)
    with Client(cluster.endpoints, timeout_s=10) as anybody:

        def is_let_in() -> bool:
            try:
                return anybody.kv("carts").get(b"k") is not None
            except (Unauthenticated, TryAgain, DataLoss):
                return False

        wait_until(is_let_in, "roles are off", WAIT_S)
        cluster.start(third)
        cluster.wait_converged()
        assert not anybody.admin.auth.status().enabled
        assert [each.name for each in anybody.admin.auth.principals()] == ["late", "root"]
    marks = [node.data_dir / "auth-disable" for node in cluster.nodes.values()]
    wait_until(lambda: not any(mark.exists() for mark in marks), "the marks are gone", WAIT_S)
