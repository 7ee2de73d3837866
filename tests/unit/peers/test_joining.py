"""A new data directory finds the leader, is bound there, and is told precisely why if it is not."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import InvalidArgument, NotLeader, PeerRefused, Unavailable
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.join import join
from support.nodes import run, until
from support.peers import members, running_peer

NEW = Identity("", "n3", "disk-3")
AT = Addresses("127.0.0.1:8", "127.0.0.1:9")
ADVICE = "announce it first: cortado member add n3 127.0.0.1:9"


def test_a_new_node_is_sent_on_to_the_leader_and_bound_there() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            n1.transport.configure(members(n1, n2))
            # As clients know it.
            n1.node.join_answer = NotLeader("elsewhere", leader=n2.member.address)
            joined = Roster.of((n1.member, n2.member), (Member("n3", "127.0.0.1:9", "disk-3"),))
            n2.node.join_answer = joined
            answer = await join([n1.address], NEW, AT, timeout_s=20)
            assert answer.cluster_id == "cluster-a"
            assert Roster.decode(answer.roster.SerializeToString()) == joined
            assert n2.node.bound == [Member("n3", "127.0.0.1:9", "disk-3", "127.0.0.1:8")]

    run(scenario)


def test_endpoints_that_do_not_answer_are_passed_over() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            answer = await join(["127.0.0.1:1", n1.address], NEW, AT, timeout_s=20)
            assert answer.cluster_id == "cluster-a"

    run(scenario)


def test_while_there_is_no_leader_it_is_waited_for() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.node.join_answer = NotLeader("there is none")

            async def elect() -> None:
                await until(lambda: len(n1.node.bound) >= 2, "it was tried again")
                n1.node.join_answer = Roster.of((n1.member,))

            answer, _ = await asyncio.gather(join([n1.address], NEW, AT, timeout_s=20), elect())
            assert answer.cluster_id == "cluster-a"

    run(scenario)


def test_at_the_deadline_each_endpoint_has_its_reason() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            n1.transport.configure(Roster.of((n1.member, Member("n4", "127.0.0.1:2", "disk-4", "clients:4"))))
            n1.node.join_answer = NotLeader("", leader="clients:4")
            n2.node.join_answer = NotLeader("")
            with pytest.raises(Unavailable) as error:
                await join(["127.0.0.1:1", n1.address, n2.address], NEW, AT, timeout_s=2)
            assert error.value.problem.startswith("no leader of the cluster was reached within 2 s: ")
            for reason in (
                "127.0.0.1:1: nothing listens there",
                f"{n1.address}: it does not lead; the leader is 127.0.0.1:2",
                "127.0.0.1:2: nothing listens there",
                f"{n2.address}: it does not lead; the leader is not known to it",
            ):
                assert reason in error.value.problem

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (InvalidArgument("node_id", "is not a member"), InvalidArgument, ADVICE),
        (InvalidArgument("storage_id", "n3 has joined with another data directory"), InvalidArgument, "another data"),
        (PeerRefused("never"), PeerRefused, "never"),
    ],
)
def test_what_waiting_cannot_settle_ends_the_attempt_at_once(
    answer: InvalidArgument, kind: type[Exception], said: str
) -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.node.join_answer = answer
            if said != ADVICE:
                n1.transport.configure(Roster.of((n1.member,), (Member("n3", "127.0.0.1:9", ""),)))
            with pytest.raises(kind, match=said):
                await join([n1.address], NEW, AT, timeout_s=20)
            assert len(n1.node.bound) == 1

    run(scenario)


def test_an_id_that_is_used_up_is_told_so_and_not_to_be_announced() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.node.join_answer = InvalidArgument("node_id", "is not a member")
            n1.node.removed.add("n3")
            with pytest.raises(InvalidArgument, match=r"was removed, and an id is never used again: .* \(got n3\)"):
                await join([n1.address], NEW, AT, timeout_s=20)

    run(scenario)


def test_a_directory_of_another_cluster_is_refused() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            with pytest.raises(PeerRefused, match="belongs to cluster 'cluster-b', node n1 to cluster cluster-a"):
                await join([n1.address], Identity("cluster-b", "n3", "disk-3"), AT, timeout_s=20)
            assert n1.node.bound == []

    run(scenario)


def test_somebody_else_at_the_endpoint_is_named() -> None:
    async def scenario() -> None:
        async def web_server(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(web_server, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match=f"within 1 s: 127.0.0.1:{port}: "):
            await join([f"127.0.0.1:{port}"], NEW, AT, timeout_s=1)
        server.close()
        with pytest.raises(InvalidArgument, match="at least one member"):
            await join([], NEW, AT)

    run(scenario)


def test_a_list_that_all_nodes_have_holds_oneself_too() -> None:
    """Asking oneself would take as long as an attempt may, since nothing is answered before the join."""

    async def scenario() -> None:
        async with running_peer("n1") as n1:
            answer = await join(["127.0.0.1:9", n1.address], NEW, AT, timeout_s=20)
            assert answer.cluster_id == "cluster-a"
        with pytest.raises(InvalidArgument, match=r"join: leads back to this node alone.*127\.0\.0\.1:9"):
            await join(["127.0.0.1:9"], NEW, AT)

    run(scenario)
