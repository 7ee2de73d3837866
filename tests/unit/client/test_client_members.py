"""A change of members that lost its answer is never told as refused: it is looked for, or else it is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from cortado.errors import CortadoError, InvalidArgument, NotLeader, OutcomeUnknown, Unavailable
from cortado.proto.v1 import cluster_pb2
from cortado.store.client import Client
from support.fake_server import FakeServer, break_off, header, refuse


class Members:
    """One server that leads, and makes changes of members; ``lost`` answers are lost, after it was made or
    before, or say that leadership was."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.voters = {"n1", "n2", "n3"}
        self.learners = {"n4"}
        self.leader = "n1"
        self.lost: list[str] = []
        server.handlers |= {
            "Cluster.Members": lambda request, context: cluster_pb2.MembersResponse(
                header=header(), members=self.members(), leader=self.leader
            ),
            "Cluster.AddMember": self._changes(self._add),
            "Cluster.PromoteMember": self._changes(self._promote),
            "Cluster.RemoveMember": self._changes(self._remove),
            "Cluster.TransferLeader": self._changes(self._transfer),
        }

    def members(self) -> list[cluster_pb2.MemberStatus]:
        return [
            cluster_pb2.MemberStatus(
                node_id=each, address=self.address(each), peer_address=self.address(each), voter=each in self.voters
            )
            for each in sorted(self.voters | self.learners)
        ]

    def address(self, node_id: str) -> str:
        """Return the same address for every node: there is one server."""
        return self.server.endpoint if node_id != "n5" else "127.0.0.1:5"

    def _changes(self, change: Callable[[Any], None]) -> Callable[[Any, grpc.ServicerContext], Any]:
        def handle(request: Any, context: grpc.ServicerContext) -> Any:
            lost = self.lost.pop(0) if self.lost else ""
            if lost != "before":
                try:
                    change(request)
                except CortadoError as error:
                    refuse(context, error)
            if lost == "leader":
                refuse(context, OutcomeUnknown("leadership was lost before the change was decided"))
            if lost:
                break_off(context)
            if "Transfer" in request.DESCRIPTOR.name:
                return cluster_pb2.TransferLeaderResponse(header=header(), leader=self.leader)
            return cluster_pb2.MemberChangeResponse(header=header(), members=self.members())

        return handle

    def _add(self, request: cluster_pb2.AddMemberRequest) -> None:
        if request.node_id in self.voters | self.learners:
            raise InvalidArgument("node_id", "is a member already", request.node_id)
        self.learners.add(request.node_id)

    def _promote(self, request: cluster_pb2.PromoteMemberRequest) -> None:
        if request.node_id in self.voters:
            raise InvalidArgument("node_id", "is a voter already", request.node_id)
        self.learners.discard(request.node_id)
        self.voters.add(request.node_id)

    def _remove(self, request: cluster_pb2.RemoveMemberRequest) -> None:
        if request.node_id not in self.voters | self.learners:
            raise InvalidArgument("node_id", "is not a member", request.node_id)
        self.voters.discard(request.node_id)
        self.learners.discard(request.node_id)

    def _transfer(self, request: cluster_pb2.TransferLeaderRequest) -> None:
        self.leader = request.to_node_id or sorted(self.voters - {self.leader})[0]


@pytest.fixture
def cluster() -> Iterator[Members]:
    with FakeServer().running() as server:
        yield Members(server)


@pytest.fixture
def client(cluster: Members) -> Iterator[Client]:
    with Client(cluster.server.endpoint, timeout_s=3) as opened:
        yield opened


CHANGES: dict[str, Callable[[Client], Any]] = {
    "AddMember": lambda client: client.admin.members.add("n5", "127.0.0.1:5"),
    "PromoteMember": lambda client: client.admin.members.promote("n4"),
    "RemoveMember": lambda client: client.admin.members.remove("n2"),
}


@pytest.mark.parametrize("method", CHANGES)
@pytest.mark.parametrize("lost", [["after"], ["before"], ["before", "after"], ["leader"]], ids=",".join)
def test_a_change_whose_answer_was_lost_is_found_and_told_as_made(
    cluster: Members, client: Client, method: str, lost: list[str]
) -> None:
    cluster.lost = list(lost)
    members = CHANGES[method](client)
    assert {each.node_id for each in members} == cluster.voters | cluster.learners
    assert len(cluster.server.calls(f"Cluster.{method}")) > 1


@pytest.mark.parametrize("method", CHANGES)
def test_a_change_that_may_be_made_later_is_unknown_and_not_refused(
    cluster: Members, client: Client, method: str
) -> None:
    cluster.server.handlers[f"Cluster.{method}"] = lambda request, context: break_off(context)
    with pytest.raises(OutcomeUnknown, match="look at the members"):
        CHANGES[method](client.with_timeout(0.5))


def test_a_removal_that_is_refused_after_an_open_attempt_is_unknown_where_nobody_of_that_name_was_known(
    cluster: Members, client: Client
) -> None:
    cluster.lost = ["before"]
    with pytest.raises(OutcomeUnknown, match=r"another was refused: node_id: is not a member.*look at the members"):
        client.admin.members.remove("n9")


def test_a_refusal_that_no_open_attempt_came_before_is_told_as_it_is(cluster: Members, client: Client) -> None:
    with pytest.raises(InvalidArgument, match="is not a member"):
        client.admin.members.remove("n9")
    with pytest.raises(InvalidArgument, match="is a voter already"):
        client.admin.members.promote("n1")
    cluster.server.handlers["Cluster.AddMember"] = lambda request, context: refuse(context, NotLeader())
    with pytest.raises((NotLeader, Unavailable)):
        client.with_timeout(1).admin.members.add("n5", "127.0.0.1:5")


def test_a_hand_over_whose_answer_was_lost_is_not_repeated(cluster: Members, client: Client) -> None:
    cluster.lost = ["after"]
    assert client.admin.members.transfer_leader("n2") == "n2"
    cluster.lost = ["after"]
    with pytest.raises(OutcomeUnknown, match="look at the members to see the leader"):
        client.admin.members.transfer_leader()
    assert cluster.leader == "n1"
    assert len(cluster.server.calls("Cluster.TransferLeader")) == 2
