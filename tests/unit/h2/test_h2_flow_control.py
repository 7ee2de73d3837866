"""Windows both ways (RFC 9113 §5.2 and §6.9), and turns of the streams that wait for them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from cortado.store.h2 import frames
from cortado.store.h2.connection import Connection
from cortado.store.h2.frames import FrameReader
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD
from cortado.store.h2.limits import ErrorCode, H2Limits, Rate
from support.h2 import Clock, connection, data, events, headers, opened, said, setting, shown

HEAD = b"\x88"
FRAME = 16_384
FIRST = 65_535


def widened(*streams: int, increment: int = 1 << 20) -> Connection:
    """Return a connection of requests, with windows widened by ``increment``."""
    made = connection()
    events(made, b"".join(headers(each) for each in streams) + frames.window_update(0, increment))
    return made


def test_a_reply_leaves_in_one_piece() -> None:
    made = connection()
    events(made, headers())
    made.send_reply(1, RESPONSE_HEAD, b"\0\0\0\0\1x", OK_TRAILERS)
    assert made.taken() == (
        b"\0\0\x20\x01\x04\0\0\0\1" + RESPONSE_HEAD + b"\0\0\6\0\0\0\0\0\1\0\0\0\0\1x"
        b"\0\0\x0f\x01\x05\0\0\0\1" + OK_TRAILERS
    )
    assert len(made._streams) == 0


def test_what_the_windows_do_not_let_through_waits_for_both() -> None:
    made = connection()
    events(made, headers(1) + headers(3))
    made.send_head(1, HEAD)
    made.send_data(1, bytes(70_000))
    assert said(made) == ["HEADERS 1", *["DATA 1 16384"] * 3, "DATA 1 16383"]
    assert made.queued(1) == 70_000 - FIRST
    made.send_reply(3, HEAD, b"abc", HEAD)
    assert said(made) == ["HEADERS 3"], "the connection's window is used up"
    assert events(made, frames.window_update(1, 70_000)) == []
    found = events(made, frames.window_update(0, 70_000))
    assert [shown(each) for each in found] == ["drained 3", "drained 1"]
    assert said(made) == ["DATA 3 3", "HEADERS 3 last", "DATA 1 4465"]


def test_a_stream_whose_window_is_shut_holds_no_other_up() -> None:
    made = connection()
    events(made, setting(frames.INITIAL_WINDOW_SIZE, 0) + headers(1) + headers(3) + frames.window_update(3, 10))
    said(made)
    for each in (1, 3):
        made.send_head(each, HEAD)
        made.send_data(each, b"0123456789")
    assert said(made) == ["HEADERS 1", "HEADERS 3", "DATA 3 10"]
    assert [shown(each) for each in events(made, setting(frames.INITIAL_WINDOW_SIZE, 4))] == []
    assert said(made) == ["SETTINGS ack", "DATA 1 4"]
    assert [shown(each) for each in events(made, frames.window_update(1, 6))] == ["drained 1"]


@pytest.mark.parametrize("begun", [True, False])
def test_a_stream_that_waits_for_the_connection_may_lose_its_own_window(begun: bool) -> None:
    """Once more was sent than its window is by then, the rest follows where it had stopped."""
    made = connection()
    events(made, setting(frames.INITIAL_WINDOW_SIZE, 100_000) + headers(1) + headers(3))
    body = b"".join(n.to_bytes(4, "big") for n in range(20_000))
    if not begun:
        made.send_data(1, bytes(65_535))
    made.send_data(3, body)
    sent = bodies(made)[3]
    events(made, setting(frames.INITIAL_WINDOW_SIZE, 65_000 if begun else 0))
    events(made, frames.window_update(0, 200_000))
    assert bodies(made)[3] == b""
    events(made, frames.window_update(3, 100_000))
    assert sent + bodies(made)[3] == body


def bodies(of: Connection) -> dict[int, bytes]:
    """Return the output by stream."""
    reader = FrameReader(1 << 24)
    reader.feed(of.taken())
    found: dict[int, bytes] = defaultdict(bytes)
    while (frame := reader.next()) is not None:
        if frame.kind == frames.DATA:
            assert frame.payload
            found[frame.stream_id] += frame.payload
        if not reader.held:
            of.pump()
            reader.feed(of.taken())
    return found


def test_a_window_may_be_made_less_than_nothing() -> None:
    made = connection()
    events(made, headers())
    made.send_head(1, HEAD)
    made.send_data(1, bytes(100))
    events(made, setting(frames.INITIAL_WINDOW_SIZE, 0))
    made.send_data(1, b"x")
    said(made)
    events(made, frames.window_update(1, 100))
    assert said(made) == []
    events(made, frames.window_update(1, 1))
    assert said(made) == ["DATA 1 1"]


def test_streams_that_wait_send_a_frame_in_their_turns() -> None:
    made = connection()
    events(made, headers(1) + headers(3) + headers(5))
    made.send_head(1, HEAD)
    made.send_data(1, bytes(FIRST))
    for each in (1, 3, 5):
        events(made, frames.window_update(each, 1 << 20))
        made.send_data(each, bytes(2 * FRAME))
    said(made)
    events(made, frames.window_update(0, 1 << 20))
    assert said(made) == ["DATA 1 16384", "DATA 3 16384", "DATA 5 16384"] * 2


def test_no_more_is_made_into_frames_than_the_writer_takes() -> None:
    made = widened(1, increment=1 << 21)
    events(made, frames.window_update(1, 1 << 21))
    made.send_head(1, HEAD)
    made.send_data(1, bytes(1 << 20))
    taken = 0
    while lines := said(made):
        assert len(lines) <= 17
        taken += sum(int(each.split()[2]) for each in lines if each.startswith("DATA"))
        found = made.pump()
    assert taken == 1 << 20
    assert [shown(each) for each in found] == []


@pytest.mark.parametrize("window", [1, 10_000, 100_000, 1 << 20])
@pytest.mark.parametrize("size", [20_000, 200_000, 1 << 20])
def test_the_output_keeps_no_more_in_memory_than_it_counts(window: int, size: int) -> None:
    """Of replies that were given up, too: their streams are gone, and their frames wait for the writer."""
    made = connection()
    events(made, setting(frames.INITIAL_WINDOW_SIZE, window) + frames.window_update(0, 1 << 30))
    for each in range(1, 41, 2):
        events(made, headers(each))
        made.send_head(each, HEAD)
        made.send_data(each, bytes(size))
        events(made, frames.rst_stream(each, ErrorCode.CANCEL))
        assert kept_by(made) <= made.unsent
        if each % 10 == 1:
            made.taken()
            made.pump()


def kept_by(of: Connection) -> int:
    """Return the bytes of all objects that the output refers to."""
    kept = {id(each): each for each in (piece.obj if type(piece) is memoryview else piece for piece in of._out)}
    return sum(map(len, kept.values()))


def test_an_error_drops_what_was_not_begun_and_no_half_message() -> None:
    made = connection()
    events(made, headers())
    made.send_head(1, HEAD)
    for _ in range(3):
        made.send_data(1, bytes(50_000))
    said(made)
    made.send_end(1, HEAD, drops_unbegun=True)
    assert made.queued(1) == 100_000 - FIRST
    events(made, frames.window_update(1, 1 << 20) + frames.window_update(0, 1 << 20))
    assert said(made) == ["DATA 1 16384", "DATA 1 16384", "DATA 1 1697", "HEADERS 1 last"]


def test_a_stream_is_stalled_while_something_waits_and_nothing_leaves() -> None:
    clock = Clock()
    made = connection(clock=clock)
    events(made, headers(1) + headers(3) + frames.window_update(0, 1 << 20))
    clock.now_s = 5.0
    made.send_head(1, HEAD)
    made.send_data(1, bytes(100_000))
    made.send_reply(3, HEAD, b"abc", HEAD)
    assert (made.stalled(5.0), made.stalled(5.1)) == ([], [1])
    clock.now_s = 6.0
    made.send_data(1, b"more behind it")
    assert made.stalled(5.1) == [1]
    events(made, frames.window_update(1, 1))
    assert (made.stalled(6.0), made.stalled(6.1)) == ([], [1])
    events(made, frames.window_update(1, 100_000))
    assert made.stalled(7.0) == []


def test_a_stream_that_its_client_resets_sends_no_more() -> None:
    made = connection()
    events(made, headers())
    made.send_head(1, HEAD)
    made.send_data(1, bytes(100_000))
    events(made, frames.frame(frames.RST_STREAM, 0, 1, bytes(4)))
    said(made)
    made.send_data(1, b"x")
    made.send_end(1, HEAD)
    made.reset(1, ErrorCode.CANCEL)
    events(made, frames.window_update(0, 1 << 20))
    assert said(made) == []


def test_a_client_that_has_read_enough_may_reset_any_number_of_streams_that_were_answered() -> None:
    made = connection(replace(H2Limits(), resets=Rate(10, 5)))
    for number in range(1, 201, 2):
        events(made, headers(number))
        made.send_end(number, b"\x88")
        events(made, frames.frame(frames.RST_STREAM, 0, number, bytes(4)))
        assert not made.is_over


def test_what_was_consumed_may_come_again() -> None:
    made = connection()
    events(made, opened() + data(bytes(FRAME)) * 3)
    made.consumed(1, FRAME)
    assert said(made) == [], "less than half of the window"
    made.consumed(1, FRAME)
    assert said(made) == [f"WINDOW_UPDATE 1 {2 * FRAME}"]
    made.consumed(1, FRAME)
    assert said(made) == []
    assert [shown(each)[:6] for each in events(made, data(bytes(16_000)) * 3)] == ["data 1"] * 3


def test_whoever_waits_for_a_long_message_opens_the_window_for_it() -> None:
    made = connection(replace(H2Limits(), connection_window=100_000))
    events(made, opened() + data(bytes(FRAME)))
    made.expect(1, 1_000_000)
    assert said(made) == [f"WINDOW_UPDATE 1 {1_000_000 - (FIRST - FRAME)}"]
    sent = 0
    while sent < 1_000_000:
        assert not made.is_over
        events(made, data(bytes(10_000)))
        sent += 10_000
    updates = said(made)
    assert {each.split()[0] for each in updates} == {"WINDOW_UPDATE"}
    assert {len(each.split()) for each in updates} == {2}, "all of the connection's"
    made.consumed(1, 1_000_000 + FRAME)
    assert said(made) == [f"WINDOW_UPDATE 1 {FIRST}"]


def test_streams_that_nobody_reads_do_not_stop_the_one_that_somebody_waits_for() -> None:
    made = connection(replace(H2Limits(), connection_window=70_000))
    events(made, opened(1) + opened(3) + data(bytes(16_000), 1) * 4)
    made.expect(3, 200_000)
    left = 70_000 - 4 * 16_000
    said(made)
    for _ in range(33):
        events(made, data(bytes(min(left, FRAME)), 3))
        assert not made.is_over
        given = [int(each.split()[1]) for each in said(made)]
        assert given, "or the client could send no more"
        left = given[0]


def test_all_streams_may_hold_their_windows_at_once() -> None:
    limits = H2Limits()
    assert limits.connection_window >= limits.streams * limits.stream_window


def test_what_is_read_or_waited_for_is_not_unread() -> None:
    made = connection()
    events(made, opened(1) + opened(3) + data(bytes(9_000), 1) + data(bytes(5_000), 3))
    assert made.unread == 14_000
    made.consumed(1, 9_000)
    made.expect(3, 100)
    events(made, data(bytes(100), 3))
    assert made.unread == 0


def test_what_a_stream_held_is_given_back_with_its_end() -> None:
    made = connection(replace(H2Limits(), connection_window=70_000))
    events(made, opened(1) + data(bytes(16_000), 1) * 4)
    made.reset(1, ErrorCode.CANCEL)
    assert said(made) == ["RST_STREAM 1 CANCEL", f"WINDOW_UPDATE {4 * 16_000}"]


def test_more_than_the_connections_window_ends_it() -> None:
    made = connection(replace(H2Limits(), connection_window=40_000))
    found = events(made, opened(1) + data(bytes(FRAME)) * 2 + opened(3) + data(bytes(FRAME), 3))
    assert shown(found[-1]) == "ended FLOW_CONTROL_ERROR: more than the connection's window"


def test_two_goaways_end_a_connection_without_losing_a_call() -> None:
    made = connection()
    events(made, headers(1))
    made.say_going(b"12345678")
    assert said(made) == ["GOAWAY 2147483647 NO_ERROR", "PING"]
    # Sent before the client read the first one: served.
    found = events(made, headers(3) + frames.frame(frames.PING, frames.ACK, 0, b"12345678"))
    assert [shown(each) for each in found] == ["opened 3 /s/M last", "ping answered 3132333435363738"]
    made.say_gone()
    assert said(made) == ["GOAWAY 3 NO_ERROR"]
    assert events(made, opened(5) + data(b"x", 5)) == [], "the client knows that it was not begun"
    made.send_reply(3, HEAD, b"a", HEAD)
    assert said(made) == ["HEADERS 3", "DATA 3 1", "HEADERS 3 last"]
