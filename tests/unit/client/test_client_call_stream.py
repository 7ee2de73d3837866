"""The coalescing stream at the client: which calls share a message, which are refused, and how every call ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from cortado.errors import (
    Cancelled,
    ConditionFailed,
    DeadlineExceeded,
    Internal,
    OutcomeUnknown,
    ResourceExhausted,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import calls_pb2, kv_pb2
from cortado.store.client import Client, call_queue
from cortado.store.client.authorization import NOBODYS
from cortado.store.client.blocking.call_stream import CallStream
from cortado.store.client.link.call import Call
from cortado.store.client.retry import Failed, Failure
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD, prefixed
from cortado.store.wire.rpc_errors import from_status, rpc_status
from support.fake_server import FakeServer, break_off, header, refuse
from support.link_server import Asked, World
from support.server_process import wait_until

METHOD = "cortado.v1.KeyValue/Get"


class HandLine:
    """A line of a link to a server in memory. Posted work is done when the test says so."""

    def __init__(self) -> None:
        self.world = World().connect()
        self.link = self.world.link
        self.now_s = self.world.clock
        self.timers: dict[Callable[[], None], float] = {}
        self._posted: list[Callable[[], None]] = []

    def do(self, work: Callable[[], None]) -> None:
        self._posted.append(work)

    do_later = do

    def cancel(self, call: Call) -> bool:
        return self.link.cancel(call)

    def set_timer(self, look: Callable[[], None], look_s: float) -> None:
        self.timers[look] = look_s

    def drop_timer(self, look: Callable[[], None]) -> None:
        self.timers.pop(look, None)

    def turn(self) -> None:
        """Do posted work, and let bytes pass."""
        self.world.tell()
        while self._posted:
            self._posted.pop(0)()
            self.world.exchange()

    def pass_time(self, seconds: float) -> None:
        self.now_s.now_s += seconds
        for look, look_s in list(self.timers.items()):
            if look_s <= self.now_s.now_s:
                del self.timers[look]
                look()


class Wire:
    """The server's end of a stream: messages leave when the test lets them, and replies come when it says."""

    def __init__(self) -> None:
        self.ended: list[Failure] = []
        self.line = HandLine()
        self.stream = CallStream(self.line, lambda _, failure: self.ended.append(failure), NOBODYS)  # type: ignore[arg-type]
        self.line.turn()
        self._server = self.line.world.server
        self._server.send_head(1, RESPONSE_HEAD)
        self._read = 0

    @property
    def asked(self) -> Asked:
        return self.line.world.asked[1]

    def send(self) -> calls_pb2.CallBatch:
        """Return the next message of the client's."""
        self.line.turn()
        begin = self._read + 5
        self._read = begin + int.from_bytes(self.asked.data[begin - 4 : begin], "big")
        return calls_pb2.CallBatch.FromString(self.asked.data[begin : self._read])

    def reply(self, *replies: calls_pb2.CallReply) -> None:
        self.send_back(calls_pb2.ReplyBatch(replies=replies).SerializeToString())

    def send_back(self, message: bytes) -> None:
        self._server.send_data(1, prefixed(message))
        self.line.world.exchange()

    def end(self) -> None:
        self._server.send_end(1, OK_TRAILERS)
        self.line.world.exchange()

    def break_off(self) -> None:
        self.line.link.lost("the connection broke")
        self.line.world.tell()


@pytest.fixture
def wire() -> Wire:
    return Wire()


def reply(call_id: int, value: bytes = b"v") -> calls_pb2.CallReply:
    return calls_pb2.CallReply(id=call_id, reply=value)


def test_what_came_while_a_message_was_sent_leaves_together(wire: Wire) -> None:
    first = wire.stream.submit(METHOD, b"1", 5_000)
    assert [call.request for call in wire.send().calls] == [b"1"]
    others = [wire.stream.submit(METHOD, request, 5_000) for request in (b"2", b"3", b"4")]
    batch = wire.send()
    assert [call.request for call in batch.calls] == [b"2", b"3", b"4"]
    assert {call.method for call in batch.calls} == {METHOD}
    assert all(4_000_000 < call.timeout_ms <= 5_000_000 for call in batch.calls)
    assert len({waiter.call_id for waiter in (first, *others)}) == 4


def test_a_message_has_bounds(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_queue, "MESSAGE_CALLS_MAX", 2)
    for _ in range(5):
        wire.stream.submit(METHOD, b"", 5)
    assert [len(wire.send().calls) for _ in range(3)] == [2, 2, 1]
    monkeypatch.setattr(call_queue, "MESSAGE_CALLS_MAX", 100)
    monkeypatch.setattr(call_queue, "MESSAGE_BYTES_MAX", 2_500)
    for _ in range(3):
        wire.stream.submit(METHOD, b"x" * 1_000, 5)
    assert [len(wire.send().calls) for _ in range(2)] == [2, 1]


def test_replies_find_their_callers_in_any_order(wire: Wire) -> None:
    waiters = [wire.stream.submit(METHOD, b"", 5) for _ in range(3)]
    wire.send()
    refused = rpc_status(ConditionFailed("k", "absent", "present")).SerializeToString()
    wire.reply(
        reply(waiters[2].call_id, b"three"),
        calls_pb2.CallReply(id=waiters[0].call_id, status=refused),
        reply(waiters[1].call_id, b""),
        reply(99, b"of nobody"),
    )
    assert all(waiter.settled.acquire(timeout=5) for waiter in waiters)
    assert waiters[2].reply == b"three"
    assert (waiters[1].reply, waiters[1].failure) == (b"", None)
    failure = waiters[0].failure
    assert failure is not None
    assert isinstance(failure.error, ConditionFailed)
    assert failure.answered


def test_a_call_past_the_bounds_is_refused_at_once_and_was_not_sent(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "CALLS_MAX", 2)
    waiters = [wire.stream.submit(METHOD, b"", 5) for _ in range(2)]
    with pytest.raises(Failed) as raised:
        wire.stream.submit(METHOD, b"", 5)
    assert isinstance(raised.value.failure.error, ResourceExhausted)
    assert not raised.value.failure.sent
    wire.send()
    wire.reply(reply(waiters[0].call_id))
    assert waiters[0].settled.acquire(timeout=5)
    wire.stream.submit(METHOD, b"", 5)
    monkeypatch.setattr(call_queue, "CALLS_MAX", 10)
    monkeypatch.setattr(call_queue, "BYTES_MAX", 1_000)
    with pytest.raises(Failed, match="bytes"):
        wire.stream.submit(METHOD, b"x" * 1_000, 5)


def test_a_call_that_is_given_up_is_taken_out_or_taken_back(wire: Wire) -> None:
    sent = wire.stream.submit(METHOD, b"sent", 5)
    wire.send()
    queued, other = wire.stream.submit(METHOD, b"queued", 5), wire.stream.submit(METHOD, b"other", 5)
    assert wire.stream.give_up(sent)
    assert wire.stream.give_up(queued)
    assert not wire.stream.give_up(queued)
    assert (sent.is_sent, queued.is_sent) == (True, False)
    batch = wire.send()
    assert [call.id for call in batch.calls] == [other.call_id]
    assert list(batch.cancelled) == [sent.call_id]


def test_a_stream_that_breaks_tells_what_left_from_what_did_not(wire: Wire) -> None:
    sent = wire.stream.submit(METHOD, b"", 5)
    wire.send()
    queued = wire.stream.submit(METHOD, b"", 5)
    wire.break_off()
    assert sent.settled.acquire(timeout=5)
    assert queued.settled.acquire(timeout=5)
    assert sent.failure is not None
    assert queued.failure is not None
    assert (sent.failure.sent, sent.failure.answered, queued.failure.sent) == (True, False, False)
    assert sent.failure.error is not queued.failure.error
    with pytest.raises(Failed) as raised:
        wire.stream.submit(METHOD, b"", 5)
    assert not raised.value.failure.sent
    assert len(wire.ended) == 1


def test_what_a_server_has_not_answered_where_it_ends_the_stream_in_order_was_never_begun(wire: Wire) -> None:
    waiter = wire.stream.submit(METHOD, b"", 5)
    wire.send()
    wire.end()
    assert waiter.settled.acquire(timeout=5)
    assert waiter.failure is not None
    assert isinstance(waiter.failure.error, Unavailable)
    assert (waiter.failure.sent, waiter.failure.answered) == (False, False)


def test_replies_that_cannot_be_read_end_the_stream(wire: Wire) -> None:
    waiter = wire.stream.submit(METHOD, b"", 5)
    wire.send()
    wire.send_back(b"\xff\xff\xff")
    assert waiter.settled.acquire(timeout=5)
    assert waiter.failure is not None
    assert isinstance(waiter.failure.error, Internal)
    assert not waiter.failure.answered


def test_an_idle_stream_ends_and_one_with_a_call_does_not(wire: Wire) -> None:
    waiter = wire.stream.submit(METHOD, b"", 5)
    wire.send()
    wire.line.pass_time(call_queue.IDLE_S)
    wire.line.pass_time(call_queue.IDLE_S)
    assert not wire.ended
    wire.reply(reply(waiter.call_id))
    wire.line.pass_time(call_queue.IDLE_S)
    assert [each.error for each in wire.ended] == [call_queue.ENDED_IDLE.error]
    wire.line.turn()
    assert wire.asked.is_whole
    with pytest.raises(Failed) as raised:
        wire.stream.submit(METHOD, b"", 5)
    assert not raised.value.failure.sent


# --- over gRPC -------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(threads=64).running() as running:
        running.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(
            header=header(), pair=kv_pb2.KvPair(key=request.key)
        )
        yield running


@pytest.fixture
def client(server: FakeServer) -> Iterator[Client]:
    with Client(server.endpoint, timeout_s=5) as opened:
        opened.clock()
        yield opened


def in_threads(count: int, work: Any) -> list[Any]:
    """Return the results or errors of ``work(number)``, in each of ``count`` threads at once."""
    outcomes: list[Any] = [None] * count

    def run(number: int) -> None:
        try:
            outcomes[number] = work(number)
        except Exception as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_only_the_first_call_to_an_address_is_one_of_its_own(server: FakeServer) -> None:
    with Client(server.endpoint) as client:
        for _ in range(5):
            client.kv("n").get(b"k")
    assert server.merged == ["KeyValue.Get"] * 4
    with Client(server.endpoint, coalesce=False) as client:
        for _ in range(5):
            client.kv("n").get(b"k")
    assert len(server.merged) == 4


def test_callers_that_meet_share_messages_and_each_gets_its_own_answer(server: FakeServer, client: Client) -> None:
    kv = client.kv("n")

    def work(number: int) -> bool:
        keys = [b"%d-%d" % (number, turn) for turn in range(50)]
        return [kv.get(key) and kv.get(key).key for key in keys] == keys  # type: ignore[union-attr]

    assert in_threads(32, work) == [True] * 32
    assert len(server.merged) > 2_000
    assert server.messages < len(server.merged)


def test_each_thread_raises_an_error_of_its_own(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: break_off(context)
    outcomes = in_threads(16, lambda number: client.with_timeout(1.5).kv("n").put(b"k", b"v"))
    assert all(isinstance(error, OutcomeUnknown) for error in outcomes), outcomes
    assert len({id(error) for error in outcomes}) == 16


def test_a_deadline_is_told_to_the_server(server: FakeServer) -> None:
    release = threading.Event()
    slow = kv_pb2.KvGetResponse(header=header())
    server.handlers["KeyValue.Get"] = lambda request, context: release.wait(5) and slow
    with Client(server.endpoint) as client:
        client.clock()
        with pytest.raises(DeadlineExceeded):
            client.with_timeout(0.5).kv("n").get(b"k")
        wait_until(lambda: len(server.given_up) == 1, "the call was taken back")
    release.set()


def test_a_large_request_holds_up_nobody_elses(server: FakeServer) -> None:
    server.handlers["KeyValue.Put"] = lambda request, context: kv_pb2.KvPutResponse(header=header(), etag="0.1.1")
    with Client(server.endpoint) as client:
        client.clock()
        client.kv("n").put(b"k", b"v" * 200_000)
        client.kv("n").put(b"k", b"v")
    assert server.merged.count("KeyValue.Put") == 1


def test_a_server_without_the_stream_is_asked_by_calls_of_their_own() -> None:
    server = FakeServer(has_calls=False)
    server.handlers["KeyValue.Put"] = lambda request, context: kv_pb2.KvPutResponse(header=header(), etag="0.1.1")
    with server.running(), Client(server.endpoint) as client:
        client.clock()
        outcomes = in_threads(8, lambda number: client.kv("n").put(b"k", b"v"))
    assert outcomes == ["0.1.1"] * 8
    assert len({request.request_id for request in server.calls("KeyValue.Put")}) == 8


def test_a_server_with_too_many_streams_is_asked_by_calls_of_their_own(server: FakeServer) -> None:
    full = ResourceExhausted("1024 streams of calls are open", 10, "streams of calls", 1024)

    def exchange(requests: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        yield refuse(context, full)

    server.handlers["Calls.Exchange"] = exchange
    with Client(server.endpoint) as client:
        client.clock()
        assert client.kv("n").get(b"k") is not None
        assert client.kv("n").get(b"k") is not None


def test_a_client_that_is_closed_ends_its_calls(server: FakeServer) -> None:
    release = threading.Event()
    server.handlers["KeyValue.Get"] = lambda request, context: release.wait(5) and None
    with Client(server.endpoint) as client:
        client.clock()
        closing = threading.Thread(
            target=lambda: (wait_until(lambda: "KeyValue.Get" in server.merged, "asked"), client.close())
        )
        closing.start()
        outcomes = in_threads(4, lambda number: client.kv("n").get(b"k"))
        closing.join()
    release.set()
    assert all(isinstance(error, Cancelled) for error in outcomes), outcomes


def test_what_no_service_has_is_unsupported_on_the_stream_too(server: FakeServer) -> None:
    with Client(server.endpoint) as client:
        client.clock()
        with pytest.raises(Unsupported):
            client.databases()


def test_a_status_travels_with_all_its_fields_and_one_that_cannot_be_read_is_internal() -> None:
    refused = ConditionFailed("k", "absent", "0.1.2")
    found = from_status(rpc_status(refused).SerializeToString())
    assert isinstance(found, ConditionFailed)
    assert found.fields() == refused.fields()
    assert isinstance(from_status(b"\xff\xff"), Internal)
