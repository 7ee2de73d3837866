"""Two nodes find each other over real connections, keep one stream, and carry messages in order."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

import pytest

from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.store.peers.interface import PeerLimits
from support.nodes import run, until
from support.peers import LIMITS, RecordingNode, connected, identity_of_node, members, running_peer

REMOVED = "node n3 is no member of cluster cluster-a: it was removed, or never announced (cortado member add)"


def test_messages_arrive_in_order_both_ways_with_their_sender_and_group() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            for number in range(200):
                n1.transport.send(number % 2, [Message("n2", b"%d" % number), Message("n2", b"%d again" % number)])
            n2.transport.send(7, [Message("n1", b"answer")])
            await until(lambda: len(n2.node.received) == 400 and len(n1.node.received) == 1, "all arrived")
            assert n1.node.received == [("n2", 7, b"answer")]
            for group_id in (0, 1):
                expected = [b"%d%s" % (i, tail) for i in range(group_id, 200, 2) for tail in (b"", b" again")]
                assert [body for _, group, body in n2.node.received if group == group_id] == expected

    run(scenario)


def test_a_large_message_arrives_and_one_that_no_batch_can_hold_is_dropped_and_counted() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            largest = bytes(LIMITS.message_bytes_max)
            n1.transport.send(1, [Message("n2", largest + b"x"), Message("n2", largest), Message("n2", b"after")])
            await until(lambda: len(n2.node.received) == 2, "what fits arrived")
            assert n2.node.bodies() == [largest, b"after"]
            assert n1.transport.status()[0].dropped == 1

    run(scenario)


def test_a_peer_that_comes_late_or_again_is_found() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            async with running_peer("n2") as early:
                port = int(early.address.rpartition(":")[2])
            # The peer is gone now.
            n1.transport.configure(members(n1, early))
            n1.transport.send(1, [Message("n2", b"lost")])
            await until(lambda: "nothing listens there" in n1.problem_with("n2"), "it was tried")
            for life in (b"first", b"second"):
                async with running_peer("n2", port=port) as n2:
                    n2.transport.configure(members(n1, n2))
                    await connected(n1, n2)
                    n1.transport.send(1, [Message("n2", life)])
                    n2.transport.send(1, [Message("n1", life)])
                    await until(lambda n2=n2: len(n2.node.received) == 1, "it is heard")  # type: ignore[misc]
                    assert n2.node.bodies() == [life]
                    await until(lambda life=life: life in n1.node.bodies(), "it is heard here")  # type: ignore[misc]
                await until(lambda: not n1.is_connected_to("n2"), "its end was noticed")
            assert n1.transport.status()[0].dropped == 1

    run(scenario)


def test_where_both_dial_at_once_one_stream_stays() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, wait_to_dial_ms=1)
        for _ in range(5):
            async with running_peer("n1", limits=limits) as n1, running_peer("n2", limits=limits) as n2:
                for each in (n1, n2):
                    each.transport.configure(members(n1, n2))
                await connected(n1, n2)
                links = []
                for _ in range(100):
                    n1.transport.send(1, [Message("n2", b"a")])
                    n2.transport.send(1, [Message("n1", b"b")])
                    await asyncio.sleep(0.001)
                    links.append(n1.transport.status()[0].opened_by)
                assert n1.node.received
                assert n2.node.received
                # In either order: the smaller id's, and no change after it.
                changes = [each for each, before in zip(links[1:], links, strict=False) if each != before]
                assert len(changes) <= 2
                assert links[-1] == n2.transport.status()[0].opened_by

    run(scenario)


def test_the_node_with_the_larger_id_dials_where_the_other_does_not_know_it() -> None:
    async def scenario() -> None:
        behind, ahead = RecordingNode(position=(3, 10)), RecordingNode(position=(3, 11))
        async with (
            running_peer("n1", node=behind) as n1,
            running_peer("n2", node=ahead) as n2,
            running_peer("n0", node=RecordingNode(position=(3, 11))) as n0,
        ):
            n0.transport.configure(members(n0, n1, n2))
            n1.transport.configure(members(n0, n1))
            n2.transport.configure(members(n0, n1, n2))
            await connected(n1, n2)
            n1.transport.send(1, [Message("n2", b"from a node that does not know it yet")])
            await until(lambda: len(n2.node.received) == 1, "it is answered")

    run(scenario)


def test_a_member_that_was_removed_is_cut_off_and_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2, running_peer("n3") as n3:
            for each in (n1, n2, n3):
                each.transport.configure(members(n1, n2, n3))
            await connected(n1, n2, n3)
            for each in (n1, n2):
                each.node.position = (1, 11)
                each.transport.configure(members(n1, n2))
            await until(lambda: not n1.is_connected_to("n3") and not n2.is_connected_to("n3"), "cut")
            await until(lambda: REMOVED in n3.problem_with("n1"), "n3 knows why")
            await until(lambda: REMOVED in n3.problem_with("n2"), "n3 knows why from both")
            assert n1.is_connected_to("n2")

    run(scenario)
    # Once on either side, however often it was tried.
    refusals = [each.getMessage() for each in caplog.records if "is no member of" in each.getMessage()]
    assert sorted(refusals) == sorted(
        [f"node 'n3' of the peers refused: {REMOVED}"] * 2
        + [f"node '{node_id}' of the peers not connected: {REMOVED}" for node_id in ("n1", "n2")]
    )


def test_who_was_let_in_is_cut_off_once_its_id_belongs_to_another_data_directory() -> None:
    """Its acknowledgements must not count for the directory that has the id now."""

    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2, running_peer("n0") as n0:
            n0.node.position = n2.node.position = (9, 99)
            n0.transport.configure(members(n0, n1, n2))
            # When n1 was away it was announced, and has joined since.
            n1.transport.configure(members(n0, n1, n2, n2=""))
            n2.transport.configure(members(n0, n1, n2))
            await connected(n1, n2)
            link = n1.transport.link_to("n2")
            n1.node.position = (9, 100)
            n1.transport.configure(members(n0, n1, n2, n2="another-disk"))
            await until(lambda: link is not None and not link.is_open, "the stream is cut")
            await until(lambda: "another data directory" in n1.problem_with("n2"), "it is refused from then on")
            n2.transport.send(1, [Message("n1", b"acknowledged")])
            assert not n1.node.received

    run(scenario)


def test_a_peer_is_followed_to_a_new_address() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            n2.node.leaving = (n1.member,)  # It knows it, and does not dial.
            old = Roster.of((n1.member, replace(n2.member, peer_address="127.0.0.1:1")))
            n1.transport.configure(old)
            await until(lambda: n1.problem_with("n2") != "", "the old address was tried")
            n1.transport.configure(members(n1, n2))
            await until(lambda: n1.is_connected_to("n2"), "connected at the new one")

    run(scenario)


def test_an_address_that_leads_to_another_node_is_refused_with_both_names() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n3") as n3:
            everyone = Roster.of((n1.member, Member("n2", n3.address, "storage-n2"), n3.member))
            n1.transport.configure(everyone)
            n3.transport.configure(everyone)
            said = "node n1 looks for node n2 under an address that leads to node n3"
            await until(lambda: n1.problem_with("n2") == said, "n1 says so")
            assert not n1.is_connected_to("n2")
            await until(lambda: n1.is_connected_to("n3"), "n3 itself is reached")

    run(scenario)


def test_an_address_that_leads_back_is_refused() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(Roster.of((n1.member, Member("n2", n1.address, "storage-n2"))))
            said = "node n1 is this node itself: an address of another member leads back to it"
            await until(lambda: n1.problem_with("n2") == said, "n1 says so")

    run(scenario)


@pytest.mark.parametrize("dialler", ["n1", "n2"])
def test_a_node_of_another_cluster_is_refused_whoever_dials(dialler: str) -> None:
    async def scenario() -> None:
        stranger = identity_of_node("n2", "cluster-b")
        async with running_peer("n1") as n1, running_peer("n2", identity=stranger) as n2:
            (n1 if dialler == "n1" else n2).transport.configure(members(n1, n2))
            one, other = ("n1", "n2") if dialler == "n2" else ("n2", "n1")
            said = {
                "n2": "node n1 belongs to cluster cluster-a, this node n2 to cluster cluster-b",
                "n1": "node n2 belongs to cluster cluster-b, this node n1 to cluster cluster-a",
            }[one]
            dialling = n1 if dialler == "n1" else n2
            await until(lambda: dialling.problem_with(one) == said, "refused")
            assert other == dialler

    run(scenario)


def test_a_dialler_that_refuses_says_why_to_the_other_side(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        # n2 would take n1; n1 knows another data directory under n2's name.
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            n1.transport.configure(members(n1, n2, n2="storage-old"))
            n2.transport.configure(members(n1, n2))
            await until(lambda: "has another data directory" in n1.problem_with("n2"), "n1 refuses")
            await until(lambda: "node n1 refuses this node: node n2 has another data" in n2.problem_with("n1"), "told")

    run(scenario)


def test_a_silent_peer_is_cut_and_an_idle_one_is_not() -> None:
    async def scenario() -> None:
        limits = PeerLimits(idle_ms=50, silence_ms=1_000, backoff_ms_min=5, backoff_ms_max=20, hello_ms=20_000)
        mute = replace(LIMITS, idle_ms=10_000)
        async with (
            running_peer("n1", limits=limits) as n1,
            running_peer("n2", limits=limits) as n2,
            running_peer("n3", limits=mute) as n3,
        ):
            n3.node.leaving = (n1.member, n2.member)  # It knows them, and dials none of them.
            for each in (n1, n2):
                each.transport.configure(members(n1, n2, n3))
            await connected(n1, n2)
            await until(lambda: "nothing arrived from it for 1000 ms" in n1.problem_with("n3"), "n3 is cut")
            assert n1.is_connected_to("n2")
            assert n1.problem_with("n2") == ""

    run(scenario)


def test_offsets_of_clocks_are_bounded_from_the_streams_alone() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, idle_ms=20)
        async with (
            running_peer("n1", limits=limits) as n1,
            running_peer("n2", limits=limits, physical_offset_ms=5_000) as n2,
        ):
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await until(lambda: "n2" in n1.node.clocks and "n1" in n2.node.clocks, "both know")
            # This machine's wall clock minus its monotonic one, which both nodes have; clocks are read in turn.
            wall_ms = time.time_ns() / 1_000_000 - time.monotonic_ns() / 1_000_000
            low_ms, high_ms = n1.node.clocks["n2"]
            assert low_ms - 10 <= wall_ms + 5_000 <= high_ms + 10
            low_ms, high_ms = n2.node.clocks["n1"]
            assert low_ms - 10 <= wall_ms <= high_ms + 10

    run(scenario)
