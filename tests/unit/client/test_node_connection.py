"""One node that is asked alone: when it is asked again, how a call ends, and that none of gRPC's words are told."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import grpc
import pytest
from tests.support.fake_server import FakeServer, break_off, header, refuse

from cortado.errors import InvalidArgument, NotLeader, OutcomeUnknown, Unavailable, Unsupported
from cortado.proto.v1 import cluster_pb2 as pb
from cortado.store.client.inspect import NodeInspector
from cortado.store.client.node import NodeConnection
from cortado.store.client.node_settings import settings_of
from cortado.store.client.statistics import NodeStatistics


@pytest.fixture
def nobody() -> Iterator[str]:
    """Yield an address that refuses connections, and that no other process takes meanwhile: bound, and not listened
    on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_its_statistics_say_that_nothing_listens(nobody: str) -> None:
    with NodeStatistics(nobody, timeout_s=5.0) as statistics, pytest.raises(Unavailable) as found:
        statistics.read()
    assert found.value.message() == "nothing listens there"


def test_an_inspection_says_that_nothing_listens_and_where(nobody: str) -> None:
    with pytest.raises(Unavailable) as found:
        NodeInspector([nobody], timeout_s=5.0)
    assert found.value.message() == f"{nobody}: nothing listens there"


def test_its_settings_say_that_nothing_listens(nobody: str) -> None:
    with NodeConnection(nobody, timeout_s=5.0) as node, pytest.raises(Unavailable) as found:
        settings_of(node)
    assert found.value.message() == "nothing listens there"


def test_an_address_that_is_none_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(InvalidArgument, match="must look like host:port"):
        NodeConnection("nowhere")


# --- asking ------------------------------------------------------------------------------------------------------

STATUS = ("Cluster/Status", pb.StatusRequest(), pb.StatusResponse)
REBUILD = ("Cluster/RebuildReplica", pb.RebuildReplicaRequest(node_id="n1"), pb.RebuildReplicaResponse)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        yield running


@pytest.fixture
def node(server: FakeServer) -> Iterator[NodeConnection]:
    with NodeConnection(server.endpoint) as connected:
        yield connected


def refuses_once(server: FakeServer) -> None:
    def status(request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusResponse:
        if len(server.calls("Cluster.Status")) == 1:
            refuse(context, Unavailable("it starts"))
        return pb.StatusResponse(header=header())

    server.handlers["Cluster.Status"] = status


def test_a_refusal_for_the_moment_is_what_the_caller_gets(server: FakeServer, node: NodeConnection) -> None:
    refuses_once(server)
    with pytest.raises(Unavailable, match="it starts"):
        node.ask(*STATUS)
    assert len(server.calls("Cluster.Status")) == 1


def test_who_insists_asks_again(server: FakeServer, node: NodeConnection) -> None:
    refuses_once(server)
    assert node.ask(*STATUS, insists=True).header.node_id == "node"
    assert len(server.calls("Cluster.Status")) == 2


def test_who_insists_does_not_ask_a_node_again_that_names_another_one(server: FakeServer, node: NodeConnection) -> None:
    server.handlers["Cluster.Status"] = lambda request, context: refuse(context, NotLeader(leader="n2"))
    with pytest.raises(NotLeader):
        node.ask(*STATUS, insists=True)
    assert len(server.calls("Cluster.Status")) == 1


def test_a_change_that_may_have_begun_is_not_asked_for_again(server: FakeServer, node: NodeConnection) -> None:
    server.handlers["Cluster.RebuildReplica"] = lambda request, context: break_off(context)
    with pytest.raises(OutcomeUnknown, match="the work continues"):
        node.ask(*REBUILD, insists=True, changes=True)
    assert len(server.calls("Cluster.RebuildReplica")) == 1


def test_a_change_that_was_refused_is_asked_for_again(server: FakeServer, node: NodeConnection) -> None:
    def rebuild(request: pb.RebuildReplicaRequest, context: grpc.ServicerContext) -> pb.RebuildReplicaResponse:
        if len(server.calls("Cluster.RebuildReplica")) == 1:
            refuse(context, Unavailable("it starts"))
        return pb.RebuildReplicaResponse()

    server.handlers["Cluster.RebuildReplica"] = rebuild
    node.ask(*REBUILD, insists=True, changes=True)
    assert len(server.calls("Cluster.RebuildReplica")) == 2


def test_a_method_that_the_node_does_not_have_is_unsupported(node: NodeConnection) -> None:
    with pytest.raises(Unsupported, match="it has no such method"):
        node.ask(*STATUS)
