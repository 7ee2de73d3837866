"""A question about one node goes to that node, wherever the client's other calls go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from cortado.errors import DeadlineExceeded, InvalidArgument, NotLeader, Unavailable
from cortado.proto.v1 import cluster_pb2, common_pb2, kv_pb2
from cortado.store.client import Client
from support.faces import open_client
from support.fake_server import FakeServer, break_off, header, refuse

TIMEOUT_S = 10.0


class Nodes:
    """Two nodes; the second one leads."""

    def __init__(self, stack: ExitStack) -> None:
        self.follower, self.leader = FakeServer(), FakeServer()
        for name, server in (("n1", self.follower), ("n2", self.leader)):
            server.handlers |= {
                "Cluster.Members": self._members,
                "Cluster.Status": lambda _request, _context, name=name: cluster_pb2.StatusResponse(header=_of(name)),
                "Cluster.Clock": self._clock,
                "KeyValue.Get": self._get,
            }
            stack.enter_context(server.running())

    def _members(self, _request: Any, _context: grpc.ServicerContext) -> cluster_pb2.MembersResponse:
        addresses = (self.follower.endpoint, self.leader.endpoint)
        members = [
            cluster_pb2.MemberStatus(node_id=f"n{place}", address=address, voter=True)
            for place, address in enumerate(addresses, 1)
        ]
        return cluster_pb2.MembersResponse(header=header(), members=members, leader="n2")

    def _clock(self, _request: Any, _context: grpc.ServicerContext) -> cluster_pb2.ClockResponse:
        return cluster_pb2.ClockResponse(header=header(), now=common_pb2.Timestamp(wall_ms=1_000), physical_ms=1_000)

    def _get(self, _request: Any, context: grpc.ServicerContext) -> kv_pb2.KvGetResponse:
        if not self.leader.calls("KeyValue.Get"):
            refuse(context, NotLeader("this node does not lead", leader=self.leader.endpoint))
        return kv_pb2.KvGetResponse(header=header())


def _of(node_id: str) -> common_pb2.Header:
    told = header()
    told.node_id = node_id
    return told


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(stack)


@pytest.fixture(params=["sync", "async"])
def client(nodes: Nodes, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, nodes.follower.endpoint, timeout_s=TIMEOUT_S) as client:
        yield client


def test_the_endpoint_is_asked_also_behind_a_call_that_went_to_the_leader(nodes: Nodes, client: Client) -> None:
    assert client.status().node_id == "n1"
    assert client.kv("n").get(b"k") is None
    assert len(nodes.leader.calls("KeyValue.Get")) == 1
    assert client.status().node_id == "n1"
    before = len(nodes.follower.calls("Cluster.Clock"))
    client.clock()
    assert len(nodes.follower.calls("Cluster.Clock")) == before + 1


def test_another_node_is_asked_by_its_address(nodes: Nodes, client: Client) -> None:
    assert client.status(nodes.leader.endpoint).node_id == "n2"
    assert client.status(nodes.follower.endpoint).node_id == "n1"
    with pytest.raises(InvalidArgument, match="host:port"):
        client.status("n2")


def test_of_several_endpoints_the_first_that_answers_is_asked(nodes: Nodes) -> None:
    both = f"{nodes.follower.endpoint},{nodes.leader.endpoint}"
    with Client(both, timeout_s=TIMEOUT_S) as client:
        client.kv("n").get(b"k")
        assert client.status().node_id == "n1"
        nodes.follower.handlers["Cluster.Status"] = lambda _request, context: break_off(context)
        assert client.status().node_id == "n2"


def test_a_node_that_is_silent_is_not_stood_in_for_by_the_leader(nodes: Nodes, client: Client) -> None:
    release = threading.Event()

    def silent(_request: Any, _context: grpc.ServicerContext) -> cluster_pb2.StatusResponse:
        release.wait(TIMEOUT_S)
        return cluster_pb2.StatusResponse(header=_of("n1"))

    client.kv("n").get(b"k")
    nodes.follower.handlers["Cluster.Status"] = silent
    with pytest.raises((DeadlineExceeded, Unavailable)):
        client.with_timeout(1.0).status()
    assert not nodes.leader.calls("Cluster.Status")
    release.set()
