"""The queue of the coalescing stream, under actions of callers, gRPC and the server in any order: bounds, one end
each."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cortado.errors import Cancelled, ResourceExhausted, Unavailable
from cortado.proto.v1 import calls_pb2
from cortado.store.client import call_queue
from cortado.store.client.authorization import ON_BEHALF
from cortado.store.client.call_queue import CallQueue, Waiter
from cortado.store.client.retry import Failed, Failure

CALLS_MAX = 6
BYTES_MAX = 400
MESSAGE_CALLS_MAX = 3


class Queue(RuleBasedStateMachine):
    """A twin keeps each call in one list: in line, on its way, or over."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(call_queue, "CALLS_MAX", CALLS_MAX)
        self._patch.setattr(call_queue, "BYTES_MAX", BYTES_MAX)
        self._patch.setattr(call_queue, "MESSAGE_CALLS_MAX", MESSAGE_CALLS_MAX)
        self.queue: CallQueue[Waiter] = CallQueue()
        self.in_line: list[Waiter] = []
        self.on_way: list[Waiter] = []
        self.taken_back: list[int] = []
        self.is_over = False

    def teardown(self) -> None:
        self._patch.undo()

    @rule(size=st.integers(0, 150))
    def submit(self, size: int) -> None:
        waiter = Waiter(*self.queue.encode("m", b"x" * size, 1))
        held = self.in_line + self.on_way
        fits = len(held) < CALLS_MAX and sum(each.size_bytes for each in held) + waiter.size_bytes <= BYTES_MAX
        try:
            self.queue.add(waiter)
        except Failed as failed:
            assert self.is_over or not fits
            assert not failed.failure.sent
            assert isinstance(failed.failure.error, Unavailable | Cancelled if self.is_over else ResourceExhausted)
        else:
            assert fits
            self.in_line.append(waiter)

    @rule()
    def send(self) -> None:
        message = calls_pb2.CallBatch.FromString(self.queue.take())
        count = min(len(self.in_line), MESSAGE_CALLS_MAX)
        assert [call.id for call in message.calls] == [each.call_id for each in self.in_line[:count]]
        assert list(message.cancelled) == self.taken_back
        self.taken_back = []
        self.on_way += self.in_line[:count]
        del self.in_line[:count]

    @precondition(lambda self: self.on_way)
    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        answered = data.draw(st.lists(st.sampled_from(self.on_way), unique=True))
        replies = [calls_pb2.CallReply(id=each.call_id, reply=b"r") for each in answered]
        replies.append(calls_pb2.CallReply(id=10_000, reply=b"of nobody"))
        settled = self.queue.settle(calls_pb2.ReplyBatch(replies=replies).SerializeToString())
        self.queue.free(settled)
        assert settled == answered
        assert all(each.outcome() == b"r" for each in settled)
        self.on_way = [each for each in self.on_way if each not in answered]

    @precondition(lambda self: self.in_line or self.on_way)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        waiter = data.draw(st.sampled_from(self.in_line + self.on_way))
        assert self.queue.remove(waiter)
        assert not self.queue.remove(waiter)
        if waiter in self.on_way:
            self.taken_back.append(waiter.call_id)
            self.on_way.remove(waiter)
        else:
            self.in_line.remove(waiter)

    @rule(closed=st.booleans())
    def end(self, closed: bool) -> None:
        error = Cancelled("closed") if closed else Unavailable("broke")
        left = self.queue.end(Failure(error, answered=False, sent=True))
        assert sorted(each.call_id for each in left) == sorted(each.call_id for each in self.in_line + self.on_way)
        for each in left:
            with pytest.raises(Failed) as raised:
                each.outcome()
            assert raised.value.failure.sent == (each in self.on_way)
            assert raised.value.failure.error is not error
        self.in_line, self.on_way, self.is_over = [], [], True

    @invariant()
    def counts_what_is_held(self) -> None:
        assert self.queue.in_flight == len(self.in_line) + len(self.on_way)
        assert self.queue.has_news == bool(self.in_line or self.taken_back)


TestQueue = Queue.TestCase


@given(
    before=st.integers(0, 1 << 40),
    method=st.text(max_size=200),
    request=st.binary(max_size=300) | st.integers(0, 1 << 17).map(bytes),
    timeout_s=st.floats(0, 1e8),
    caller=st.text(max_size=200),
    trace=st.sampled_from(["", f"00-{7:032x}-{9:016x}-01"]),
)
def test_a_call_is_written_as_protobuf_writes_it(
    before: int, method: str, request: bytes, timeout_s: float, caller: str, trace: str
) -> None:
    queue: CallQueue[Waiter] = CallQueue()
    queue._ids = itertools.count(before + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_queue, "traceparent", lambda: trace)
        token = ON_BEHALF.set(caller)
        call_id, message = queue.encode(method, request, timeout_s)
        ON_BEHALF.reset(token)
    timeout_ms = min(max(1, int(timeout_s * 1_000)), (1 << 32) - 1)
    call = calls_pb2.Call(
        id=before + 1,
        method=method,
        request=request,
        timeout_ms=timeout_ms,
        traceparent=trace,
        authorization=caller,
    )
    assert call_id == before + 1
    assert message == calls_pb2.CallBatch(calls=[call]).SerializeToString()
