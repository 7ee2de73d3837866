"""Calls over one connection, without I/O: their fields, replies and ends; and the ends of the connection."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import (
    Cancelled,
    CortadoError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotFound,
    Unavailable,
    Unsupported,
)
from cortado.store.client.link import ends
from cortado.store.client.link.link import AGAIN_S, CONNECT_S, IDLE_S
from cortado.store.client.retry import Failed, Failure
from cortado.store.h2 import frames
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD, prefixed, status_trailers, timeout_s, timeout_text
from cortado.store.h2.header_blocks import block
from cortado.store.h2.limits import ErrorCode, H2Limits
from cortado.store.wire.api_level import user_agent
from cortado.version import __version__
from support.link_server import Told, World


def failure(call: Told) -> Failure:
    assert call.is_over
    assert call.failure is not None
    return call.failure


# --- requests and replies --------------------------------------------------------------------------------------


def test_a_request_has_the_fields_of_grpc() -> None:
    world = World().connect()
    call = Told("s/M", b"ask", (("authorization", "Bearer x"),), deadline_s=2.5)
    world.link.begin(call)
    world.exchange()
    asked = world.asked[1]
    assert (asked.head.method, asked.head.path) == (b"POST", b"/s/M")
    assert (asked.data, asked.is_whole) == (prefixed(b"ask"), True)
    assert dict(asked.head.metadata) == {
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": user_agent(__version__),
        "authorization": "Bearer x",
        "grpc-timeout": "2500m",
    }


def test_calls_that_are_alike_send_the_same_block_which_the_server_decodes_once() -> None:
    world = World().connect()
    for left_s in (10.0, 9.948, 9.941):
        world.call(deadline_s=world.clock.now_s + left_s)
    world.call("s/N")
    world.exchange()
    heads = [each.head for each in world.asked.values()]
    assert heads[1] is heads[2]
    assert heads[0] is not heads[1]
    assert heads[3].path == b"/s/N"


@given(st.floats(1e-6, 1e8))
def test_a_timeout_is_at_least_what_is_left_and_hardly_more(left_s: float) -> None:
    assert left_s <= timeout_s(timeout_text(left_s)) * (1 + 1e-9) or left_s > 99_999_999
    assert timeout_s(timeout_text(left_s)) <= left_s * 1.01 + 0.001


def test_a_call_ends_with_its_reply() -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    assert not call.is_over
    world.answer(1)
    assert call.outcome() == b"reply"
    assert call.times == 1


def test_calls_of_one_step_leave_together() -> None:
    world = World().connect()
    for _ in range(5):
        world.call()
    assert world.link.taken().count(b"ask") == 5
    assert world.link.taken() == b""


def test_a_stream_that_goes_both_ways() -> None:
    world = World().connect()
    call = world.call(request=None)
    world.exchange()
    assert call.times == 1  # It is open.
    assert world.link.has_room(call)
    world.link.send(call, b"one")
    world.exchange()
    world.send(1, b"a", b"b")
    world.exchange()
    assert list(call.replies) == [b"a", b"b"]
    world.link.send(call, b"two")
    world.link.finish(call)
    world.exchange()
    assert world.asked[1].data == prefixed(b"one") + prefixed(b"two")
    assert world.asked[1].is_whole
    world.server.send_end(1, OK_TRAILERS)
    world.exchange()
    assert call.is_over
    assert call.failure is None


def test_a_stream_tells_when_there_is_room_for_its_next_message() -> None:
    world = World().connect()
    call = world.call(request=None)
    world.exchange()
    world.link.send(call, bytes(70_000))
    assert not world.link.has_room(call)
    world.exchange()
    assert world.link.has_room(call)
    assert call.times == 2


def test_requests_and_replies_have_any_size() -> None:
    world = World().connect()
    call = world.call(request=bytes(3_000_000))
    world.exchange()
    assert len(world.asked[1].data) == 3_000_005
    world.answer(1, [b"x" * 9_000_000])
    assert call.outcome() == b"x" * 9_000_000


def test_replies_that_are_not_read_hold_up_no_other_call_and_are_few() -> None:
    world = World().connect()
    slow = world.call(is_eager=False)
    world.exchange()
    world.send(1, *[bytes(20_000)] * 30)
    world.exchange()
    assert world.server.queued(1) > 500_000
    quick = world.call()
    world.exchange()
    world.answer(3, [bytes(100_000)])
    assert quick.outcome() == bytes(100_000)
    found = 0
    while found < 30:
        while world.link.read(slow) is not None:
            found += 1
        world.exchange()
    world.server.send_end(1, OK_TRAILERS)
    world.exchange()
    assert world.link.read(slow) is None
    assert slow.is_over


def test_hundreds_of_streams_that_are_not_read_leave_room_for_others() -> None:
    world = World(ahead_bytes=4 << 20)
    world.link.connected()
    assert frames.window_update(0, (2 << 30) - 1 - 65_535) in world.link.taken()


@pytest.mark.parametrize("waits_before", [True, False])
def test_a_reply_beyond_the_window_comes_once_it_is_waited_for(waits_before: bool) -> None:
    world = World(ahead_bytes=1_000).connect()
    call = world.call(is_eager=False)
    if waits_before:
        assert world.link.read(call) is None
    world.exchange()
    if waits_before:
        assert world.link.read(call) is None
    world.send(1, bytes(500_000), bytes(300_000))
    world.exchange()
    if not waits_before:
        assert world.server.queued(1) > 790_000
        assert world.link.read(call) is None
        world.exchange()
    assert world.link.read(call) == bytes(500_000)
    assert world.server.queued(1) > 290_000, "the next one is not waited for"
    assert world.link.read(call) is None
    world.exchange()
    assert world.link.read(call) == bytes(300_000)


def test_replies_come_before_the_end_whatever_it_is() -> None:
    world = World().connect()
    call = world.call(is_eager=False)
    world.exchange()
    world.send(1, b"a")
    world.server.send_end(1, status_trailers(14, ""))
    world.exchange()
    assert call.is_over
    assert world.link.read(call) == b"a"
    assert world.link.read(call) is None
    assert isinstance(failure(call).error, Unavailable)


def test_a_call_with_one_reply_takes_no_more_than_the_window_of_others() -> None:
    world = World(ahead_bytes=1_000).connect()
    call = world.call()
    world.exchange()
    world.send(1, *[b""] * 1_000)
    world.exchange()
    assert len(call.replies) == 1
    assert world.server.queued(1) > 3_900


# --- ends by the server ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [NotFound("key", "k"), InvalidArgument("a", "b\u00e9\n%"), Unavailable("x", 20)])
def test_an_error_of_the_server_is_its_answer(error: CortadoError) -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    world.answer(1, error=error)
    assert repr(failure(call)) == repr(Failure(error, answered=True, sent=True))


STRANGERS = {
    "an error of HTTP": frames.frame(frames.HEADERS, 5, 1, block([(b":status", b"502")])),
    "another type": frames.frame(frames.HEADERS, 4, 1, b"\x88" + block([(b"content-type", b"text/html")])),
    "no type": frames.frame(frames.HEADERS, 4, 1, b"\x88"),
    "no status of gRPC": frames.frame(frames.HEADERS, 5, 1, RESPONSE_HEAD),
    "a status that is none": frames.frame(frames.HEADERS, 5, 1, RESPONSE_HEAD + block([(b"grpc-status", b"x")])),
    "no trailers": frames.frame(frames.HEADERS, 4, 1, RESPONSE_HEAD) + frames.frame(frames.DATA, 1, 1, prefixed(b"a")),
}


@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS)
def test_a_server_of_another_kind_is_told_so(sent: bytes) -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    world.link.received(sent)
    assert repr(failure(call)) == repr(Failure(Unavailable(ends.STRANGER), answered=False, sent=True))


def test_a_server_without_that_path_did_nothing() -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    world.link.received(frames.frame(frames.HEADERS, 5, 1, block([(b":status", b"404")])))
    assert repr(failure(call)) == repr(Failure(Unsupported("this call", ends.STRANGER), answered=False, sent=False))


UNREADABLE = {
    "compressed": b"\x01\x00\x00\x00\x01a",
    "longer than any": b"\x00\xff\xff\xff\xff",
    "two": prefixed(b"a") + prefixed(b"b"),
    "none": b"",
    "a part": b"\x00\x00\x00\x00\x02a",
}


@pytest.mark.parametrize("is_eager", [True, False])
@pytest.mark.parametrize("sent", UNREADABLE.values(), ids=UNREADABLE)
def test_replies_that_cannot_be_read(sent: bytes, is_eager: bool) -> None:
    if not is_eager and sent in (UNREADABLE["two"], b""):
        return
    world = World().connect()
    call = world.call(is_eager=is_eager)
    world.exchange()
    world.server.send_head(1, RESPONSE_HEAD)
    world.server.send_data(1, sent)
    world.server.send_end(1, OK_TRAILERS)
    world.exchange()
    if not is_eager:
        assert world.link.read(call) is None
    with pytest.raises(Failed) as raised:
        call.outcome()
    assert isinstance(raised.value.failure.error, Internal)
    assert raised.value.failure.sent


@pytest.mark.parametrize(
    ("code", "sent"), [(ErrorCode.REFUSED_STREAM, False), (ErrorCode.CANCEL, True), (ErrorCode.INTERNAL_ERROR, True)]
)
def test_a_reset_tells_whether_the_call_was_begun(code: ErrorCode, sent: bool) -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    world.server.reset(1, code)
    world.exchange()
    assert isinstance(failure(call).error, Unavailable)
    assert failure(call).sent is sent


def test_a_server_that_goes_ends_what_it_began_and_no_more() -> None:
    world = World().connect()
    begun, late = world.call(), world.call()
    world.exchange()
    held = world.link.received(frames.goaway(1, ErrorCode.NO_ERROR))
    assert held is None
    assert failure(late).sent is False
    assert not world.link.takes_calls()
    assert not world.link.is_over
    after = world.call()
    assert repr(failure(after)) == repr(Failure(Unavailable(ends.ENDED), answered=False, sent=False))
    world.answer(1)
    assert begun.outcome() == b"reply"
    assert world.link.is_over


def test_calls_beyond_the_servers_bound_wait_for_room() -> None:
    world = World(replace(H2Limits(), streams=2)).connect()
    calls = [world.call() for _ in range(4)]
    world.exchange()
    assert list(world.asked) == [1, 3]
    world.answer(3)
    assert list(world.asked) == [1, 3, 5]
    world.link.received(frames.goaway(99, ErrorCode.NO_ERROR))
    assert failure(calls[3]).sent is False


# --- ends by this side -----------------------------------------------------------------------------------------


def test_calls_wait_until_the_server_has_said_its_settings() -> None:
    world = World()
    call = world.call()
    assert world.link.taken() == b""
    world.link.connected()
    first = world.link.taken()
    assert first.startswith(frames.PREFACE)
    assert not call.is_sent
    world.server.feed(first)
    world.exchange()
    assert call.is_sent
    assert list(world.asked) == [1]


def test_a_connection_that_cannot_be_made_fails_calls_unsent_and_for_a_moment_more_of_them() -> None:
    world = World()
    call = world.call()
    world.link.lost("nothing listens there")
    assert repr(failure(call)) == repr(Failure(Unavailable("nothing listens there"), answered=False, sent=False))
    assert world.link.is_over
    assert world.link.takes_calls()
    assert repr(failure(world.call())) == repr(failure(call))
    assert world.call().failure.error is not failure(call).error  # type: ignore[union-attr]
    world.clock.now_s += AGAIN_S
    assert not world.link.takes_calls()


@pytest.mark.parametrize(("is_connected", "told"), [(False, ends.NO_ANSWER), (True, ends.SILENT)])
def test_a_connection_that_takes_too_long_is_given_up(is_connected: bool, told: str) -> None:
    world = World()
    call = world.call()
    if is_connected:
        world.link.connected()
        world.link.taken()
    assert world.link.look_s == CONNECT_S
    world.clock.now_s = CONNECT_S
    world.link.look()
    assert repr(failure(call)) == repr(Failure(Unavailable(told), answered=False, sent=False))


def test_a_call_that_was_not_taken_to_be_written_was_not_sent() -> None:
    world = World().connect()
    sent = world.call()
    world.link.taken()
    unsent = world.call()
    world.link.lost(ends.CLOSED)
    assert repr(failure(sent)) == repr(Failure(Unavailable(ends.CLOSED), answered=False, sent=True))
    assert repr(failure(unsent)) == repr(Failure(Unavailable(ends.CLOSED), answered=False, sent=False))
    assert not world.link.takes_calls()


def test_late_calls_end_at_their_deadline_and_are_reset() -> None:
    world = World(replace(H2Limits(), streams=1)).connect()
    open_, held, other = world.call(deadline_s=2.0), world.call(deadline_s=1.0), world.call(deadline_s=9.0)
    world.exchange()
    assert world.link.look_s == 1.0
    world.clock.now_s = 1.0
    world.link.look()
    assert repr(failure(held)) == repr(Failure(DeadlineExceeded(problem=ends.LATE), answered=False, sent=False))
    assert world.link.look_s == 2.0
    world.clock.now_s = 2.0
    world.link.look()
    assert repr(failure(open_)) == repr(Failure(DeadlineExceeded(problem=ends.LATE), answered=False, sent=True))
    world.exchange()
    assert world.asked[1].is_reset
    assert list(world.asked) == [1, 3]
    assert not other.is_over


def test_a_call_that_is_given_up_is_reset_and_not_told() -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    assert world.link.cancel(call)
    world.exchange()
    assert world.asked[1].is_reset
    assert call.is_over
    assert not hasattr(call, "times")
    assert not world.link.cancel(call)


def test_a_connection_without_calls_ends_after_a_while() -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    world.clock.now_s = 100.0
    world.link.look()
    assert not world.link.is_over
    world.answer(1)
    assert call.is_over
    assert world.link.look_s == 100.0 + IDLE_S
    world.clock.now_s = 100.0 + IDLE_S
    world.link.look()
    assert world.link.is_over
    assert not world.link.takes_calls()


def test_closing_ends_all_calls() -> None:
    world = World(replace(H2Limits(), streams=1)).connect()
    calls = [world.call(), world.call(is_eager=False)]
    world.exchange()
    world.link.close()
    world.link.lost("no matter")
    assert [type(failure(each).error) for each in calls] == [Cancelled, Cancelled]
    assert [failure(each).sent for each in calls] == [True, False]


# --- hostile servers -------------------------------------------------------------------------------------------


def test_a_server_that_breaks_the_protocol_is_named_and_told() -> None:
    world = World().connect()
    call = world.call()
    world.exchange()
    world.link.received(frames.frame(frames.PUSH_PROMISE, 4, 1, bytes(4)))
    assert failure(call).error.message().startswith("it breaks the protocol: PUSH_PROMISE")
    assert failure(call).sent
    assert world.link.is_over
    assert b"PUSH_PROMISE" in world.link.taken()


def test_another_protocol_is_told_before_anything_was_sent() -> None:
    world = World()
    call = world.call()
    world.link.connected()
    world.link.received(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert repr(failure(call)) == repr(Failure(Unavailable(ends.STRANGER), answered=False, sent=False))


PIECES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        frames.frame,
        st.integers(0, 9),
        st.sampled_from([0, 1, 4, 5]),
        st.sampled_from([0, 1, 3, 5]),
        st.binary(max_size=20),
    ),
    st.builds(
        lambda stream_id, flags, status: frames.frame(
            frames.HEADERS, flags, stream_id, status + block([(b"content-type", b"application/grpc")])
        ),
        st.sampled_from([1, 3]),
        st.sampled_from([4, 5]),
        st.sampled_from([b"\x88", b"\x88" + OK_TRAILERS, OK_TRAILERS]),
    ),
    st.builds(lambda at, data: frames.frame(frames.DATA, 0, at, prefixed(data)), st.sampled_from([1, 3]), st.binary()),
    st.builds(frames.goaway, st.sampled_from([0, 1, 3]), st.sampled_from(ErrorCode)),
)


@given(st.lists(PIECES, max_size=20))
@settings(max_examples=300)
def test_whatever_a_server_sends_each_call_ends_once_the_connection_is_over(pieces: list[bytes]) -> None:
    world = World().connect()
    calls = [world.call(), world.call(is_eager=False), world.call(request=None)]
    world.link.taken()
    for piece in pieces:
        world.link.received(piece)
        world.link.read(calls[1])
        world.link.taken()
    world.link.lost(ends.CLOSED)
    assert all(each.is_over for each in calls)
    assert set(calls) <= set(world.link.told())
