"""The coalescing stream at the server: order, bounds, errors, deadlines, ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from cortado.errors import (
    ConditionFailed,
    CortadoError,
    Internal,
    InvalidArgument,
    OutcomeUnknown,
    ResourceExhausted,
    TooLarge,
    Unavailable,
    Unsupported,
)
from cortado.proto.v1 import calls_pb2, kv_pb2
from cortado.store.server.calls_service import CallsLimits, CallsService
from cortado.store.server.stream_replies import REPLY_BYTES_MAX
from cortado.store.wire.rpc_errors import from_status

KV = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
GET = "cortado.v1.KeyValue/Get"

Behaviour = Callable[[kv_pb2.KvGetRequest], Awaitable[Any]]


class Kv:
    """A service with a ``get`` that the test sets."""

    def __init__(self, get: Behaviour) -> None:
        self.get = get

    async def put(self, request: kv_pb2.KvPutRequest) -> bytes:
        raise AssertionError

    multi_get = delete = delete_range = scan = scan_page = put
    list_namespaces = drop_namespace = undrop_namespace = put


class Stream:
    """The caller's end of one stream."""

    def __init__(self, service: CallsService) -> None:
        self._requests: asyncio.Queue[calls_pb2.CallBatch | None] = asyncio.Queue()
        self.messages: AsyncGenerator[bytes, None] = service.exchange(self._all())

    async def _all(self) -> AsyncGenerator[calls_pb2.CallBatch, None]:
        while (batch := await self._requests.get()) is not None:
            yield batch

    def send(self, *keys: bytes, first_id: int = 1, timeout_ms: int = 0, cancelled: tuple[int, ...] = ()) -> None:
        calls = [
            calls_pb2.Call(
                id=first_id + i,
                method=GET,
                request=kv_pb2.KvGetRequest(key=key).SerializeToString(),
                timeout_ms=timeout_ms,
            )
            for i, key in enumerate(keys)
        ]
        self._requests.put_nowait(calls_pb2.CallBatch(calls=calls, cancelled=cancelled))

    def send_call(self, call: calls_pb2.Call) -> None:
        self._requests.put_nowait(calls_pb2.CallBatch(calls=[call]))

    def end(self) -> None:
        self._requests.put_nowait(None)

    async def receive(self) -> list[calls_pb2.CallReply]:
        """Return the replies of the next message."""
        async with asyncio.timeout(5):
            return list(calls_pb2.ReplyBatch.FromString(await anext(self.messages)).replies)

    async def rest(self) -> list[calls_pb2.CallReply]:
        async with asyncio.timeout(5):
            found: list[calls_pb2.CallReply] = []
            async for message in self.messages:
                found += calls_pb2.ReplyBatch.FromString(message).replies
            return found


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def service(get: Behaviour, **limits: Any) -> CallsService:
    return CallsService([(KV, Kv(get))], limits=CallsLimits(**limits))


def error_of(reply: calls_pb2.CallReply) -> CortadoError:
    assert reply.status
    return from_status(reply.status)


async def echo(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
    return kv_pb2.KvGetResponse(pair=kv_pb2.KvPair(key=request.key))


def key_of(reply: calls_pb2.CallReply) -> bytes:
    return kv_pb2.KvGetResponse.FromString(reply.reply).pair.key


def test_calls_that_wait_for_nothing_are_answered_in_one_message() -> None:
    async def test() -> None:
        stream = Stream(service(echo, slice_ms=60_000.0))
        stream.send(b"a", b"b", b"c")
        replies = await stream.receive()
        assert [(reply.id, key_of(reply)) for reply in replies] == [(1, b"a"), (2, b"b"), (3, b"c")]
        stream.end()
        assert await stream.rest() == []

    run(test)


def test_all_calls_of_a_batch_begin_in_their_order_before_anything_else_of_the_loop() -> None:
    begun: list[bytes] = []
    opened: list[asyncio.Event] = []

    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        begun.append(request.key)
        if len(begun) == 1:
            opened.append(asyncio.Event())
            asyncio.get_running_loop().call_soon(begun.append, b"the loop")
        await opened[0].wait()
        return await echo(request)

    async def test() -> None:
        stream = Stream(service(get, slice_ms=60_000.0))
        keys = [b"%d" % number for number in range(100)]
        stream.send(*keys)
        stream.end()
        task = asyncio.ensure_future(stream.rest())
        while b"the loop" not in begun:
            await asyncio.sleep(0)
        assert begun == [*keys, b"the loop"]
        opened[0].set()
        assert len(await task) == 100

    run(test)


def test_replies_that_finish_together_share_a_message_and_come_in_any_order() -> None:
    gates: dict[bytes, asyncio.Event] = {}

    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        await gates.setdefault(request.key, asyncio.Event()).wait()
        return await echo(request)

    async def test() -> None:
        stream = Stream(service(get))
        stream.send(b"a", b"b", b"c")
        first = asyncio.ensure_future(stream.receive())
        while len(gates) < 3:
            await asyncio.sleep(0)
        gates[b"c"].set()
        gates[b"b"].set()
        assert {reply.id for reply in await first} == {2, 3}
        gates[b"a"].set()
        stream.end()
        assert [reply.id for reply in await stream.rest()] == [1]

    run(test)


@pytest.mark.parametrize("waits", [False, True])
def test_a_refusal_carries_its_fields_and_a_defect_none(waits: bool) -> None:
    refusal = ConditionFailed("k", "absent", "0.1.2")

    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        if waits:
            await asyncio.sleep(0)
        if request.key == b"refused":
            raise refusal
        raise KeyError("secret")

    async def test() -> None:
        stream = Stream(service(get))
        stream.send(b"refused", b"broken")
        stream.end()
        refused, broken = sorted(await stream.rest(), key=lambda reply: reply.id)
        found = error_of(refused)
        assert isinstance(found, ConditionFailed)
        assert found.fields() == refusal.fields()
        assert isinstance(error_of(broken), Internal)
        assert "secret" not in str(error_of(broken))

    run(test)


def test_bad_calls_are_refused_one_by_one() -> None:
    async def test() -> None:
        stream = Stream(service(echo))
        stream.send_call(calls_pb2.Call(id=1, method="cortado.v1.KeyValue/Nothing"))
        stream.send_call(calls_pb2.Call(id=2, method="cortado.v1.KeyValue/Scan"))
        stream.send_call(calls_pb2.Call(id=3, method=GET, request=b"\xff\xff"))
        stream.send(b"good", first_id=4)
        stream.end()
        unknown, streaming, malformed, good = await stream.rest()
        assert isinstance(error_of(unknown), Unsupported)
        assert isinstance(error_of(streaming), Unsupported)
        assert isinstance(error_of(malformed), InvalidArgument)
        assert key_of(good) == b"good"

    run(test)


def test_a_call_past_the_bounds_is_refused_at_once() -> None:
    gate = asyncio.Event()

    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        await gate.wait()
        return await echo(request)

    async def test() -> None:
        for limits, resource_limit in (({"calls_max": 2}, 2), ({"request_bytes_max": 10}, 10)):
            gate.clear()
            stream = Stream(service(get, **limits))
            stream.send(b"abc", b"abc", b"abc")
            [refused] = await stream.receive()
            error = error_of(refused)
            assert refused.id == 3
            assert isinstance(error, ResourceExhausted)
            assert (error.limit, error.retry_delay_ms > 0) == (resource_limit, True)
            gate.set()
            stream.end()
            assert {reply.id for reply in await stream.rest()} == {1, 2}

    run(test)


def test_where_replies_are_not_taken_no_more_calls_are_read() -> None:
    begun: list[bytes] = []

    async def get(request: kv_pb2.KvGetRequest) -> bytes:
        begun.append(request.key)
        return b"x" * 1_000

    async def test() -> None:
        stream = Stream(service(get, reply_bytes_max=10_000, message_bytes_max=2_000))
        stream.send(*[b"%d" % number for number in range(200)])
        stream.end()
        await stream.receive()
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(begun) < 15
        assert len(await stream.rest()) == 199
        assert len(begun) == 200

    run(test)


def test_large_replies_to_what_only_reads_are_refused_where_those_before_are_not_taken() -> None:
    async def get(_request: kv_pb2.KvGetRequest) -> bytes:
        await asyncio.sleep(0)
        return b"x" * 40_000

    async def test() -> None:
        stream = Stream(service(get, reply_bytes_max=25_000, message_bytes_max=50_000))
        stream.send(*[b"%d" % number for number in range(20)])
        stream.end()
        replies = await stream.rest()
        assert len(replies) == 20
        refused = [error_of(each) for each in replies if each.status]
        assert len(refused) == 18
        assert all(isinstance(each, ResourceExhausted) and each.resource == "replies" for each in refused)

    run(test)


def test_a_reply_that_no_message_holds_is_refused_and_others_go_on() -> None:
    async def get(request: kv_pb2.KvGetRequest) -> bytes:
        return b"x" * int(request.key)

    async def test() -> None:
        stream = Stream(service(get))
        stream.send(b"%d" % (REPLY_BYTES_MAX + 1), b"1")
        stream.end()
        large, small = await stream.rest()
        assert isinstance(error_of(large), TooLarge)
        assert small.reply == b"x"

    run(test)


def ending(left: list[bytes]) -> Behaviour:
    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        try:
            await asyncio.Event().wait()
        finally:
            left.append(request.key)
        raise AssertionError

    return get


def test_a_call_that_its_caller_takes_back_ends_and_is_not_answered() -> None:
    left: list[bytes] = []

    async def test() -> None:
        stream = Stream(service(ending(left)))
        stream.send(b"a")
        stream.send(cancelled=(1, 77))
        stream.end()
        assert await stream.rest() == []
        async with asyncio.timeout(5):
            while left != [b"a"]:
                await asyncio.sleep(0)

    run(test)


def test_a_call_whose_time_is_over_ends_and_is_answered_as_unknown() -> None:
    left: list[bytes] = []

    async def test() -> None:
        stream = Stream(service(ending(left), sweep_ms=1.0))
        stream.send(b"a", timeout_ms=5)
        stream.end()
        (late,) = await stream.rest()
        assert isinstance(from_status(late.status), OutcomeUnknown)
        async with asyncio.timeout(5):
            while left != [b"a"]:
                await asyncio.sleep(0)

    run(test)


def test_a_stream_that_breaks_ends_its_calls() -> None:
    left: list[bytes] = []

    async def test() -> None:
        stream = Stream(service(ending(left)))
        stream.send(b"a", b"b")
        receiving = asyncio.ensure_future(stream.receive())
        for _ in range(10):
            await asyncio.sleep(0)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        await stream.messages.aclose()
        assert sorted(left) == [b"a", b"b"]

    run(test)


def test_what_the_node_itself_drops_is_unknown_to_the_caller() -> None:
    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        dropped = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(dropped.cancel)
        await dropped
        raise AssertionError

    async def test() -> None:
        stream = Stream(service(get))
        stream.send(b"a")
        stream.end()
        [reply] = await stream.rest()
        assert isinstance(error_of(reply), OutcomeUnknown)

    run(test)


def test_a_server_that_stops_answers_all_that_it_has_begun_and_ends_the_stream() -> None:
    gate = asyncio.Event()
    begun: list[bytes] = []

    async def get(request: kv_pb2.KvGetRequest) -> kv_pb2.KvGetResponse:
        begun.append(request.key)
        await gate.wait()
        return await echo(request)

    async def test() -> None:
        calls = service(get)
        stream = Stream(calls)
        stream.send(b"a")
        rest = asyncio.ensure_future(stream.rest())
        for _ in range(10):
            await asyncio.sleep(0)
        calls.stop()
        stream.send(b"b", first_id=2)
        for _ in range(10):
            await asyncio.sleep(0)
        gate.set()
        assert [key_of(reply) for reply in await rest] == [b"a"] == begun
        with pytest.raises(Unavailable):
            await Stream(calls).receive()

    run(test)


def test_no_more_streams_are_open_than_the_bound() -> None:
    async def test() -> None:
        calls = service(echo, streams_max=1)
        one, two = Stream(calls), Stream(calls)
        one.send(b"a")
        await one.receive()
        with pytest.raises(ResourceExhausted):
            await two.receive()
        one.end()
        await one.rest()
        three = Stream(calls)
        three.send(b"b")
        assert len(await three.receive()) == 1
        await three.messages.aclose()

    run(test)
