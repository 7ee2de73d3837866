"""Servers that misbehave in the middle of a call: each ends with an error of ours, and the client goes on.

A write that may have been done raises OutcomeUnknown; one that was certainly not done does not. The next call works, on
the same connection or on a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cortado.errors import CortadoError, Internal, OutcomeUnknown, ResourceExhausted, Unavailable, Unsupported
from cortado.proto.v1 import calls_pb2
from cortado.store.client.runtime import Environment
from cortado.store.h2 import frames
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD, prefixed
from cortado.store.h2.header_blocks import block, integer
from cortado.store.h2.limits import ErrorCode
from support.faces import FACES
from support.remains import client_that_leaves_nothing
from support.script_server import (
    END,
    Act,
    Asked,
    Peer,
    ScriptServer,
    data,
    headers,
    put_id,
    reply_to,
    reset,
    serving,
)

pytestmark = pytest.mark.timeout(15)

AT_ONCE = Environment(random=lambda: 0.0)
"""There is no pause before a second attempt."""
NO_CORTADO = "what answers there is no Cortado server"
BROKEN = "cannot reach .*: |internal error: "
"""Any reason of ours."""


def one_attempt() -> Environment:
    """Return chance that makes the first pause longer than any timeout, and others nothing."""
    chance = iter([1e9])
    return Environment(random=lambda: next(chance, 0.0))


@dataclass(frozen=True)
class Case:
    """``act`` is done in place of a reply. ``told``: a part of the error's text, which is one of ``kinds``.
    ``is_certain``: nothing was done. ``merges``: the same holds for calls on the coalescing stream."""

    name: str
    act: Act
    told: str = BROKEN
    kinds: tuple[type[CortadoError], ...] = (Unavailable,)
    is_certain: bool = False
    merges: bool = False

    def __str__(self) -> str:
        return self.name


def sends(*pieces: Any) -> Act:
    """Return an act that sends bytes; functions among them make some of the stream's number."""
    return lambda peer, asked: peer.send(*(each(asked.stream) if callable(each) else each for each in pieces))


def head(stream: int, fields: bytes = RESPONSE_HEAD, flags: int = frames.END_HEADERS) -> bytes:
    return headers(stream, fields, flags)


def resets(code: int) -> Act:
    return sends(lambda stream: reset(stream, code))


def resets_behind_head(code: int) -> Act:
    return sends(head, lambda stream: reset(stream, code))


def cuts(*pieces: Any) -> Act:
    """Return an act that sends bytes, and ends the connection in order."""

    def act(peer: Peer, asked: Asked) -> None:
        sends(*pieces)(peer, asked)
        peer.end()

    return act


def goes_away(last_id: int | None, *, cut: bool) -> Act:
    """Return an act that sends GOAWAY with that last id, that of the stream if None."""

    def act(peer: Peer, asked: Asked) -> None:
        peer.send(frames.goaway(asked.stream if last_id is None else last_id, ErrorCode.NO_ERROR))
        if cut:
            peer.end()

    return act


def body(of: bytes) -> Any:
    """Return the response to a get with ``of`` in place of its DATA, in order otherwise."""
    return sends(head, lambda stream: data(stream, of), lambda stream: headers(stream, OK_TRAILERS, END))


def answers_http(status: bytes, content_type: bytes, text: bytes) -> Act:
    fields = block([(b":status", status), (b"content-type", content_type)])
    return sends(lambda stream: headers(stream, fields), lambda stream: data(stream, text, frames.END_STREAM))


GET = reply_to("KeyValue/Get")
UNREADABLE = (Unavailable, Internal)
RESET = (Unavailable, ResourceExhausted)

RESETS = [
    Case(
        f"reset-{code:#x}",
        resets(code),
        kinds=RESET,
        merges=True,
        is_certain=code == ErrorCode.REFUSED_STREAM,
    )
    for code in (*(each for each in ErrorCode), 0xFF)
]
RESETS_BEHIND_HEAD = [
    Case(f"reset-behind-head-{code:#x}", resets_behind_head(code), kinds=RESET)
    for code in ErrorCode
    if code is not ErrorCode.REFUSED_STREAM
]
ENDS = [
    Case("cut", cuts(), merges=True),
    Case("cut-in-a-frame", cuts(lambda stream: head(stream)[:7]), merges=True),
    Case("cut-in-a-message", cuts(head, lambda stream: data(stream, prefixed(GET)[:-2])), merges=True),
    Case("cut-before-trailers", cuts(head, lambda stream: data(stream, prefixed(GET)))),
    Case("goaway-that-takes-the-call-and-cut", goes_away(None, cut=True), merges=True),
    Case("goaway-below-the-call", goes_away(0, cut=False), is_certain=True, merges=True),
    Case("goaway-below-the-call-and-cut", goes_away(0, cut=True), is_certain=True, merges=True),
]
RESPONSES = [
    Case("trailers-without-status", sends(lambda stream: headers(stream, RESPONSE_HEAD, END)), kinds=UNREADABLE),
    Case(
        "a-reply-without-trailers",
        sends(head, lambda stream: data(stream, prefixed(GET), frames.END_STREAM)),
        kinds=UNREADABLE,
    ),
    Case(
        "a-status-that-is-no-number",
        sends(head, lambda stream: headers(stream, block([(b"grpc-status", b"fine")]), END)),
        kinds=UNREADABLE,
    ),
    Case(
        "status-ok-without-a-reply",
        sends(head, lambda stream: headers(stream, OK_TRAILERS, END)),
        kinds=UNREADABLE,
    ),
    Case("two-replies", body(prefixed(GET) * 2), kinds=UNREADABLE),
    Case("a-prefix-that-is-too-long", body(b"\x00\x00\x00\x01\x00" + GET), kinds=UNREADABLE),
    Case("a-prefix-of-4-gib", body(b"\x00\xff\xff\xff\xff" + GET), kinds=UNREADABLE),
    Case("a-prefix-that-is-too-short", body(b"\x00\x00\x00\x00\x01" + GET), kinds=UNREADABLE),
    Case("half-a-prefix", body(b"\x00\x00"), kinds=UNREADABLE),
    Case("a-compressed-reply", body(b"\x01" + prefixed(GET)[1:]), kinds=UNREADABLE),
    Case(
        "garbage",
        body(prefixed(b"\xff" * 20)),
        "a reply of cortado.v1.KeyValue/(Get|Put) that cannot be read",
        (Internal,),
    ),
    Case("html-503", answers_http(b"503", b"text/html", b"<h1>Busy</h1>"), NO_CORTADO),
    Case(
        "html-404",
        answers_http(b"404", b"text/html", b"<h1>Not here</h1>"),
        NO_CORTADO,
        (Unsupported,),
        is_certain=True,
    ),
    Case("html-200", answers_http(b"200", b"text/html", b"<h1>Welcome</h1>"), NO_CORTADO, UNREADABLE),
    Case(
        "no-http-status",
        sends(lambda stream: headers(stream, block([(b"content-type", b"application/grpc")]))),
        kinds=UNREADABLE,
    ),
    Case("data-before-headers", sends(lambda stream: data(stream, prefixed(GET))), kinds=UNREADABLE),
    Case(
        "a-field-with-capitals",
        sends(lambda stream: headers(stream, RESPONSE_HEAD + block([(b"Server", b"x")]))),
        kinds=UNREADABLE,
    ),
    Case("trailers-that-end-nothing", sends(head, lambda stream: headers(stream, OK_TRAILERS)), kinds=UNREADABLE),
]
FAULTS = [
    Case("headers-on-an-unknown-stream", sends(head(9_999)), merges=True),
    Case("data-on-an-unknown-stream", sends(data(9_999, b"x")), merges=True),
    Case("reset-of-an-unknown-stream", sends(reset(9_999, 0)), merges=True),
    Case("headers-on-a-stream-of-the-servers", sends(head(2)), merges=True),
    Case(
        "a-push",
        sends(lambda stream: frames.frame(5, frames.END_HEADERS, stream, (2).to_bytes(4, "big") + b"\x82")),
        merges=True,
    ),
    Case(
        "a-frame-that-is-too-large",
        sends(lambda stream: frames.header(frames.DATA, 0, stream, (1 << 24) - 1)),
        merges=True,
    ),
    Case("a-ping-of-seven-bytes", sends(frames.frame(frames.PING, 0, 0, bytes(7))), merges=True),
    Case("settings-of-seven-bytes", sends(frames.frame(frames.SETTINGS, 0, 0, bytes(7))), merges=True),
    Case("settings-on-a-stream", sends(lambda stream: frames.frame(frames.SETTINGS, 0, stream)), merges=True),
    Case("a-window-of-31-bits-and-more", sends(frames.settings([(frames.INITIAL_WINDOW_SIZE, 1 << 31)])), merges=True),
    Case("the-connections-window-overflows", sends(frames.window_update(0, (1 << 31) - 1)), merges=True),
    Case(
        "a-streams-window-overflows",
        sends(lambda stream: frames.window_update(stream, (1 << 31) - 1)),
        merges=True,
    ),
    Case("continuation-of-nothing", sends(lambda stream: frames.frame(9, 4, stream, b"")), merges=True),
    Case(
        "a-block-is-interrupted",
        sends(lambda stream: head(stream, flags=0), frames.frame(frames.PING, 0, 0, bytes(8))),
        merges=True,
    ),
    Case("a-block-that-is-no-hpack", sends(lambda stream: head(stream, b"\xff" * 12)), merges=True),
    Case(
        "padding-longer-than-its-frame",
        sends(head, lambda stream: frames.frame(frames.DATA, frames.PADDED, stream, b"\x09x")),
        merges=True,
    ),
    Case("http-1", sends(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), merges=True),
]


def bomb(stream: int) -> bytes:
    """Return a block of 16 KiB that says sixty megabytes: one entry of the table again and again."""
    entry = b"\x40\x01x" + integer(4_000, 7) + bytes(4_000)
    return headers(stream, RESPONSE_HEAD + entry + b"\xbe" * 12_000)


def large_block(stream: int) -> bytes:
    """Return a block of a megabyte in frames."""
    fields = RESPONSE_HEAD + block([(b"x%d" % number, bytes(10_000)) for number in range(100)])
    pieces = [fields[at : at + 16_384] for at in range(0, len(fields), 16_384)]
    first = frames.frame(frames.HEADERS, 0, stream, pieces[0])
    between = [frames.frame(9, 0, stream, piece) for piece in pieces[1:-1]]
    return b"".join([first, *between, frames.frame(9, frames.END_HEADERS, stream, pieces[-1])])


BOMBS = [
    Case("a-block-that-grows-by-its-table", sends(bomb), kinds=RESET, merges=True),
    Case("a-large-block", sends(large_block), kinds=RESET, merges=True),
]

CASES = [*RESETS, *RESETS_BEHIND_HEAD, *ENDS, *RESPONSES, *FAULTS, *BOMBS]


class Once:
    """Does ``act`` in place of the first reply to ``method``, alone or on the coalescing stream."""

    def __init__(self, act: Act, method: str) -> None:
        self._act = act
        self._method = method
        self.done: list[Asked] = []

    def script(self) -> Any:
        return serving({self._method: self, "Calls/Exchange": self._merged})

    def __call__(self, peer: Peer, asked: Asked) -> None:
        if self.done:
            peer.answer(asked)
            return
        self.done.append(asked)
        self._act(peer, asked)

    def _merged(self, peer: Peer, asked: Asked) -> None:
        called = [call.method for call in calls_pb2.CallBatch.FromString(asked.message).calls]
        if called == [f"cortado.v1.{self._method}"]:
            self(peer, asked)
        else:
            peer.answer(asked)


def ways(cases: list[Case]) -> list[Any]:
    return [
        pytest.param(case, merges, id=f"{case}-{'merged' if merges else 'alone'}")
        for case in cases
        for merges in ((False, True) if case.merges else (False,))
    ]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def client_of(face: str, server: ScriptServer, merges: bool, environment: Environment) -> Any:
    return client_that_leaves_nothing(face, server.endpoint, timeout_s=4, coalesce=merges, environment=environment)


@pytest.mark.parametrize(("case", "merges"), ways(CASES))
def test_a_read_is_told_why_it_failed_and_the_next_one_works(case: Case, merges: bool, face: str) -> None:
    once = Once(case.act, "KeyValue/Get")
    with ScriptServer(once.script()) as server, client_of(face, server, merges, one_attempt()) as client:
        client.clock()
        with pytest.raises(case.kinds, match=case.told):
            client.kv("n").get(b"k")
        assert client.kv("n").get(b"k") is None


@pytest.mark.parametrize(("case", "merges"), ways(CASES))
def test_only_a_write_that_may_have_been_done_has_an_unknown_outcome(case: Case, merges: bool, face: str) -> None:
    once = Once(case.act, "KeyValue/Put")
    with ScriptServer(once.script()) as server, client_of(face, server, merges, one_attempt()) as client:
        client.clock()
        with pytest.raises(case.kinds if case.is_certain else OutcomeUnknown) as raised:
            client.kv("n").put(b"k", b"v")
        if not case.is_certain:
            assert isinstance(raised.value, OutcomeUnknown)
            assert raised.value.request_id == put_id(once.done[0])
        assert client.kv("n").put(b"k", b"v") == "0.1000.1"


@pytest.mark.parametrize(
    ("case", "merges"),
    ways([case for case in CASES if not {Internal, Unsupported} & set(case.kinds)]),
)
def test_a_write_is_repeated_under_its_id(case: Case, merges: bool, face: str) -> None:
    acts = Once(case.act, "KeyValue/Put")
    with ScriptServer(acts.script()) as server, client_of(face, server, merges, AT_ONCE) as client:
        client.clock()
        assert client.kv("n").put(b"k", b"v") == "0.1000.1"
        puts = {put_id(each) for each in _puts(server)}
        assert puts == {put_id(acts.done[0])}


def _puts(server: ScriptServer) -> Iterator[Asked]:
    yield from server.calls("KeyValue/Put")
    for each in server.calls("Calls/Exchange"):
        if [call.method for call in calls_pb2.CallBatch.FromString(each.message).calls] == ["cortado.v1.KeyValue/Put"]:
            yield each
