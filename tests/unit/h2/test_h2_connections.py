"""A connection's rules as tables, section by section of RFC 9113, as h2spec has them: bytes in, events, frames out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cortado.store.h2 import frames
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Opened
from cortado.store.h2.fields import Head
from cortado.store.h2.header_blocks import block
from cortado.store.h2.limits import WINDOW_MAX, Budget, H2Limits, Rate
from support.h2 import (
    HELLO,
    REQUEST,
    Clock,
    connection,
    data,
    events,
    headers,
    opened,
    said,
    setting,
    shown,
)

LAST = frames.END_STREAM
WHOLE = frames.END_HEADERS
PADDED = frames.PADDED
PRIORITIZED = frames.PRIORITIZED
BLOCK = block(REQUEST)


def test_a_client_is_told_our_settings_first() -> None:
    made = Connection(H2Limits(), Clock())
    assert made.taken() == bytes.fromhex(
        "000012 04 00 00000000"  # SETTINGS
        "0003 00001000"  # MAX_CONCURRENT_STREAMS 4,096
        "0004 0000ffff"  # INITIAL_WINDOW_SIZE 65,535
        "0006 00004000"  # MAX_HEADER_LIST_SIZE 16 KiB
        "000004 08 00 00000000 0fff0001"  # WINDOW_UPDATE to 256 MiB
    )
    assert events(made, HELLO) == []
    assert said(made) == ["SETTINGS ack"]


# --- RFC 9113 §3.4, §4 and §6: faults that end the connection --------------------------------------------------

ENDS = {
    # §3.4
    "another preface": (b"GET / HTTP/1.1\r\n", "PROTOCOL_ERROR"),
    "a preface that is nearly right": (frames.PREFACE[:-1] + b"x", "PROTOCOL_ERROR"),
    "a frame before SETTINGS": (frames.PREFACE + frames.frame(frames.PING, 0, 0, bytes(8)), "PROTOCOL_ERROR"),
    "an acknowledgement as the first frame": (
        frames.PREFACE + frames.frame(frames.SETTINGS, frames.ACK, 0),
        "PROTOCOL_ERROR",
    ),
    # §4.2
    "a frame that is too large": (
        HELLO + opened() + frames.frame(frames.DATA, 0, 1, bytes(16_385)),
        "FRAME_SIZE_ERROR",
    ),
    "headers that are too large": (HELLO + frames.frame(frames.HEADERS, WHOLE, 1, bytes(16_385)), "FRAME_SIZE_ERROR"),
    # §4.3
    "a block that cannot be decoded": (HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x80"), "COMPRESSION_ERROR"),
    "another frame within a block": (
        HELLO + frames.frame(frames.HEADERS, 0, 1, BLOCK) + frames.frame(frames.PING, 0, 0, bytes(8)),
        "PROTOCOL_ERROR",
    ),
    "a block of one stream continued on another": (
        HELLO + frames.frame(frames.HEADERS, 0, 1, BLOCK) + frames.frame(frames.CONTINUATION, WHOLE, 3),
        "PROTOCOL_ERROR",
    ),
    "an unknown frame within a block": (
        HELLO + frames.frame(frames.HEADERS, 0, 1, BLOCK) + frames.frame(0x16, 0, 1),
        "PROTOCOL_ERROR",
    ),
    # §5.1
    "DATA on an idle stream": (HELLO + data(b"x"), "PROTOCOL_ERROR"),
    "RST_STREAM on an idle stream": (HELLO + frames.frame(frames.RST_STREAM, 0, 1, bytes(4)), "PROTOCOL_ERROR"),
    "WINDOW_UPDATE on an idle stream": (HELLO + frames.window_update(1, 5), "PROTOCOL_ERROR"),
    "CONTINUATION on an idle stream": (HELLO + frames.frame(frames.CONTINUATION, WHOLE, 1), "PROTOCOL_ERROR"),
    "DATA on a stream that its client has reset": (
        HELLO + opened() + frames.frame(frames.RST_STREAM, 0, 1, bytes(4)) + data(b"x"),
        "STREAM_CLOSED",
    ),
    "HEADERS on a stream that its client has reset": (
        HELLO + opened() + frames.frame(frames.RST_STREAM, 0, 1, bytes(4)) + headers(),
        "STREAM_CLOSED",
    ),
    # §5.1.1
    "a stream of an even number": (HELLO + headers(2), "PROTOCOL_ERROR"),
    "a stream below the last one": (HELLO + headers(1) + headers(5) + headers(3), "PROTOCOL_ERROR"),
    "the first stream behind a later one": (HELLO + headers(7) + headers(1), "PROTOCOL_ERROR"),
    "DATA on a stream that a later one has closed": (HELLO + headers(5) + data(b"x", 3), "STREAM_CLOSED"),
    "DATA on a stream of an even number": (HELLO + data(b"x", 2), "PROTOCOL_ERROR"),
    # §6.1
    "DATA on the connection": (HELLO + data(b"x", 0), "PROTOCOL_ERROR"),
    "DATA with more padding than it has": (HELLO + opened() + data(b"\x05abcd", flags=PADDED), "PROTOCOL_ERROR"),
    "padded DATA of nothing": (HELLO + opened() + data(b"", flags=PADDED), "FRAME_SIZE_ERROR"),
    # §6.2
    "HEADERS on the connection": (HELLO + headers(0), "PROTOCOL_ERROR"),
    "HEADERS with more padding than they have": (
        HELLO + frames.frame(frames.HEADERS, WHOLE | PADDED, 1, b"\xff" + BLOCK),
        "PROTOCOL_ERROR",
    ),
    "HEADERS with half a priority": (
        HELLO + frames.frame(frames.HEADERS, WHOLE | PRIORITIZED, 1, bytes(3)),
        "FRAME_SIZE_ERROR",
    ),
    # §6.3
    "PRIORITY on the connection": (HELLO + frames.frame(frames.PRIORITY, 0, 0, bytes(5)), "PROTOCOL_ERROR"),
    "PRIORITY of four bytes": (HELLO + frames.frame(frames.PRIORITY, 0, 1, bytes(4)), "FRAME_SIZE_ERROR"),
    "a stream that depends on itself": (
        HELLO + frames.frame(frames.PRIORITY, 0, 1, b"\0\0\0\1\0"),
        "PROTOCOL_ERROR",
    ),
    # §6.4
    "RST_STREAM on the connection": (HELLO + frames.frame(frames.RST_STREAM, 0, 0, bytes(4)), "PROTOCOL_ERROR"),
    "RST_STREAM of three bytes": (
        HELLO + opened() + frames.frame(frames.RST_STREAM, 0, 1, bytes(3)),
        "FRAME_SIZE_ERROR",
    ),
    # §6.5
    "an acknowledgement that says something": (
        HELLO + frames.frame(frames.SETTINGS, frames.ACK, 0, bytes(6)),
        "FRAME_SIZE_ERROR",
    ),
    "SETTINGS on a stream": (HELLO + frames.frame(frames.SETTINGS, 0, 1), "PROTOCOL_ERROR"),
    "SETTINGS of five bytes": (HELLO + frames.frame(frames.SETTINGS, 0, 0, bytes(5)), "FRAME_SIZE_ERROR"),
    "ENABLE_PUSH of 2": (HELLO + setting(frames.ENABLE_PUSH, 2), "PROTOCOL_ERROR"),
    "INITIAL_WINDOW_SIZE of 2^31": (HELLO + setting(frames.INITIAL_WINDOW_SIZE, 1 << 31), "FLOW_CONTROL_ERROR"),
    "MAX_FRAME_SIZE of 16,383": (HELLO + setting(frames.MAX_FRAME_SIZE, 16_383), "PROTOCOL_ERROR"),
    "MAX_FRAME_SIZE of 2^24": (HELLO + setting(frames.MAX_FRAME_SIZE, 1 << 24), "PROTOCOL_ERROR"),
    # §6.6
    "PUSH_PROMISE": (HELLO + opened() + frames.frame(frames.PUSH_PROMISE, WHOLE, 1, bytes(4)), "PROTOCOL_ERROR"),
    # §6.7
    "PING on a stream": (HELLO + frames.frame(frames.PING, 0, 1, bytes(8)), "PROTOCOL_ERROR"),
    "PING of six bytes": (HELLO + frames.frame(frames.PING, 0, 0, bytes(6)), "FRAME_SIZE_ERROR"),
    # §6.8
    "GOAWAY on a stream": (HELLO + frames.frame(frames.GOAWAY, 0, 1, bytes(8)), "PROTOCOL_ERROR"),
    "GOAWAY of seven bytes": (HELLO + frames.frame(frames.GOAWAY, 0, 0, bytes(7)), "FRAME_SIZE_ERROR"),
    # §6.9
    "WINDOW_UPDATE by nothing": (HELLO + frames.window_update(0, 0), "PROTOCOL_ERROR"),
    "WINDOW_UPDATE of three bytes": (HELLO + frames.frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), "FRAME_SIZE_ERROR"),
    "a window above 2^31 - 1": (HELLO + frames.window_update(0, (1 << 31) - 1), "FLOW_CONTROL_ERROR"),
    "a setting that takes a stream's window above it": (
        HELLO + opened() + frames.window_update(1, (1 << 31) - 65_536) + setting(frames.INITIAL_WINDOW_SIZE, 65_536),
        "FLOW_CONTROL_ERROR",
    ),
    # §6.10
    "CONTINUATION of nothing": (HELLO + opened() + frames.frame(frames.CONTINUATION, WHOLE, 1), "PROTOCOL_ERROR"),
    "CONTINUATION behind a whole block": (
        HELLO + headers() + frames.frame(frames.CONTINUATION, WHOLE, 1),
        "PROTOCOL_ERROR",
    ),
    "CONTINUATION on the connection": (HELLO + frames.frame(frames.CONTINUATION, WHOLE, 0), "PROTOCOL_ERROR"),
    # RFC 7541
    "an index of 0": (HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x80"), "COMPRESSION_ERROR"),
    "an index beyond the tables": (HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\xbe"), "COMPRESSION_ERROR"),
    "an integer without an end": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\xff" * 16),
        "COMPRESSION_ERROR",
    ),
    "a string that ends early": (HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x00\x05ab"), "COMPRESSION_ERROR"),
    "Huffman's code with too much padding": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff"),
        "COMPRESSION_ERROR",
    ),
    "Huffman's code with padding of zeros": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90"),
        "COMPRESSION_ERROR",
    ),
    "Huffman's end within a string": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x00\x84\xff\xff\xff\xff\x00"),
        "COMPRESSION_ERROR",
    ),
    "a table of more than 4 KiB": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, b"\x3f\xe2\x1f" + BLOCK),
        "COMPRESSION_ERROR",
    ),
    "a change of the table behind a field": (
        HELLO + frames.frame(frames.HEADERS, WHOLE, 1, BLOCK + b"\x20"),
        "COMPRESSION_ERROR",
    ),
}


@pytest.mark.parametrize(("sent", "code"), ENDS.values(), ids=ENDS)
def test_the_connection_ends_for(sent: bytes, code: str) -> None:
    made = Connection(H2Limits(), Clock())
    assert shown(events(made, sent)[-1]).startswith(f"ended {code}: ")
    assert said(made)[-1].endswith(f" {code}")
    assert said(made) == []
    assert events(made, frames.frame(frames.PING, 0, 0, bytes(8))) == []


def test_the_gaps_between_streams_that_are_remembered_are_few() -> None:
    made = connection()
    for each in range(1, 4_000, 4):
        events(made, headers(each) + frames.frame(frames.RST_STREAM, 0, each, bytes(4)))
    assert not made.is_over
    assert len(made._skipped) < 100


# --- what ends a stream, and nothing else -----------------------------------------------------------------------


def fields(*more: tuple[bytes, bytes]) -> bytes:
    return headers(fields=(*REQUEST, *more))


def without(name: bytes) -> bytes:
    return headers(fields=[each for each in REQUEST if each[0] != name])


RESETS = {
    # §5.1
    "DATA behind the end": (headers() + data(b"x"), "STREAM_CLOSED"),
    "HEADERS behind the end": (headers() + headers(), "STREAM_CLOSED"),
    # §6.9
    "WINDOW_UPDATE by nothing": (opened() + frames.window_update(1, 0), "PROTOCOL_ERROR"),
    "a window above 2^31 - 1": (opened() + frames.window_update(1, (1 << 31) - 1), "FLOW_CONTROL_ERROR"),
    "more than its window": (opened() + data(bytes(16_384)) * 4, "FLOW_CONTROL_ERROR"),
    # §8.1
    "trailers that are not the end": (opened() + headers(1, WHOLE, [(b"a", b"b")]), "PROTOCOL_ERROR"),
    "pseudo-fields in trailers": (opened() + headers(1, LAST | WHOLE), "PROTOCOL_ERROR"),
    # §8.1.1
    "less than content-length says": (
        headers(1, WHOLE, (*REQUEST, (b"content-length", b"2"))) + data(b"x", flags=LAST),
        "PROTOCOL_ERROR",
    ),
    "more than content-length says": (
        headers(1, WHOLE, (*REQUEST, (b"content-length", b"2"))) + data(b"xyz"),
        "PROTOCOL_ERROR",
    ),
    "nothing where content-length says something": (fields((b"content-length", b"2")), "PROTOCOL_ERROR"),
    "trailers before content-length": (
        headers(1, WHOLE, (*REQUEST, (b"content-length", b"2"))) + headers(1, LAST | WHOLE, [(b"a", b"b")]),
        "PROTOCOL_ERROR",
    ),
    "content-length that is no number": (fields((b"content-length", b"+0")), "PROTOCOL_ERROR"),
    "content-length twice": (fields((b"content-length", b"0"), (b"content-length", b"0")), "PROTOCOL_ERROR"),
    # §8.2.1
    "a capital in a name": (fields((b"X-a", b"b")), "PROTOCOL_ERROR"),
    "a name of nothing": (fields((b"", b"b")), "PROTOCOL_ERROR"),
    "a blank in a name": (fields((b"a b", b"c")), "PROTOCOL_ERROR"),
    "a colon in a name": (fields((b"a:", b"c")), "PROTOCOL_ERROR"),
    "CR in a value": (fields((b"a", b"b\rc")), "PROTOCOL_ERROR"),
    "LF in a value": (fields((b"a", b"b\nc")), "PROTOCOL_ERROR"),
    "NUL in a value": (fields((b"a", b"b\0c")), "PROTOCOL_ERROR"),
    # §8.2.2
    "connection": (fields((b"connection", b"close")), "PROTOCOL_ERROR"),
    "keep-alive": (fields((b"keep-alive", b"1")), "PROTOCOL_ERROR"),
    "proxy-connection": (fields((b"proxy-connection", b"close")), "PROTOCOL_ERROR"),
    "transfer-encoding": (fields((b"transfer-encoding", b"chunked")), "PROTOCOL_ERROR"),
    "upgrade": (fields((b"upgrade", b"h2c")), "PROTOCOL_ERROR"),
    "te but for trailers": (fields((b"te", b"gzip")), "PROTOCOL_ERROR"),
    # §8.3
    "an unknown pseudo-field": (headers(fields=((b":x", b"y"), *REQUEST)), "PROTOCOL_ERROR"),
    "a pseudo-field of responses": (headers(fields=((b":status", b"200"), *REQUEST)), "PROTOCOL_ERROR"),
    "a pseudo-field behind others": (headers(fields=((b"a", b"b"), *REQUEST)), "PROTOCOL_ERROR"),
    ":path of nothing": (headers(fields=((b":path", b""), *REQUEST[:2])), "PROTOCOL_ERROR"),
    "a blank behind :path": (headers(fields=((b":path", b"/s "), *REQUEST[:2])), "PROTOCOL_ERROR"),
    ":path without a slash": (headers(fields=((b":path", b"s"), *REQUEST[:2])), "PROTOCOL_ERROR"),
    "LF in :path": (headers(fields=((b":path", b"/\n"), *REQUEST[:2])), "PROTOCOL_ERROR"),
    "no :method": (without(b":method"), "PROTOCOL_ERROR"),
    "no :scheme": (without(b":scheme"), "PROTOCOL_ERROR"),
    "no :path": (without(b":path"), "PROTOCOL_ERROR"),
    ":method twice": (headers(fields=(REQUEST[0], *REQUEST)), "PROTOCOL_ERROR"),
    ":scheme twice": (headers(fields=(REQUEST[1], *REQUEST)), "PROTOCOL_ERROR"),
    ":path twice": (headers(fields=(REQUEST[2], *REQUEST)), "PROTOCOL_ERROR"),
    ":authority twice": (headers(fields=(REQUEST[3], *REQUEST)), "PROTOCOL_ERROR"),
    "a host that is another": (fields((b"host", b"y")), "PROTOCOL_ERROR"),
}


@pytest.mark.parametrize(("sent", "code"), RESETS.values(), ids=RESETS)
def test_a_stream_alone_is_reset_for(sent: bytes, code: str) -> None:
    made = connection()
    events(made, sent)
    assert f"RST_STREAM 1 {code}" in said(made)
    assert [shown(each) for each in events(made, headers(3))] == ["opened 3 /s/M last"]
    assert len(made._streams) == 1


def test_blanks_at_the_ends_of_a_value_are_removed() -> None:
    head = Head([*REQUEST, (b"authorization", b"Bearer \t"), (b"b", b" c d"), (b"e", b" ")], 0)
    assert head.metadata[-3:] == (("authorization", "Bearer"), ("b", "c d"), ("e", ""))
    assert head.fields[b"authorization"] == b"Bearer"


# --- accepted input -----------------------------------------------------------------------------------------------

TAKEN = {
    "a request of one frame": (headers(), ["opened 1 /s/M last"]),
    "a body": (
        opened() + data(b"a") + data(b"bc", flags=LAST),
        ["opened 1 /s/M", "data 1 61", "data 1 6263 last"],
    ),
    "blanks at the ends of values": (
        fields((b"a", b" b\t"), (b"te", b" trailers"), (b"content-length", b" 0 ")),
        ["opened 1 /s/M last"],
    ),
    "blanks alone": (fields((b"a", b" "), (b"b", b"")), ["opened 1 /s/M last"]),
    "an end without bytes": (opened() + data(flags=LAST), ["opened 1 /s/M", "data 1  last"]),
    "trailers": (
        opened() + data(b"a") + headers(1, LAST | WHOLE, [(b"a", b"b")]),
        ["opened 1 /s/M", "data 1 61", "data 1  last"],
    ),
    "content-length that is right": (
        headers(1, WHOLE, (*REQUEST, (b"content-length", b"2"))) + data(b"x") + data(b"y", flags=LAST),
        ["opened 1 /s/M", "data 1 78", "data 1 79 last"],
    ),
    "a block in three frames": (
        frames.frame(frames.HEADERS, LAST, 1, BLOCK[:9])
        + frames.frame(frames.CONTINUATION, 0, 1)
        + frames.frame(frames.CONTINUATION, WHOLE, 1, BLOCK[9:]),
        ["opened 1 /s/M last"],
    ),
    "padding": (
        frames.frame(frames.HEADERS, WHOLE | PADDED, 1, b"\x03" + BLOCK + b"\1\2\3")
        + data(b"\x02abc\0\0", flags=PADDED),
        ["opened 1 /s/M", "data 1 616263"],
    ),
    "padding alone": (opened() + data(b"\x02\0\0", flags=PADDED), ["opened 1 /s/M"]),
    "a priority": (
        frames.frame(frames.HEADERS, LAST | WHOLE | PRIORITIZED, 1, b"\x80\0\0\3\5" + BLOCK)
        + frames.frame(frames.PRIORITY, 0, 7, bytes(5)),
        ["opened 1 /s/M last"],
    ),
    "flags that say nothing": (
        frames.frame(frames.HEADERS, LAST | WHOLE | 0xD2 & ~0x28, 1, BLOCK),
        ["opened 1 /s/M last"],
    ),
    "a reserved bit": (
        frames.frame(frames.HEADERS, LAST | WHOLE, 0x8000_0001, BLOCK),
        ["opened 1 /s/M last"],
    ),
    "kinds of frames that are unknown": (
        frames.frame(0x16, 0xFF, 0, b"abc") + frames.frame(0xFA, 0, 9) + headers(),
        ["opened 1 /s/M last"],
    ),
    "settings that are unknown": (setting(0xFFFF, 7) + headers(), ["opened 1 /s/M last"]),
    "GOAWAY of a client": (frames.frame(frames.GOAWAY, 0, 0, bytes(8) + b"bye") + headers(), ["opened 1 /s/M last"]),
    "streams that leave numbers out": (headers(3) + headers(99), ["opened 3 /s/M last", "opened 99 /s/M last"]),
    "a stream that its client resets": (
        opened() + frames.frame(frames.RST_STREAM, 0, 1, (8).to_bytes(4, "big")),
        ["opened 1 /s/M", "reset 1 CANCEL"],
    ),
    "RST_STREAM and WINDOW_UPDATE of one that was reset": (
        opened()
        + frames.frame(frames.RST_STREAM, 0, 1, bytes(4)) * 2
        + frames.window_update(1, 5)
        + frames.window_update(1, 0),
        ["opened 1 /s/M", "reset 1 NO_ERROR"],
    ),
    "an answer to a ping": (frames.frame(frames.PING, frames.ACK, 0, b"12345678"), ["ping answered 3132333435363738"]),
    "bytes that are no text": (fields((b"a", b"\xff")), ["opened 1 /s/M last"]),
    "te for trailers": (fields((b"te", b"trailers")), ["opened 1 /s/M last"]),
    "a host that is the authority": (fields((b"host", b"x")), ["opened 1 /s/M last"]),
}


@pytest.mark.parametrize(("sent", "expected"), TAKEN.values(), ids=TAKEN)
def test_a_connection_takes(sent: bytes, expected: list[str]) -> None:
    made = connection()
    assert [shown(each) for each in events(made, sent)] == expected
    assert not made.is_over


@pytest.mark.parametrize("sent", [each[0] for each in (*TAKEN.values(), *RESETS.values())])
def test_bytes_that_come_one_by_one_mean_the_same(sent: bytes) -> None:
    whole, pieces = connection(), connection()
    expected = [shown(each) for each in events(whole, sent)]
    found = [shown(each) for byte in sent for each in events(pieces, bytes([byte]))]
    assert found == expected
    assert said(pieces) == said(whole)


def test_what_is_under_way_to_a_stream_that_was_reset_is_ignored_and_given_back() -> None:
    made = connection(replace(H2Limits(), connection_window=40_000))
    events(made, opened())
    made.send_end(1, b"\x88")
    assert said(made) == ["HEADERS 1 last", "RST_STREAM 1 NO_ERROR"]
    late = data(bytes(10_000)) * 2 + headers(1, LAST | WHOLE, [(b"a", b"b")])
    assert events(made, late) == []
    assert said(made) == ["WINDOW_UPDATE 20000"]


def test_a_block_for_a_stream_that_was_reset_still_changes_the_table() -> None:
    made = connection()
    events(made, opened())
    made.send_end(1, b"\x88")
    indexed = b"\x40\x01a\x01b"
    events(made, frames.frame(frames.HEADERS, LAST | WHOLE, 1, indexed))
    (found,) = events(made, frames.frame(frames.HEADERS, LAST | WHOLE, 3, BLOCK + b"\xbe"))
    assert found.head.metadata == (("a", "b"),)  # type: ignore[union-attr]


# --- limits --------------------------------------------------------------------------------------------------------

RATE = Rate(burst=10, per_s=5)
FLOODS = {
    "resets": [opened(2 * n + 1) + frames.frame(frames.RST_STREAM, 0, 2 * n + 1, bytes(4)) for n in range(30)],
    "pings": [frames.frame(frames.PING, 0, 0, bytes(8))] * 30,
    "settings": [frames.settings([])] * 30,
    "empty_frames": [data()] * 30,
    "others": [frames.window_update(0, 1)] * 30,
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_the_connection(name: str) -> None:
    clock = Clock()
    made = connection(replace(H2Limits(), **{name: RATE}), clock)
    # The settings at its beginning have taken one.
    left = RATE.burst - (name == "settings")
    events(made, opened(999) if name == "empty_frames" else b"")
    flood = [each.replace(b"\0\0\0\1", b"\0\0\3\xe7") if name == "empty_frames" else each for each in FLOODS[name]]
    assert not made.is_over
    for each in flood[:left]:
        events(made, each)
        assert not made.is_over
    clock.now_s += 1
    for each in flood[left : left + RATE.per_s]:
        events(made, each)
        assert not made.is_over
    assert shown(events(made, flood[left + RATE.per_s])[-1]).startswith("ended ENHANCE_YOUR_CALM: too many")


def test_a_client_may_cancel_all_streams_of_a_connection_at_once() -> None:
    made = connection(H2Limits(slice_cost=1_000_000))
    numbers = range(1, 2 * H2Limits().streams, 2)
    events(made, b"".join(map(opened, numbers)))
    events(made, b"".join(frames.frame(frames.RST_STREAM, 0, number, bytes(4)) for number in numbers))
    assert not made.is_over
    assert [shown(each) for each in events(made, headers(numbers[-1] + 2))] == [f"opened {numbers[-1] + 2} /s/M last"]


def test_a_rate_that_was_not_used_for_long_allows_its_burst_and_no_more() -> None:
    budget = Budget(RATE, 0.0)
    assert sum(budget.take(1_000.0) for _ in range(100)) == RATE.burst
    assert sum(budget.take(1_001.0) for _ in range(100)) == RATE.per_s


@pytest.mark.parametrize("sent", [frames.frame(frames.PRIORITY, 0, 1, bytes(5)), frames.frame(0x42, 0, 0)])
def test_frames_that_say_nothing_are_bounded(sent: bytes) -> None:
    made = connection(replace(H2Limits(), others=RATE))
    assert shown(events(made, sent * 11)[-1]).startswith("ended ENHANCE_YOUR_CALM: too many others")


def test_data_of_a_stream_that_is_over_are_bounded() -> None:
    made = connection(replace(H2Limits(), others=RATE))
    events(made, opened())
    made.send_end(1, b"\x88")
    assert shown(events(made, data() * 11)[-1]).startswith("ended ENHANCE_YOUR_CALM: too many others")


def test_streams_at_fault_and_streams_that_are_refused_count_as_resets() -> None:
    for limits in (replace(H2Limits(), resets=RATE), replace(H2Limits(), resets=RATE, streams=0)):
        made = connection(limits)
        request = REQUEST if not limits.streams else REQUEST[:2]
        sent = b"".join(headers(2 * n + 1, fields=request) for n in range(11))
        assert shown(events(made, sent)[-1]).startswith("ended ENHANCE_YOUR_CALM: too many resets")


def test_a_stream_too_many_is_refused_and_may_come_again() -> None:
    made = connection(replace(H2Limits(), streams=2))
    found = events(made, headers(1) + headers(3) + headers(5))
    assert [shown(each) for each in found] == ["opened 1 /s/M last", "opened 3 /s/M last"]
    assert said(made) == ["RST_STREAM 5 REFUSED_STREAM"]
    made.send_end(1, b"\x88")
    assert [shown(each) for each in events(made, headers(7))] == ["opened 7 /s/M last"]


def test_continuations_are_bounded_in_number_and_in_bytes() -> None:
    begun = frames.frame(frames.HEADERS, 0, 1, BLOCK)
    made = connection(replace(H2Limits(), continuations=3))
    assert events(made, begun + frames.frame(frames.CONTINUATION, 0, 1) * 3) == []
    assert shown(events(made, frames.frame(frames.CONTINUATION, 0, 1))[-1]).startswith("ended ENHANCE_YOUR_CALM")
    made = connection(replace(H2Limits(), header_block_bytes=1_000))
    sent = begun + frames.frame(frames.CONTINUATION, 0, 1, bytes(1_000))
    assert shown(events(made, sent)[-1]).startswith("ended ENHANCE_YOUR_CALM")


def test_a_bomb_of_a_repeated_field_ends_the_connection_before_it_is_unpacked() -> None:
    made = connection()
    bomb = BLOCK + b"\x40\x01a\x7f\x81\x1e" + b"x" * 4_000 + b"\xbe" * 6_000
    assert shown(events(made, frames.frame(frames.HEADERS, LAST | WHOLE, 1, bomb))[-1]).startswith(
        "ended ENHANCE_YOUR_CALM"
    )


def test_a_list_above_the_bound_that_clients_know_is_told_with_its_size() -> None:
    made = connection()
    (found,) = events(made, fields(*[(b"a", b"x" * 1_000)] * 16))
    assert found.head.list_bytes > H2Limits().header_list_bytes  # type: ignore[union-attr]


def test_answers_that_are_not_read_are_bounded() -> None:
    made = connection(replace(H2Limits(), output_bytes=1_000))
    assert shown(events(made, frames.frame(frames.PING, 0, 0, bytes(8)) * 60)[-1]).startswith(
        "ended ENHANCE_YOUR_CALM: answers are not read"
    )


def test_answers_to_calls_are_bounded_as_well() -> None:
    made = connection(replace(H2Limits(), output_bytes=1_000))
    for stream_id in range(1, 21, 2):
        assert [type(each) for each in events(made, headers(stream_id))] == [Opened]
        made.send_end(stream_id, bytes(100))
    assert shown(events(made, headers(21))[-1]).startswith("ended ENHANCE_YOUR_CALM: answers are not read")


def test_windows_of_many_streams_are_changed_once_a_frame_and_as_a_part_of_a_slice() -> None:
    made = connection(replace(H2Limits(), slice_cost=10))
    events(made, b"".join(headers(2 * n + 1) for n in range(320)) + frames.window_update(1, 100))
    said(made)
    back = frames.settings([(frames.INITIAL_WINDOW_SIZE, WINDOW_MAX), (frames.INITIAL_WINDOW_SIZE, 65_535)])
    assert events(made, back) == []
    made.feed(b"".join(setting(frames.INITIAL_WINDOW_SIZE, n) for n in range(20)))
    made.advance()
    assert made.has_more
    assert said(made) == ["SETTINGS ack"] * 2


def test_one_advance_does_a_slice_of_the_work() -> None:
    made = connection(replace(H2Limits(), slice_cost=10))
    made.feed(frames.frame(frames.PING, 0, 0, bytes(8)) * 25)
    made.advance()
    assert made.has_more
    assert len(said(made)) == 10
    made.advance()
    made.advance()
    assert not made.has_more
    assert len(said(made)) == 15


def test_a_block_that_has_to_be_decoded_is_a_part_of_a_slice() -> None:
    made = connection(replace(H2Limits(), slice_cost=100, header_block_bytes=10 * len(BLOCK)))
    known = headers(1)
    assert len(events(made, known)) == 1
    sent = b"".join(headers(2 * n + 1, fields=(*REQUEST, (b"a", b"%05d" % n))) for n in range(1, 20))
    made.feed(sent)
    assert 0 < len(made.advance()) < 12
    assert made.has_more
