"""A client's connection: bytes in, events out, frames out; and calls between it and our own server's connection."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.store.h2 import frames
from cortado.store.h2.client import ClientConnection
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Data, Ended, Event, Opened, Replied
from cortado.store.h2.frames import FrameReader
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD
from cortado.store.h2.header_blocks import block
from cortado.store.h2.incoming import Incoming
from cortado.store.h2.limits import ErrorCode, H2Limits, Rate
from cortado.store.h2.outgoing import OUT_BYTES
from support.h2 import END_BOTH, REQUEST, Clock, client, data, events, said, setting, shown

WHOLE = frames.END_HEADERS
LAST = frames.END_STREAM
REQUESTED = block(REQUEST)
HELLO = frames.settings([])
HEAD = frames.frame(frames.HEADERS, WHOLE, 1, RESPONSE_HEAD)
TRAILERS = frames.frame(frames.HEADERS, END_BOTH, 1, OK_TRAILERS)


def told(of: Incoming, sent: bytes) -> list[str]:
    return [shown(each) for each in events(of, sent)]


def asked(limits: H2Limits | None = None, settings: bytes | None = None) -> ClientConnection:
    """Return a connection with one call, which was sent."""
    made = client(limits, settings)
    assert made.open(REQUESTED, b"ask", is_last=True) == 1
    made.taken()
    return made


def test_a_server_is_told_the_preface_and_our_settings_first() -> None:
    made = ClientConnection(H2Limits(), Clock())
    assert made.taken() == frames.PREFACE + bytes.fromhex(
        "000012 04 00 00000000"  # SETTINGS
        "0002 00000000"  # ENABLE_PUSH 0
        "0004 0000ffff"  # INITIAL_WINDOW_SIZE 65,535
        "0006 00004000"  # MAX_HEADER_LIST_SIZE 16 KiB
        "000004 08 00 00000000 0fff0001"  # WINDOW_UPDATE to 256 MiB
    )
    assert not made.has_settings
    assert events(made, HELLO) == []
    assert made.has_settings
    assert said(made) == ["SETTINGS ack"]


def test_a_call_and_its_response() -> None:
    made = client()
    assert made.open(REQUESTED, b"ask", is_last=True) == 1
    assert made.open(REQUESTED, is_last=False) == 3
    made.send_data(3, b"more")
    made.finish(3)
    assert said(made) == ["HEADERS 1", "DATA 1 3 last", "HEADERS 3", "DATA 3 4", "DATA 3 0 last"]
    assert told(made, HEAD + data(b"\x01") + TRAILERS) == ["replied 1 200", "data 1 01", "replied 1 trailers last"]
    assert told(made, frames.frame(frames.HEADERS, END_BOTH, 3, RESPONSE_HEAD)) == ["replied 3 200 last"]
    assert said(made) == []


def test_a_response_before_the_request_has_ended_ends_both() -> None:
    made = client()
    made.open(REQUESTED, is_last=False)
    made.taken()
    assert told(made, HEAD + TRAILERS) == ["replied 1 200", "replied 1 trailers last"]
    assert said(made) == ["RST_STREAM 1 NO_ERROR"]
    made.send_data(1, b"late")
    assert said(made) == []


def test_fields_of_any_size_are_continued() -> None:
    server, made = Connection(H2Limits(), Clock()), client()
    large = (*REQUEST, (b"x", b"y" * 16_380))
    made = ClientConnection(H2Limits(), Clock())
    made.open(block(large), is_last=True)
    found = events(server, made.taken())
    # The server's bound, and not a broken frame.
    assert [shown(each) for each in found] == ["ended ENHANCE_YOUR_CALM: a header block of more than 16384 bytes"]


def test_informational_responses_are_passed_over() -> None:
    early = frames.frame(frames.HEADERS, WHOLE, 1, block([(b":status", b"103")]))
    assert told(asked(), early + HEAD + TRAILERS) == ["replied 1 200", "replied 1 trailers last"]


def test_repeated_blocks_are_read_once() -> None:
    made = client()
    for _ in range(2):
        made.open(REQUESTED, is_last=True)
    first, second = (
        events(made, frames.frame(frames.HEADERS, WHOLE, stream_id, RESPONSE_HEAD))[0] for stream_id in (1, 3)
    )
    assert first.fields is second.fields


# --- streams that a server takes, or refuses ------------------------------------------------------------------------


def test_streams_that_a_goaway_names_as_not_begun_are_told_from_the_others() -> None:
    made = client()
    for _ in range(3):
        made.open(REQUESTED, is_last=True)
    assert made.has_room
    assert told(made, frames.goaway(2**31 - 1, ErrorCode.NO_ERROR)) == ["going NO_ERROR"]
    assert not made.has_room
    assert told(made, frames.goaway(3, ErrorCode.NO_ERROR)) == ["reset 5 REFUSED_STREAM", "going NO_ERROR"]
    # A later one may name less streams, and never more.
    assert told(made, frames.goaway(5, ErrorCode.NO_ERROR)) == ["going NO_ERROR"]
    assert told(made, HEAD + TRAILERS) == ["replied 1 200", "replied 1 trailers last"]
    assert told(made, frames.goaway(1, ErrorCode.INTERNAL_ERROR)) == ["reset 3 REFUSED_STREAM", "going INTERNAL_ERROR"]


def test_a_refused_stream_is_reset() -> None:
    assert told(asked(), frames.rst_stream(1, ErrorCode.REFUSED_STREAM)) == ["reset 1 REFUSED_STREAM"]


def test_no_more_streams_are_opened_than_the_server_allows() -> None:
    made = client(settings=setting(frames.MAX_CONCURRENT_STREAMS, 1))
    assert made.has_room
    made.open(REQUESTED, is_last=True)
    assert not made.has_room
    events(made, HEAD + TRAILERS)
    assert made.has_room


def test_no_stream_is_opened_while_much_is_not_written() -> None:
    made = client()
    while made.has_room:
        made.open(REQUESTED, bytes(10_000), is_last=True)
    assert made.unsent > 256 << 10
    made.taken()
    assert made.has_room


# --- hostile servers -------------------------------------------------------------------------------------------

RESETS = {
    "a response without a status": frames.frame(frames.HEADERS, WHOLE, 1, OK_TRAILERS),
    "a status that is none": frames.frame(frames.HEADERS, WHOLE, 1, block([(b":status", b"9999")])),
    "two statuses": frames.frame(frames.HEADERS, WHOLE, 1, RESPONSE_HEAD + RESPONSE_HEAD),
    "a request's fields": frames.frame(frames.HEADERS, WHOLE, 1, REQUESTED),
    "a name in capitals": frames.frame(frames.HEADERS, WHOLE, 1, RESPONSE_HEAD + block([(b"A", b"b")])),
    "two responses": HEAD + HEAD,
    "trailers that do not end": HEAD + frames.frame(frames.HEADERS, WHOLE, 1, OK_TRAILERS),
    "less than its content-length": frames.frame(
        frames.HEADERS, WHOLE, 1, RESPONSE_HEAD + block([(b"content-length", b"2")])
    )
    + data(b"x", flags=LAST),
    "data before its fields": data(b"x"),
    "a window of nothing": frames.window_update(1, 0),
}


@pytest.mark.parametrize("sent", RESETS.values(), ids=RESETS)
def test_a_malformed_response_resets_its_stream(sent: bytes) -> None:
    made = asked()
    assert told(made, sent)[-1] == "reset 1 PROTOCOL_ERROR"
    assert said(made) == ["RST_STREAM 1 PROTOCOL_ERROR"]
    assert told(made, data(b"late") + TRAILERS) == []


def test_data_beyond_a_streams_window_reset_it() -> None:
    made = asked(replace(H2Limits(), stream_window=10))
    assert told(made, HEAD + data(bytes(11))) == ["replied 1 200", "reset 1 FLOW_CONTROL_ERROR"]


ENDS = {
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "FRAME_SIZE_ERROR"),
    "a frame before SETTINGS": (frames.frame(frames.PING, 0, 0, bytes(8)), "PROTOCOL_ERROR"),
    "ENABLE_PUSH": (HELLO + setting(frames.ENABLE_PUSH, 1), "PROTOCOL_ERROR"),
    "PUSH_PROMISE": (HELLO + frames.frame(frames.PUSH_PROMISE, WHOLE, 1, bytes(4)), "PROTOCOL_ERROR"),
    "a response to no request": (HELLO + frames.frame(frames.HEADERS, WHOLE, 3, RESPONSE_HEAD), "PROTOCOL_ERROR"),
    "a response on a stream of the server's": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 2, RESPONSE_HEAD),
        "PROTOCOL_ERROR",
    ),
    "data of no request": (HELLO + data(b"x", 5), "PROTOCOL_ERROR"),
    "a reset of no request": (HELLO + frames.rst_stream(5, ErrorCode.CANCEL), "PROTOCOL_ERROR"),
    "a window of no request": (HELLO + frames.window_update(5, 1), "PROTOCOL_ERROR"),
    "a frame that is too large": (HELLO + HEAD + data(bytes(16_385)), "FRAME_SIZE_ERROR"),
    "a short GOAWAY": (HELLO + frames.frame(frames.GOAWAY, 0, 0, bytes(7)), "FRAME_SIZE_ERROR"),
    "a block that cannot be decoded": (HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x80"), "COMPRESSION_ERROR"),
    "a block without an end": (
        HELLO + frames.frame(frames.HEADERS, 0, 1) + frames.frame(frames.CONTINUATION, 0, 1) * 9,
        "ENHANCE_YOUR_CALM",
    ),
    "a bomb of fields": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4_000 + b"\xbe" * 20),
        "ENHANCE_YOUR_CALM",
    ),
    "an overflow of the connection's window": (HELLO + frames.window_update(0, 2**31 - 1), "FLOW_CONTROL_ERROR"),
    "a flood of PINGs": (HELLO + frames.frame(frames.PING, 0, 0, bytes(8)) * 2_001, "ENHANCE_YOUR_CALM"),
    "a flood of SETTINGS": (HELLO * 52, "ENHANCE_YOUR_CALM"),
    "a flood of empty frames": (HELLO + HEAD + data() * 2_001, "ENHANCE_YOUR_CALM"),
    "a flood of GOAWAYs": (HELLO + frames.goaway(1, ErrorCode.NO_ERROR) * 40_001, "ENHANCE_YOUR_CALM"),
    "a flood of informational responses": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, block([(b":status", b"100")])) * 40_001,
        "ENHANCE_YOUR_CALM",
    ),
    "a flood of data of a stream that is over": (HELLO + HEAD + TRAILERS + data(b"x") * 40_001, "ENHANCE_YOUR_CALM"),
    "a flood of fields of a stream that is over": (HELLO + HEAD + TRAILERS + HEAD * 40_001, "ENHANCE_YOUR_CALM"),
}


@pytest.mark.parametrize(("sent", "code"), ENDS.values(), ids=ENDS)
def test_a_hostile_server_ends_its_connection(sent: bytes, code: str) -> None:
    made = ClientConnection(H2Limits(), Clock())
    made.open(REQUESTED, is_last=True)
    made.taken()
    assert told(made, sent)[-1].startswith(f"ended {code}: ")
    assert said(made)[-1] == f"GOAWAY 0 {code}"
    assert made.is_over
    assert not made.has_room
    assert told(made, HELLO * 99) == []


FIELDS = st.lists(
    st.tuples(
        st.sampled_from([b":status", b"a", b"content-length", b"grpc-status", b":path", b"A"]),
        st.sampled_from([b"200", b"100", b"0", b"", b"\n", b"x" * 90]),
    ),
    max_size=4,
)
FRAMES = st.one_of(
    st.builds(
        lambda kind, flags, stream_id, fields: frames.frame(kind, flags, stream_id, block(fields)),
        st.sampled_from([frames.HEADERS, frames.HEADERS, frames.CONTINUATION]),
        st.sampled_from([0, 1, 4, 4, 5, 0x2D]),
        st.sampled_from([1, 1, 3, 5, 7, 2]),
        FIELDS,
    ),
    st.builds(
        frames.frame, st.just(frames.DATA), st.sampled_from([0, 1, 8]), st.sampled_from([1, 3, 5, 9]), st.binary()
    ),
    st.builds(frames.window_update, st.sampled_from([0, 1, 3, 9]), st.sampled_from([0, 1, 1_000, (1 << 31) - 1])),
    st.builds(lambda name, value: setting(name, value), st.integers(0, 8), st.integers(0, (1 << 32) - 1)),
    st.builds(
        frames.frame, st.integers(0, 12), st.integers(0, 255), st.sampled_from([0, 1, 3]), st.binary(max_size=20)
    ),
    st.builds(frames.goaway, st.sampled_from([0, 1, 3, 99]), st.sampled_from(ErrorCode)),
    st.builds(frames.rst_stream, st.sampled_from([1, 3, 9]), st.sampled_from(ErrorCode)),
)


@given(st.lists(FRAMES, max_size=25), st.integers(1, 200))
@settings(max_examples=300)
def test_any_frames_mean_the_same_in_any_pieces(sent: list[bytes], piece: int) -> None:
    whole = HELLO + b"".join(sent)
    assert _read(whole, len(whole)) == _read(whole, piece)


def _read(sent: bytes, piece: int) -> list[str]:
    made = ClientConnection(replace(H2Limits(), resets=Rate(20, 1)), Clock())
    for number in range(3):
        made.open(REQUESTED, b"x" * 40_000 * number, is_last=bool(number))
    found: list[str] = []
    for at in range(0, len(sent), piece):
        found += told(made, sent[at : at + piece])
        made.taken()
        made.pump()
    return [each for each in found if not each.startswith("drained")]


# --- with our own server's connection --------------------------------------------------------------------------


class Echo:
    """A server that answers each request with its bytes, in pieces."""

    def __init__(self, limits: H2Limits) -> None:
        self.h2 = Connection(limits, Clock())
        self._asked: dict[int, bytes] = {}

    def take(self, event: Event) -> None:
        if isinstance(event, Opened):
            self._asked[event.stream_id] = b""
            self.h2.send_head(event.stream_id, RESPONSE_HEAD)
        if isinstance(event, Data):
            self._asked[event.stream_id] += event.data
            self.h2.consumed(event.stream_id, len(event.data))
        if isinstance(event, (Opened, Data)) and event.is_last:
            for at in range(0, len(self._asked[event.stream_id]), 700):
                self.h2.send_data(event.stream_id, self._asked[event.stream_id][at : at + 700])
            self.h2.send_end(event.stream_id, OK_TRAILERS)


@given(
    st.lists(st.integers(0, 60_000), min_size=1, max_size=12),
    st.integers(0, 1 << 30),
    st.sampled_from([64, 900, 65_535]),
)
@settings(max_examples=60, deadline=None)
def test_all_calls_are_answered_whole_in_any_pieces(sizes: list[int], seed: int, window: int) -> None:
    chance = random.Random(seed)
    limits = replace(H2Limits(), stream_window=window, others=Rate(10**9, 0))
    server, made = Echo(replace(limits, streams=4)), ClientConnection(limits, Clock())
    requests = [chance.randbytes(size) for size in sizes]
    replies: dict[int, bytes] = {}
    ended: set[int] = set()
    waiting = list(requests)
    to_server = to_client = b""
    for _ in range(100_000):
        if len(ended) == len(requests):
            break
        while waiting and made.has_settings and made.has_room:
            replies[made.open(REQUESTED, waiting.pop(0), is_last=True)] = b""
        to_server += made.taken()
        made.pump()
        to_client += server.h2.taken()
        server.h2.pump()
        cut = chance.randint(1, 20_000)
        for event in events(server.h2, to_server[:cut]):
            server.take(event)
        to_server = to_server[cut:]
        cut = chance.randint(1, 20_000)
        for event in events(made, to_client[:cut]):
            assert not isinstance(event, Ended), event
            if isinstance(event, Data):
                replies[event.stream_id] += event.data
                made.consumed(event.stream_id, len(event.data))
            if isinstance(event, Replied) and event.is_last:
                ended.add(event.stream_id)
        to_client = to_client[cut:]
    assert list(replies.values()) == requests
    assert said_nothing(made, server.h2)


def said_nothing(*of: Incoming) -> bool:
    """Return whether nothing but windows and acknowledgements is left to be said."""
    reader = FrameReader(1 << 24)
    for each in of:
        reader.feed(each.taken())
    kinds = set()
    while (frame := reader.next()) is not None:
        kinds.add(frame.kind)
    return kinds <= {frames.WINDOW_UPDATE, frames.SETTINGS, frames.RST_STREAM}


def test_a_message_beyond_all_windows_comes_if_its_reader_waits() -> None:
    server, made = Echo(H2Limits()), ClientConnection(replace(H2Limits(), stream_window=100), Clock())
    made.open(REQUESTED, bytes(50_000), is_last=True)
    found = b""
    for _ in range(20):
        for event in events(server.h2, made.taken()):
            server.take(event)
        made.pump()
        for event in events(made, server.h2.taken()):
            if isinstance(event, Data):
                found += event.data
        server.h2.pump()
        if found:
            made.expect(1, 50_000 - len(found))
    assert found == bytes(50_000)


def test_data_comes_in_frames_as_large_as_the_client_accepts() -> None:
    for accepted, largest in ((16_384, 16_384), (65_536, 65_536), (1 << 20, OUT_BYTES)):
        windows = {"stream_window": 4 << 20, "connection_window": 8 << 20}
        made = ClientConnection(H2Limits(frame_bytes=accepted, **windows), lambda: 0.0)
        server = Connection(H2Limits(), lambda: 0.0)
        stream = made.open(REQUESTED, b"", is_last=True)
        server.feed(made.taken())
        server.advance()
        made.feed(server.taken())
        made.advance()
        server.send_head(stream, RESPONSE_HEAD)
        server.send_data(stream, bytes(1 << 20))
        sizes, got = [], 0
        while out := server.taken():
            reader = FrameReader(1 << 24)
            reader.feed(out)
            while (frame := reader.next()) is not None:
                sizes.append(len(frame.payload) * (frame.kind == frames.DATA))
            made.feed(out)
            for event in made.advance():
                if isinstance(event, Data):
                    got += len(event.data)
                    made.consumed(stream, len(event.data))
            server.feed(made.taken())
            server.advance()
            server.pump()
        assert (got, max(sizes)) == (1 << 20, largest)
