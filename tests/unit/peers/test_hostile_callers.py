"""Messages of strangers to the port for peers change nothing, are answered with a reason, and cost little."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from cortado.errors import CortadoError, InvalidArgument, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import (
    FetchSnapshotRequest,
    GroupMessage,
    Hello,
    JoinRequest,
    PeerBatch,
    ReadRangeRequest,
)
from cortado.raft.log import Message
from cortado.raft.registry import Member, Roster
from cortado.store.clock.timestamp import Timestamp
from cortado.store.peers.frames import PREAMBLE, Frame, Kind, encode_frame
from cortado.store.peers.hello import make_hello
from cortado.store.peers.versions import OURS
from cortado.store.process.range_copies import Answer
from support.nodes import run, until
from support.peers import LIMITS, PeerProcess, calling, connected, how_it_ends, identity_of_node, members, running_peer


async def reason_for(peer: PeerProcess, *frames: Frame) -> CortadoError:
    """Return the error with which the peer ends a connection that carries these frames."""
    async with calling(peer) as connection:
        return await how_it_ends(connection, *frames)


def hello_frame(hello: Hello) -> Frame:
    return Frame(Kind.HELLO, hello.SerializeToString())


def good_hello(node_id: str = "n2") -> Frame:
    return hello_frame(make_hello(identity_of_node(node_id), "h:1", (1, 5), "n1"))


def two_members(n1: PeerProcess) -> Roster:
    return Roster.of((n1.member, Member("n2", "127.0.0.1:1", "storage-n2")))


FOREIGN = hello_frame(make_hello(identity_of_node("n2", "cluster-b"), "h:1", (9, 9), "n1"))
BATCH = Frame(Kind.BATCH, PeerBatch(messages=[GroupMessage(group_id=1, body=b"x")]).SerializeToString())


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        pytest.param([Frame(Kind.HELLO, b"\xff" * 100)], "is not one of the peers' protocol", id="garbage"),
        pytest.param([Frame(Kind.HELLO, good_hello().payload[:-5])], "not one of the peers' protocol", id="half one"),
        pytest.param([Frame(Kind.HELLO, b"")], "holds no whole Hello", id="nothing in it"),
        pytest.param([BATCH], "sent a frame BATCH where HELLO or ", id="messages before a Hello"),
        pytest.param([Frame(Kind.HELLO, bytes(1 << 20))], "of 1048576 bytes, and it may have 16384", id="a long Hello"),
        pytest.param([Frame(Kind.JOIN, bytes(16385))], "of 16385 bytes, and it may have 16384", id="a long request"),
        pytest.param([good_hello(), Frame(Kind.BATCH, b"\xff" * 100)], "not of the peers' protocol", id="then garbage"),
        pytest.param([good_hello(), good_hello()], "sent a frame HELLO where BATCH was due", id="a second Hello"),
        pytest.param([FOREIGN], "belongs to cluster cluster-b", id="another cluster"),
    ],
)
def test_a_wrong_stream_is_ended_with_a_reason_and_changes_nothing(frames: Sequence[Frame], said: str) -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            error = await reason_for(n1, *frames)
            assert isinstance(error, PeerRefused)
            assert said in error.message()
            assert n1.node.received == []
            assert n1.node.bound == []
            await until(lambda: not n1.is_connected_to("n2"), "nobody is connected")
            assert {each.node_id for each in n1.transport.status()} == {"n2"}

    run(scenario)


def test_a_message_over_the_limit_ends_the_stream_before_it_is_held() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            error = await reason_for(n1, good_hello(), Frame(Kind.BATCH, bytes((8 << 20) + 1)))
            assert "of 8388609 bytes, and it may have 8388608" in error.message()
            assert n1.node.received == []
            await until(lambda: not n1.is_connected_to("n2"), "cut")

    run(scenario)


def test_who_says_nothing_is_not_waited_for() -> None:
    async def scenario() -> None:
        async with running_peer("n1", limits=replace(LIMITS, hello_ms=50)) as n1:
            n1.transport.configure(two_members(n1))
            error = await reason_for(n1)
            assert isinstance(error, Unavailable)
            assert error.problem == "no Hello within 50 ms"

    run(scenario)


def test_a_flood_of_streams_that_say_nothing_keeps_no_peer_out() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, handshakes_max=4, connections_max=6)
        async with running_peer("n1") as n1, running_peer("n2", limits=limits) as n2, AsyncExitStack() as stack:
            silent = [await stack.enter_async_context(calling(n2)) for _ in range(40)]
            ended = [asyncio.ensure_future(how_it_ends(each)) for each in silent]
            await until(lambda: sum(each.done() for each in ended) == 36, "all but four are ended")
            assert not any(each.done() for each in ended[36:])
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            link = n2.transport.link_to("n1")
            silent += [await stack.enter_async_context(calling(n2)) for _ in range(40)]
            await until(lambda: n2.listener.connections == 5, "strangers make room for strangers")
            assert n2.transport.link_to("n1") is link
            await stack.aclose()
            await asyncio.gather(*ended, return_exceptions=True)

    run(scenario)


def test_who_is_refused_keeps_no_peer_out_while_it_does_not_close() -> None:
    async def scenario() -> None:
        limits = replace(LIMITS, handshakes_max=4, connections_max=6)
        strange = FetchSnapshotRequest(hello=Hello(), group_id=1, snapshot_id="s1").SerializeToString()
        async with running_peer("n1", limits=limits) as n1, AsyncExitStack() as stack:
            n1.transport.configure(two_members(n1))
            for _ in range(10):
                caller = await stack.enter_async_context(calling(n1))
                with suppress(Unavailable):
                    await caller.write(Kind.FETCH_SNAPSHOT, strange)
                assert n1.listener.connections <= 4
            caller = await stack.enter_async_context(calling(n1))
            await caller.write(*good_hello())
            frame = await caller.read()
            assert frame is not None
            assert frame.kind is Kind.HELLO

    run(scenario)


def test_a_flood_of_made_up_nodes_fills_neither_the_log_nor_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            for number in range(0, 600, 12):
                hellos = [good_hello(f"stranger-{number + i}") for i in range(12)]
                errors = await asyncio.gather(*(reason_for(n1, each) for each in hellos))
                assert {type(each) for each in errors} == {PeerRefused}
            assert [each.node_id for each in n1.transport.status()] == ["n2"]

    run(scenario)
    assert 0 < len([each for each in caplog.records if "stranger" in each.getMessage()]) <= 256


def test_the_stream_of_a_peer_goes_on_beside_a_flood() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)

            is_over = False

            async def flood() -> None:
                while not is_over:
                    await reason_for(n1, good_hello("n9"))

            floods = [asyncio.ensure_future(flood()) for _ in range(4)]
            for number in range(50):
                n2.transport.send(1, [Message("n1", b"%d" % number)])
                await until(lambda number=number: len(n1.node.received) == number + 1, "it arrived")  # type: ignore[misc]
            is_over = True
            await asyncio.gather(*floods)
            assert n1.is_connected_to("n2")

    run(scenario)


def test_a_second_stream_of_the_larger_id_is_turned_away_and_one_of_the_smaller_takes_the_place() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1, running_peer("n2") as n2:
            for each in (n1, n2):
                each.transport.configure(members(n1, n2))
            await connected(n1, n2)
            first = n1.transport.link_to("n2")
            error = await reason_for(n1, good_hello("n2"))
            assert isinstance(error, Unavailable)
            assert error.problem == "another stream joins nodes n1 and n2 already"
            assert n1.transport.link_to("n2") is first
            # As after a crash of n1 that n2 has not noticed.
            old = n2.transport.link_to("n1")
            hello = make_hello(identity_of_node("n1"), n1.address, (1, 5), "n2")
            async with calling(n2) as connection:
                await connection.write(*hello_frame(hello))
                await until(lambda: n2.transport.link_to("n1") not in (None, old), "the newer one counts")
            await until(lambda: first is not None and not first.is_open, "the older one is closed")

    run(scenario)


def test_a_stranger_gets_no_snapshot() -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            n1.node.snapshot_files["s1"] = b"secret"
            strange = Hello(protocol=7, cluster_id="cluster-a", node_id="n9", storage_id="x", to_node_id="n1")
            for hello in (strange, Hello()):
                request = FetchSnapshotRequest(hello=hello, group_id=1, snapshot_id="s1").SerializeToString()
                assert isinstance(await reason_for(n1, Frame(Kind.FETCH_SNAPSHOT, request)), PeerRefused)
            assert isinstance(await reason_for(n1, Frame(Kind.FETCH_SNAPSHOT, b"\xff")), InvalidArgument)

    run(scenario)


def test_an_answer_that_nobody_takes_is_given_up_and_keeps_no_connection() -> None:
    async def scenario() -> None:
        async with running_peer("n1", limits=replace(LIMITS, patience_ms=100)) as n1:
            n1.transport.configure(two_members(n1))
            # More than the sockets of both sides hold.
            n1.node.range_answer = Answer(7, Timestamp(0, 1, 2), bytes(20), [(b"a", bytes(100 << 20))], [], b"c")
            hello = make_hello(identity_of_node("n2"), "h:1", (1, 5), "n1")
            request = ReadRangeRequest(hello=hello, group_id=1, space=1, start=b"a", end=b"c")
            loop = asyncio.get_running_loop()
            with socket.socket() as caller:
                caller.setblocking(False)
                host, _, port = n1.address.rpartition(":")
                await loop.sock_connect(caller, (host, int(port)))
                await loop.sock_sendall(caller, PREAMBLE + encode_frame(Kind.READ_RANGE, request.SerializeToString()))
                await until(lambda: n1.node.asked != [], "it was asked")
                await until(lambda: n1.listener.connections == 0, "nothing is left of it")

    run(scenario)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"node_id": ""}, InvalidArgument, "node id: must consist of"),
        ({"node_id": "n 2"}, InvalidArgument, "node id: must consist of"),
        ({"node_id": "n" * 65}, InvalidArgument, "node id: may have 64"),
        ({"storage_id": ""}, InvalidArgument, "storage_id: must have 1 to 128 printable"),
        ({"storage_id": "s" * 200}, InvalidArgument, "storage_id: must have 1 to 128 printable"),
        ({"address": ""}, InvalidArgument, "address: must have"),
        ({"address": "h:1\n"}, InvalidArgument, "address: must have"),
        ({"peer_address": ""}, InvalidArgument, "peer_address: must have"),
        ({"peer_address": "h:7"}, InvalidArgument, "node n3 was announced at h:1, and says to be reached at h:7"),
        ({"protocol": 0}, PeerRefused, "node n3 speaks version 0 of the peers' protocol, node n1 version 7"),
        ({"cluster_id": "cluster-b"}, PeerRefused, "belongs to cluster 'cluster-b', node n1 to cluster cluster-a"),
        ({"node_id": "n1"}, PeerRefused, "is called n1 itself"),
    ],
)
def test_a_wrong_request_to_join_binds_nothing(changes: dict[str, Any], kind: type[CortadoError], said: str) -> None:
    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(Roster.of((n1.member,), (Member("n3", "h:1", ""),)))
            ours = JoinRequest()
            OURS.tell(ours)
            request = JoinRequest(node_id="n3", storage_id="s", peer_address="h:1", address="h:2", entries=ours.entries)
            request.protocol = OURS.newest_protocol
            for name, value in changes.items():
                setattr(request, name, value)
            error = await reason_for(n1, Frame(Kind.JOIN, request.SerializeToString()))
            assert type(error) is kind
            assert said in error.message()
            assert isinstance(await reason_for(n1, Frame(Kind.JOIN, b"\xff\xff")), InvalidArgument)
            assert n1.node.bound == []

    run(scenario)


def test_nothing_that_was_sent_outlives_its_refusal() -> None:
    """Also before the collector of cycles comes: a flood is faster than that."""

    async def scenario() -> None:
        async with running_peer("n1") as n1:
            n1.transport.configure(two_members(n1))
            gc.collect()
            gc.disable()
            try:
                for _ in range(5):
                    for kind in (Kind.HELLO, Kind.JOIN, Kind.FETCH_SNAPSHOT):
                        await reason_for(n1, Frame(kind, bytes(16 << 10)))
                gc.set_debug(gc.DEBUG_SAVEALL)
                gc.collect()
                frames = [each for each in gc.garbage if isinstance(each, FrameType)]
                ours = [each for each in frames if "/store/peers/" in each.f_code.co_filename]
                held = [value for frame in ours for value in frame.f_locals.values() if isinstance(value, bytes)]
                assert [len(value) for value in held if len(value) >= 16 << 10] == []
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
                gc.enable()

    run(scenario)
