"""Servers that flood their client, starve it, or go on in the middle of things: no call hangs, and no memory grows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cortado.errors import (
    Cancelled,
    ConditionFailed,
    CortadoError,
    DeadlineExceeded,
    Internal,
    OutcomeUnknown,
    Unavailable,
)
from cortado.proto.v1 import kv_pb2
from cortado.store.client import Client
from cortado.store.client.runtime import Environment
from cortado.store.h2 import frames
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD, prefixed
from cortado.store.h2.limits import ErrorCode
from cortado.store.wire.rpc_errors import trailing_metadata
from support.faces import FACES
from support.fake_server import header
from support.remains import client_that_leaves_nothing
from support.script_server import END, Asked, Peer, Script, ScriptServer, headers, refusal, serving
from support.server_process import wait_until

pytestmark = pytest.mark.timeout(120)

ONE_ATTEMPT = Environment(random=lambda: 1e9)
"""The pause before a second one is longer than any timeout."""
CANCEL = int(ErrorCode.CANCEL)


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def alone(face: str, server: ScriptServer, timeout_s: float = 30, **options: Any) -> Any:
    """Open a client whose calls have streams of their own, and that makes one attempt."""
    return client_that_leaves_nothing(
        face, server.endpoint, timeout_s=timeout_s, coalesce=False, environment=ONE_ATTEMPT, **options
    )


# --- statuses --------------------------------------------------------------------------------------------------


def test_a_refusal_that_is_trailers_alone_is_the_servers_error(face: str) -> None:
    refused = ConditionFailed("k", "it is \N{SNOWMAN}", "100%")

    def refuse(peer: Peer, asked: Asked) -> None:
        peer.send(refusal(asked.stream, 9, "other words", trailing_metadata(refused)))

    with ScriptServer(serving({"KeyValue/Put": refuse})) as server, alone(face, server) as client:
        with pytest.raises(ConditionFailed) as raised:
            client.kv("n").put(b"k", b"v")
        assert raised.value.fields() == refused.fields()


@pytest.mark.parametrize("message", ["a stranger's words", "100% \N{SNOWMAN}", "%", "%zz%4"])
def test_words_of_strangers_are_not_shown(message: str, face: str) -> None:
    def refuse(peer: Peer, asked: Asked) -> None:
        peer.send(refusal(asked.stream, 13, message))

    with ScriptServer(serving({"KeyValue/Get": refuse})) as server, alone(face, server) as client:
        with pytest.raises(Internal) as raised:
            client.kv("n").get(b"k")
        assert message not in str(raised.value).replace(" ", "")
        assert "the call ended with INTERNAL, and no reason of Cortado's" in str(raised.value)


# --- floods ----------------------------------------------------------------------------------------------------

FLOOD_BYTES = 1 << 26


def flood(frame: Callable[[int], bytes], head: bytes = b"") -> Script:
    """Return the script of a server that answers a get with a flood, and reads nothing meanwhile. ``frame`` makes its
    frame for a stream."""

    def act(peer: Peer, asked: Asked) -> None:
        one = frame(asked.stream)
        piece = one * (1 + (1 << 16) // len(one))
        peer.send(head and headers(asked.stream, head))
        for _ in range(FLOOD_BYTES // len(piece)):
            peer.send(piece)
        peer.until_gone()

    return serving({"KeyValue/Get": act})


def on_stream(kind: int, payload: bytes = b"") -> Callable[[int], bytes]:
    return lambda stream: frames.frame(kind, 0, stream, payload)


def of_connection(kind: int, payload: bytes) -> Callable[[int], bytes]:
    return lambda stream: frames.frame(kind, 0, 0, payload)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(flood(of_connection(frames.PING, bytes(8))), id="pings"),
        pytest.param(flood(of_connection(frames.SETTINGS, bytes((0, 3, 0, 0, 0, 100)))), id="settings"),
        pytest.param(flood(on_stream(frames.DATA), RESPONSE_HEAD), id="empty-data"),
        pytest.param(flood(on_stream(frames.DATA, bytes(1000)), RESPONSE_HEAD), id="more-than-the-window"),
        pytest.param(flood(on_stream(frames.CONTINUATION, bytes(1000))), id="continuation-of-nothing"),
        pytest.param(flood(on_stream(frames.WINDOW_UPDATE, (1).to_bytes(4, "big"))), id="windows"),
        pytest.param(flood(of_connection(0xBB, b"x")), id="frames-of-an-unknown-kind"),
    ],
)
def test_a_flood_ends_the_connection(script: Script, face: str) -> None:
    with ScriptServer(script) as server, alone(face, server) as client:
        client.clock()
        with pytest.raises(Unavailable):
            client.kv("n").get(b"k")


def test_an_endless_header_block_ends_the_connection(face: str) -> None:
    def act(peer: Peer, asked: Asked) -> None:
        peer.send(headers(asked.stream, RESPONSE_HEAD, 0))
        for _ in range(FLOOD_BYTES >> 10):
            peer.send(frames.frame(frames.CONTINUATION, 0, asked.stream, b"\x00\x01x" + b"\x7f\xf5\x06" + bytes(1012)))
        peer.until_gone()

    with ScriptServer(serving({"KeyValue/Get": act})) as server, alone(face, server) as client:
        client.clock()
        with pytest.raises(Unavailable):
            client.kv("n").get(b"k")


# --- windows ---------------------------------------------------------------------------------------------------


def stuck(peer: Peer, asked: Asked) -> None:
    """Never called: its request does not become whole."""
    raise AssertionError("the request came whole")


def starving(peer: Peer) -> None:
    peer.greet()
    peer.credits_streams = False
    peer.serve({"KeyValue/Put": stuck})


def test_a_large_write_that_is_stuck_has_an_unknown_outcome(face: str) -> None:
    with ScriptServer(starving) as server, alone(face, server, 1) as client:
        with pytest.raises(OutcomeUnknown, match="no answer within 1000 ms"):
            client.kv("n").put(b"k", bytes(1 << 20))
        assert client.kv("n").get(b"k") is None
        wait_until(lambda: CANCEL in server.peers[0].resets.values(), "the server is told")
        assert server.peers[0].received < 1 << 17


def test_a_window_that_changes_in_the_middle_is_kept(face: str) -> None:
    """The server makes it smaller than the bytes that were sent, and opens it a little at a time."""

    def opening(peer: Peer) -> None:
        peer.greet({frames.INITIAL_WINDOW_SIZE: 1_000})
        peer.credits_streams = False
        while not (large := [stream for stream, body in peer.bodies.items() if len(body) == 1_000]):
            for asked in peer.step():
                peer.answer(asked)
        peer.send(frames.settings([(frames.INITIAL_WINDOW_SIZE, 10)]))
        peer.send(frames.window_update(large[0], 990 + 500))
        while len(peer.bodies[large[0]]) < 1_500:
            peer.step()
        assert len(peer.bodies[large[0]]) == 1_500
        peer.credits_streams = True
        peer.send(frames.window_update(large[0], 1 << 20))
        peer.serve()

    with ScriptServer(opening) as server, alone(face, server) as client:
        assert client.kv("n").put(b"k", bytes(5_000)) == "0.1000.1"


def value_reply(value: bytes) -> bytes:
    pair = kv_pb2.KvPair(key=b"k", value=value, etag="0.1000.1")
    return prefixed(kv_pb2.KvGetResponse(header=header(), pair=pair).SerializeToString())


def test_a_reply_of_100_mib_comes_in_pieces(face: str) -> None:
    value = bytes(100 << 20)

    def act(peer: Peer, asked: Asked) -> None:
        peer.send(headers(asked.stream, RESPONSE_HEAD))
        peer.send_long(asked, value_reply(value))
        peer.send(headers(asked.stream, OK_TRAILERS, END))

    with ScriptServer(serving({"KeyValue/Get": act})) as server, alone(face, server, 100) as client:
        found = client.kv("n").get(b"k")
        assert found is not None
        assert found.value == value


def endless_scan(peer: Peer, asked: Asked) -> None:
    """Send pages as far as windows allow, and answer other calls meanwhile."""
    page = kv_pb2.KvScanResponse(header=header(), pairs=[kv_pb2.KvPair(key=b"k", value=bytes(10_000))])
    page.next_page_token = b"t"
    peer.send(headers(asked.stream, RESPONSE_HEAD))
    peer.send_long(asked, prefixed(page.SerializeToString()) * 4_000)


def test_a_stream_that_is_not_read_holds_up_no_other_call(face: str) -> None:
    with ScriptServer(serving({"KeyValue/Scan": endless_scan})) as server, alone(face, server) as client:
        scan = client.kv("n").scan()
        next(scan)
        for _ in range(20):
            assert client.kv("n").get(b"k") is None
        scan.close()  # type: ignore[attr-defined]
        assert client.kv("n").get(b"k") is None
        wait_until(lambda: CANCEL in server.peers[0].resets.values(), "the server is told")


def test_frames_of_a_stream_that_was_given_up_are_ignored(face: str) -> None:
    late: list[Asked] = []

    def act(peer: Peer, asked: Asked) -> None:
        if not late:
            late.append(asked)
            return
        peer.answer(late[0])
        peer.answer(asked)

    with ScriptServer(serving({"KeyValue/Get": act})) as server, alone(face, server) as client:
        with pytest.raises(DeadlineExceeded):
            client.with_timeout(0.2).kv("n").get(b"k")
        assert client.kv("n").get(b"k") is None
        assert len(server.peers) == 1


# --- streams ---------------------------------------------------------------------------------------------------


def test_with_one_stream_allowed_calls_wait_for_each_other(face: str) -> None:
    one_at_a_time = {frames.MAX_CONCURRENT_STREAMS: 1}
    with ScriptServer(serving(settings=one_at_a_time)) as server, alone(face, server) as client:
        client.clock()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: client.kv("n").get(b"k"), range(40)))
        assert found == [None] * 40
        assert len(server.peers) == 1


def test_without_any_stream_allowed_a_write_did_not_happen(face: str) -> None:
    def closing_down(peer: Peer, asked: Asked) -> None:
        peer.send(frames.settings([(frames.MAX_CONCURRENT_STREAMS, 0)]))
        peer.answer(asked)

    with ScriptServer(serving({"KeyValue/Put": closing_down})) as server, alone(face, server, 1) as client:
        assert client.kv("n").put(b"k", b"v") == "0.1000.1"
        with pytest.raises(Unavailable, match=r"the write was not sent|could not be sent in time"):
            client.kv("n").put(b"k", b"v")


def test_goaway_lets_a_call_end_that_it_takes(face: str) -> None:
    def act(peer: Peer, asked: Asked) -> None:
        peer.send(frames.goaway(asked.stream, ErrorCode.NO_ERROR))
        peer.answer(asked)
        peer.until_gone()

    with ScriptServer(serving({"KeyValue/Put": act}), serving()) as server, alone(face, server) as client:
        assert client.kv("n").put(b"k", b"v") == "0.1000.1"
        assert client.kv("n").put(b"k", b"v") == "0.1000.1"
        assert len(server.peers) == 2


@pytest.mark.parametrize("merges", [False, True], ids=["alone", "merged"])
def test_a_reply_that_never_comes_is_late_and_the_server_is_told(merges: bool, face: str) -> None:
    silent = {"KeyValue/Get": lambda peer, asked: None}
    with (
        ScriptServer(serving(silent)) as server,
        client_that_leaves_nothing(face, server.endpoint, timeout_s=1, coalesce=merges) as client,
    ):
        with pytest.raises(DeadlineExceeded, match="no answer within 1000 ms"):
            client.kv("n").get(b"k")
        wait_until(lambda: CANCEL in server.peers[0].resets.values(), "the server is told")


def test_closing_ends_a_call_that_waits(face: str) -> None:
    waits = threading.Event()
    silent = {"KeyValue/Get": lambda peer, asked: waits.set()}
    ended: list[CortadoError] = []

    def get(client: Client) -> None:
        with pytest.raises(CortadoError) as raised:
            client.kv("n").get(b"k")
        ended.append(raised.value)

    with ScriptServer(serving(silent)) as server:
        with alone(face, server, 100) as client:
            caller = threading.Thread(target=get, args=(client,))
            caller.start()
            assert waits.wait(60)
        caller.join()
    assert [type(each) for each in ended] == [Cancelled]
