"""A node that is not known here is believed after members that are known vouched for it, and not a moment before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cortado.errors import PeerRefused
from cortado.proto.internal.peers_pb2 import (
    FetchSnapshotRequest,
    GroupMessage,
    Hello,
    PeerBatch,
    VouchRequest,
    VouchResponse,
)
from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.store.peers.connecting import Target, ask
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.hello import make_hello
from support.nodes import run, until
from support.peers import (
    LIMITS,
    PeerProcess,
    RecordingNode,
    calling,
    connected,
    how_it_ends,
    identity_of_node,
    members,
    running_peer,
)

AHEAD = (1 << 40, 1 << 40)
NEVER = "node n9 is no member of cluster cluster-a: it was removed, or never announced"


def at(*position: int) -> RecordingNode:
    return RecordingNode(position=position)  # type: ignore[arg-type]


def hello_of(node_id: str, to: str, position: tuple[int, int] = AHEAD, storage_id: str = "") -> Hello:
    hello = make_hello(identity_of_node(node_id), "127.0.0.1:1", position, to)
    if storage_id:
        hello.storage_id = storage_id
    return hello


async def refusal(peer: PeerProcess, hello: Hello) -> str:
    """Return the error that ends a stream with this Hello and one message."""
    forged = PeerBatch(messages=[GroupMessage(group_id=1, body=b"forged")])
    async with calling(peer) as connection:
        error = await how_it_ends(
            connection,
            Frame(Kind.HELLO, hello.SerializeToString()),
            Frame(Kind.BATCH, forged.SerializeToString()),
        )
        return error.message()


async def asked(peer: PeerProcess, kind: Kind, message: Any, answer: Kind) -> bytes:
    target = Target(peer.address, None, LIMITS, peer.member.node_id)
    return await ask(target, kind, message.SerializeToString(), answer)


def test_a_stranger_that_says_its_log_is_ahead_is_refused_where_no_member_knows_it() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            said = await refusal(n1, hello_of("n9", "n1"))
            assert NEVER in said
            assert "no member that this node knows vouches for it (n2: no)" in said
            assert n1.node.received == []
            assert n1.node.believed == {}

    run(scenario)


def test_a_stranger_is_refused_while_no_member_can_be_asked_and_is_told_so() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(Roster.of((n1.member, Member("n2", "127.0.0.1:1", "storage-n2"))))
            assert "vouches for it (n2: nothing listens there)" in await refusal(n1, hello_of("n9", "n1"))

    run(scenario)


def test_a_member_that_is_behind_does_not_vouch() -> None:
    """n2 still knows n9 as a member; it has not heard of the removal, which n1 has."""

    async def scenario() -> None:
        async with running_peer("n1", node=at(5, 20)) as n1, running_peer("n2", node=at(5, 19)) as n2:
            n1.transport.configure(members(n1, n2))
            n2.transport.configure(Roster.of((*members(n1, n2).voters, Member("n9", "h:9", "storage-n9"))))
            said = await refusal(n1, hello_of("n9", "n1"))
            assert "n2: it is a member, but this log is no further than ours" in said

    run(scenario)


def test_who_was_removed_is_refused_for_good_and_nobody_is_asked_for_it() -> None:
    """Its id is never used again, so no log can be far enough ahead to have it back."""

    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2", node=at(9, 9)) as n2:
            n1.transport.configure(members(n1, n2))
            n2.transport.configure(Roster.of((*members(n1, n2).voters, Member("n9", "h:9", "storage-n9"))))
            n1.node.removed.add("n9")
            said = await refusal(n1, hello_of("n9", "n1"))
            assert "node n9 was removed from cluster cluster-a, and its id is never used again" in said
            assert "vouches" not in said
            assert n1.transport.vouching.asked == 0
            assert n1.node.believed == {}

    run(scenario)


def test_of_two_members_the_one_that_is_further_is_believed() -> None:
    async def scenario() -> None:
        async with (
            running_peer("n1", node=at(5, 20)) as n1,
            running_peer("n2", node=at(5, 30)) as n2,
            running_peer("n3", node=at(5, 31)) as n3,
        ):
            n1.transport.configure(members(n1, n2, n3))
            n2.transport.configure(Roster.of((*members(n1, n2, n3).voters, Member("n9", "h:9", "storage-n9"))))
            n3.transport.configure(members(n1, n2, n3))
            assert "n3: no" in await refusal(n1, hello_of("n9", "n1"))
            n2.node.position = (6, 1)
            await asyncio.sleep(0)
            async with running_peer("n9", node=at(6, 1)) as n9:
                n2.transport.configure(members(n1, n2, n3, n9))
                n9.transport.configure(members(n1, n2, n3, n9))
                # The one that is dialled is connected first; earlier messages of the other are dropped.
                await connected(n1, n9)
                assert n1.node.believed == {"n9": (6, 1)}
                n9.transport.send(1, [Message("n1", b"from the new leader")])
                await until(lambda: b"from the new leader" in n1.node.bodies(), "it is heard")

    run(scenario)


def test_a_stranger_with_another_directory_than_the_one_that_joined_is_not_vouched_for() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2", node=at(9, 9)) as n2:
            n1.transport.configure(members(n1, n2))
            n2.transport.configure(Roster.of((*members(n1, n2).voters, Member("n9", "h:9", "storage-n9"))))
            assert "n2: no" in await refusal(n1, hello_of("n9", "n1", storage_id="another-disk"))

    run(scenario)


def test_who_was_believed_is_cut_off_once_our_own_log_is_as_long_and_does_not_have_it() -> None:
    async def scenario() -> None:
        async with (
            running_peer("n1", node=at(1, 10)) as n1,
            running_peer("n2", node=at(1, 20)) as n2,
            running_peer("n3", node=at(1, 20)) as n3,
        ):
            n1.transport.configure(members(n1, n2))
            n2.transport.configure(members(n1, n2, n3))
            n3.transport.configure(members(n1, n2, n3))
            await connected(n1, n3)
            n1.transport.configure(members(n1, n2))
            assert n1.is_connected_to("n3"), "an older configuration says nothing"
            n1.node.position = (1, 20)
            await until(lambda: not n1.is_connected_to("n3"), "cut")

    run(scenario)


def test_a_member_that_leaves_stays_connected_until_that_is_decided() -> None:
    """It may lead, or be needed for those who lead, until then."""

    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            n1.node.leaving = (n2.member,)
            n1.transport.configure(members(n1))
            n2.transport.send(1, [Message("n1", b"still a member")])
            await until(lambda: b"still a member" in n1.node.bodies(), "it is heard")
            n1.node.leaving = ()
            await until(lambda: not n1.is_connected_to("n2"), "committed")
            await until(lambda: "it was removed" in n2.problem_with("n1"), "and told")

    run(scenario)


def test_a_stranger_gets_no_snapshot_and_no_answer_about_members_whatever_its_log_is_said_to_be() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            n1.node.snapshot_files["s1"] = b"secret"
            strange = hello_of("n9", "n1")
            fetch = FetchSnapshotRequest(hello=strange, group_id=1, snapshot_id="s1")
            vouch = VouchRequest(hello=strange, node_id="n2", storage_id="storage-n2")
            with pytest.raises(PeerRefused, match="n9 is no member"):
                await asked(n1, Kind.FETCH_SNAPSHOT, fetch, Kind.SNAPSHOT_CHUNK)
            with pytest.raises(PeerRefused, match="n9 is no member"):
                await asked(n1, Kind.VOUCH, vouch, Kind.VOUCHED)
            known = VouchRequest(hello=hello_of("n2", "n1"), node_id="n1", storage_id="x")
            answer = await asked(n1, Kind.VOUCH, known, Kind.VOUCHED)
            assert VouchResponse.FromString(answer) == VouchResponse(last_term=1, last_index=10)

    run(scenario)


def test_a_flood_of_strangers_makes_a_node_ask_for_a_few_at_a_time_and_not_again_at_once() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, vouched_max=2)
        async with running_peer("n1", limits=limits) as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            vouching = n1.transport.vouching
            said = await asyncio.gather(*(refusal(n1, hello_of(f"x{number}", "n1")) for number in range(12)))
            assert all("no member" in each or "too many strangers" in each for each in said)
            assert vouching.asked <= 12
            before = vouching.asked
            for _ in range(20):
                await refusal(n1, hello_of("x0", "n1"))
            assert vouching.asked - before <= 2

    run(scenario)


def test_a_node_without_a_log_believes_who_let_it_in_alone() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2", node=at(0, 0)) as n2:
            n1.transport.configure(members(n1, n2))
            n2.node.leaving = members(n1, n2).members
            await connected(n1)
            await until(lambda: n2.is_connected_to("n1"), "who let it in")
            assert "n1: no" in await refusal(n2, hello_of("n9", "n2"))

    run(scenario)
